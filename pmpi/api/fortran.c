/* SPDX-License-Identifier: MIT */
/* Fortran entry points of the collectives that the MPI's own Fortran binding lacks, or, on Open
 * MPI, of all. They serve mpif.h, mpi and mpi_f08 alike: handles are INTEGERs or types of one
 * INTEGER, passed by reference, and an absent IERROR is a null pointer. They call MPI_X, so that
 * tools see them.
 *
 * Their names are in lower case, followed by no, one and two underscores, as compilers make them
 * from MPI_X; the modules bind to one underscore. The procedures of Open MPI's mpi_f08 end in
 * _f08_.
 *
 * The static library has no Fortran entry points. The bindings of an MPI may call PMPI_X in
 * MPI_Init, MPI_Start or MPI_Wait (Open MPI's do, and MPICH's of mpi_f08), which in a static
 * program is the MPI's function. A program that does not link is better than one whose operations
 * are never started. */
#include "nbcshim.h"

#include "below/next.h"

/* Open MPI's binding writes arrays that it has converted, to be freed later, into the request,
 * which it takes for one of the MPI's collectives whatever it is: with nbcshim's, memory of other
 * things is overwritten (5.0.7: in all functions with arrays of counts). So there all entry points
 * are nbcshim's. */
#if defined OPEN_MPI && defined PIC && defined NBC_FINT_IS_INT
#define NBC_FORTRAN_ALL
#endif
#ifdef NBC_FORTRAN_ALL
#define LACKED(NAME) 1
#else
#define LACKED(NAME) NBC_FORTRAN_##NAME /* 1 if the MPI lacks the function, otherwise 0 */
#endif

#if defined NBC_FORTRAN_ALL || (defined NBC_FORTRAN && defined PIC)

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifndef NBC_FORTRAN_APART
#include "base/state.h"
#include "comm/context.h"
#endif

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "argument arrays are passed on as they are");

/* Where the MPI lacks few functions, these helpers may be unused. */
#define MAYBE __attribute__((unused))

/* --- MPI_IN_PLACE and MPI_BOTTOM -------------------------------------------------------------- */

/* Open MPI defines Fortran variables of these names and compares addresses with theirs. The MPICH
 * family keeps the addresses of its Fortran variables in pointers, and has variables for mpi_f08.
 * Each MPI defines some of these symbols only. */
#define WEAK __attribute__((weak))
extern WEAK int mpi_fortran_in_place, mpi_fortran_in_place_, mpi_fortran_in_place__;
extern WEAK int mpi_fortran_bottom, mpi_fortran_bottom_, mpi_fortran_bottom__;
extern WEAK void *MPIR_F_MPI_IN_PLACE, *MPIR_F_MPI_BOTTOM;
extern WEAK int MPIR_F08_MPI_IN_PLACE, MPIR_F08_MPI_BOTTOM;

static bool is_kept(void *const *keeper, const void *address)
{
    return keeper && *keeper == address;
}

static bool is_in_place(const void *p)
{
    return p == &mpi_fortran_in_place_ || p == &mpi_fortran_in_place ||
           p == &mpi_fortran_in_place__ || p == &MPIR_F08_MPI_IN_PLACE ||
           is_kept(&MPIR_F_MPI_IN_PLACE, p);
}

static bool is_bottom(const void *p)
{
    return p == &mpi_fortran_bottom_ || p == &mpi_fortran_bottom || p == &mpi_fortran_bottom__ ||
           p == &MPIR_F08_MPI_BOTTOM || is_kept(&MPIR_F_MPI_BOTTOM, p);
}

/* The address as C has it. */
static MAYBE void *c_address(void *p)
{
    if (!p)       /* equals the address of each symbol that the MPI lacks */
        return p; /* unreached: only in the library of test/fortran */
    return is_in_place(p) ? MPI_IN_PLACE : is_bottom(p) ? MPI_BOTTOM : p;
}

/* --- arrays of datatypes ---------------------------------------------------------------------- */

/* One call, and the arrays to be freed after it. */
struct scope {
    MPI_Comm comm;
    bool neighbors; /* whether the collective is one of a neighborhood */
    MPI_Datatype *types[2];
    int n;
};

static int count_neighbors(MPI_Comm comm, bool out)
{
    int topology, rank, in = 0, dests = 0, weighted;
    NEXT(Topo_test)(comm, &topology);
    if (topology == MPI_CART) {
        NEXT(Cartdim_get)(comm, &in);
        return 2 * in;
    }
    if (topology == MPI_GRAPH) {
        /* unreached below: only in the library of test/fortran */
        NEXT(Comm_rank)(comm, &rank);
        NEXT(Graph_neighbors_count)(comm, rank, &in);
        return in;
    }
    if (topology == MPI_DIST_GRAPH)
        NEXT(Dist_graph_neighbors_count)(comm, &in, &dests, &weighted);
    return out ? dests : in;
}

static int count_peers(const struct scope *s, bool out)
{
    int inter, n = 0;
    if (s->comm == MPI_COMM_NULL)
        /* unreached: only in the library of test/fortran */
        return 0; /* the call raises the error */
    if (s->neighbors)
        return count_neighbors(s->comm, out);
    NEXT(Comm_test_inter)(s->comm, &inter);
    if (inter)
        NEXT(Comm_remote_size)(s->comm, &n); /* unreached: only in the library of test/fortran */
    else
        NEXT(Comm_size)(s->comm, &n);
    return n;
}

/* Converts an array of handles; NULL without memory. With MPI_IN_PLACE the array may be missing. */
static MAYBE const MPI_Datatype *c_types(struct scope *s, const MPI_Fint *from, const void *buf,
                                         bool out)
{
    int n = buf == MPI_IN_PLACE ? 0 : count_peers(s, out);
    MPI_Datatype *types = malloc((n + 1) * sizeof *types);
    for (int i = 0; types && i < n; i++)
        types[i] = MPI_Type_f2c(from[i]);
    return s->types[s->n++] = types;
}

static void fortran_finish(struct scope *s, int error, MPI_Request handle, MPI_Fint *request,
                           MPI_Fint *ierror)
{
    for (int i = 0; i < s->n; i++)
        free(s->types[i]);
    if (!error)
        *request = MPI_Request_c2f(handle);
    if (ierror)
        *ierror = error;
}

/* --- the entry points ------------------------------------------------------------------------- */

#define PARAM(kind, side, name) PARAM_##kind(name)
#define PARAM_IN(name) void *name,
#define PARAM_OUT(name) void *name,
#define PARAM_COUNT(name) const MPI_Fint *name,
#define PARAM_COUNTS PARAM_COUNT
#define PARAM_DISPLS PARAM_COUNT
#define PARAM_ADDRESSES(name) const MPI_Aint *name,
#define PARAM_TYPE PARAM_COUNT
#define PARAM_TYPES PARAM_COUNT
#define PARAM_OP PARAM_COUNT
#define PARAM_ROOT PARAM_COUNT
#define PARAM_INFO PARAM_COUNT

#define ARG(kind, side, name) ARG_##kind(side, name)
#define ARG_IN(side, name) c_address(name),
#define ARG_OUT ARG_IN
#define ARG_COUNT(side, name) *name,
#define ARG_COUNTS(side, name) name,
#define ARG_DISPLS ARG_COUNTS
#define ARG_ADDRESSES ARG_COUNTS
#define ARG_TYPE(side, name) MPI_Type_f2c(*name),
#define ARG_TYPES(side, name) c_types(&scope, name, c_address(side##buf), *#side == 's'),
#define ARG_OP(side, name) MPI_Op_f2c(*name),
#define ARG_ROOT ARG_COUNT
#define ARG_INFO(side, name) MPI_Info_f2c(*name),

#define ALIAS_AS(alias_name, lower, ...) \
    void alias_name(__VA_ARGS__) __attribute__((alias("mpi_" #lower "_")));
#define ALIAS(lower, ...)                            \
    ALIAS_AS(mpi_##lower, lower, __VA_ARGS__)        \
    ALIAS_AS(mpi_##lower##__, lower, __VA_ARGS__)    \
    ALIAS_AS(mpi_##lower##_f08_, lower, __VA_ARGS__) \
    ALIAS_AS(pmpi_##lower, lower, __VA_ARGS__)       \
    ALIAS_AS(pmpi_##lower##_, lower, __VA_ARGS__)    \
    ALIAS_AS(pmpi_##lower##__, lower, __VA_ARGS__)   \
    ALIAS_AS(pmpi_##lower##_f08_, lower, __VA_ARGS__)

#define NAME(kind, side, name) name,

/* The function of this name that comes after nbcshim's. */
#define NEXT_BINDING(function)                                                                \
    __extension__({                                                                           \
        static void (*kept)(void);                                                            \
        (__typeof__(function) *)nbc_next_kept(&kept, #function, __builtin_return_address(0)); \
    })

/* Calls the MPI's own binding, if it has the function, for an operation that is the MPI's; but not
 * with MPI_COMM_NULL, with which that of Open MPI 5 crashes. */
#ifdef NBC_FORTRAN_APART /* in a library of test/fortran, which has nothing else of nbcshim's */
#define IS_NATIVE(comm) false
#else
#define IS_NATIVE(comm) ((comm) != MPI_COMM_NULL && (!nbc_enabled || !nbc_comm_is_ours(comm)))
#endif
#define NATIVE(lower, ITEMS, MORE)                                       \
    if (IS_NATIVE(scope.comm)) {                                         \
        __typeof__(mpi_##lower##_) *next = NEXT_BINDING(mpi_##lower##_); \
        if (next) {                                                      \
            next(ITEMS(NAME) comm, MORE(NAME) request, ierror);          \
            return;                                                      \
        }                                                                \
    }

/* MORE: what persistent functions have between comm and request. */
#define FUNCTION(Name, lower, ITEMS, MORE)                                                \
    void mpi_##lower##_(ITEMS(PARAM) const MPI_Fint *comm, MORE(PARAM) MPI_Fint *request, \
                        MPI_Fint *ierror)                                                 \
    {                                                                                     \
        struct scope scope = {.comm = MPI_Comm_f2c(*comm),                                \
                              .neighbors = strstr(#lower, "neighbor")};                   \
        MPI_Request handle = MPI_REQUEST_NULL;                                            \
        NATIVE(lower, ITEMS, MORE)                                                        \
        int error = MPI_##Name(ITEMS(ARG) scope.comm, MORE(ARG) & handle);                \
        fortran_finish(&scope, error, handle, request, ierror);                           \
    }                                                                                     \
    ALIAS(lower, ITEMS(PARAM) const MPI_Fint *comm, MORE(PARAM) MPI_Fint *request, MPI_Fint *ierror)
#define NO_INFO(_)
#define HAS_INFO(_) _(INFO, both, info)

#define IF_0(...)
#define IF_1(...) __VA_ARGS__
#define PASTE(x, y) x##y
#define IF(flag, ...) PASTE(IF_, flag)(__VA_ARGS__)

#define COLLECTIVE(Name, name, NAME, ITEMS)                         \
    IF(LACKED(I##NAME), FUNCTION(I##name, i##name, ITEMS, NO_INFO)) \
    IF(LACKED(NAME##_INIT), FUNCTION(Name##_init, name##_init, ITEMS, HAS_INFO))
#define NEIGHBORHOOD COLLECTIVE
#include "op/collectives.def"

/* The procedures of mpi_f08 of Open MPI 6 pass their buffers as descriptors (TS 29113), each to a
 * function with an interface of C. Those with arrays of datatypes write into the request, as above;
 * the others pass on what they were given. */
#if defined OPEN_MPI && !defined NBC_FORTRAN_APART
struct descriptor { /* CFI_cdesc_t of Fortran 2018, 18.5.3 */
    void *base_addr;
};

/* Of Fortran's library. */
extern WEAK int CFI_is_contiguous(const struct descriptor *buffer);

/* Reports whether the binding of the MPI has to take the buffers, which for such ones raises an
 * error. */
static bool has_gaps(const struct descriptor *sendbuf, const struct descriptor *recvbuf)
{
    return CFI_is_contiguous && (!CFI_is_contiguous(sendbuf) || !CFI_is_contiguous(recvbuf));
}

#define DESCRIBED(Name, procedure, COUNT, DISPL, MORE)                                             \
    void ompi_##procedure(const struct descriptor *sendbuf, const COUNT *sendcounts,               \
                          const DISPL *sdispls, const MPI_Fint *sendtypes,                         \
                          const struct descriptor *recvbuf, const COUNT *recvcounts,               \
                          const DISPL *rdispls, const MPI_Fint *recvtypes, const MPI_Fint *comm,   \
                          MORE(PARAM) MPI_Fint *request, MPI_Fint *ierror)                         \
    {                                                                                              \
        struct scope scope = {.comm = MPI_Comm_f2c(*comm),                                         \
                              .neighbors = strstr(#procedure, "neighbor")};                        \
        MPI_Request handle = MPI_REQUEST_NULL;                                                     \
        if (IS_NATIVE(scope.comm) || has_gaps(sendbuf, recvbuf)) {                                 \
            __typeof__(ompi_##procedure) *next = NEXT_BINDING(ompi_##procedure);                   \
            next(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, \
                 comm, MORE(NAME) request, ierror);                                                \
            return;                                                                                \
        }                                                                                          \
        const void *send = c_address(sendbuf->base_addr);                                          \
        void *recv = c_address(recvbuf->base_addr);                                                \
        const MPI_Datatype *from = c_types(&scope, sendtypes, send, true);                         \
        const MPI_Datatype *to = c_types(&scope, recvtypes, recv, false);                          \
        int error = MPI_##Name(send, sendcounts, sdispls, from, recv, recvcounts, rdispls, to,     \
                               scope.comm, MORE(ARG) & handle);                                    \
        fortran_finish(&scope, error, handle, request, ierror);                                    \
    }
#define DESCRIBED_BOTH(Name, name, DISPL, MORE)                \
    DESCRIBED(Name, name##_wrapper_f08, MPI_Fint, DISPL, MORE) \
    DESCRIBED(Name##_c, name##_wrapper_f08_c, MPI_Count, MPI_Aint, MORE)

DESCRIBED_BOTH(Ialltoallw, ialltoallw, MPI_Fint, NO_INFO)
DESCRIBED_BOTH(Alltoallw_init, alltoallw_init, MPI_Fint, HAS_INFO)
DESCRIBED_BOTH(Ineighbor_alltoallw, ineighbor_alltoallw, MPI_Aint, NO_INFO)
DESCRIBED_BOTH(Neighbor_alltoallw_init, neighbor_alltoallw_init, MPI_Aint, HAS_INFO)
#endif

#endif
