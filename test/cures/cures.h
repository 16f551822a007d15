/* SPDX-License-Identifier: MIT */
/* Small programs after public reports of faults in MPIs: one TEST each, named by a row of
 * cures.list. Each runs on any number of ranks. */
#ifndef NBC_TEST_CURES_H
#define NBC_TEST_CURES_H

#include "util.h"

#include <stdlib.h>
#include <string.h>

/* Ends a case if the MPI lacks a function; test/cures/run.sh looks for these words. */
#define NEEDS(function)                           \
    do {                                          \
        if (!(function)) {                        \
            test_fail("no %s in MPI", #function); \
            return;                               \
        }                                         \
    } while (0)

#define WORLD MPI_COMM_WORLD

/* What a rank sends to another. */
static inline int sent(int from, int to)
{
    return 1000 * from + to + 1;
}

static inline void finish(MPI_Request *request)
{
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

/* Of a persistent one. */
static inline void run_again(MPI_Request *request)
{
    OK(MPI_Start(request));
    finish(request);
}

/* Starts an operation, whose last argument is &request, and waits for it. */
#define COMPLETE(call)       \
    do {                     \
        MPI_Request request; \
        OK(call);            \
        finish(&request);    \
    } while (0)

/* Room for n integers and one more; freed after the test. */
static inline int *ints(int n)
{
    return test_scratch((size_t)(n + 1) * sizeof(int));
}

#endif
