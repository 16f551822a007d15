/* SPDX-License-Identifier: MIT */
/* Faults of the system: what nbcshim asks of it is refused, or disturbed. The operations are right
 * all the same; test/tools/faults.sh also looks at what is said.
 *
 *   faults signals     a timer interrupts this process all the time; its handler never runs in a
 *                      thread of nbcshim, even if the signal is sent there
 *   faults reports     so does SIGUSR1, for which nbcshim reports what is pending
 *   faults fork        children that do not use MPI come and go
 *   faults threads     nbcshim gets no thread
 *   faults files       nbcshim can open no file, on any rank
 *   faults timer       a timer interrupts this process from the beginning of MPI_Init to its end
 *   faults pipe        nobody reads standard error
 *   faults memory=N    nbcshim's N-th piece of memory is refused, from the beginning of MPI_Init
 * on; it says "no such piece" if there are less than N
 *
 * What is refused is refused on the last rank alone. */
#define _GNU_SOURCE
#include <stdbool.h>

static int countdown; /* pieces of memory until one is refused; 0: none is */

static bool refuses_piece(void)
{
    if (countdown <= 0 || --countdown > 0)
        return false;
    countdown = -1;
    return true;
}

#define pieces_refuse(size) refuses_piece()
#include "pieces.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static bool no_threads, no_files;

/* --- what the library asks for ---------------------------------------------------------------- */

/* Returns the function of that name behind the one here. */
static void *behind(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

#define CALL_BEHIND(type, name, parameters, ...) \
    do {                                         \
        static type(*next) parameters;           \
        if (!next) {                             \
            void *object = behind(name);         \
            memcpy(&next, &object, sizeof next); \
        }                                        \
        return next(__VA_ARGS__);                \
    } while (0)

static int create_behind(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                         void *argument)
{
    CALL_BEHIND(int, "pthread_create",
                (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *), thread,
                attributes, work, argument);
}

/* The threads that nbcshim has started. */
enum { MOST_THREADS = 4 };
static pthread_t threads[MOST_THREADS];
static int nthreads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *argument)
{
    bool asked = FROM_LIBRARY;
    if (no_threads && asked)
        return EAGAIN;
    int error = create_behind(thread, attributes, work, argument);
    if (!error && asked && nthreads < MOST_THREADS)
        threads[nthreads++] = *thread;
    return error;
}

static bool refuses_file(bool asked)
{
    if (no_files && asked)
        errno = EMFILE;
    return no_files && asked;
}

FILE *fopen(const char *name, const char *mode)
{
    if (refuses_file(FROM_LIBRARY))
        return NULL;
    CALL_BEHIND(FILE *, "fopen", (const char *, const char *), name, mode);
}

DIR *opendir(const char *name)
{
    if (refuses_file(FROM_LIBRARY))
        return NULL;
    CALL_BEHIND(DIR *, "opendir", (const char *), name);
}

#undef open
int open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
    va_end(rest);
    if (refuses_file(FROM_LIBRARY))
        return -1;
    return openat(AT_FDCWD, name, flags, mode);
}

/* --- what must go on -------------------------------------------------------------------------- */

enum { N = 2000, MANY = 8 };

static int in[N], out[MANY][N];

static void expect_sums(const char *what, int n)
{
    int ranks = test_size * (test_size + 1) / 2;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < N; i++)
            if (out[k][i] != ranks * (i + 1)) {
                test_fail("%s %d: element %d is %d, not %d", what, k, i, out[k][i],
                          ranks * (i + 1));
                return;
            }
    memset(out, 0, sizeof out);
}

static void nonblocking(MPI_Comm comm)
{
    MPI_Request r[MANY];
    for (int i = 0; i < MANY; i++)
        MPI_Iallreduce(in, out[i], N, MPI_INT, MPI_SUM, comm, &r[i]);
    MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
    expect_sums("allreduce", MANY);
}

static void persistent(MPI_Comm comm)
{
    MPI_Request r[MANY];
    if (!test_has_persistent())
        return;
    for (int i = 0; i < MANY; i++)
        MPI_Allreduce_init(in, out[i], N, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[i]);
    for (int round = 0; round < 3; round++) {
        MPI_Startall(MANY, r);
        for (int i = 0, index; i < MANY; i++)
            MPI_Waitany(MANY, r, &index, MPI_STATUS_IGNORE);
        expect_sums("persistent allreduce", MANY);
    }
    for (int i = 0; i < MANY; i++)
        MPI_Request_free(&r[i]);
}

static void others(MPI_Comm comm)
{
    MPI_Comm copy;
    MPI_Request r[2];
    int flag = 0, next = right(), before = left();
    int mine = test_rank, got = -1;
    MPI_Comm_dup(comm, &copy);
    MPI_Irecv(&got, 1, MPI_INT, before, 0, copy, &r[0]);
    MPI_Ibarrier(copy, &r[1]);
    MPI_Send(&mine, 1, MPI_INT, next, 0, copy);
    while (!flag)
        MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE);
    EXPECT(got == before, "message %d", got);
    MPI_Allreduce(in, out[0], N, MPI_INT, MPI_SUM, copy);
    expect_sums("blocking allreduce", 1);
    MPI_Comm_free(&copy);
}

static void work(int rounds)
{
    for (int i = 0; i < N; i++)
        in[i] = (test_rank + 1) * (i + 1);
    for (int i = 0; i < rounds; i++) {
        test_place("round %d", i);
        nonblocking(MPI_COMM_WORLD);
        persistent(MPI_COMM_WORLD);
        others(MPI_COMM_WORLD);
    }
}

/* --- faults ----------------------------------------------------------------------------------- */

static volatile sig_atomic_t interruptions, strayed, pause_us;

/* One interruption, or none if the pause is 0. */
static void interrupt_once(void)
{
    struct itimerval timer = {{0, 0}, {0, pause_us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* The pause begins at the end of the handler: if the handler takes longer than the pause, as a
 * report does on a loaded machine, a timer that repeats itself leaves the program no time. */
static void on_timer(int number)
{
    (void)number;
    interruptions++;
    for (int i = 0; i < nthreads; i++)
        strayed += pthread_equal(threads[i], pthread_self()) != 0;
    interrupt_once();
}

/* The handler lets system calls return early. */
static void interrupt_every(int microseconds, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    pause_us = microseconds;
    interrupt_once();
}

/* At least as many rounds, and more until each rank has been interrupted as often. */
static void work_interrupted(int rounds)
{
    int mine, fewest;
    work(rounds);
    do {
        work(1);
        mine = (int)interruptions;
        MPI_Allreduce(&mine, &fewest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    } while (fewest < rounds);
}

static void run_signals(void)
{
    interrupt_every(137, on_timer);
    EXPECT(nthreads > 0, "nbcshim has no thread");
    for (int i = 0; i < nthreads; i++)
        EXPECT_INT(pthread_kill(threads[i], SIGALRM), 0, "thread %d", i);
    work_interrupted(test_scale(40, 2000));
    interrupt_every(0, on_timer);
    EXPECT_INT(strayed, 0, "the handler ran in a thread of nbcshim");
}

static void on_timer_report(int number)
{
    int saved = errno;
    raise(SIGUSR1);
    on_timer(number);
    errno = saved;
}

/* The reports are many, and not looked at. */
static void run_reports(void)
{
    int nowhere = open("/dev/null", O_WRONLY), before = dup(STDERR_FILENO);
    dup2(nowhere, STDERR_FILENO);
    interrupt_every(337, on_timer_report);
    work_interrupted(test_scale(6, 1000));
    interrupt_every(0, on_timer_report);
    dup2(before, STDERR_FILENO);
    close(before);
    close(nowhere);
}

/* Ends like any program, with what the libraries do then, or at once. */
static void child(int i)
{
    char *memory = malloc(100000);
    memset(memory, i, 100000);
    free(memory);
    if (i % 2)
        exit(0);
    _exit(0);
}

static void run_fork(void)
{
    MPI_Request r[MANY];
    for (int i = 0; i < test_scale(24, 500); i++) {
        int status = -1;
        for (int k = 0; k < MANY; k++)
            MPI_Iallreduce(in, out[k], N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[k]);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            child(i);
        }
        MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
        EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child %d: status %x", i,
               status);
        if (i % 8 == 0)
            work(1);
    }
}

/* Standard error has no reader from here on. */
static void close_pipe(void)
{
    int ends[2];
    if (pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0)
        abort();
    close(ends[0]);
    close(ends[1]);
}

/* Launchers tell the ranks who they are. */
static bool is_last_rank(void)
{
    const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (!rank) {
        rank = getenv("OMPI_COMM_WORLD_RANK");
        size = getenv("OMPI_COMM_WORLD_SIZE");
    }
    return !rank || atoi(rank) + 1 == atoi(size);
}

int main(int argc, char **argv)
{
    const char *fault = argc > 1 ? argv[1] : "";
    bool refuses = is_last_rank(), memory = strncmp(fault, "memory=", 7) == 0;
    library_find();
    no_threads = refuses && strcmp(fault, "threads") == 0;
    no_files = strcmp(fault, "files") == 0;
    if (memory && refuses)
        countdown = atoi(fault + 7);
    if (strcmp(fault, "timer") == 0)
        interrupt_every(1000, on_timer);
    test_init(&argc, &argv);
    if (strcmp(fault, "pipe") == 0)
        close_pipe();
    if (strcmp(fault, "signals") == 0)
        run_signals();
    if (strcmp(fault, "reports") == 0)
        run_reports();
    if (strcmp(fault, "fork") == 0)
        run_fork();
    work(2);
    int status = test_done();
    if (memory && refuses && countdown > 0)
        printf("no such piece\n");
    countdown = 0; /* what counts the lines that are run needs memory at exit */
    return status;
}
