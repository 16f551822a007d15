/* SPDX-License-Identifier: MIT */
#include "op/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "op/mpi_transport.h"
#include "op/stage.h"
#include "op/trace_transport.h"

#include "kernel.h"
#include "sched.h"
#include "transport.h"

enum {
    LINE = 64,
    LONG_REDUCTION = 16384, /* elements of a reduction that a progress thread should run */
    LENGTHY_BYTES = 1 << 20 /* bytes of messages for which it is worth waking the thread */
};

/* Runs whose memory the MPI may still use. The list keeps them from being reported as a leak. */
static struct nbc_run *abandoned;

void nbc_handles_hold_own(const struct nbc_handle_refs *h)
{
    for (int i = 0; i < h->ntypes; i++)
        h->types[i]->uses++;
    if (h->reducer)
        h->reducer->uses++;
}

void nbc_handles_release_own(const struct nbc_handle_refs *h)
{
    for (int i = 0; i < h->ntypes; i++)
        nbc_datatype_release(h->types[i]);
    if (h->reducer)
        nbc_operator_release(h->reducer);
}

static size_t round_up_to_line(size_t size)
{
    return (size + LINE - 1) / LINE * LINE;
}

static struct nbc_run *run_allocate(size_t size)
{
    struct nbc_run *run = malloc(sizeof *run + LINE + size);
    if (!run)
        return NULL;
    run->size = size;
    run->memory = (void *)round_up_to_line((uintptr_t)(run + 1));
    return run;
}

static bool is_lengthy(const struct nbc_sched *sched, const struct nbc_handle_refs *handles)
{
    int64_t bytes = 0;
    for (int i = 0; i < sched->nops && bytes < LENGTHY_BYTES; i++) {
        const struct nbc_op *op = &sched->ops[i];
        if (op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV)
            bytes += op->count * handles->types[op->type]->layout.size;
    }
    return bytes >= LENGTHY_BYTES;
}

/* The temporary buffer and the input come first because they need the alignment. */
struct nbc_run *nbc_run_new(struct nbc_sched *sched, const struct nbc_handle_refs *handles,
                            size_t input)
{
    size_t temp = round_up_to_line(sched->temp_bytes), data = temp + round_up_to_line(input);
    size_t exec = (nbc_exec_memory(sched) + 7) / 8 * 8;
    size_t list = handles->ntypes * sizeof *handles->types;
    struct nbc_run *run = run_allocate(data + exec + list);
    if (!run)
        return NULL;
    const struct nbc_transport *transport =
        nbc_tracing ? &nbc_traced_transport : &nbc_mpi_transport;
    char *memory = run->memory;
    nbc_exec_init(&run->exec, sched, transport, run, memory + data);
    bool thread = nbc_settings.progress == NBC_PROGRESS_THREAD;
    run->lengthy = thread && is_lengthy(sched, handles);
    if (thread) /* a start belongs to the program's computation: leave it no long work */
        run->exec.defer = LONG_REDUCTION;
    run->exec.base[NBC_BUF_TEMP] = (uintptr_t)memory;
    run->input = memory + temp;
    run->input_bytes = input;
    run->sched = sched;
    sched->refs++;
    run->handles = *handles;
    run->handles.types = memcpy(memory + data + exec, handles->types, list);
    run->kernel = NULL;
    if (handles->reducer)
        run->kernel =
            nbc_kernel_find(handles->reducer->arith, handles->types[NBC_TYPE_RECV]->number);
    run->poll = NULL;
    run->stage = NULL;
    return run;
}

struct nbc_run *nbc_run_plain(size_t size, bool (*poll)(struct nbc_run *run, int *error))
{
    struct nbc_run *run = run_allocate(size);
    if (!run)
        return NULL;
    run->sched = NULL;
    run->exec.abandoned = false;
    run->lengthy = false;
    run->input_bytes = 0;
    run->handles = (struct nbc_handle_refs){0};
    run->poll = poll;
    run->stage = NULL;
    return run;
}

/* Over sockets MPI_Isend copies to the kernel. Within a node MPI_Irecv copies a message that the
 * other rank has offered already, and MPI_Isend only offers it. */
unsigned nbc_run_put_off(const struct nbc_run *run)
{
    if (!nbc_thread_polls())
        return 0;
    if (run->sched->sockets)
        return 1U << NBC_OP_SEND;
    return run->sched->local ? 1U << NBC_OP_RECV : 0;
}

/* As nbc_run_input, but only if the buffer is memory of the host. */
static const void *input_on_host(struct nbc_run *run, const void *send)
{
    struct nbc_device *device;
    uintptr_t first = (uintptr_t)send, last = first + run->input_bytes - 1;
    bool waits, host = nbc_device_find(first, last, &device, &waits) == NBC_MEMORY_HOST;
    return host ? memcpy(run->input, send, run->input_bytes) : send;
}

bool nbc_run_start_with_devices(struct nbc_run *run, MPI_Comm comm, const int *ranks, int tag,
                                const void *send, const void *recv, bool outlives,
                                enum nbc_device_use use)
{
    run->device = use;
    nbc_stage_undo(run);
    if (!nbc_device_look() || use == NBC_DEVICE_OFF)
        return nbc_run_start(run, comm, ranks, tag, outlives ? nbc_run_input(run, send) : send,
                             recv);
    if (outlives && run->input_bytes)
        send = input_on_host(run, send);
    nbc_run_set(run, comm, ranks, tag, send, recv);
    int error = nbc_stage_begin(run, &nbc_staged_transport);
    if (!error)
        return nbc_exec_start(&run->exec);
    run->exec.error = error;
    run->exec.lost = true;
    return true;
}

void nbc_run_free(struct nbc_run *run)
{
    if (run->sched)
        nbc_sched_release(run->sched);
    nbc_stage_free(run);
    if (run->exec.abandoned) {
        run->next = abandoned;
        abandoned = run;
        return;
    }
    free(run);
}
