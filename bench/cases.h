/* SPDX-License-Identifier: MIT */
/* A call of a collective that is measured: its operands, and how it is started. */
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
    bool local; /* all ranks share a node */
    int count;  /* doubles in a block, or in the vector of a bcast or reduction */
    double *send, *recv;
    int *counts, *displs;  /* of `count` each, one per rank */
    int *byte_displs;      /* in bytes */
    MPI_Aint *wide_displs; /* in bytes */
    MPI_Datatype *types;
    MPI_Info info;             /* of persistent requests */
    const struct nbc_alg *alg; /* the algorithm that the shim runs, and its segment size */
    int64_t segment;
};

/* Whether all ranks share a node, by the names of processors. Asks once: all communicators that are
 * measured have all ranks. */
bool all_on_one_node(MPI_Comm comm);

/* Returns a duplicate with this hint for nbcshim. */
MPI_Comm comm_with_hint(MPI_Comm comm, const char *key, const char *value);

/* Allocates buffers and arrays for blocks of `count` doubles. Returns false if memory ran out; free
 * them in either case. */
bool operands_make(struct operands *o, enum nbc_coll coll, MPI_Comm comm, int count);
void operands_free(struct operands *o);

/* Sets o->alg and o->segment to those that the shim selects for these operands. */
void operands_ask(struct operands *o);

/* Returns the number of blocks in the larger buffer: one for each rank or neighbor. */
int operands_blocks(const struct operands *o);

/* Returns the number of doubles in each buffer, which suffices for the larger side. */
size_t operands_doubles(const struct operands *o);

/* Make the blocking call; start the nonblocking collective; make the persistent request. Return
 * false if this side does not have the function. */
bool operands_call(const struct calls *c, const struct operands *o);
bool operands_start(const struct calls *c, const struct operands *o, MPI_Request *r);
bool operands_init(const struct calls *c, const struct operands *o, MPI_Request *r);

#endif
