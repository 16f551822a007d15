/* SPDX-License-Identifier: MIT */
/* Small programs after public reports of faults in MPIs: one TEST each, named by a row of
 * cures.tsv. Each runs on any number of ranks. */
#ifndef NBC_TEST_CURES_H
#define NBC_TEST_CURES_H

#include "util.h"

#include <stdlib.h>
#include <string.h>

/* Ends a case if the MPI lacks a function; test/cures/run looks for these words. */
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

static inline int *ints(int n)
{
    return test_alloc((size_t)(n + 1) * sizeof(int));
}

#endif
