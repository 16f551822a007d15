/* SPDX-License-Identifier: MIT */
/* What calls with an array of statuses write there for requests of nbcshim, and the error that they
 * raise. */
#ifndef NBC_STATUSES_H
#define NBC_STATUSES_H

#include "base/errors.h"
#include "request/request.h"

struct nbc_statuses {
    MPI_Status *list;
    int nvalid;                   /* so many are valid, but for their MPI_ERROR */
    int error;                    /* MPI_ERR_IN_STATUS, or MPI_SUCCESS so far */
    struct nbc_error_scope place; /* where the error is to be raised */
};

/* Whether an error of the MPI below is of the class MPI_ERR_IN_STATUS. */
bool nbc_is_in_status(int error);

/* Reports a request in list[at]. With the first error, sets MPI_ERROR of those that are valid. (The
 * standard leaves MPI_ERROR untouched where the call succeeds. nbcshim writes MPI_SUCCESS, as both
 * MPIs do, since some programs read it.) Ends the request if it is complete. Under the lock. */
void nbc_statuses_set(struct nbc_statuses *s, struct nbc_request *r, MPI_Request *request, int at);

/* At the end of the call: raises the error, unless the MPI below has raised `error` already.
 * Returns the error of the call. Without the lock. */
int nbc_statuses_raise(const struct nbc_statuses *s, int error);

#endif
