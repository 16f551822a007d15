/* SPDX-License-Identifier: MIT */
#include "op/trace_transport.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/in_mpi.h"
#include "base/settings.h"
#include "base/table.h"
#include "op/mpi_transport.h"
#include "op/run.h"

#include "hash.h"

bool nbc_tracing;
struct nbc_trace_record nbc_trace;
MPI_Group nbc_trace_world;

int64_t nbc_trace_seen;

bool nbc_trace_record_setup(void)
{
    size_t n = (size_t)nbc_settings.test.trace_events;
    nbc_trace.events = malloc(n * sizeof *nbc_trace.events);
    nbc_trace.identities = malloc(2 * n * sizeof *nbc_trace.identities);
    nbc_trace.covered = INT64_MAX;
    return nbc_trace.events && nbc_trace.identities;
}

int32_t nbc_trace_comm_of(uint64_t key, MPI_Comm comm, int size)
{
    struct nbc_trace_comm *c = nbc_trace.comms;
    char name[MPI_MAX_OBJECT_NAME + 1] = "";
    int length;
    for (int i = nbc_trace.ncomms - 1; i >= 0; i--)
        if (c[i].key == key && c[i].size == size)
            return i;
    c = realloc(c, (nbc_trace.ncomms + 1) * sizeof *c);
    if (!c)
        return -1; /* unreached: no memory */
    nbc_trace.comms = c;
    if (comm != MPI_COMM_NULL)
        NEXT(Comm_get_name)(comm, name, &length);
    c += nbc_trace.ncomms;
    *c = (struct nbc_trace_comm){.key = key, .size = size};
    if (*name)
        snprintf(c->name, sizeof c->name, "%s", name);
    else
        snprintf(c->name, sizeof c->name, "communicator %08x", (unsigned)(key ^ key >> 32));
    return nbc_trace.ncomms++;
}

/* --- which message is which ------------------------------------------------------------------- */

/* Messages with the same source, destination and tag on the same communicator are a channel. MPI
 * keeps their order, so that both ends can number them. */
static struct channel {
    uint64_t name;
    int64_t count; /* of messages so far */
    UT_hash_handle hh;
} * channels;

/* The identity of the next message of a channel, 0 without memory. */
static int64_t message_identity(uint64_t key, int tag, int from, int to)
{
    const uint64_t ends = (uint64_t)from << 32 | (uint32_t)to;
    uint64_t name = nbc_hash_pair(nbc_hash_pair(key, (uint64_t)tag), ends) | 1;
    struct channel *c;
    HASH_FIND(hh, channels, &name, sizeof name, c);
    if (!c && (c = calloc(1, sizeof *c))) {
        c->name = name;
        HASH_ADD(hh, channels, name, sizeof name, c);
    }
    if (!c)
        return 0; /* unreached: no memory */
    return (int64_t)(nbc_hash_pair(name, (uint64_t)++c->count) | 1);
}

/* --- events ----------------------------------------------------------------------------------- */

struct nbc_trace_event *nbc_trace_add(enum nbc_trace_kind kind, int64_t begin, int64_t end)
{
    nbc_trace_seen++;
    if (nbc_trace.nevents == nbc_settings.test.trace_events) {
        nbc_trace.dropped++;
        bool is_slice = kind == NBC_TRACE_START || kind == NBC_TRACE_PROGRESS;
        if (is_slice && begin < nbc_trace.covered)
            nbc_trace.covered = begin;
        return NULL;
    }
    struct nbc_trace_event *e = &nbc_trace.events[nbc_trace.nevents++];
    *e = (struct nbc_trace_event){
        .kind = (int16_t)kind, .begin = begin, .end = end, .peer = -1, .comm = -1, .alg = -1};
    return e;
}

void nbc_trace_inside(int64_t begin, int64_t seen, bool always)
{
    int64_t end = nbc_now();
    nbc_trace.inside += end - begin;
    if (always || nbc_trace_seen != seen)
        nbc_trace_add(always ? NBC_TRACE_START : NBC_TRACE_PROGRESS, begin, end);
}

/* --- the transport ---------------------------------------------------------------------------- */

/* A traced message. Its address is the handle that the executor stores. */
struct message {
    nbc_handle below;
    int64_t begin, bytes, identity;
    int32_t peer;
    bool sends;
};

static int world_rank(const struct nbc_run *run, int peer)
{
    MPI_Group group;
    int inter, rank = -1;
    peer = nbc_run_peer(run, peer);
    NEXT(Comm_test_inter)(run->comm, &inter);
    if (inter ? NEXT(Comm_remote_group)(run->comm, &group) : NEXT(Comm_group)(run->comm, &group))
        return -1; /* unreached: no memory */
    NEXT(Group_translate_ranks)(group, 1, &peer, nbc_trace_world, &rank);
    NEXT(Group_free)(&group);
    return rank == MPI_UNDEFINED ? -1 : rank; /* of another job */
}

static int own_rank(void)
{
    int rank;
    NEXT(Group_rank)(nbc_trace_world, &rank);
    return rank;
}

static void message_done(struct nbc_run *run, struct message *m)
{
    struct nbc_trace_event *e =
        nbc_trace_add(m->sends ? NBC_TRACE_SEND : NBC_TRACE_RECV, m->begin, nbc_now());
    if (!m->sends)
        run->last_peer = m->peer;
    if (e) {
        e->id = run->trace_id;
        e->peer = m->peer;
        e->bytes = m->bytes;
        e->number = m->identity;
    }
    free(m);
}

static int traced_post(void *self, bool sends, uintptr_t addr, int64_t count, int type, int peer,
                       nbc_handle *h)
{
    struct nbc_run *run = self;
    struct message *m = malloc(sizeof *m);
    if (!m)
        return MPI_ERR_NO_MEM; /* unreached: no memory */
    const struct nbc_transport *t = &nbc_mpi_transport;
    *m = (struct message){.begin = nbc_now(), .sends = sends, .peer = world_rank(run, peer)};
    m->bytes = count * run->handles.types[type]->layout.size;
    if (m->peer >= 0)
        m->identity = sends ? message_identity(run->trace_key, run->tag, own_rank(), m->peer)
                            : message_identity(run->trace_key, run->tag, m->peer, own_rank());
    nbc_trace_seen++; /* so that the time in nbcshim in which it is posted is recorded */
    int error = (sends ? t->send : t->recv)(self, addr, count, type, peer, &m->below);
    if (error == NBC_SENT)
        message_done(run, m);
    else if (error)
        free(m); /* unreached: no memory */
    else
        *h = (nbc_handle)m;
    return error;
}

static int traced_send(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    return traced_post(self, true, addr, count, type, peer, h);
}

static int traced_receive(void *self, uintptr_t addr, int64_t count, int type, int peer,
                          nbc_handle *h)
{
    return traced_post(self, false, addr, count, type, peer, h);
}

static int traced_look(nbc_transport_look *look, void *self, int n, nbc_handle *h, int *done,
                       int *ndone)
{
    enum { FEW = 64 };
    nbc_handle few[FEW], *below = n > FEW ? malloc((size_t)n * sizeof *below) : few;
    *ndone = 0;
    if (!below)
        return 0; /* unreached: no memory; the next poll may find some */
    for (int i = 0; i < n; i++)
        below[i] = ((struct message *)h[i])->below;
    int error = look(self, n, below, done, ndone);
    for (int i = 0; i < *ndone; i++)
        message_done(self, (struct message *)h[done[i]]);
    if (below != few)
        free(below); /* unreached: no memory */
    return error;
}

static int traced_poll(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    return traced_look(nbc_mpi_transport.poll, self, n, h, done, ndone);
}

#ifdef NBC_SIMULATED
static int traced_wait(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    return traced_look(nbc_mpi_transport.wait, self, n, h, done, ndone);
}
#endif

static void trace_computation(const struct nbc_run *run, enum nbc_trace_kind kind, int64_t begin,
                              int64_t bytes)
{
    struct nbc_trace_event *e = nbc_trace_add(kind, begin, nbc_now());
    if (!e)
        return;
    e->id = run->trace_id;
    e->bytes = bytes;
}

static int traced_copy(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src,
                       int64_t scount, int stype)
{
    const struct nbc_run *run = self;
    int64_t begin = nbc_now();
    int error = nbc_mpi_transport.copy(self, dst, dcount, dtype, src, scount, stype);
    trace_computation(run, NBC_TRACE_COPY, begin, dcount * run->handles.types[dtype]->layout.size);
    return error;
}

static int traced_reduce(void *self, uintptr_t dst, uintptr_t left, uintptr_t right, int64_t count,
                         int type)
{
    const struct nbc_run *run = self;
    int64_t begin = nbc_now();
    int error = nbc_mpi_transport.reduce(self, dst, left, right, count, type);
    trace_computation(run, NBC_TRACE_REDUCE, begin, count * run->handles.types[type]->layout.size);
    return error;
}

static bool traced_drop(void *self, int i, nbc_handle h)
{
    struct message *m = (struct message *)h;
    const bool over = nbc_mpi_transport.drop(self, i, m->below);
    free(m);
    return over;
}

const struct nbc_transport nbc_traced_transport = {
    .send = traced_send,
    .recv = traced_receive,
    .poll = traced_poll,
#ifdef NBC_SIMULATED
    .wait = traced_wait,
#endif
    .copy = traced_copy,
    .reduce = traced_reduce,
    .drop = traced_drop,
};

void nbc_trace_record_cleanup(void)
{
    struct channel *c, *next;
    HASH_ITER (hh, channels, c, next) {
        HASH_DEL(channels, c);
        free(c);
    }
    free(nbc_trace.events);
    free(nbc_trace.identities);
    free(nbc_trace.comms);
    nbc_trace = (struct nbc_trace_record){.events = NULL};
    nbc_tracing = false;
}
