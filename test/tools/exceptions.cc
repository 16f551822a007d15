// SPDX-License-Identifier: MIT
// Exceptions of C++ that leave functions of MPI, thrown by error handlers and callbacks of the program while requests
// of nbcshim are pending. The argument is which: "files", "communicators", "arrays", "duplicates". Each rank prints
// "right".
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#ifdef OPEN_MPI
enum { LEVEL = MPI_THREAD_MULTIPLE };
#else
enum { LEVEL = MPI_THREAD_SINGLE }; // MPICH keeps its lock when an exception leaves it
#endif

static MPI_Comm world = MPI_COMM_WORLD;
static int rank, size;

static void raise(MPI_Comm *, int *error, ...)
{
    throw *error;
}

static void raise_on(MPI_Comm comm)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(raise, &handler);
    MPI_Comm_set_errhandler(comm, handler);
}

// Whether the call throws.
template <typename Call> static int caught(Call call)
{
    try {
        call();
    } catch (int) {
        return 1;
    }
    return 0;
}

static void finish(MPI_Request &request)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int sum_of_ones(MPI_Comm comm)
{
    int one = 1, sum = -1;
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    finish(request);
    return sum;
}

// --- a call on files ----------------------------------------------------------------------------------

static void raise_of_file(MPI_File *, int *error, ...)
{
    throw *error;
}

static bool files()
{
    int one = 1, sum[2] = {-1, -1}, thrown = 0;
    MPI_Errhandler handler;
    MPI_File file;
    MPI_Request request;
    MPI_File_create_errhandler(raise_of_file, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    for (int i = 0; i < 2; i++) {
        MPI_Iallreduce(&one, &sum[i], 1, MPI_INT, MPI_SUM, world, &request);
        thrown += caught([&] { MPI_File_open(MPI_COMM_SELF, "/nothing/there", MPI_MODE_RDONLY, MPI_INFO_NULL, &file); });
        finish(request);
    }
    return sum[0] == size && sum[1] == size && thrown == 2;
}

// --- MPI_Comm_free ------------------------------------------------------------------------------------

static int refuse(MPI_Comm, int, void *, void *refusals)
{
    return (*static_cast<int *>(refusals))++ ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static bool is_kept(MPI_Comm comm)
{
    MPI_Comm handle = comm;
    caught([&] { MPI_Comm_free(&handle); });
    return sum_of_ones(handle == MPI_COMM_NULL ? world : comm) == size;
}

// MPI_COMM_WORLD cannot be freed, nor, on an MPI that heeds what a callback returns, the other communicator.
static bool communicators()
{
    int keyval, refusals = 0;
    MPI_Comm comm;
    raise_on(world);
    MPI_Comm_dup(world, &comm);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &keyval, &refusals);
    MPI_Comm_set_attr(comm, keyval, NULL);
    return is_kept(world) && is_kept(comm);
}

// --- MPI_Testall, MPI_Sendrecv and MPI_Startall -------------------------------------------------------

static int query(void *, MPI_Status *)
{
    throw 1;
}

static int nothing(void *)
{
    return MPI_SUCCESS;
}

static int cancel(void *, int)
{
    return MPI_SUCCESS;
}

// Rank 1 takes part in the barrier when rank 0 has let it.
static void start_late(MPI_Request &barrier)
{
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
    MPI_Ibarrier(world, &barrier);
}

static void finish_late(MPI_Request &barrier)
{
    if (rank == 0)
        MPI_Send(NULL, 0, MPI_INT, 1, 0, world);
    finish(barrier);
}

// The entry keeps its value.
static bool test_all()
{
    int flag = 0;
    MPI_Request request[2], pending;
    start_late(pending);
    request[0] = pending;
    MPI_Grequest_start(query, nothing, cancel, NULL, &request[1]);
    MPI_Grequest_complete(request[1]);
    caught([&] {
        if (rank == 0)
            MPI_Testall(2, request, &flag, MPI_STATUSES_IGNORE);
    });
    bool kept = request[0] == pending;
    finish_late(pending);
    return kept;
}

// To a wrong rank: the next message does not go to its receive.
static bool sendrecv()
{
    int one = 1, wrong = -1, right = -1;
    MPI_Request pending, request;
    start_late(pending);
    caught([&] {
        if (rank == 0)
            MPI_Sendrecv(&one, 1, MPI_INT, 99, 0, &wrong, 1, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
    });
    MPI_Isend(&one, 1, MPI_INT, rank, 0, world, &request);
    finish_late(pending);
    if (wrong == -1)
        MPI_Recv(&right, 1, MPI_INT, rank, 0, world, MPI_STATUS_IGNORE);
    finish(request);
    return right == one;
}

// The requests of nbcshim in the array can be started.
static bool start_all()
{
    MPI_Request request[3];
    MPI_Barrier_init(world, MPI_INFO_NULL, &request[0]);
    MPI_Send_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request[1]);
    MPI_Recv_init(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF, &request[2]);
    MPI_Start(&request[2]);
    MPI_Request active = request[2];
    int thrown = caught([&] { MPI_Startall(3, request); });
    MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF);
    bool kept = request[1] != MPI_REQUEST_NULL && request[2] == active;
    finish(active);
    thrown += caught([&] { MPI_Start(&request[0]); });
    finish(request[0]);
    return kept && thrown == 1;
}

// The time between the calls of the scan is not counted as in MPI.
static bool arrays()
{
    int sum;
    MPI_Request request;
    raise_on(world);
    raise_on(MPI_COMM_SELF);
    bool tested = test_all(), sent = sendrecv(), started = start_all();
    MPI_Iscan(&rank, &sum, 1, MPI_INT, MPI_SUM, world, &request);
    usleep(200000);
    finish(request);
    return tested && sent && started;
}

// --- MPI_Comm_idup and MPI_Comm_dup -------------------------------------------------------------------

static int refuse_copy(MPI_Comm, int, void *, void *, void *, int *)
{
    return MPI_ERR_OTHER;
}

static char block[1 << 20], blocks[2 << 20];

// The progress thread goes on: rank 0 need not wait for the root, which sleeps.
static bool duplicates()
{
    int keyval, thrown = 0;
    MPI_Comm comm, copy;
    MPI_Request request;
    MPI_Comm_dup(world, &comm);
    raise_on(comm);
    MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, NULL);
    for (int i = 0; i < 6; i++)
        thrown += caught([&] { i < 3 ? MPI_Comm_idup(comm, &copy, &request) : MPI_Comm_dup(comm, &copy); });
    MPI_Barrier(world);
    double begin = MPI_Wtime();
    MPI_Igather(block, sizeof block, MPI_CHAR, blocks, sizeof block, MPI_CHAR, 1, world, &request);
    if (rank == 1 && getenv("NBCSHIM_PROGRESS"))
        sleep(3);
    finish(request);
    double seconds = MPI_Wtime() - begin;
    MPI_Comm_delete_attr(comm, keyval);
    MPI_Ibarrier(comm, &request);
    MPI_Comm_disconnect(&comm);
    finish(request);
    return thrown == 6 && (rank > 0 || seconds < 2);
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        bool (*run)();
    } all[] = {{"files", files}, {"communicators", communicators}, {"arrays", arrays}, {"duplicates", duplicates}};
    int level;
    bool right = false, threads = strcmp(argv[1], "communicators") == 0;
    if (threads)
        MPI_Init_thread(&argc, &argv, LEVEL, &level);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    for (auto &one : all)
        if (strcmp(one.name, argv[1]) == 0)
            right = one.run();
    // In one piece: puts would write twice on MPICH's unbuffered output.
    if (right)
        std::printf("right\n");
    MPI_Finalize();
}
