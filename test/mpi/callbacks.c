/* SPDX-License-Identifier: MIT */
/* Collectives in attribute callbacks of a communicator that is being freed. */
#include "util.h"

#include <unistd.h>

#define OK(call) EXPECT((call) == MPI_SUCCESS, "%s fails", #call)

static int called;

static void add_up(MPI_Comm comm)
{
    MPI_Request request;
    int one = 1, sum = 0;
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT(sum == test_size, "sum %d", sum);
    if (!test_has_persistent())
        return;
    sum = 0;
    OK(MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT(sum == test_size, "persistent: sum %d", sum);
    OK(MPI_Request_free(&request));
}

/* Of MPI_Comm_free and MPI_Comm_disconnect. */
static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)value, (void)extra;
    called++;
    OK(MPI_Barrier(comm));
    add_up(comm);
    return MPI_SUCCESS;
}

/* The last rank gets there only when the others have forwarded to it what rank 0 sends late. */
static void end(MPI_Comm *comm, int (*ends)(MPI_Comm *))
{
    MPI_Request request;
    int data = test_rank ? 0 : 42;
    bool last = test_rank == test_size - 1;
    if (test_rank == 0)
        usleep(100000);
    OK(MPI_Ibcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
    if (last)
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(ends(comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT(data == 42, "broadcast %d", data);
}

int main(int argc, char **argv)
{
    MPI_Comm set, copied[2];
    int keyval, value = 0;
    test_init(&argc, &argv);
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, &keyval, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &set));
    OK(MPI_Comm_set_attr(set, keyval, &value)); /* behind ours; copies come before it */
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_dup(set, &copied[i]));
    end(&set, MPI_Comm_free);
    end(&copied[0], MPI_Comm_free);
    end(&copied[1], MPI_Comm_disconnect);
    EXPECT(called == 3, "%d callbacks", called);
    OK(MPI_Comm_free_keyval(&keyval));
    return test_done();
}
