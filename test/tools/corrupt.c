/* SPDX-License-Identifier: MIT */
/* Preloaded before nbcshim: the last rank receives a wrong element in each MPI_Iallgather of
 * several ranks that has data; with NBC_CORRUPT=hang it never returns from the first one. */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int MPI_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    int (*next)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
                MPI_Request *);
    void *address = dlsym(RTLD_NEXT, "MPI_Iallgather");
    int rank, size;
    MPI_Aint lb, extent;
    memcpy(&next, &address, sizeof next);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    while (rank > 0 && getenv("NBC_CORRUPT"))
        pause();
    int code = next(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
    MPI_Type_get_true_extent(recvtype, &lb, &extent);
    if (rank < size - 1 || recvcount == 0 || extent == 0)
        return code;
    MPI_Wait(request, MPI_STATUS_IGNORE);
    ((char *)recvbuf)[lb] ^= 1;
    return code;
}
