/* SPDX-License-Identifier: MIT */
/* For programs that end the job at the first thing that is wrong. They define the rank. */
#ifndef TEST_TOOLS_CHECK_H
#define TEST_TOOLS_CHECK_H

#include <mpi.h>

#define IF_IT_FAILS MPI_Abort(MPI_COMM_WORLD, 1)
#include "../expect.h"

static inline int class_of(int error)
{
    int class;
    MPI_Error_class(error, &class);
    return class;
}

#endif
