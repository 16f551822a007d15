/* SPDX-License-Identifier: MIT */
/* A job of two ranks in which rank 1 blocks in one function of MPI after the other. It writes the
 * name on standard error, which is FILE.said; rank 0 then sends it a SIGUSR1, and comes to the call
 * once there is the report. The ranks tell each other how far they are by FILE, the first argument,
 * which is not collective and no message. "pending": meanwhile a barrier of nbcshim is pending on
 * rank 1. "spawn": only the functions that start and meet other jobs; "child": such a job. */
#include <mpi.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MPI_ERRORS_ABORT /* MPI-4 */
#define IF_MPI_4(...)
#else
#define IF_MPI_4(...) __VA_ARGS__
#endif

enum { PAUSE = 5000 /* us */, LONGEST = 5000000, LARGE = 1 << 20, LATE = 0, TAG = 5 };

static struct shared {
    atomic_int calls; /* that rank 1 has begun */
    pid_t pid;        /* of rank 1 */
    char port[MPI_MAX_PORT_NAME];
} * shared;

static int rank, calls, said; /* what rank 1 says */
static bool pends;
static MPI_Comm beside; /* of the barrier that is pending */
static MPI_Request barrier = MPI_REQUEST_NULL;
static char out[LARGE], in[LARGE];
static int ones[2] = {1, 1}, bytes[2] = {0, sizeof(int)}, at[2] = {0, 1}, sums[4];

static struct shared *share(const char *file)
{
    int fd = open(file, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *shared))
        exit(1);
    return mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

#define OUTSIDE ": outside MPI"

/* Standard error of rank 1, which rank 0 reads. */
static int open_said(const char *file)
{
    char name[1000];
    snprintf(name, sizeof name, "%s.said", file);
    int fd = open(name, O_RDWR | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || (rank != LATE && dup2(fd, STDERR_FILENO) < 0))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return fd;
}

/* What rank 1 says behind `from`, once that tells where it is; an empty text if nothing does. */
static const char *report_behind(off_t from)
{
    static char text[8000];
    for (int waited = 0; waited < LONGEST; waited += 1000) {
        ssize_t n = pread(said, text, sizeof text - 1, from);
        text[n > 0 ? n : 0] = 0;
        if (n > 0 && text[n - 1] == '\n' && (strstr(text, ": in MPI_") || strstr(text, OUTSIDE)))
            return text;
        usleep(1000);
    }
    return "";
}

/* A rank that has not had a processor has not come to the call. */
static void ask(void)
{
    for (int pause = PAUSE; pause < 100 * PAUSE; pause *= 2) {
        usleep(pause);
        off_t from = lseek(said, 0, SEEK_END);
        kill(shared->pid, SIGUSR1);
        if (!strstr(report_behind(from), OUTSIDE))
            return;
    }
}

static void begin(const char *name)
{
    calls++;
    if (rank == LATE) {
        while (atomic_load(&shared->calls) < calls)
            usleep(1000);
        ask();
    } else {
        if (pends)
            MPI_Ibarrier(beside, &barrier);
        fprintf(stderr, "call %s\n", name);
        atomic_store(&shared->calls, calls);
    }
}

static void end(void)
{
    if (pends && rank == LATE)
        MPI_Ibarrier(beside, &barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 makes the first call, rank 0 the second. */
#define PAIR(name, call, other) \
    do {                        \
        begin(#name);           \
        if (rank == LATE)       \
            other;              \
        else                    \
            call;               \
        end();                  \
    } while (0)

#define CALL(name, args) PAIR(name, MPI_##name args, MPI_##name args)

#define WORLD MPI_COMM_WORLD
#define IGNORED MPI_STATUS_IGNORE
#define SEND MPI_Send(out, 1, MPI_CHAR, 1, TAG, WORLD)
#define RECV MPI_Recv(in, LARGE, MPI_CHAR, 1, TAG, WORLD, IGNORED)
#define RECEIVED in, LARGE, MPI_CHAR, LATE, TAG, WORLD

static void wait_for_messages(void)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int n, places[2], peer = !rank;
    PAIR(Recv, MPI_Recv(RECEIVED, IGNORED), SEND);
    PAIR(Send, MPI_Send(out, LARGE, MPI_CHAR, LATE, TAG, WORLD), RECV);
    PAIR(Ssend, MPI_Ssend(out, 1, MPI_CHAR, LATE, TAG, WORLD), RECV);
    CALL(Sendrecv, (out, 1, MPI_CHAR, peer, TAG, in, 1, MPI_CHAR, peer, TAG, WORLD, IGNORED));
    CALL(Sendrecv_replace, (in, 1, MPI_CHAR, peer, TAG, peer, TAG, WORLD, IGNORED));
    PAIR(Probe, MPI_Probe(LATE, TAG, WORLD, IGNORED), SEND);
    if (rank != LATE)
        MPI_Recv(RECEIVED, IGNORED);
#if MPI_VERSION >= 3
    MPI_Message message;
    PAIR(Mprobe, MPI_Mprobe(LATE, TAG, WORLD, &message, IGNORED), SEND);
    if (rank != LATE)
        MPI_Mrecv(in, LARGE, MPI_CHAR, &message, IGNORED);
#endif
#define WAIT(name, call)                \
    do {                                \
        if (rank != LATE)               \
            MPI_Irecv(RECEIVED, &r[1]); \
        PAIR(name, call, SEND);         \
    } while (0)
    WAIT(Wait, MPI_Wait(&r[1], IGNORED));
    WAIT(Waitall, MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    WAIT(Waitany, MPI_Waitany(2, r, &n, IGNORED));
    WAIT(Waitsome, MPI_Waitsome(2, r, &n, places, MPI_STATUSES_IGNORE));
    IF_MPI_4(PAIR(Recv_c, MPI_Recv_c(RECEIVED, IGNORED), SEND);)
}

#define ONE ones, 1, MPI_INT
#define TWO sums, 1, MPI_INT

static void wait_in_collectives(void)
{
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    CALL(Barrier, (WORLD));
    CALL(Bcast, (ONE, LATE, WORLD));
    CALL(Reduce, (ones, sums, 1, MPI_INT, MPI_SUM, 1, WORLD));
    CALL(Allreduce, (ones, sums, 1, MPI_INT, MPI_SUM, WORLD));
    CALL(Gather, (ONE, TWO, 1, WORLD));
    CALL(Gatherv, (ONE, sums, ones, at, MPI_INT, 1, WORLD));
    CALL(Scatter, (ONE, TWO, LATE, WORLD));
    CALL(Scatterv, (ones, ones, at, MPI_INT, TWO, LATE, WORLD));
    CALL(Allgather, (ONE, TWO, WORLD));
    CALL(Allgatherv, (ONE, sums, ones, at, MPI_INT, WORLD));
    CALL(Alltoall, (ONE, TWO, WORLD));
    CALL(Alltoallv, (ones, ones, at, MPI_INT, sums, ones, at, MPI_INT, WORLD));
    CALL(Alltoallw, (ones, ones, bytes, types, sums, ones, bytes, types, WORLD));
    CALL(Reduce_scatter, (ones, sums, ones, MPI_INT, MPI_SUM, WORLD));
    CALL(Reduce_scatter_block, (ones, sums, 1, MPI_INT, MPI_SUM, WORLD));
    CALL(Scan, (ones, sums, 1, MPI_INT, MPI_SUM, WORLD));
    CALL(Exscan, (ones, sums, 1, MPI_INT, MPI_SUM, WORLD));
#if MPI_VERSION >= 3
    int size = 2, round = 0;
    MPI_Aint offsets[2] = {0, sizeof(int)};
    MPI_Comm ring;
    MPI_Cart_create(WORLD, 1, &size, &round, 0, &ring);
    CALL(Neighbor_allgather, (ONE, TWO, ring));
    CALL(Neighbor_allgatherv, (ONE, sums, ones, at, MPI_INT, ring));
    CALL(Neighbor_alltoall, (ONE, TWO, ring));
    CALL(Neighbor_alltoallv, (ones, ones, at, MPI_INT, sums, ones, at, MPI_INT, ring));
    CALL(Neighbor_alltoallw, (ones, ones, offsets, types, sums, ones, offsets, types, ring));
    MPI_Comm_free(&ring);
#endif
}

static void wait_in_constructors(void)
{
    MPI_Comm made[12], *c = made;
    MPI_Group all;
    int size = 2, keep = 1, first = 0, peer = !rank;
    MPI_Comm_group(WORLD, &all);
    CALL(Comm_dup, (WORLD, c++));
    CALL(Comm_create, (WORLD, all, c++));
    CALL(Comm_split, (WORLD, 0, 0, c++));
    CALL(Cart_create, (WORLD, 1, &size, &first, 0, c++));
    CALL(Cart_sub, (c[-1], &keep, c));
    c++;
    CALL(Graph_create, (WORLD, 2, at, at, 0, c++));
    CALL(Dist_graph_create, (WORLD, 1, &rank, ones, &peer, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, c++));
    CALL(Intercomm_create, (MPI_COMM_SELF, 0, WORLD, peer, TAG, c++));
    CALL(Intercomm_merge, (c[-1], rank, c));
    c++;
#if MPI_VERSION >= 3
    CALL(Comm_dup_with_info, (WORLD, MPI_INFO_NULL, c++));
    CALL(Comm_create_group, (WORLD, all, TAG, c++));
    CALL(Comm_split_type, (WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, c++));
#endif
    while (c-- > made)
        MPI_Comm_free(c);
    MPI_Group_free(&all);
}

static void wait_for_windows(void)
{
    MPI_Win win;
    MPI_Group world, other;
    int peer = !rank, *memory;
    MPI_Comm_group(WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &other);
#if MPI_VERSION >= 3
    CALL(Win_allocate, (sizeof(int), sizeof(int), MPI_INFO_NULL, WORLD, &memory, &win));
    MPI_Win_free(&win);
#endif
    MPI_Alloc_mem(sizeof *memory, MPI_INFO_NULL, &memory);
    CALL(Win_create, (memory, sizeof(int), sizeof(int), MPI_INFO_NULL, WORLD, &win));
    CALL(Win_fence, (0, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    if (rank != LATE)
        MPI_Win_post(other, 0, win);
    else
        MPI_Win_start(other, 0, win);
    PAIR(Win_wait, MPI_Win_wait(win), MPI_Win_complete(win));
    if (rank == LATE)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, LATE, 0, win);
    MPI_Barrier(WORLD);
    PAIR(Win_lock, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, LATE, 0, win), MPI_Win_unlock(LATE, win));
    if (rank != LATE)
        MPI_Win_unlock(LATE, win);
    MPI_Barrier(WORLD); /* the target may have to take part in that */
    CALL(Win_free, (&win));
    MPI_Free_mem(memory);
    MPI_Group_free(&other);
    MPI_Group_free(&world);
}

#define BYTES 1, MPI_CHAR, IGNORED
#define MODE MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE

static void wait_for_files(const char *name)
{
    MPI_File f;
    CALL(File_open, (WORLD, name, MODE, MPI_INFO_NULL, &f));
    CALL(File_set_view, (f, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
    CALL(File_set_size, (f, 100));
    CALL(File_write_all, (f, out, BYTES));
    CALL(File_read_all, (f, in, BYTES));
    CALL(File_write_at_all, (f, 0, out, BYTES));
    CALL(File_read_at_all, (f, 0, in, BYTES));
    CALL(File_write_ordered, (f, out, BYTES));
    CALL(File_read_ordered, (f, in, BYTES));
    CALL(File_close, (&f));
}

static void wait_for_jobs(const char *program)
{
    char *arguments[] = {"child", NULL};
    MPI_Comm other;
    if (rank != LATE)
        MPI_Open_port(MPI_INFO_NULL, shared->port);
    PAIR(Comm_accept, MPI_Comm_accept(shared->port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other),
         MPI_Comm_connect(shared->port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other));
    MPI_Comm_disconnect(&other);
    CALL(Comm_spawn, (program, arguments, 1, MPI_INFO_NULL, 0, WORLD, &other, MPI_ERRCODES_IGNORE));
    MPI_Comm_disconnect(&other);
}

static int be_child(void)
{
    MPI_Comm parent;
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_disconnect(&parent);
    return MPI_Finalize();
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    char file[1000];
    if (strcmp(argv[1], "child") == 0)
        return be_child();
    shared = share(argv[1]);
    snprintf(file, sizeof file, "%s.data", argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    said = open_said(argv[1]);
    MPI_Comm_dup(WORLD, &beside);
    pends = strcmp(how, "pending") == 0;
    if (rank != LATE)
        shared->pid = getpid();
    MPI_Barrier(WORLD);
    if (strcmp(how, "spawn") == 0) {
        wait_for_jobs(argv[0]);
    } else {
        wait_for_messages();
        wait_in_collectives();
        wait_in_constructors();
        wait_for_windows();
        wait_for_files(file);
    }
    MPI_Comm_free(&beside);
    return MPI_Finalize();
}
