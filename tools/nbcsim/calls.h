/* SPDX-License-Identifier: MIT */
/* Calls to be simulated: a collective, a number of ranks, bytes as nbc_shape_bytes counts them;
 * blocks are equal, types packed, operators commutative, neighborhoods rings. */
#ifndef NBCSIM_CALLS_H
#define NBCSIM_CALLS_H

#include "engine.h"
#include "nodes.h"
#include "select.h"

struct call {
    enum nbc_coll coll;
    int size, root;
    int64_t bytes;
    int64_t segment; /* 0: that of the rule, or the algorithm's own choice */
    int ppn;         /* makes the node map */
};

/* What all ranks' shapes share. */
struct arguments {
    struct call call;
    struct nbc_type types[NBC_TYPE_FIRST_PEER];
    struct nbc_side send, recv;
    int64_t *counts, *displs;
    struct nbc_nodes nodes;
    bool has_nodes;
};

/* False: no memory. */
bool arguments_make(struct arguments *a, const struct call *call);
void arguments_free(struct arguments *a);

/* The shape of one rank. It points to the arguments and to what is in `neighbors`. */
struct own {
    struct nbc_shape shape;
    struct nbc_neighbors neighbors;
    int around[2];
};
void arguments_shape(const struct arguments *a, int rank, struct own *own);

/* The algorithm that the rules choose, and its segment. */
const struct nbc_alg *call_choice(const struct arguments *a, const struct nbc_rules *rules,
                                  int64_t *segment);

/* What a call by an algorithm may come to. */
struct limits {
    int64_t ops;      /* operations of all ranks that are simulated */
    bool no_symmetry; /* simulate every rank */
};

/* All ranks' schedules, matched. NULL: *wrong says why; "too large" where the limits do. */
struct program *call_program(const struct arguments *a, const struct nbc_alg *alg,
                             const struct limits *limits, const char **wrong);

/* "too large": to be compared by address. */
extern const char call_too_large[];

/* Seconds below which no algorithm can be. */
struct bounds {
    double latency; /* until news from one rank has reached all, sent on in the best of ways */
    double bytes;   /* through one rank's port */
    double work;    /* reductions */
    double rounds; /* ⌈log₂P⌉ messages one after the other: not a bound where a rank may send the */
                   /* next message before the last one has arrived */
};

struct bounds call_bounds(const struct call *call, const struct network *net);
double bounds_most(const struct bounds *b);

#endif
