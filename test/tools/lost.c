/* SPDX-License-Identifier: MIT */
/* The MPI refuses each message of an operation, even an empty one (refuse.c), so that rank 1 has
 * missed an operation. From then on calls on that communicator return an error on rank 0 and send
 * nothing, since rank 1 would take their messages for those of the operation that it has missed.
 * Other communicators are as before. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

static int rank, value;
static MPI_Request persistent; /* of the communicator that will be unusable */
static int *refuse, *refused, *sent;

static int blocking(MPI_Comm comm)
{
    return MPI_Bcast(&value, 1, MPI_INT, 0, comm);
}

static int nonblocking(MPI_Comm comm)
{
    MPI_Request request;
    int error = MPI_Ibcast(&value, 1, MPI_INT, 0, comm, &request);
    return error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

typedef int bcast(MPI_Comm);

static void succeed(bcast *call, MPI_Comm comm)
{
    for (int i = 1; i <= 3; i++) {
        value = rank == 0 ? i : 0;
        CHECK(call(comm) == MPI_SUCCESS && value == i);
    }
}

static void fail_on_root(bcast *call, MPI_Comm comm)
{
    int before = *refused;
    *refuse = 1;
    int error = call(comm);
    *refuse = 0;
    CHECK(*refused > before && class_of(error) == MPI_ERR_NO_MEM);
}

/* By its address, because the MPI may lack it. */
static void make_persistent(MPI_Comm comm)
{
    int (*init)(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);
    *(void **)&init = dlsym(RTLD_DEFAULT, "MPI_Bcast_init");
    OK(init(&value, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &persistent));
}

static int restart(MPI_Comm comm)
{
    (void)comm;
    OK(MPI_Start(&persistent));
    return MPI_Wait(&persistent, MPI_STATUS_IGNORE);
}

static void find_lost(MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int before = *sent;
    bcast *const calls[] = {blocking, nonblocking, restart};
    for (int i = 0; i < 3; i++)
        EXPECT_INT(class_of(calls[i](comm)), MPI_ERR_OTHER);
    CHECK(MPI_Ibarrier(comm, &request) != MPI_SUCCESS && request == MPI_REQUEST_NULL);
    CHECK(*sent == before);
}

int main(int argc, char **argv)
{
    bcast *const calls[] = {blocking, nonblocking};
    MPI_Comm comm[2], other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    refuse = dlsym(RTLD_DEFAULT, "refuse");
    refused = dlsym(RTLD_DEFAULT, "refused");
    sent = dlsym(RTLD_DEFAULT, "sent");
    CHECK(refuse && refused && sent);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
        MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_RETURN);
        make_persistent(comm[i]);
        succeed(restart, comm[i]);
        succeed(calls[i], comm[i]);
        if (rank == 0) {
            fail_on_root(calls[i], comm[i]);
            find_lost(comm[i]);
        }
        succeed(blocking, other);
        succeed(nonblocking, other);
        succeed(blocking, MPI_COMM_WORLD);
        OK(MPI_Request_free(&persistent));
    }
    MPI_Finalize();
    return 0;
}
