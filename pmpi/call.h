/* SPDX-License-Identifier: MIT */
/* From the arguments of a call to an operation: checks, shape, algorithm, schedule, request. */
#ifndef NBC_CALL_H
#define NBC_CALL_H

#include "next.h"

#include "coll.h"
#include "raise.h"
#include "transport.h"

/* One side of a call as the program gave it. */
struct nbc_args {
    const void *buf;
    int64_t count;
    struct nbc_ints counts, displs;
    MPI_Datatype type;
    const MPI_Datatype *types; /* the w collectives: one per peer, and displs in bytes */
};

/* The three forms of a collective. */
enum nbc_kind { NBC_KIND_BLOCKING, NBC_KIND_NONBLOCKING, NBC_KIND_PERSISTENT, NBC_NKINDS };

/* What a call is made for: the program's own, or ours, which NBCSHIM_CHECK compares with them. */
enum nbc_purpose {
    NBC_FOR_PROGRAM,
    NBC_FOR_OTHERS, /* before collective functions that are not ours */
    NBC_FOR_TAGS,   /* to find free tags */
    NBC_FOR_FINALIZE,
    NBC_FOR_CHECK /* itself */
};

/* A call of any of the 22. What a collective does not have stays zero. */
struct nbc_call {
    enum nbc_coll coll;
    enum nbc_purpose purpose;
    MPI_Comm comm;
    struct nbc_args send, recv; /* bcast: recv; reductions: count and type in send and recv both */
    int root;
    MPI_Op op;
    MPI_Info info; /* persistent ones: */
    bool has_info;
};

/* What the calls below return, having done nothing, where the call is to go to the MPI's own
 * function: the shim stands aside, or does not know the communicator (made by the MPI for itself,
 * or no communicator at all). The same on all ranks of the communicator. */
enum { NBC_NOT_OURS = -1 };

/* MPI_I…: starts the operation. Local. Sets *request only on success. Returns MPI_SUCCESS, or an
 * error after raising it on the communicator's error handler. MPI-4.1 sections 7.12, 8.9. */
int nbc_call_start(const struct nbc_call *call, MPI_Request *request);

/* MPI_…_init: sets up an inactive persistent operation. Collective. MPI-4.1 sections 7.13, 8.10. */
int nbc_call_init(const struct nbc_call *call, MPI_Request *request);

/* The blocking form: started, waited for, forgotten. A blocking collective is ours too, so that a
 * rank that waits in it goes on forwarding what it has started before. */
int nbc_call_wait(const struct nbc_call *call);

/* The same for the shim's own ends, whatever NBCSHIM_BLOCKING says of the program's. */
int nbc_call_run(const struct nbc_call *call);

struct nbc_alg;
struct nbc_context;
struct nbc_holdings;
struct nbc_request;
struct nbc_sched;

/* A request with a run of this schedule, without a plan. Under the lock, as the next. Returns an
 * MPI error code. */
int nbc_call_equip(struct nbc_sched *sched, const struct nbc_holdings *holdings,
                   struct nbc_request **out);

/* What the environment, the call's info and the communicator's say of algorithm and segment size:
 * NULL, and 0, for nothing. */
void nbc_call_overrides(const struct nbc_call *call, const struct nbc_context *c,
                        const struct nbc_alg **override, int64_t *segment);

/* The algorithm for a shape with these, by the rules in force, and its segment size in the shape.
 */
const struct nbc_alg *nbc_call_choose(struct nbc_shape *s, const struct nbc_alg *override,
                                      int64_t segment);

/* Starts a nonblocking operation in a context, unchecked. Under the lock. Returns an MPI error
 * code. */
int nbc_call_launch(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out);

/* Returns when r is complete. Under the lock, which it lets go between polls. */
void nbc_call_await(struct nbc_request *r);

extern const struct nbc_transport nbc_mpi_transport;

#endif
