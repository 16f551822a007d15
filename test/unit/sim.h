/* SPDX-License-Identifier: MIT */
/* A simulation of P ranks in one process. Their schedules run over a simulated network that
 * transfers real bytes and is as adverse as MPI allows: messages complete late and in any order,
 * ranks start late, a posted receive buffer holds garbage until its message is complete, and a
 * rendezvous send reads its data as late as possible. A run is determined by one seed. */
#ifndef NBC_TEST_SIM_H
#define NBC_TEST_SIM_H

#include "exec.h"

/* --- random numbers --------------------------------------------------------------------------- */

struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *r);

/* Returns a number in 0 … n − 1. */
int64_t rng_below(struct rng *r, int64_t n);

static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns a hash of the arguments. */
static inline uint64_t hash3(uint64_t x, uint64_t y, uint64_t z)
{
    return hash_mix(hash_mix(hash_mix(x + UINT64_C(0x9e3779b97f4a7c15)) + y + 1) + z + 1);
}

/* --- datatypes -------------------------------------------------------------------------------- */

enum { ATOM = 8, MAX_ATOMS = 4 };

/* A type map: pieces of equal size at these offsets, in this order. */
struct layout {
    struct nbc_type type;
    int unit; /* bytes of a piece: 1 for the type BYTE, else ATOM */
    int natoms;
    int64_t at[MAX_ATOMS];
};

/* Sets `type` from the pieces and the extent. */
struct layout layout_make(int unit, int natoms, const int64_t *at, int64_t extent);

/* Copy `count` elements, in type-map order, from memory to packed bytes and back. */
void layout_pack(const struct layout *l, const void *element, int64_t count, void *out);
void layout_unpack(const struct layout *l, void *element, int64_t count, const void *in);

/* --- the machine ------------------------------------------------------------------------------ */

struct sim_config {
    uint64_t seed;
    bool rendezvous; /* a send completes only when it is matched */
    int jitter;      /* largest delay of a message, in rounds */
    int delay;       /* largest delay of the start of a rank, in rounds; of some, ten times that */
    int fail_at;     /* number of the transport call that returns an error; 0: none */
    bool staged;     /* buffers of some ranks are a device's: copies are late too */
    bool swallow;    /* a receive that fails has received its message, if that was there */
};

struct sim;
struct sim_op;

/* A rank of an operation. The caller sets it and keeps it until sim_free. */
struct sim_rank {
    const struct nbc_sched *sched;
    const struct layout *layouts;                                   /* by type slot */
    void (*reduce)(void *dst, const void *left, const void *right); /* one atom; may alias */
    void *send, *recv;                                              /* base addresses */
    int runs;                                                       /* number of runs; 0 means 1 */
    /* Called when a run, counted from 0, is complete: checks results and prepares the next run. */
    void (*finished)(struct sim_rank *rank, int run);
    void *user;

    struct sim_op *op; /* from here on, set by the simulation */
    struct nbc_exec exec;
    void *temp, *memory;
    const struct nbc_sched *runs_as; /* sched, or what is staged of it */
    void *shadow[2];                 /* of the send and the receive buffer, or NULL */
    struct channel *from;            /* per peer */
    int64_t start;                   /* round */
    int run;
    bool live, told; /* active; has received an error in this run */
    bool released;   /* the last operation of a staged schedule is over */
    bool spoiled;    /* this run had an error, its own or one of others */
    int crowd;       /* largest number of messages in flight */
    int local, group;
};

struct sim *sim_new(const struct sim_config *config);

/* Adds an operation of `size` ranks, or of two groups: rank i of the second group is ranks[size +
 * i]. The operations of a simulation run concurrently and are independent. */
void sim_add(struct sim *sim, struct sim_rank *ranks, int size, int remote_size);

/* Runs all operations to completion, also after the error of fail_at. Returns NULL, or an error
 * message: mismatched messages, a deadlock, a message that was not received, an error of a run that
 * had none. */
const char *sim_run(struct sim *sim);

/* Returns whether the error of fail_at was injected. */
bool sim_failed(const struct sim *sim);

void sim_free(struct sim *sim);

#endif
