/* SPDX-License-Identifier: MIT */
/* Tests of the progress rule, call by call. Rank 0 starts collectives that the others cannot
 * complete unless it forwards data later, then blocks in the call. The others start the same
 * collectives, complete them, and only then do what the call waits for. Without progress in the
 * call all hang. Then each case runs once more in the other order: the call must return although
 * the collectives cannot complete yet.
 *
 * With NBC_BLOCKED=named the tests are of the report instead: rank 1 sends a SIGUSR1 to rank 0,
 * which must tell the function and the place of the call in which it is blocked, while the
 * collectives are pending; with NBC_BLOCKED=alone while nothing is. */
#ifndef NBC_TEST_BLOCKED_H
#define NBC_TEST_BLOCKED_H

#include "util.h"

struct blocked {
    struct test test;
    void (*release)(void); /* what the others do afterwards; NULL: the same call */
    void (*prepare)(void); /* what all ranks do before, or NULL */
    const char *in;        /* the function without MPI_; NULL: several in turn */
};

/* A test of test_main. The body is the blocking call of rank 0:
 * BLOCKED(recv, .release = send_it) { ... } */
#define BLOCKED(call, ...)                                                                  \
    static void call(void);                                                                 \
    __attribute__((constructor)) static void add_##call(void)                               \
    {                                                                                       \
        static struct blocked added = {                                                     \
            .test.name = #call, .test.run = call, .test.runner = blocked_run, __VA_ARGS__}; \
        test_add(&added.test);                                                              \
    }                                                                                       \
    static void call(void)

void blocked_run(const struct test *test);

/* In a body: the next call blocks as well, in this function. */
void blocked_next(const char *in);

/* Before and after the tests. */
void blocked_begin(void);
void blocked_end(void);

/* A communicator of all ranks for the calls, a new one for each case; the collectives run on
 * another. (After some twenty constructors on one communicator, Open MPI 4.1.4 hangs in the next
 * MPI_Dist_graph_create, natively too, since it reuses the tags of that call.) */
extern MPI_Comm blocked_comm;

#endif
