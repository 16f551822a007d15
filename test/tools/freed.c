/* SPDX-License-Identifier: MIT */
/* A persistent alltoallv in which rank 1 sends rank 0 more than that expects. When that message
 * fails, the MPI (freeing.c) frees another one that is under way, as Open MPI does with messages
 * whose status holds an error. The operation completes on all ranks. The message may still use the
 * memory and the tag of the operation, so that it cannot be started again on rank 0, nor can
 * another one on that communicator; other communicators are as before. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

enum { RANKS = 4, GO = 7 };

static int rank;

/* Ranks 2 and 3 send nothing to rank 0 before it has seen the error. */
static int run(MPI_Request *request)
{
    const int *freed = dlsym(RTLD_DEFAULT, "freed");
    int done = 0, error = MPI_SUCCESS;
    CHECK(freed && *freed == 0);
    if (rank >= 2)
        MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    OK(MPI_Start(request));
    while (rank == 0 && *freed == 0 && !error) {
        error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        CHECK(!done);
    }
    for (int to = 2; rank == 0 && to < RANKS; to++)
        MPI_Send(NULL, 0, MPI_INT, to, GO, MPI_COMM_WORLD);
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int (*init)(const void *, const int *, const int *, MPI_Datatype, void *, const int *,
                const int *, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request *);
    static int in[RANKS][2], out[RANKS][2];
    int sends[RANKS] = {2, 2, 2, 2}, receives[RANKS] = {2, 2, 2, 2}, places[] = {0, 2, 4, 6};
    MPI_Comm comm;
    MPI_Request request, another = MPI_REQUEST_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *(void **)&init = dlsym(RTLD_DEFAULT, "MPI_Alltoallv_init");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < RANKS; i++)
        in[i][0] = in[i][1] = 1 + rank;
    if (rank == 0)
        receives[1] = 1;
    OK(init(in, sends, places, MPI_INT, out, receives, places, MPI_INT, comm, MPI_INFO_NULL,
            &request));
    int class = class_of(run(&request));
    EXPECT_INT(class, rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    for (int i = 0; i < RANKS && rank > 0; i++)
        CHECK(out[i][0] == 1 + i && out[i][1] == 1 + i);
    if (rank == 0) {
        OK(MPI_Start(&request));
        EXPECT_INT(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_OTHER);
        EXPECT_INT(class_of(MPI_Ibarrier(comm, &another)), MPI_ERR_OTHER);
    }
    MPI_Request_free(&request);
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &another));
    OK(MPI_Wait(&another, MPI_STATUS_IGNORE));
    MPI_Finalize();
    return 0;
}
