/* SPDX-License-Identifier: MIT */
/* P ranks in one process. Their schedules run over a simulated network that carries real bytes and
 * does whatever MPI allows, as unkindly as it can: messages complete in any order and late, ranks
 * start late, a posted receive buffer holds garbage until its message is complete, a rendezvous
 * send reads its data as late as possible. Everything follows from one seed. */
#ifndef NBC_TEST_SIM_H
#define NBC_TEST_SIM_H

#include "exec.h"

/* --- random numbers --------------------------------------------------------------------------- */

struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *r);

/* 0 … n − 1. */
int64_t rng_below(struct rng *r, int64_t n);

/* A number that depends on the arguments alone. */
uint64_t hash3(uint64_t x, uint64_t y, uint64_t z);

/* --- datatypes -------------------------------------------------------------------------------- */

enum { ATOM = 8, MAX_ATOMS = 4 };

/* A type map: pieces of one size at these offsets, in this order. */
struct layout {
    struct nbc_type type;
    int unit; /* bytes of a piece: 1 for the type BYTE, else ATOM */
    int natoms;
    int64_t at[MAX_ATOMS];
};

/* Fills in `type` from the pieces and the extent. */
struct layout layout_make(int unit, int natoms, const int64_t *at, int64_t extent);

/* Bytes of `count` elements in type-map order, to and from memory. */
void layout_pack(const struct layout *l, const void *element, int64_t count, void *out);
void layout_unpack(const struct layout *l, void *element, int64_t count, const void *in);

/* --- the machine ------------------------------------------------------------------------------ */

struct sim_config {
    uint64_t seed;
    bool rendezvous; /* a send completes only when it is matched */
    int jitter;      /* a message completes up to so many rounds late */
    int delay;       /* a rank starts up to so many rounds late, some ten times that */
    int fail_at;     /* the so-many-th call of the transport returns an error; 0: none */
};

struct sim;
struct sim_op;

/* What one rank does in one operation. The caller fills it in and keeps it until sim_free. */
struct sim_rank {
    const struct nbc_sched *sched;
    const struct layout *layouts;                                   /* by type slot */
    void (*reduce)(void *dst, const void *left, const void *right); /* one atom; may alias */
    void *send, *recv;                                              /* base addresses */
    int runs; /* how often to start it; 0 is 1 */
    /* Called when a run is complete (counted from 0): to check results, and to set up the next. */
    void (*finished)(struct sim_rank *rank, int run);
    void *user;

    struct sim_op *op; /* ours from here on */
    struct nbc_exec exec;
    void *temp, *memory;
    struct channel *from; /* per peer */
    int64_t start;        /* round */
    int run;
    bool live, told; /* started and not complete; has been handed an error */
    int crowd;       /* most messages that were under way at once */
    int local, group;
};

struct sim *sim_new(const struct sim_config *config);

/* Adds an operation of `size` ranks, or of two groups: rank i of the second group is ranks[size +
 * i]. Operations of one simulation run at the same time and share nothing. */
void sim_add(struct sim *sim, struct sim_rank *ranks, int size, int remote_size);

/* Runs all to the end. NULL, or what went wrong: mismatched messages, deadlock, a message that
 * nobody received, a transport call after an error. */
const char *sim_run(struct sim *sim);

/* Whether the error of fail_at has been injected. */
bool sim_failed(const struct sim *sim);

void sim_free(struct sim *sim);

#endif
