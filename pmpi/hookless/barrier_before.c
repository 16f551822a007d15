/* SPDX-License-Identifier: MIT */
#include "hookless/barrier_before.h"

#include <stdlib.h>

#include "base/errors.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/hook.h"
#include "below/quirks.h"
#include "engine/calls.h"
#include "engine/progress.h"
#include "hookless/signal.h"
#include "request/request.h"

static bool is_needed(void)
{
    return nbc_settings.blocking != NBC_BLOCKING_NATIVE && (!nbc_hooked || nbc_settings.check);
}

/* --- of a communicator or group --------------------------------------------------------------- */

/* run: one of the functions of calls.h. */
static int barrier(MPI_Comm comm, int (*run)(const struct nbc_call *call))
{
    const struct nbc_call call = {.coll = NBC_BARRIER, .purpose = NBC_FOR_OTHERS, .comm = comm};
    int inter = 0, error = run(&call);
    /* After one barrier of an intercommunicator a rank knows that the remote group has made the
     * call; after the second it knows the same of its own group. */
    if (!error && !NEXT(Comm_test_inter)(comm, &inter) && inter)
        error = run(&call);
    return error == NBC_CALL_BELOW ? MPI_SUCCESS : error;
}

int nbc_barrier_before(MPI_Comm comm)
{
    nbc_progress_duplicates(comm);
    return is_needed() ? barrier(comm, nbc_call_blocking) : MPI_SUCCESS;
}

int nbc_barrier_before_outside_loop(MPI_Comm comm)
{
    bool forced = nbc_hooked && nbc_comm_is_ours(comm);
    nbc_progress_duplicates(comm);
    return barrier(comm, forced ? nbc_call_forced : nbc_call_blocking);
}

int nbc_barrier_before_constructor(MPI_Comm comm)
{
    return NBC_CONSTRUCTORS_WAIT ? nbc_barrier_before_outside_loop(comm) : nbc_barrier_before(comm);
}

int nbc_barrier_before_group(struct nbc_context *c, MPI_Group group, int tag)
{
    const struct nbc_signal signal = {.kind = NBC_SIGNAL_GROUP, .number = tag};
    int me = MPI_UNDEFINED;
    if (!(is_needed() || NBC_CONSTRUCTORS_WAIT) || group == MPI_GROUP_NULL ||
        c->members.remote_size)
        return MPI_SUCCESS; /* of a wrong group or communicator the MPI raises the error */
    NEXT(Group_rank)(group, &me);
    return me == MPI_UNDEFINED ? MPI_SUCCESS
                               : nbc_signal_group(c, group, &signal, NBC_SIGNAL_BARRIER);
}

/* --- of a window or file ---------------------------------------------------------------------- */

static struct nbc_object_barrier *barriers[NBC_NOBJECTS]; /* under the lock */

uint64_t nbc_object_key(const void *handle, size_t size)
{
    uint64_t key = 0;
    memcpy(&key, handle, size < sizeof key ? size : sizeof key);
    return key;
}

static bool add(struct nbc_object_barrier *b)
{
    HASH_ADD(hh, barriers[b->object], key, sizeof b->key, b);
    return nbc_added(b);
}

int nbc_object_barrier_new(enum nbc_object object, uint64_t key, MPI_Comm comm)
{
    const struct nbc_call call = {
        .coll = NBC_BARRIER, .purpose = NBC_FOR_OTHERS, .kind = NBC_KIND_PERSISTENT, .comm = comm};
    MPI_Request handle;
    /* Where the hook misses epochs, MPI_Win_start waits for signals. */
    if (!is_needed() &&
        !(object == NBC_WINDOW && nbc_hooked && nbc_hook_has(NBC_HOOK_MISSES_EPOCHS)))
        return MPI_SUCCESS;
    int error = nbc_call_init(&call, &handle);
    if (error)
        return error == NBC_CALL_BELOW ? MPI_SUCCESS : error;
    nbc_lock();
    struct nbc_request *r = nbc_request_find(handle);
    struct nbc_object_barrier *b = malloc(sizeof *b);
    if (b)
        *b = (struct nbc_object_barrier){
            .key = key, .object = object, .request = r, .posted = {NBC_SIGNAL_POST, r->tag, 0}};
    bool made = b && add(b);
    if (made) {
        nbc_request_hide(true);
        r->context->nobjects++;
    } else {
        free(b);
        nbc_request_free(r);
    }
    nbc_unlock();
    return made ? MPI_SUCCESS : nbc_raise(comm, MPI_ERR_NO_MEM);
}

struct nbc_object_barrier *nbc_object_barrier_find(enum nbc_object object, uint64_t key)
{
    struct nbc_object_barrier *b;
    if (!nbc_enabled || nbc_inside)
        return NULL; /* unreached: no memory */
    nbc_lock();
    HASH_FIND(hh, barriers[object], &key, sizeof key, b);
    nbc_unlock();
    return b;
}

int nbc_object_barrier_pass(struct nbc_object_barrier *b, bool ends)
{
    int error = MPI_SUCCESS;
    if (!b)
        return MPI_SUCCESS;
    nbc_lock();
    if (is_needed()) {
        nbc_progress_start(b->request);
        nbc_request_wait(b->request, 0);
        error = b->request->error;
        nbc_request_set_state(b->request, NBC_INACTIVE);
    }
    if (ends && !error)
        HASH_DEL(barriers[b->object], b);
    nbc_unlock();
    return error;
}

void nbc_object_barrier_ended(struct nbc_object_barrier *b, bool freed)
{
    if (!b)
        return;
    nbc_lock();
    if (freed) {
        nbc_request_hide(false);
        b->request->context->nobjects--;
        nbc_request_free(b->request);
        free(b);
    } else {
        add(b); /* without memory it is lost, as is the object that could not be freed */
    }
    nbc_unlock();
    nbc_context_reclaim();
}
