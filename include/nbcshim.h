/* SPDX-License-Identifier: MIT */
/* nbcshim: nonblocking (MPI-3) and persistent (MPI-4) collectives for any MPI.
 *
 * Include this header after <mpi.h> or instead of it. It declares the collectives that the MPI may
 * lack. Where <mpi.h> declares them too, the declarations agree. Numbers such as 6.12 are sections
 * of MPI-4.1.
 *
 * For all collectives declared here:
 *
 * - MPI_I… starts a nonblocking operation. The call is local. It sets *request, which a completion
 *   call (MPI_Wait, MPI_Test, …) must complete. Freeing the request (MPI_Request_free) or
 *   cancelling it is an error. (6.12)
 * - MPI_…_init sets up a persistent operation. The call is nonlocal: it may communicate, and may
 *   wait until all ranks have called it. MPI_Start starts the operation any number of times; each
 *   start must be completed before the next one. MPI_Request_free frees the request while it is
 *   inactive. (6.13)
 * - All ranks must call the collectives of a communicator in the same order. They may start
 *   persistent operations in different orders.
 * - From the start of an operation to its completion, the program must not write to its send buffer
 *   or access its receive buffer. Argument arrays, datatypes, operators, info objects and the
 *   communicator itself may be reused or freed as soon as the call returns.
 * - Counts are numbers of elements of their datatype and must not be negative. Functions whose
 *   names end in _c differ only in their types: MPI_Count for counts and MPI_Aint for
 *   displacements.
 * - An error of such a call (MPI_ERR_COMM, _COUNT, _TYPE, _OP, _ROOT, _BUFFER, _ARG, _INFO,
 *   _TOPOLOGY, _NO_MEM, _OTHER) is raised on the communicator's error handler and returned. The
 *   call has then sent nothing and has not set *request.
 * - Intercommunicators are allowed, except for scan, exscan and the neighborhood collectives. The
 *   root is then MPI_ROOT, MPI_PROC_NULL, or a rank of the remote group. */
#ifndef NBCSHIM_H
#define NBCSHIM_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of nbcshim: major * 10000 + minor * 100 + patch. */
#define NBCSHIM_VERSION_MAJOR 0
#define NBCSHIM_VERSION_MINOR 4
#define NBCSHIM_VERSION_PATCH 0
#define NBCSHIM_VERSION \
    (NBCSHIM_VERSION_MAJOR * 10000 + NBCSHIM_VERSION_MINOR * 100 + NBCSHIM_VERSION_PATCH)

/* Feature macros for programs that would otherwise test MPI_VERSION, which describes only the MPI
 * below. Each macro covers all forms of the collectives that it names, including the blocking forms
 * that the MPI may lack. */
#define NBCSHIM_HAVE_NONBLOCKING_COLLECTIVES 1
#define NBCSHIM_HAVE_PERSISTENT_COLLECTIVES 1
#define NBCSHIM_HAVE_NEIGHBORHOOD_COLLECTIVES 1
#define NBCSHIM_HAVE_LARGE_COUNT_COLLECTIVES 1

/* If NBCSHIM_CLAIM_MPI_VERSION is defined before this header is included, MPI_VERSION is 4 and
 * MPI_SUBVERSION is 0. This is for programs that test for MPI_VERSION >= 3 or 4 but use no other
 * feature of a later MPI than these collectives. MPI_Get_version still returns the version of the
 * MPI below. */
#ifdef NBCSHIM_CLAIM_MPI_VERSION
#undef MPI_VERSION
#undef MPI_SUBVERSION
#define MPI_VERSION 4
#define MPI_SUBVERSION 0
#endif

/* An MPI before MPI-3.0 lacks MPI_Count. The datatype MPI_COUNT does not exist there either. */
#ifndef MPI_COUNT
typedef long long MPI_Count;
#endif

/* Keyval of an attribute that every communicator has: the number of operations that may be
 * outstanding on it at once. MPI_Comm_get_attr returns a pointer to an int. The number is the same
 * on all ranks and at least 32767. The keyval is MPI_KEYVAL_INVALID before MPI_Init and where
 * nbcshim is inactive. */
extern int nbcshim_icoll_max_outstanding;
#define MPI_ICOLL_MAX_OUTSTANDING nbcshim_icoll_max_outstanding

/* Returns the version of the library in use, encoded like NBCSHIM_VERSION. May be called at any
 * time and by any thread. */
int nbcshim_version(void);

/* nbcshim_variable and nbcshim_function describe the library; nbcinfo prints what they return. They
 * may be called at any time and by any thread, even without MPI_Init. */

/* An environment variable that nbcshim reads. accepts, fallback and meaning describe its values,
 * its default and its effect. value is the string in the environment without the blanks around it,
 * or NULL if the variable is not set or empty; accepted is nonzero if nbcshim accepts that string.
 * The caller must not free the strings. */
struct nbcshim_variable {
    char name[64];
    const char *accepts, *fallback, *meaning, *value;
    int accepted;
};

/* Sets *variable to the description of variable number index, counted from 0. Returns 1, or 0 if
 * there is no such variable. */
int nbcshim_variable(int index, struct nbcshim_variable *variable);

/* Returns the name of function number index, counted from 0, of the MPI functions that nbcshim
 * defines, and sets *below to whether the MPI below has it too. Returns NULL if there is no such
 * function; the static library always returns NULL. */
const char *nbcshim_function(int index, int *below);

/* Sets *hooked to whether the MPI below calls nbcshim in its progress loop, so that operations of
 * nbcshim progress while a rank is blocked in any function of that MPI. Returns the name of the
 * MPI's function that makes it do so, or the reason why it does not. Before MPI_Init, the answer is
 * what nbcshim will try. The caller must not free the string. May be called at any time and by any
 * thread. */
const char *nbcshim_hook(int *hooked);

/* Returns the algorithm of an operation that is persistent or pending: a name that nbcinfo
 * --algorithms lists. Returns NULL if the request does not belong to nbcshim, or if its operation
 * uses no algorithm of that list. Unless segment is NULL, *segment is set to the segment size in
 * bytes that a pipelined algorithm was given, or to 0 if the algorithm chooses it. Local. */
const char *nbcshim_algorithm(MPI_Request request, long long *segment);

/* The operation completes on no rank before all ranks have started it. 6.12.1, 6.13.1. */
int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* Copies count elements from the root's buffer to the buffer of every rank. The datatypes of the
 * ranks may differ if their type signatures agree. 6.12.2, 6.13.2. */
int MPI_Ibcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
               MPI_Request *request);
int MPI_Bcast_init(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request);
int MPI_Ibcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                 MPI_Request *request);
int MPI_Bcast_init_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                     MPI_Info info, MPI_Request *request);

/* recvbuf, recvcount and recvtype are significant at the root only; recvcount is that of one block.
 * The root may pass MPI_IN_PLACE as sendbuf. 6.12.3, 6.13.3. */
int MPI_Igather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                MPI_Request *request);
int MPI_Gather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                    MPI_Request *request);
int MPI_Igather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                  MPI_Request *request);
int MPI_Gather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                      MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* The arrays have one entry per rank and are significant at the root only; displs counts extents of
 * recvtype. 6.12.3, 6.13.3. */
int MPI_Igatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                 MPI_Comm comm, MPI_Request *request);
int MPI_Gatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                     MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Igatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                   const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                   int root, MPI_Comm comm, MPI_Request *request);
int MPI_Gatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                       void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                       MPI_Request *request);

/* sendbuf, sendcount and sendtype are significant at the root only; sendcount is that of one block.
 * The root may pass MPI_IN_PLACE as recvbuf. 6.12.4, 6.13.4. */
int MPI_Iscatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                 MPI_Request *request);
int MPI_Scatter_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                     MPI_Request *request);
int MPI_Iscatter_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                   MPI_Request *request);
int MPI_Scatter_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                       void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                       MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* The arrays have one entry per rank and are significant at the root only; displs counts extents of
 * sendtype. 6.12.4, 6.13.4. */
int MPI_Iscatterv(const void *sendbuf, const int sendcounts[], const int displs[],
                  MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                  int root, MPI_Comm comm, MPI_Request *request);
int MPI_Scatterv_init(const void *sendbuf, const int sendcounts[], const int displs[],
                      MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                      int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Iscatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Scatterv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                        MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                        MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                        MPI_Request *request);

/* Block i of recvbuf receives rank i's sendbuf, on every rank. 6.12.5, 6.13.5. */
int MPI_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
int MPI_Allgather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                       int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                       MPI_Request *request);
int MPI_Iallgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                     MPI_Request *request);
int MPI_Allgather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                         void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                         MPI_Info info, MPI_Request *request);

/* Block i of recvbuf has recvcounts[i] elements and begins displs[i] extents of recvtype after
 * recvbuf. 6.12.5, 6.13.5. */
int MPI_Iallgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                    const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                    MPI_Comm comm, MPI_Request *request);
int MPI_Allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                        const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                        MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Iallgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                      MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
int MPI_Allgatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                          void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                          MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                          MPI_Request *request);

/* Block j of rank i's sendbuf becomes block i of rank j's recvbuf. 6.12.6, 6.13.6. */
int MPI_Ialltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                  int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
int MPI_Alltoall_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                      int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                      MPI_Request *request);
int MPI_Ialltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                    MPI_Request *request);
int MPI_Alltoall_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                        void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                        MPI_Info info, MPI_Request *request);

/* The arrays have one entry per rank; sdispls counts extents of sendtype, rdispls extents of
 * recvtype. 6.12.6, 6.13.6. */
int MPI_Ialltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
                   MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                   const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
int MPI_Alltoallv_init(const void *sendbuf, const int sendcounts[], const int sdispls[],
                       MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                       const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                       MPI_Request *request);
int MPI_Ialltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                     MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
                     const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                     MPI_Request *request);
int MPI_Alltoallv_init_c(const void *sendbuf, const MPI_Count sendcounts[],
                         const MPI_Aint sdispls[], MPI_Datatype sendtype, void *recvbuf,
                         const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                         MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* The arrays have one entry per rank, sendtypes and recvtypes too; displacements are in bytes.
 * 6.12.6, 6.13.6. */
int MPI_Ialltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[],
                   const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
                   const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                   MPI_Request *request);
int MPI_Alltoallw_init(const void *sendbuf, const int sendcounts[], const int sdispls[],
                       const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
                       const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                       MPI_Info info, MPI_Request *request);
int MPI_Ialltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                     const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
                     const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                     MPI_Request *request);
int MPI_Alltoallw_init_c(const void *sendbuf, const MPI_Count sendcounts[],
                         const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,
                         const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                         const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                         MPI_Request *request);

/* recvbuf is significant at the root only. The root may pass MPI_IN_PLACE as sendbuf. 6.12.7,
 * 6.13.7. */
int MPI_Ireduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                int root, MPI_Comm comm, MPI_Request *request);
int MPI_Reduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Ireduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Op op, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Reduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Op op, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* All ranks receive the same result, bit for bit. 6.12.8, 6.13.8. */
int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request);
int MPI_Allreduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype,
                       MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Iallreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                     MPI_Op op, MPI_Comm comm, MPI_Request *request);
int MPI_Allreduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* sendbuf has one block of recvcount elements per rank; rank i receives the reduction of block i.
 * 6.12.9, 6.13.9. */
int MPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                              MPI_Request *request);
int MPI_Reduce_scatter_block_init(const void *sendbuf, void *recvbuf, int recvcount,
                                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                  MPI_Request *request);
int MPI_Ireduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                MPI_Request *request);
int MPI_Reduce_scatter_block_init_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                                    MPI_Request *request);

/* Block i has recvcounts[i] elements; rank i receives its reduction. The array is the same on all
 * ranks. 6.12.10, 6.13.10. */
int MPI_Ireduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[],
                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);
int MPI_Reduce_scatter_init(const void *sendbuf, void *recvbuf, const int recvcounts[],
                            MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                            MPI_Request *request);
int MPI_Ireduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);
int MPI_Reduce_scatter_init_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info,
                              MPI_Request *request);

/* Rank i receives the reduction over ranks 0 to i. Intracommunicators only. 6.12.11, 6.13.11. */
int MPI_Iscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
              MPI_Comm comm, MPI_Request *request);
int MPI_Scan_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Iscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                MPI_Op op, MPI_Comm comm, MPI_Request *request);
int MPI_Scan_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* Rank i receives the reduction over ranks 0 to i − 1; rank 0's recvbuf is not written.
 * Intracommunicators only. 6.12.12, 6.13.12. */
int MPI_Iexscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                MPI_Comm comm, MPI_Request *request);
int MPI_Exscan_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Iexscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Op op, MPI_Comm comm, MPI_Request *request);
int MPI_Exscan_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* sendbuf is sent to every destination; block k of recvbuf comes from source k. The communicator
 * must have a topology. 8.7.1, 8.8.1. */
int MPI_Ineighbor_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                            MPI_Request *request);
int MPI_Neighbor_allgather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                MPI_Info info, MPI_Request *request);
int MPI_Ineighbor_allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                              void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                              MPI_Comm comm, MPI_Request *request);
int MPI_Neighbor_allgather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                                  MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* The arrays have one entry per source; displs counts extents of recvtype. 8.7.1, 8.8.1. */
int MPI_Ineighbor_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, const int recvcounts[], const int displs[],
                             MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
int MPI_Neighbor_allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, const int recvcounts[], const int displs[],
                                 MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                 MPI_Request *request);
int MPI_Ineighbor_allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                               void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                               MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
int MPI_Neighbor_allgatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, const MPI_Count recvcounts[],
                                   const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                   MPI_Info info, MPI_Request *request);

/* Block k of sendbuf is sent to destination k; block k of recvbuf comes from source k. 8.7.2,
 * 8.8.2. */
int MPI_Ineighbor_alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                           MPI_Request *request);
int MPI_Neighbor_alltoall_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                               MPI_Info info, MPI_Request *request);
int MPI_Ineighbor_alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                             void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                             MPI_Comm comm, MPI_Request *request);
int MPI_Neighbor_alltoall_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                                 MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* The send arrays have one entry per destination, the receive arrays one per source; displacements
 * count extents of sendtype and recvtype. 8.7.2, 8.8.2. */
int MPI_Ineighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
                            MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                            const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                            MPI_Request *request);
int MPI_Neighbor_alltoallv_init(const void *sendbuf, const int sendcounts[], const int sdispls[],
                                MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                                const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                                MPI_Info info, MPI_Request *request);
int MPI_Ineighbor_alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[],
                              const MPI_Aint sdispls[], MPI_Datatype sendtype, void *recvbuf,
                              const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                              MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request);
int MPI_Neighbor_alltoallv_init_c(const void *sendbuf, const MPI_Count sendcounts[],
                                  const MPI_Aint sdispls[], MPI_Datatype sendtype, void *recvbuf,
                                  const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request *request);

/* Like MPI_Ineighbor_alltoallv, with one datatype per neighbor; displacements are in bytes and of
 * type MPI_Aint. 8.7.2, 8.8.2. */
int MPI_Ineighbor_alltoallw(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                            const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
                            const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                            MPI_Request *request);
int MPI_Neighbor_alltoallw_init(const void *sendbuf, const int sendcounts[],
                                const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
                                const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                                MPI_Request *request);
int MPI_Ineighbor_alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[],
                              const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                              void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                              const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request);
int MPI_Neighbor_alltoallw_init_c(const void *sendbuf, const MPI_Count sendcounts[],
                                  const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                  void *recvbuf, const MPI_Count recvcounts[],
                                  const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                                  MPI_Comm comm, MPI_Info info, MPI_Request *request);

/* Blocking neighborhood collectives, which an MPI before MPI-3.0 lacks. 8.6. */
int MPI_Neighbor_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Neighbor_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, const int recvcounts[], const int displs[],
                            MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Neighbor_alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                          int recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Neighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
                           MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                           const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Neighbor_alltoallw(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                           const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
                           const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm);

/* Large-count forms of the blocking collectives, which an MPI before MPI-4.0 lacks. 6.4 to 6.11,
 * 8.6. */
int MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm);
int MPI_Gather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                 MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
int MPI_Gatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                  const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                  int root, MPI_Comm comm);
int MPI_Scatter_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
int MPI_Scatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                   int root, MPI_Comm comm);
int MPI_Allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                     MPI_Comm comm);
int MPI_Alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                    MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
                    const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                    const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
                    const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm);
int MPI_Reduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Op op, int root, MPI_Comm comm);
int MPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                    MPI_Op op, MPI_Comm comm);
int MPI_Reduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int MPI_Reduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int MPI_Scan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
               MPI_Op op, MPI_Comm comm);
int MPI_Exscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Op op, MPI_Comm comm);
int MPI_Neighbor_allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                             void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                             MPI_Comm comm);
int MPI_Neighbor_allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                              void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                              MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Neighbor_alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                            void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                            MPI_Comm comm);
int MPI_Neighbor_alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[],
                             const MPI_Aint sdispls[], MPI_Datatype sendtype, void *recvbuf,
                             const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                             MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Neighbor_alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[],
                             const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                             void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                             const MPI_Datatype recvtypes[], MPI_Comm comm);

/* The same functions under their profiling names (PMPI_…), and the persistent ones with int counts
 * under the names of Open MPI 4's <mpi-ext.h> (MPIX_…), which may be included before or after this
 * header. The static library has no profiling names. */
#ifdef __GNUC__
#define NBCSHIM_NAMES(name, nonblocking)                     \
    extern __typeof__(MPI_##nonblocking) PMPI_##nonblocking; \
    extern __typeof__(MPI_##name##_init) PMPI_##name##_init; \
    extern __typeof__(MPI_##name##_init) MPIX_##name##_init; \
    extern __typeof__(MPI_##name##_init) PMPIX_##name##_init;
#define NBCSHIM_LARGE_NAMES(name, nonblocking)                       \
    extern __typeof__(MPI_##name##_c) PMPI_##name##_c;               \
    extern __typeof__(MPI_##nonblocking##_c) PMPI_##nonblocking##_c; \
    extern __typeof__(MPI_##name##_init_c) PMPI_##name##_init_c;
#define NBCSHIM_ALL_NAMES(name, nonblocking) \
    NBCSHIM_NAMES(name, nonblocking)         \
    NBCSHIM_LARGE_NAMES(name, nonblocking)
NBCSHIM_NAMES(Barrier, Ibarrier)
NBCSHIM_ALL_NAMES(Bcast, Ibcast)
NBCSHIM_ALL_NAMES(Gather, Igather)
NBCSHIM_ALL_NAMES(Gatherv, Igatherv)
NBCSHIM_ALL_NAMES(Scatter, Iscatter)
NBCSHIM_ALL_NAMES(Scatterv, Iscatterv)
NBCSHIM_ALL_NAMES(Allgather, Iallgather)
NBCSHIM_ALL_NAMES(Allgatherv, Iallgatherv)
NBCSHIM_ALL_NAMES(Alltoall, Ialltoall)
NBCSHIM_ALL_NAMES(Alltoallv, Ialltoallv)
NBCSHIM_ALL_NAMES(Alltoallw, Ialltoallw)
NBCSHIM_ALL_NAMES(Reduce, Ireduce)
NBCSHIM_ALL_NAMES(Allreduce, Iallreduce)
NBCSHIM_ALL_NAMES(Reduce_scatter_block, Ireduce_scatter_block)
NBCSHIM_ALL_NAMES(Reduce_scatter, Ireduce_scatter)
NBCSHIM_ALL_NAMES(Scan, Iscan)
NBCSHIM_ALL_NAMES(Exscan, Iexscan)
NBCSHIM_ALL_NAMES(Neighbor_allgather, Ineighbor_allgather)
NBCSHIM_ALL_NAMES(Neighbor_allgatherv, Ineighbor_allgatherv)
NBCSHIM_ALL_NAMES(Neighbor_alltoall, Ineighbor_alltoall)
NBCSHIM_ALL_NAMES(Neighbor_alltoallv, Ineighbor_alltoallv)
NBCSHIM_ALL_NAMES(Neighbor_alltoallw, Ineighbor_alltoallw)
extern __typeof__(MPI_Neighbor_allgather) PMPI_Neighbor_allgather;
extern __typeof__(MPI_Neighbor_allgatherv) PMPI_Neighbor_allgatherv;
extern __typeof__(MPI_Neighbor_alltoall) PMPI_Neighbor_alltoall;
extern __typeof__(MPI_Neighbor_alltoallv) PMPI_Neighbor_alltoallv;
extern __typeof__(MPI_Neighbor_alltoallw) PMPI_Neighbor_alltoallw;
#undef NBCSHIM_NAMES
#undef NBCSHIM_LARGE_NAMES
#undef NBCSHIM_ALL_NAMES
#endif

#ifdef __cplusplus
}
#endif

#endif
