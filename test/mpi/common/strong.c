/* SPDX-License-Identifier: MIT */
/* In programs that are linked with nbcshim: refers to all that the others refer to weakly (util.h),
 * so that the linker complains of what is missing, and takes it from an archive. Without <mpi.h>:
 * here each is a name. */
#define MPI_Barrier_c MPI_Barrier_init /* a barrier has no count */
#define MPI_Ibarrier_c MPI_Barrier_init
#define MPI_Barrier_init_c MPI_Barrier_init
#define NAME(name) void name(void);
#define COLL(NAME_, name, Name) \
    NAME(MPI_I##name)           \
    NAME(MPI_##Name##_init)     \
    NAME(MPIX_##Name##_init)    \
    NAME(MPI_##Name##_c)        \
    NAME(MPI_I##name##_c)       \
    NAME(MPI_##Name##_init_c)
#define NAMES                           \
    NAME(nbcshim_version)               \
    NAME(nbcshim_hook)                  \
    NAME(nbcshim_algorithm)             \
    NAME(nbcshim_icoll_max_outstanding) \
    NAME(MPI_Neighbor_allgather)        \
    NAME(MPI_Neighbor_allgatherv)       \
    NAME(MPI_Neighbor_alltoall)         \
    NAME(MPI_Neighbor_alltoallv)        \
    NAME(MPI_Neighbor_alltoallw)

#include "colls.def"
NAMES

#undef NAME
#define NAME(name) name,
__attribute__((used)) static void (*const strong[])(void) = {
#include "colls.def"
    NAMES};
