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
    MPI_Info no_hints;
#if MPI_VERSION * 10 + MPI_SUBVERSION >= 31
    MPI_Comm comm, made;
    MPI_Group group;
    MPI_Info info;
    MPI_Request requests[2];
    MPI_Message message;
    MPI_Errhandler handler;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Win win;
    MPI_File file;
    MPI_Offset position;
    int keyval, flag, n, which[2];
    void *memory;
    char text[MPI_MAX_ERROR_STRING];
#endif
};

struct routine {
    const char *group, *name;      /* its calls, and a remark after a blank */
    int (*run)(struct side *s);    /* returns 0, or another number if a call fails */
    int (*set_up)(struct side *s); /* may be NULL, as may tear_down */
    void (*tear_down)(struct side *s);
    int ranks; /* that it needs; 0: any number */
    bool sized;
};

/* Those of routines.def, ended by one without a name; none before MPI-3.1, and none of files if the
 * MPI has no files. */
extern const struct routine routines[];

int run_collective(struct side *s);
int routine_set_up(const struct routine *r, struct side *s);
void routine_tear_down(const struct routine *r, struct side *s);

#endif
