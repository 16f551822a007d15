/* SPDX-License-Identifier: MIT */
/* For programs that end the job at the first thing that is wrong. They define the rank. */
#ifndef TEST_TOOLS_CHECK_H
#define TEST_TOOLS_CHECK_H

#include <mpi.h>
#include <stdio.h>

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                          \
        }                                                                          \
    } while (0)

static inline int class_of(int error)
{
    int class;
    MPI_Error_class(error, &class);
    return class;
}

#endif
