/* SPDX-License-Identifier: MIT */
#include "op/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "op/mpi_transport.h"
#include "op/trace_transport.h"

#include "coll.h"
#include "kernel.h"
#include "sched.h"
#include "transport.h"

enum {
    LINE = 64,
    HEAD = (sizeof(struct nbc_run) + LINE - 1) / LINE * LINE,
    LEAST = 256,   /* memory of a run; doubled as often as need be, so that it suits another one */
    KEEP = 16384,  /* larger ones have what they need, and are not kept */
    KINDS = 7,     /* from LEAST to KEEP */
    MOST = 256,    /* nor are more than so many */
    LONG = 16384,  /* elements that are worth another thread's while */
    MUCH = 1 << 20 /* bytes of messages that are worth waking it */
};

static struct nbc_run *pool[KINDS]; /* linked by next; under the lock */
static int npool;

static size_t round_up(size_t size)
{
    return (size + LINE - 1) / LINE * LINE;
}

/* Of memory for size <= KEEP bytes. */
static int kind_of(size_t size)
{
    int kind = 0;
    while ((size_t)LEAST << kind < size)
        kind++;
    return kind;
}

static struct nbc_run *take(int kind)
{
    struct nbc_run *run = pool[kind];
    if (run) {
        pool[kind] = run->next;
        npool--;
    }
    return run;
}

static struct nbc_run *make(size_t size)
{
    bool kept = size <= KEEP;
    struct nbc_run *run = kept ? take(kind_of(size)) : NULL;
    if (run)
        return run;
    size_t room = kept ? (size_t)LEAST << kind_of(size) : round_up(size);
    run = aligned_alloc(LINE, HEAD + room);
    if (!run)
        return NULL;
    run->memory = (char *)run + HEAD;
    run->room = room;
    return run;
}

static bool is_lengthy(const struct nbc_sched *sched, const struct nbc_handle_refs *holdings)
{
    int64_t bytes = 0;
    for (int i = 0; i < sched->nops && bytes < MUCH; i++) {
        const struct nbc_op *op = &sched->ops[i];
        if (op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV)
            bytes += op->count * holdings->types[op->type]->layout.size;
    }
    return bytes >= MUCH;
}

/* The temporary buffer comes first: it wants the alignment. */
struct nbc_run *nbc_run_new(struct nbc_sched *sched, const struct nbc_handle_refs *holdings)
{
    size_t temp = round_up(sched->temp_bytes), exec = (nbc_exec_memory(sched) + 7) / 8 * 8;
    size_t list = holdings->ntypes * sizeof *holdings->types;
    struct nbc_run *run = make(temp + exec + list);
    if (!run)
        return NULL;
    const struct nbc_transport *transport =
        nbc_tracing ? &nbc_traced_transport : &nbc_mpi_transport;
    char *memory = run->memory;
    nbc_exec_init(&run->exec, sched, transport, run, memory + temp);
    bool thread = nbc_settings.progress == NBC_PROGRESS_THREAD;
    run->lengthy = thread && is_lengthy(sched, holdings);
    if (thread)
        run->exec.defer = LONG; /* a start is part of the program's computation */
    run->exec.base[NBC_BUF_TEMP] = (uintptr_t)memory;
    run->sched = sched;
    sched->refs++;
    run->holdings = *holdings;
    run->holdings.types = memcpy(memory + temp + exec, holdings->types, list);
    run->kernel = NULL;
    if (holdings->reducer)
        run->kernel =
            nbc_kernel_find(holdings->reducer->arith, holdings->types[NBC_TYPE_RECV]->number);
    run->poll = NULL;
    return run;
}

struct nbc_run *nbc_run_plain(size_t size, bool (*poll)(struct nbc_run *run, int *error))
{
    struct nbc_run *run = make(size);
    if (!run)
        return NULL;
    run->sched = NULL;
    run->lengthy = false;
    run->holdings = (struct nbc_handle_refs){0};
    run->poll = poll;
    return run;
}

void nbc_run_free(struct nbc_run *run)
{
    if (run->sched)
        nbc_sched_release(run->sched);
    if (run->room > KEEP || npool == MOST) {
        free(run);
        return;
    }
    int kind = kind_of(run->room);
    run->next = pool[kind];
    pool[kind] = run;
    npool++;
}

void nbc_run_cleanup(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (struct nbc_run *run; (run = take(kind));)
            free(run);
}
