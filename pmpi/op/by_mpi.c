/* SPDX-License-Identifier: MIT */
#include "op/by_mpi.h"

#include <string.h>

#include "nbcshim.h"

#include "base/settings.h"
#include "base/state.h"
#include "below/detect.h"
#include "below/next.h"
#include "below/quirks.h"

#include "coll.h"

/* A function of the MPI, called with the arguments of a call. Without a call: whether the MPI has
 * it. */
typedef int by_mpi(const struct nbc_call *call, MPI_Request *request);

#ifdef PIC
#define FIND(name)                           \
    static __typeof__(MPI_##name) *function; \
    if (!function)                           \
    function = (__typeof__(MPI_##name) *)nbc_next_find(#name)
#else
#define FIND(name)                                     \
    extern __typeof__(MPI_##name) PMPI_##name PERHAPS; \
    __typeof__(MPI_##name) *function = PMPI_##name
#endif

/* The arguments in the rows of collectives.def, as struct nbc_call has them. The counts of a
 * reduce-scatter, and the displacements of a scatterv, are on the send side. */
#define WRITABLE(address) ((void *)(uintptr_t)(address))
#define VALUE(type, name, ...) const type name __attribute__((unused)) = (type)(__VA_ARGS__)
#define ADDRESS(name, ...) void *const name __attribute__((unused)) = WRITABLE(__VA_ARGS__)
#define ARGUMENTS(s, r)                                                        \
    VALUE(C, sendcount, (s).count);                                            \
    VALUE(C, recvcount, (r).count);                                            \
    VALUE(C, count, (r).count);                                                \
    VALUE(MPI_Datatype, sendtype, (s).type);                                   \
    VALUE(MPI_Datatype, recvtype, (r).type);                                   \
    VALUE(MPI_Datatype, datatype, (r).type);                                   \
    VALUE(MPI_Op, op, call->op);                                               \
    VALUE(MPI_Comm, comm, call->comm);                                         \
    VALUE(int, root, call->root);                                              \
    ADDRESS(sendbuf, (s).buf);                                                 \
    ADDRESS(recvbuf, (r).buf);                                                 \
    ADDRESS(buffer, (r).buf);                                                  \
    ADDRESS(sendtypes, (s).types);                                             \
    ADDRESS(recvtypes, (r).types);                                             \
    ADDRESS(sendcounts, (s).counts.data);                                      \
    ADDRESS(recvcounts, (r).counts.width ? (r).counts.data : (s).counts.data); \
    ADDRESS(displs, (s).displs.width ? (s).displs.data : (r).displs.data);     \
    ADDRESS(sdispls, (s).displs.data);                                         \
    ADDRESS(rdispls, (r).displs.data)

#define DEFINE(name, args)                                                      \
    static int by_mpi_##name(const struct nbc_call *call, MPI_Request *request) \
    {                                                                           \
        FIND(name);                                                             \
        (void)request;                                                          \
        if (!call)                                                              \
            return function != NULL;                                            \
        ARGUMENTS(call->send, call->recv);                                      \
        return function args;                                                   \
    }
#define DEFINE_BLOCKING DEFINE
#define DEFINE_NONBLOCKING DEFINE
#define DEFINE_PERSISTENT(name, args)
#define EXTENSION_OF(...)

#define ENTRY(name, COLL, form, params, args, of, ...) DEFINE_##form(name, args)
#include "op/forms.def"
#undef ENTRY

enum { NLENGTHS = 2 }; /* of counts: int, MPI_Count */
#define PLACE(name, COLL, form) \
    [NBC_##COLL][sizeof(C) > sizeof(int)][NBC_KIND_##form] = by_mpi_##name,
#define PLACE_BLOCKING PLACE
#define PLACE_NONBLOCKING PLACE
#define PLACE_PERSISTENT(name, COLL, form)
#define ENTRY(name, COLL, form, ...) PLACE_##form(name, COLL, form)

static by_mpi *const functions[NBC_NCOLLS][NLENGTHS][NBC_NKINDS] = {
#include "op/forms.def"
};

static by_mpi *function_of(const struct nbc_call *call)
{
    return functions[call->coll][call->large][call->kind];
}

/* Where the MPI lacks the functions with MPI_Count, ranks that use either form in one call could
 * not all use the MPI's. */
static bool forms_may_differ(const struct nbc_call *call)
{
    uint32_t large =
        call->kind == NBC_KIND_BLOCKING ? UINT32_C(1) << call->coll : NBC_LARGE_REQUESTS;
    return nbc_referenced_large & large && !nbc_settings.test.same_form;
}

bool nbc_by_mpi_can(const struct nbc_call *call)
{
    by_mpi *function = function_of(call);
    return function && function(NULL, NULL) && !forms_may_differ(call) &&
           !(nbc_quirks_wrong(call->kind == NBC_KIND_BLOCKING) >> call->coll & 1);
}

int nbc_by_mpi_call(const struct nbc_call *call, MPI_Request *request)
{
    return function_of(call)(call, request);
}

/* In the memory of a run, before its list of datatypes. */
struct native {
    struct nbc_call call;
    MPI_Request request;
    bool started;
};

static bool native_poll(struct nbc_run *run, int *error)
{
    struct native *n = run->memory;
    int flag = 0;
    if (!n->started) {
        n->started = true;
        *error = nbc_by_mpi_call(&n->call, &n->request);
        return *error;
    }
    *error = NEXT(Test)(&n->request, &flag, MPI_STATUS_IGNORE);
    return flag || *error;
}

struct nbc_run *nbc_by_mpi_run(const struct nbc_call *call, const struct nbc_bound *b)
{
    size_t list = (size_t)b->shape.ntypes * sizeof *b->types;
    struct nbc_run *run = nbc_run_plain(sizeof(struct native) + list, native_poll);
    if (!run)
        return NULL;
    struct native *n = run->memory;
    *n = (struct native){.call = *call};
    run->handles =
        (struct nbc_handle_refs){memcpy(n + 1, b->types, list), b->shape.ntypes, b->reducer};
    run->bytes = nbc_shape_bytes(&b->shape);
    return run;
}
