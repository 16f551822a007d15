/* SPDX-License-Identifier: MIT */
/* How the program is told of errors. MPI-4.1 sections 9.3 to 9.5. */
#ifndef NBC_ERRORS_H
#define NBC_ERRORS_H

#include <mpi.h>
#include <stdbool.h>

/* Calls the error handler of comm (for MPI_COMM_NULL: of MPI_COMM_WORLD, or of nbc_home where there
 * is none) and returns error. Without the lock: handlers are code of the program. */
int nbc_raise(MPI_Comm comm, int error);

/* Where the errors of an operation are raised. */
struct nbc_error_scope {
    MPI_Comm comm;
    bool freed; /* comm is null: the program has freed it, and this is the handler that it had */
    MPI_Errhandler handler;
};

int nbc_raise_at(const struct nbc_error_scope *place, int error);

/* Errors that have a text of their own. */
enum nbc_error {
    NBC_ERROR_ENTRY,    /* MPI_ERR_REQUEST: an entry of an array of requests */
    NBC_ERROR_MISMATCH, /* MPI_ERR_OTHER: ranks made different calls */
    NBC_NERRORS
};

/* The code of such an error, of which MPI_Error_string tells the text, until the next of its kind.
 * Under the lock. */
int nbc_error_text(enum nbc_error which, const char *text);

/* Whether an error is such a code. Under the lock. */
bool nbc_error_is(enum nbc_error which, int error);

/* The class of the standard for a class of nbcshim's own; any other class as it is. Without the
 * lock.
 */
int nbc_error_class_shown(int class);

/* Raises MPI_ERR_REQUEST for entry `entry` (from 0) of the array that `function` was given; `why`
 * says what is wrong with it. Without the lock. */
int nbc_raise_entry(const struct nbc_error_scope *place, const char *function, int entry,
                    const char *why);

#endif
