/* SPDX-License-Identifier: MIT */
#include "blocked.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma weak MPI_Barrier_init

MPI_Comm blocked_comm = MPI_COMM_NULL;

enum { NOPS = 3 };

static struct {
    MPI_Comm comm, others; /* of all; of all but rank 0 */
    int in, sum, all[64];
    MPI_Request request[NOPS];
} collectives;

static void blocked_start(void)
{
    collectives.in = test_rank + 1;
    collectives.sum = -1;
    MPI_Ibarrier(collectives.comm, &collectives.request[0]);
    MPI_Iallreduce(&collectives.in, &collectives.sum, 1, MPI_INT, MPI_SUM, collectives.comm,
                   &collectives.request[1]);
    MPI_Iallgather(&collectives.in, 1, MPI_INT, collectives.all, 1, MPI_INT, collectives.comm,
                   &collectives.request[2]);
}

static void complete(const char *name)
{
    MPI_Waitall(NOPS, collectives.request, MPI_STATUSES_IGNORE);
    EXPECT_INT(collectives.sum, test_size * (test_size + 1) / 2, "%s", name);
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(collectives.all[i], i + 1, "%s, element %d", name, i);
}

/* Rank 0 starts before the others do. */
static void start_first(void)
{
    if (test_rank > 0) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, collectives.comm, MPI_STATUS_IGNORE);
        return;
    }
    blocked_start();
    for (int to = 1; to < test_size; to++)
        MPI_Send(NULL, 0, MPI_INT, to, 0, collectives.comm);
}

static off_t size_of(const char *name)
{
    struct stat found;
    return stat(name, &found) == 0 ? found.st_size : 0;
}

static void append_byte(const char *name)
{
    FILE *file = fopen(name, "a");
    EXPECT(file && fputc('.', file) != EOF && fclose(file) == 0, "cannot write %s", name);
}

/* Not all others can complete the collectives while rank 0 is away: else no case could fail. It
 * learns from a file when they have tried. */
static void check_need(void)
{
    char name[TEST_FILE_NAME] = "";
    int done = 0, all = 0;
    EXPECT(test_rank > 0 || test_file(name), "no temporary file");
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, collectives.comm);
    start_first();
    if (test_rank == 0) {
        while (size_of(name) < test_size - 1)
            usleep(1000);
        unlink(name);
    } else {
        blocked_start();
        for (int i = 0; i < 20 && !done; i++) {
            usleep(1000);
            MPI_Testall(NOPS, collectives.request, &done, MPI_STATUSES_IGNORE);
        }
        MPI_Allreduce(&done, &all, 1, MPI_INT, MPI_MIN, collectives.others);
        EXPECT(!all, "the collectives are complete without rank 0");
        append_byte(name);
    }
    complete("need");
}

/* Algorithms in which rank 0 has to forward something. */
static bool choose_algorithms(void)
{
#if MPI_VERSION >= 3
    const char *progress = getenv("NBCSHIM_PROGRESS");
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "nbcshim_algorithm",
                 "barrier:dissemination,allreduce:recursive_doubling,allgather:ring");
    MPI_Comm_set_info(collectives.comm, info);
    MPI_Info_free(&info);
    return test_size > 2 && !(progress && strcmp(progress, "thread") == 0);
#else
    return false;
#endif
}

static void let_go(const struct blocked *b)
{
    (b->release ? b->release : b->test.run)();
}

/* The others complete the collectives, and then do what rank 0 waits for. */
static void blocked_until_late(const struct blocked *b)
{
    if (test_rank == 0) {
        b->test.run();
        complete(b->test.name);
        return;
    }
    blocked_start();
    complete(b->test.name);
    MPI_Barrier(collectives.others); /* some may not need rank 0 */
    let_go(b);
}

/* The others start the collectives only when rank 0 has returned from its call. */
static void blocked_until_early(const struct blocked *b)
{
    if (test_rank == 0)
        b->test.run();
    else
        let_go(b);
    MPI_Barrier(blocked_comm);
    if (test_rank > 0)
        blocked_start();
    complete(b->test.name);
}

static void blocked_one(const struct blocked *b, void (*run)(const struct blocked *),
                        const char *when)
{
    test_place("%s, %s", b->test.name, when);
    MPI_Comm_dup(MPI_COMM_WORLD, &blocked_comm);
    if (b->prepare)
        b->prepare();
    start_first();
    if (test_rank > 0)
        usleep(10000); /* rank 0 is in the call by then */
    run(b);
    MPI_Barrier(blocked_comm);
    MPI_Comm_free(&blocked_comm);
}

/* --- which function it is ----------------------------------------------------------------------*/

static struct {
    const char *how; /* NBC_BLOCKED, or NULL */
    int pid;         /* of rank 0 */
    int said, error; /* what it says in its report, for rank 1; its standard error otherwise */
} named;

static void named_begin(void)
{
    char name[TEST_FILE_NAME] = "";
    named.how = getenv("NBC_BLOCKED");
    if (!named.how)
        return;
    EXPECT(test_rank > 0 || test_file(name), "no temporary file");
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, collectives.comm);
    named.said = open(name, O_RDWR | O_APPEND);
    named.error = dup(STDERR_FILENO);
    named.pid = (int)getpid();
    CHECK(named.said >= 0);
    MPI_Bcast(&named.pid, 1, MPI_INT, 0, collectives.comm);
    MPI_Barrier(collectives.comm); /* all have opened it */
    unlink(name);
}

/* What rank 0 says behind `from`, once it has said where it is. */
static const char *report_behind(off_t from)
{
    enum { LONGEST = 5000 /* ms */ };
    static char text[8000];
    for (int ms = 0; ms < LONGEST; ms++) {
        ssize_t n = pread(named.said, text, sizeof text - 1, from);
        text[n > 0 ? n : 0] = '\0';
        if (n > 0 && text[n - 1] == '\n' && (strstr(text, ": in ") || strstr(text, ": outside")))
            break;
        usleep(1000);
    }
    return text;
}

/* In MPICH 4.2 a function of files is a jump into its large-count form: no frame tells which it
 * was.
 */
static bool says_where(const char *text, const char *in)
{
    char plain[80], large[80];
    snprintf(plain, sizeof plain, ": in MPI_%s at progress", in);
    snprintf(large, sizeof large, ": in MPI_%s_c at progress", in);
    return strstr(text, plain) || (strncmp(in, "File_", 5) == 0 && strstr(text, large));
}

/* A rank that has not had a processor has not come to the call. */
static void ask(const char *in)
{
    const char *text = "";
    for (int pause = 5000; pause < 500000 && !says_where(text, in); pause *= 2) {
        usleep(pause);
        off_t from = lseek(named.said, 0, SEEK_END);
        kill(named.pid, SIGUSR1);
        text = report_behind(from);
    }
    EXPECT(says_where(text, in), "%s: %s", in, text);
}

void blocked_next(const char *in)
{
    if (!named.how || test_rank == 0)
        return;
    if (test_rank == 1)
        ask(in);
    MPI_Barrier(collectives.others);
}

static void blocked_named(const struct blocked *b)
{
    bool pends = strcmp(named.how, "alone") != 0;
    if (!b->in)
        return;
    MPI_Comm_dup(MPI_COMM_WORLD, &blocked_comm);
    if (b->prepare)
        b->prepare();
    if (pends)
        start_first();
    blocked_next(b->in);
    if (test_rank == 0) {
        dup2(named.said, STDERR_FILENO);
        b->test.run();
        dup2(named.error, STDERR_FILENO);
    } else {
        let_go(b);
    }
    if (pends && test_rank > 0)
        blocked_start();
    if (pends)
        complete(b->test.name);
    MPI_Barrier(blocked_comm);
    MPI_Comm_free(&blocked_comm);
}

void blocked_run(const struct test *test)
{
    const struct blocked *b = (const struct blocked *)test;
    if (named.how) {
        blocked_named(b);
        return;
    }
    blocked_one(b, blocked_until_late, "the collectives complete before");
    blocked_one(b, blocked_until_early, "the collectives complete afterwards");
}

void blocked_begin(void)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &collectives.comm);
    MPI_Comm_split(MPI_COMM_WORLD, test_rank > 0, 0, &collectives.others);
    named_begin();
    if (choose_algorithms() && !named.how)
        check_need();
}

void blocked_end(void)
{
    MPI_Comm_free(&collectives.comm);
    MPI_Comm_free(&collectives.others);
}
