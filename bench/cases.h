/* SPDX-License-Identifier: MIT */
/* One call of a collective to be measured. */
#ifndef NBC_BENCH_CASES_H
#define NBC_BENCH_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include "coll.h"
#include "native.h"

struct nbc_alg;

struct operands {
    enum nbc_coll coll;
    MPI_Comm comm; /* with a ring topology for neighborhoods */
    int rank, size;
    int count; /* doubles in a block, or in the vector of bcast and reductions */
    double *send, *recv;
    int *counts, *displs;  /* of `count` each, one per rank */
    int *byte_displs;      /* in bytes */
    MPI_Aint *wide_displs; /* in bytes */
    MPI_Datatype *types;
    MPI_Info info;             /* of persistent requests */
    const struct nbc_alg *alg; /* what the shim runs, and its segment size */
    int64_t segment;
};

/* Buffers and arrays for blocks of that many doubles. False without memory. */
bool operands_make(struct operands *o, enum nbc_coll coll, MPI_Comm comm, int count);
void operands_free(struct operands *o);

/* Finds out which algorithm the shim runs for them. */
void operands_ask(struct operands *o);

/* How many a buffer has room for: enough for the larger side. */
size_t operands_doubles(const struct operands *o);

/* Starts the collective, nonblocking, or makes its persistent request. False: the side lacks it. */
bool case_start(const struct calls *c, const struct operands *o, MPI_Request *r);
bool case_init(const struct calls *c, const struct operands *o, MPI_Request *r);

#endif
