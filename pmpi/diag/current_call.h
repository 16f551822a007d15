/* SPDX-License-Identifier: MIT */
/* The call of MPI in which this thread is, by its stack: no call costs anything for that. Also in a
 * signal handler. */
#ifndef NBC_CURRENT_CALL_H
#define NBC_CURRENT_CALL_H

#include <stdbool.h>

enum nbc_place {
    NBC_PLACE_UNKNOWN, /* the MPI or nbcshim is a static library, or the stack cannot be read */
    NBC_PLACE_PROGRAM, /* outside MPI */
    NBC_PLACE_MPI,     /* in a call of the MPI */
    NBC_PLACE_SHIM     /* in a call that nbcshim carries out */
};

struct nbc_current {
    enum nbc_place place;
    const char *name; /* of the function of MPI that the program has called, without prefix; NULL:
                       * not known */
    const char *site; /* to which that call returns, behind the MPI's Fortran binding; or NULL */
};

/* in_handler: the caller is a signal handler, which may have interrupted the program; otherwise it
 * is in a call of the program. */
struct nbc_current nbc_current_call(bool in_handler);

#endif
