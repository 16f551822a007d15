/* SPDX-License-Identifier: MIT */
/* An event-driven simulation of the schedules of all ranks in the LogGP model, in one process.
 *
 * A rank has one processor. It is busy for o with each message that it sends or receives, and with
 * its copies and reductions, in the order in which they become possible. A message occupies the
 * sender's port for (bytes − 1) G, after which the port rests for g; it takes L to the receiver,
 * and occupies a port there in the same way, overlapping with the sender's. */
#ifndef NBCSIM_ENGINE_H
#define NBCSIM_ENGINE_H

#include "network.h"
#include "sched.h"

/* Symmetries under which all ranks do the same, with other peers, so that one rank is simulated for
 * all. Peers correspond by their distance (ring-like algorithms), by the distance with opposite
 * sign for odd ranks (neighbor exchange), by exclusive or (hypercube-like ones), or by the distance
 * in one digit (recursive multiplying; digits as that algorithm factorizes the number of ranks). */
enum symmetry { NONE, ROTATION, MIRROR, CUBE, DIGITWISE };

/* Sets `radix` to the radices of the digits of 0 … size − 1, the last digit first. Returns their
 * number; 0 if a prime factor is above 7. */
enum { MOST_DIGITS = 32 };
int symmetry_digits(int size, int *radix);

/* Returns the number of a peer under a symmetry, the same on both sides of a message. */
int symmetry_class(enum symmetry symmetry, int size, int rank, int peer, bool sends);

struct program;

/* Returns an empty program for `size` ranks; NULL if memory ran out. Add `nranks` schedules: with a
 * symmetry one of each class of ranks, which exchanges messages only with ranks that do the same at
 * the same time; without, one per rank in ascending order. */
struct program *program_new(int size, int nranks, enum symmetry symmetry);

/* Copies what the simulation needs of a schedule. Returns false if memory ran out. */
bool program_add(struct program *p, const struct nbc_sched *s, const struct nbc_shape *shape);

/* Matches sends with receives. Returns NULL, or an error message. */
const char *program_match(struct program *p);

struct path {
    int64_t messages, bytes, reduced, copied; /* on the critical path */
};

struct result {
    double time;        /* until the last rank is done */
    int64_t messages;   /* in all */
    double bytes;       /* in all; may exceed the range of an integer */
    int64_t most_bytes; /* largest number of bytes that a rank sends or receives */
    int64_t temp;       /* largest temporary memory of a rank, in bytes */
    struct path path;   /* on request */
    double waited;      /* time on the critical path in which ports and processors were busy */
};

/* Runs a program. Returns NULL, or an error message: a deadlock, or no memory. path: record the
 * critical path, which takes 16 bytes more per operation. May be called again with other networks.
 */
const char *program_run(struct program *p, const struct network *net, bool path,
                        struct result *result);

/* The k-th operation of a rank and its predecessors, for output of programs. */
struct step {
    enum nbc_op_kind kind;
    int peer, nth; /* messages: the nth between these two ranks */
    int64_t bytes;
};

int64_t program_size(const struct program *p);
int program_steps(const struct program *p, int rank);
struct step program_step(const struct program *p, int rank, int k);

/* Calls `edge` for each edge; issue: the second operation waits only until the first is posted. */
void program_edges(const struct program *p, int rank,
                   void (*edge)(void *self, int first, int second, bool issue), void *self);

void program_free(struct program *p);

#endif
