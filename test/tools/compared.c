/* SPDX-License-Identifier: MIT */
/* What compare.sh compares: collectives of each form, completed in each way; rank 1 is late, and
 * all ranks do something else between start and completion. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1024, SLEEP = 5000 /* us */ };

#define START start_an_operation_from_a_function_whose_name_has_more_letters_than_records

static double in[COUNT], out[4][COUNT];

/* The name is longer than what a record has of it. */
void START(MPI_Request *r, int i);

void START(MPI_Request *r, int i)
{
    MPI_Iallreduce(in, out[i], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, r);
}

static void complete_one_by_one(void)
{
    MPI_Request r;
    int flag = 0;
    START(&r, 0);
    usleep(SLEEP);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    START(&r, 0);
    while (!flag)
        MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
}

static void complete_several(void)
{
    MPI_Request r[4];
    int flag = 0, index, count, indices[4];
    for (int i = 0; i < 4; i++)
        START(&r[i], i);
    MPI_Waitany(4, r, &index, MPI_STATUS_IGNORE);
    do
        MPI_Testany(4, r, &index, &flag, MPI_STATUS_IGNORE);
    while (!flag);
    MPI_Waitsome(4, r, &count, indices, MPI_STATUSES_IGNORE);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 4; i++)
        START(&r[i], i);
    MPI_Testsome(4, r, &count, indices, MPI_STATUSES_IGNORE);
    for (flag = 0; !flag;)
        MPI_Testall(4, r, &flag, MPI_STATUSES_IGNORE);
}

#ifdef PERSISTENT
/* Each start of a request is a call. (MPICH 4.0.2 alone hangs in MPI_Waitall for an active and an
 * inactive request.) */
static void complete_persistent(void)
{
    MPI_Request r[2];
    for (int i = 0; i < 2; i++)
        MPI_Allreduce_init(in, out[i], COUNT / 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &r[i]);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&r[0]);
        usleep(SLEEP);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    }
    MPI_Startall(2, r);
    usleep(SLEEP);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&r[i]);
}
#endif

/* Requests that fill no short array: of no operation, and of one. */
static void complete_in_a_long_array(void)
{
    enum { LENGTH = 20 };
    MPI_Request r[LENGTH], other;
    int flag;
    for (int i = 0; i < LENGTH; i++)
        r[i] = MPI_REQUEST_NULL;
    START(&other, 0);
    MPI_Testall(LENGTH, r, &flag, MPI_STATUSES_IGNORE);
    START(&r[LENGTH / 2], 1);
    MPI_Waitall(LENGTH, r, MPI_STATUSES_IGNORE);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
}

/* So many operations that some have the same place in a table, and requests of messages, started
 * while a collective is active and while none is. */
static void complete_many(int rank, int size)
{
    enum { MANY = 500 };
    static MPI_Request many[MANY];
    MPI_Request message[2];
    int sent = rank, received;
    MPI_Send_init(&sent, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, &message[0]);
    MPI_Recv_init(&received, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &message[1]);
    MPI_Start(&message[0]);
    MPI_Start(&message[1]);
    MPI_Waitall(2, message, MPI_STATUSES_IGNORE);
    MPI_Startall(2, message);
    MPI_Waitall(2, message, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++)
        MPI_Ibarrier(MPI_COMM_WORLD, &many[i]);
    MPI_Startall(2, message);
    MPI_Waitall(2, message, MPI_STATUSES_IGNORE);
    for (int i = MANY - 1; i >= 0; i--)
        MPI_Wait(&many[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&message[i]);
}

/* Calls whose bytes are not those of one count and type at the sender: the last of them unknown. */
static void exchange(int rank, int size)
{
    int counts[16], offsets[16];
    MPI_Datatype types[16];
    MPI_Comm self, remote;
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        offsets[i] = i * (int)sizeof(double);
        types[i] = MPI_DOUBLE;
    }
    MPI_Alltoallw(in, counts, offsets, types, out[0], counts, offsets, types, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, out[0], 7, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &self);
    MPI_Intercomm_create(self, 0, MPI_COMM_WORLD, rank == 0, 3, &remote);
    MPI_Allgather(in, 1, MPI_DOUBLE, out[0], 1, MPI_DOUBLE, remote);
    MPI_Comm_free(&remote);
    MPI_Comm_free(&self);
}

#define TWICE(call) call call
#define MANY_TIMES(call) TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(call))))))))

/* Each is a call site of its own: 256. */
static void call_from_many_places(void)
{
    MANY_TIMES(MPI_Barrier(MPI_COMM_SELF);)
}

/* The MPI makes collective calls for this. */
static void use_a_file(const char *name)
{
    MPI_File f;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    MPI_File_close(&f);
}

int main(int argc, char **argv)
{
    int rank, size, counts[16];
#ifdef PERSISTENT
    MPI_Init(&argc, &argv);
#else
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && strcmp(argv[2], "places") == 0) {
        complete_in_a_long_array();
        complete_many(rank, size);
        exchange(rank, size);
        call_from_many_places();
        return MPI_Finalize();
    }
    for (int i = 0; i < size; i++)
        counts[i] = i + 1;
    for (int i = 0; i < 5; i++) {
        if (rank == 1)
            usleep(20 * SLEEP);
        complete_one_by_one();
    }
    complete_several();
#ifdef PERSISTENT
    complete_persistent();
#endif
    MPI_Reduce_scatter(in, out[0], counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(rank ? out[0] : in, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    use_a_file(argv[1]);
    if (argc > 2 && strcmp(argv[2], "fail") == 0)
        return 5;
    return MPI_Finalize();
}
