/* SPDX-License-Identifier: MIT */
/* Runs the schedules of all ranks through the LogGP model, in one process, event by event.
 *
 * A rank has one processor: it is busy for o with each message it sends or has received, and for as
 * long as its copies and reductions take; it does things in the order in which they become
 * possible. A message leaves through a port that takes (bytes − 1) G for it and rests for g, needs
 * L to the other end, and comes in through a port of the same kind, while it still goes out. */
#ifndef NBCSIM_ENGINE_H
#define NBCSIM_ENGINE_H

#include "network.h"
#include "sched.h"

/* All ranks do the same, but for whom they talk to: then one of them stands for all. Peers are told
 * by their distance (ring-like algorithms), by the distance that odd ranks count the other way
 * (neighbor exchange), or by exclusive or (cube-like ones). */
enum symmetry { NONE, ROTATION, MIRROR, CUBE };

/* The number that stands for this peer of a rank, the same on both sides of a message. */
int symmetry_class(enum symmetry symmetry, int size, int rank, int peer, bool sends);

struct program;

/* For `size` ranks. With a symmetry one schedule is added, else one for each rank in turn. NULL:
 * no memory. */
struct program *program_new(int size, enum symmetry symmetry);

/* Takes what it needs of a rank's schedule; false: no memory. */
bool program_add(struct program *p, const struct nbc_sched *s, const struct nbc_shape *shape);

/* Finds the receive of each send. NULL, or what does not fit. */
const char *program_match(struct program *p);

struct path {
    int64_t messages, bytes, reduced, copied; /* on the longest chain of waits */
};

struct result {
    double time;        /* until the last rank is done */
    int64_t messages;   /* in all */
    double bytes;       /* may be more than an integer can count */
    int64_t most_bytes; /* that one rank sends or receives */
    int64_t temp;       /* most temporary memory of a rank */
    struct path path;   /* if asked for */
    double waited;      /* of its time, for ports and processors busy with something else */
};

/* NULL, or what went wrong: a rank that waits for ever, no memory. path: follow the critical path,
 * for 16 bytes an operation more. May be called again, with other networks. */
const char *program_run(struct program *p, const struct network *net, bool path,
                        struct result *result);

/* The k-th operation of a rank, and whom it waits for, for those who write programs out. */
struct step {
    enum nbc_op_kind kind;
    int peer, nth; /* messages: the nth between these two ranks */
    int64_t bytes;
};

int64_t program_size(const struct program *p);
int program_steps(const struct program *p, int rank);
struct step program_step(const struct program *p, int rank, int k);

/* Calls `edge` for each pair of which the second waits for the first; issue: only to be posted. */
void program_edges(const struct program *p, int rank,
                   void (*edge)(void *self, int first, int second, bool issue), void *self);

size_t program_memory(const struct program *p);
void program_free(struct program *p);

#endif
