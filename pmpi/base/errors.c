/* SPDX-License-Identifier: MIT */
#include "base/errors.h"

#include "base/lock.h"
#include "base/state.h"
#include "below/next.h"
#include "below/quirks.h"

bool nbc_error_is_of(int error, int class)
{
    int its;
    return error == class || (!NEXT(Error_class)(error, &its) && its == class);
}

/* The error codes whose strings nbcshim sets, and their classes; MPI_SUCCESS until first needed.
 * Written under the lock; classes are read without. Both the class and the code are added: MPICH
 * 4.0.2 garbles the strings of codes of predefined classes, and Open MPI 4.1.4 does not treat an
 * added class as an error. */
static struct own_error {
    const int shown; /* the class that MPI_Error_class returns */
    int class, code;
} own_errors[NBC_NERRORS] = {
    [NBC_ERROR_ENTRY] = {.shown = MPI_ERR_REQUEST},
    [NBC_ERROR_MISMATCH] = {.shown = MPI_ERR_OTHER},
    [NBC_ERROR_DEVICE] = {.shown = MPI_ERR_OTHER},
    [NBC_ERROR_CALL] = {.shown = MPI_ERR_BUFFER},
    {.shown = MPI_ERR_COUNT},
    {.shown = MPI_ERR_TYPE},
    {.shown = MPI_ERR_COMM},
    {.shown = MPI_ERR_ROOT},
    {.shown = MPI_ERR_OP},
    {.shown = MPI_ERR_TOPOLOGY},
    {.shown = MPI_ERR_ARG},
    {.shown = MPI_ERR_INFO},
};

static bool own_error_set_up(struct own_error *o)
{
    int class;
    if (o->class != MPI_SUCCESS)
        return true;
    if (!NBC_MAY_ADD_ERRORS || NEXT(Add_error_class)(&class) ||
        NEXT(Add_error_code)(class, &o->code))
        return false; /* unreached: no memory */
    __atomic_store_n(&o->class, class, __ATOMIC_RELAXED);
    return true;
}

int nbc_error_text(enum nbc_error which, const char *text)
{
    struct own_error *o = &own_errors[which];
    if (!own_error_set_up(o))
        return o->shown; /* unreached: no memory */
    /* The cast is for MPI-2.2, whose prototype lacks const. */
    NEXT(Add_error_string)(o->code, (char *)text);
    return o->code;
}

int nbc_error_text_of_call(int class, const char *text)
{
    for (int i = NBC_ERROR_CALL; i < NBC_NERRORS; i++)
        if (own_errors[i].shown == class)
            return nbc_error_text(i, text);
    return class; /* unreached: a class of no own error */
}

bool nbc_error_is(enum nbc_error which, int error)
{
    const struct own_error *o = &own_errors[which];
    return o->class != MPI_SUCCESS ? error == o->code : error == o->shown;
}

int nbc_error_class_shown(int class)
{
    if (class <= MPI_ERR_LASTCODE) /* not one that was added */
        return class;
    for (int i = 0; i < NBC_NERRORS; i++) {
        int added = __atomic_load_n(&own_errors[i].class, __ATOMIC_RELAXED);
        if (added != MPI_SUCCESS && class == added)
            return own_errors[i].shown;
    }
    return class; /* unreached: the MPI fails */
}

/* --- raising errors --------------------------------------------------------------------------- */

static bool is_fatal(MPI_Errhandler handler)
{
#ifdef MPI_ERRORS_ABORT
    if (handler == MPI_ERRORS_ABORT)
        return true;
#endif
    return handler == MPI_ERRORS_ARE_FATAL;
}

/* The class of the standard behind an own code, MPI_SUCCESS for any other error. */
static int class_of_own(int error)
{
    int class = MPI_SUCCESS;
    nbc_lock();
    for (int i = 0; i < NBC_NERRORS; i++)
        if (own_errors[i].class != MPI_SUCCESS && own_errors[i].code == error)
            class = own_errors[i].shown;
    nbc_unlock();
    return class;
}

/* The status of a job that a fatal error ends is its code, and that of nbcshim is not one that the
 * MPI's own function would have given. */
static void call_handler(MPI_Comm comm, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Errhandler handler;
    int length, class = class_of_own(error);
    if (class == MPI_SUCCESS || NEXT(Comm_get_errhandler)(comm, &handler)) {
        NEXT(Comm_call_errhandler)(comm, error);
        return;
    }
    NEXT(Error_string)(error, text, &length);
    if (is_fatal(handler))
        nbc_quirks_raise_fatal(comm, handler, class, text);
    else
        NEXT(Comm_call_errhandler)(comm, error);
    NEXT(Errhandler_free)(&handler);
}

int nbc_raise(MPI_Comm comm, int error)
{
    if (comm == MPI_COMM_NULL)
        comm = nbc_world_initialized ? MPI_COMM_WORLD : nbc_handle_comm;
    call_handler(comm, error);
    return error;
}

/* An error handler must be called on a communicator. This one is called on a new communicator of
 * this process alone. */
static int raise_on_own_comm(MPI_Errhandler handler, int error)
{
    MPI_Comm alone;
    int failure = NEXT(Comm_split)(nbc_handle_comm, 0, 0, &alone);
    if (failure)
        return nbc_raise(MPI_COMM_NULL, error);
    NEXT(Comm_set_errhandler)(alone, handler);
    call_handler(alone, error);
    NEXT(Comm_free)(&alone);
    return error;
}

int nbc_raise_at(const struct nbc_error_scope *place, int error)
{
    return place->freed ? raise_on_own_comm(place->handler, error) : nbc_raise(place->comm, error);
}

static bool scope_is_fatal(const struct nbc_error_scope *place)
{
    MPI_Errhandler handler;
    if (place->freed)
        return is_fatal(place->handler);
    if (NEXT(Comm_get_errhandler)(place->comm, &handler))
        return false; /* unreached: no such communicator */
    const bool fatal = is_fatal(handler);
    NEXT(Errhandler_free)(&handler);
    return fatal;
}

int nbc_raise_in_status(const struct nbc_error_scope *place, int error_of_request)
{
    const bool tells = NBC_FATAL_OF_REQUEST && scope_is_fatal(place);
    nbc_raise_at(place, tells ? error_of_request : MPI_ERR_IN_STATUS);
    return MPI_ERR_IN_STATUS;
}

/* --- errors of the MPI on the wrong communicator ---------------------------------------------- */

/* MPICH raises the errors of completion calls on MPI_COMM_WORLD, whatever communicator the message
 * belongs to, and whose error handler ends the program by default. nbcshim returns the errors of
 * its messages from the program's completion call, on the communicator of the operation, so they
 * must not be raised below.
 *
 * In the MPICH family all functions raise their errors through this function of the library's,
 * which is called through its table of symbols. The definition here comes before that of the MPI,
 * and returns the errors of nbcshim's own calls. It is called after errors only. An MPI that calls
 * its function in another way goes on raising them. */
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
    raiser *next = (raiser *)nbc_next_symbol("MPIR_Err_return_comm", __builtin_return_address(0));
    return next ? next(comm, function, error) : error;
}
#endif
