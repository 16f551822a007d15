/* SPDX-License-Identifier: MIT */
/* Calls of a program that are not nonblocking or persistent collectives, and that nbcshim wraps all
 * the same: what `nbcbench -m untouched` measures. */
#ifndef NBC_BENCH_ROUTINES_H
#define NBC_BENCH_ROUTINES_H

#include "cases.h"

/* What the calls of one side use. A side makes its own communicators, windows and files. */
struct side {
    const struct calls *calls;
    const struct operands *o;
    int peer; /* the other rank of the pair, or -1 */
    const char *path;
#if MPI_VERSION * 10 + MPI_SUBVERSION >= 31
    MPI_Comm comm;
    MPI_Group group;
    MPI_Info info;
    MPI_Request requests[2];
    MPI_Win win;
    MPI_File file;
    int keyval;
    void *memory;
#endif
};

struct routine {
    const char *name;              /* its calls, and a remark after a blank */
    int (*run)(struct side *s);    /* returns an error code */
    int (*set_up)(struct side *s); /* may be NULL, as may tear_down */
    void (*tear_down)(struct side *s);
    int ranks; /* that it needs; 0: any number */
    bool sized;
};

#define ROW(calls, function, ...)                   \
    {                                               \
        .name = calls, .run = function, __VA_ARGS__ \
    }
#define AROUND(before, after) .set_up = before, .tear_down = after

/* Ended by a routine without a name; empty before MPI-3.1. That of files is empty also if the MPI
 * has no files. */
extern const struct routine communicator_routines[], message_routines[], request_routines[],
    local_routines[], window_routines[], file_routines[];

#endif
