/* SPDX-License-Identifier: MIT */
/* From the arguments of a call to an operation: checks, shape, algorithm, schedule, request. */
#ifndef NBC_CALL_H
#define NBC_CALL_H

#include "next.h"

#include "coll.h"
#include "transport.h"

/* One side of a call as the program gave it. */
struct nbc_args {
    const void *buf;
    int64_t count;
    struct nbc_ints counts, displs;
    MPI_Datatype type;
    const MPI_Datatype *types; /* the w collectives: one per peer, and displs in bytes */
};

/* A call of any of the 22. What a collective does not have stays zero. */
struct nbc_call {
    enum nbc_coll coll;
    MPI_Comm comm;
    struct nbc_args send, recv; /* bcast: recv; reductions: count and type in send and recv both */
    int root;
    MPI_Op op;
    MPI_Info info; /* persistent ones: */
    bool has_info;
};

/* MPI_I…: starts the operation. Local. Sets *request only on success. Returns MPI_SUCCESS, or an
 * error after raising it on the communicator's error handler. MPI-4.1 sections 7.12, 8.9. */
int nbc_call_start(const struct nbc_call *call, MPI_Request *request);

/* MPI_…_init: sets up an inactive persistent operation. Collective. MPI-4.1 sections 7.13, 8.10. */
int nbc_call_init(const struct nbc_call *call, MPI_Request *request);

/* The blocking form: started, waited for, forgotten. */
int nbc_call_wait(const struct nbc_call *call);

/* Whether blocking collectives on this communicator are ours: the same on all its ranks. */
bool nbc_takes_blocking(MPI_Comm comm);

/* Raises an error on the handler of a communicator, MPI_COMM_WORLD's where that is none, and
 * returns it. Not under the lock. */
int nbc_raise(MPI_Comm comm, int error);

extern const struct nbc_transport nbc_mpi_transport;

#endif
