/* SPDX-License-Identifier: MIT */
#include "api/presync.h"

#include <stdlib.h>

#include "api/calls.h"
#include "api/idup.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/table.h"
#include "below/hook.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/call.h"
#include "request/request.h"

#include "coll.h"

static bool is_inter(MPI_Comm comm)
{
    nbc_lock();
    const struct nbc_context *c = nbc_context_find(comm);
    bool inter = c && c->members.remote_size > 0;
    nbc_unlock();
    return inter;
}

/* run: one of the functions of calls.h. */
static int barrier(MPI_Comm comm, int (*run)(const struct nbc_call *call))
{
    const struct nbc_call call = {.coll = NBC_BARRIER, .purpose = NBC_FOR_OTHERS, .comm = comm};
    int error = run(&call);
    /* After one barrier of an intercommunicator a rank knows that the remote group has made the
     * call; after the second it knows the same of its own group. */
    if (!error && is_inter(comm))
        error = run(&call);
    return error == NBC_CALL_BELOW ? MPI_SUCCESS : error;
}

bool nbc_calls_need_help(void)
{
    return nbc_settings.blocking != NBC_BLOCKING_NATIVE && (!nbc_hooked || nbc_settings.check);
}

int nbc_presync(MPI_Comm comm)
{
    nbc_idup_settle(comm);
    return nbc_calls_need_help() ? barrier(comm, nbc_call_blocking) : MPI_SUCCESS;
}

int nbc_presync_outside_loop(MPI_Comm comm)
{
    bool forced = nbc_hooked && nbc_knows(comm);
    nbc_idup_settle(comm);
    return barrier(comm, forced ? nbc_call_forced : nbc_call_blocking);
}

struct nbc_gate {
    uint64_t key;
    enum nbc_gate_kind kind;
    struct nbc_request *barrier;
    int number;
    bool started;
    UT_hash_handle hh;
};

static struct nbc_gate *gates[NBC_GATE_KINDS]; /* under the lock */

uint64_t nbc_gate_key(const void *handle, size_t size)
{
    uint64_t key = 0;
    memcpy(&key, handle, size < sizeof key ? size : sizeof key);
    return key;
}

static bool gate_add(struct nbc_gate *gate)
{
    HASH_ADD(hh, gates[gate->kind], key, sizeof gate->key, gate);
    return nbc_added(gate);
}

static struct nbc_gate *gate_make(enum nbc_gate_kind kind, uint64_t key,
                                  struct nbc_request *barrier)
{
    struct nbc_gate *gate = malloc(sizeof *gate);
    if (!gate)
        return NULL;
    *gate = (struct nbc_gate){.key = key, .kind = kind, .barrier = barrier, .number = barrier->tag};
    if (gate_add(gate))
        return gate;
    free(gate);
    return NULL;
}

/* Where the hook misses epochs, MPI_Win_start waits for the signals of the gate's ranks. */
static bool gate_is_needed(enum nbc_gate_kind kind)
{
    return nbc_calls_need_help() ||
           (kind == NBC_GATE_WINDOW && nbc_hooked && nbc_hook_misses_epochs());
}

int nbc_gate_new(enum nbc_gate_kind kind, uint64_t key, MPI_Comm comm)
{
    const struct nbc_call call = {.coll = NBC_BARRIER, .purpose = NBC_FOR_OTHERS, .comm = comm};
    MPI_Request handle;
    if (!gate_is_needed(kind))
        return MPI_SUCCESS;
    int error = nbc_call_init(&call, &handle);
    if (error)
        return error == NBC_CALL_BELOW ? MPI_SUCCESS : error;
    nbc_lock();
    struct nbc_request *barrier = nbc_request_find(handle);
    bool made = gate_make(kind, key, barrier);
    if (made) {
        nbc_request_hide(true);
        barrier->context->ngates++;
    } else {
        nbc_request_free(barrier);
    }
    nbc_unlock();
    return made ? MPI_SUCCESS : nbc_raise(comm, MPI_ERR_NO_MEM);
}

struct nbc_gate *nbc_gate_find(enum nbc_gate_kind kind, uint64_t key)
{
    struct nbc_gate *gate;
    if (!nbc_enabled || nbc_inside)
        return NULL; /* unreached: no memory */
    nbc_lock();
    HASH_FIND(hh, gates[kind], &key, sizeof key, gate);
    nbc_unlock();
    return gate;
}

int nbc_gate_pass(struct nbc_gate *gate)
{
    if (!gate || !nbc_calls_need_help())
        return MPI_SUCCESS;
    struct nbc_request *r = gate->barrier;
    nbc_lock();
    nbc_progress_start(r);
    nbc_request_wait(r, 0);
    int error = r->error;
    nbc_request_set_state(r, NBC_INACTIVE);
    nbc_unlock();
    return error;
}

void nbc_gate_remove(struct nbc_gate *gate)
{
    if (!gate)
        return;
    nbc_lock();
    HASH_DEL(gates[gate->kind], gate);
    nbc_unlock();
}

void nbc_gate_restore(struct nbc_gate *gate)
{
    if (!gate)
        return; /* unreached: no memory */
    nbc_lock();
    /* Without memory the gate is lost, as is the window or file that could not be freed. */
    gate_add(gate);
    nbc_unlock();
}

void nbc_gate_free(struct nbc_gate *gate)
{
    if (!gate)
        return;
    nbc_lock();
    nbc_request_hide(false);
    gate->barrier->context->ngates--;
    nbc_request_free(gate->barrier);
    nbc_unlock();
    nbc_context_reclaim();
    free(gate);
}

struct nbc_context *nbc_gate_context(const struct nbc_gate *gate)
{
    return gate->barrier->context;
}

int nbc_gate_number(const struct nbc_gate *gate)
{
    return gate->number;
}

bool *nbc_gate_started(struct nbc_gate *gate)
{
    return &gate->started;
}
