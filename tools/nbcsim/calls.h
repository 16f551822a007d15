/* SPDX-License-Identifier: MIT */
/* Simulated calls: a collective, a number of ranks, and bytes (nbc_shape_bytes). Blocks have equal
 * size, types are packed, operators are commutative, neighborhoods are rings. */
#ifndef NBCSIM_CALLS_H
#define NBCSIM_CALLS_H

#include "engine.h"
#include "nodes.h"
#include "select.h"

struct call {
    enum nbc_coll coll;
    int size, root;
    int64_t bytes;
    int64_t segment; /* bytes; 0: that of the rule, or the algorithm's default */
    int64_t eager;   /* of the shape */
    bool sockets;    /* if ranks do not share a node */
    int ppn;         /* ranks per node, for the node map */
};

/* The arguments that the shapes of all ranks share. */
struct arguments {
    struct call call;
    struct nbc_type types[NBC_TYPE_FIRST_PEER];
    struct nbc_side send, recv;
    int64_t *counts, *displs;
    struct nbc_nodes nodes;
    bool has_nodes;
};

/* Returns false if memory ran out. */
bool arguments_make(struct arguments *a, const struct call *call);
void arguments_free(struct arguments *a);

/* Returns the shape of one rank. It refers to the arguments and to `neighbors`. */
struct own {
    struct nbc_shape shape;
    struct nbc_neighbors neighbors;
    int around[2];
};
void arguments_shape(const struct arguments *a, int rank, struct own *own);

/* Returns the algorithm that the rules select, and its segment size. */
const struct nbc_alg *call_choice(const struct arguments *a, const struct nbc_rules *rules,
                                  int64_t *segment);

/* Limits of a simulation. */
struct limits {
    int64_t ops;      /* operations of all simulated ranks */
    bool no_symmetry; /* simulate every rank */
};

/* Returns the schedules of all ranks, with messages matched. Returns NULL and sets *wrong on an
 * error; to call_too_large if the limits are exceeded. */
struct program *call_program(const struct arguments *a, const struct nbc_alg *alg,
                             const struct limits *limits, const char **wrong);

/* "too large"; compare it by address. */
extern const char call_too_large[];

/* Lower bounds of the time of any algorithm, in seconds. */
struct bounds {
    double latency; /* of a broadcast of no data along an optimal tree */
    double bytes;   /* data through the port of one rank */
    double work;    /* reductions */
    double
        rounds; /* ⌈log₂P⌉ consecutive messages: not a bound if a rank may send the next message */
                /* before the last one has arrived */
};

struct bounds call_bounds(const struct call *call, const struct network *net);
double bounds_most(const struct bounds *b);

#endif
