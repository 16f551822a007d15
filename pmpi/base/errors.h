/* SPDX-License-Identifier: MIT */
/* How nbcshim reports errors to the program: MPI-4.1 sections 9.3 to 9.5. */
#ifndef NBC_ERRORS_H
#define NBC_ERRORS_H

#include <mpi.h>
#include <stdbool.h>

/* Whether an error code is of this class. Local. */
bool nbc_error_is_of(int error, int class);

/* Calls the error handler of comm and returns `error`. For MPI_COMM_NULL the handler is that of
 * MPI_COMM_WORLD, or of nbc_handle_comm if MPI_COMM_WORLD does not exist. Without the lock, because
 * handlers are code of the program. */
int nbc_raise(MPI_Comm comm, int error);

/* Where the errors of an operation are raised. */
struct nbc_error_scope {
    MPI_Comm comm;
    bool freed;             /* the program has freed its communicator, and comm is null */
    MPI_Errhandler handler; /* if freed: the handler that the communicator had */
};

/* Calls the error handler of the scope and returns `error`. Without the lock. */
int nbc_raise_at(const struct nbc_error_scope *place, int error);

/* The same with MPI_ERR_IN_STATUS; a fatal one says which error a request has, if the MPI's does.
 */
int nbc_raise_in_status(const struct nbc_error_scope *place, int error_of_request);

/* The errors for which nbcshim writes the error string. */
enum nbc_error {
    NBC_ERROR_ENTRY,    /* MPI_ERR_REQUEST: an entry of an array of requests */
    NBC_ERROR_MISMATCH, /* MPI_ERR_OTHER: ranks made different calls */
    NBC_ERROR_DEVICE,   /* MPI_ERR_OTHER: a function of a device's runtime has failed */
    NBC_ERROR_CALL,     /* the wrong arguments of a call: the first of 9 classes */
    NBC_NERRORS = NBC_ERROR_CALL + 9
};

/* Sets the string of an error's code, which MPI_Error_string returns until the next call of this
 * function for the same error. Returns the code, or the standard's class if the MPI has no code to
 * add. Under the lock. */
int nbc_error_text(enum nbc_error which, const char *text);

/* The same for a wrong argument of a call, an error of this class. Returns the class itself if it
 * is none that has texts. Under the lock. */
int nbc_error_text_of_call(int class, const char *text);

/* Whether an error code is that of `which`. Under the lock. */
bool nbc_error_is(enum nbc_error which, int error);

/* The class of the standard that stands for a class that nbcshim has added; any other class
 * unchanged. Without the lock. */
int nbc_error_class_shown(int class);

/* Keeps MPICH from raising an error on MPI_COMM_WORLD that belongs to another communicator: around
 * a call of the MPI below by this thread, without the lock. nbc_suppress_errors_end returns whether
 * an error of the call was not raised: then the caller raises it. False where the MPI raises errors
 * on the right communicator, and in the static library. */
void nbc_suppress_errors_begin(void);
bool nbc_suppress_errors_end(void);

#endif
