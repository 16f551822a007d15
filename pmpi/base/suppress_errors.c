/* SPDX-License-Identifier: MIT */
/* MPICH raises the errors of completion calls on MPI_COMM_WORLD, whatever communicator the message
 * belongs to, and whose error handler ends the program by default. nbcshim returns the errors of
 * its messages from the program's completion call, on the communicator of the operation, so they
 * must not be raised below.
 *
 * In the MPICH family all functions raise their errors through this function of the library's,
 * which is called through its table of symbols. The definition here comes before that of the MPI,
 * and returns the errors of nbcshim's own calls. It is called after errors only. An MPI that calls
 * its function in another way goes on raising them. */
#include "base/suppress_errors.h"

#include <string.h>

#include "base/lock.h"
#include "below/next.h"

static NBC_PER_THREAD enum { LOUD, QUIET, KEPT } mood;

void nbc_suppress_errors_begin(void)
{
    mood = QUIET;
}

bool nbc_suppress_errors_end(void)
{
    bool kept = mood == KEPT;
    mood = LOUD;
    return kept;
}

#ifdef PIC
struct MPIR_Comm;
typedef int raiser(struct MPIR_Comm *comm, const char *function, int error);

raiser MPIR_Err_return_comm;

/* comm: null if the function has no communicator. Inside nbcshim the only calls of the program are
 * those of its operators. */
int MPIR_Err_return_comm(struct MPIR_Comm *comm, const char *function, int error)
{
    if (!comm && nbc_has_lock())
        return error;
    if (!comm && mood != LOUD) {
        mood = KEPT;
        return error;
    }
    raiser *next;
    void *object = nbc_next_symbol("MPIR_Err_return_comm", __builtin_return_address(0));
    memcpy(&next, &object, sizeof next); /* POSIX permits the conversion */
    return next ? next(comm, function, error) : error;
}
#endif
