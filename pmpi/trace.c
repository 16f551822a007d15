/* SPDX-License-Identifier: MIT */
#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"
#include "clock.h"
#include "env.h"
#include "tag_space.h"

bool nbc_tracing;

enum kind { OPERATION, SEND, RECV, REDUCE, COPY, START, PROGRESS };

static const char *const words[] = {
    [SEND] = "send to", [RECV] = "recv from", [REDUCE] = "reduce",
    [COPY] = "copy",    [START] = "start",    [PROGRESS] = "progress",
};

struct event {
    int64_t begin, end; /* nanoseconds */
    int64_t bytes;
    int64_t number; /* OPERATION: of the call on its communicator */
    int32_t id;     /* of the operation */
    int32_t peer;   /* in MPI_COMM_WORLD; OPERATION: whose message came last, or −1 */
    int16_t kind, alg;
    int16_t coll, persistent;
};

/* So many as NBCSHIM_TRACE_EVENTS says are kept; later ones are only counted. */
static struct event *events;
static int nevents;
static int64_t seen, dropped, inside; /* inside: nanoseconds spent in the shim */
static int32_t nstarted;
static int64_t offset; /* what rank 0's clock is ahead of ours */
static MPI_Comm side;  /* a duplicate of MPI_COMM_WORLD */
static MPI_Group world;

static struct event *add(enum kind kind, int64_t begin, int64_t end)
{
    seen++;
    if (nevents == nbc_settings.trace_events) {
        dropped++;
        return NULL;
    }
    struct event *e = &events[nevents++];
    *e = (struct event){.kind = (int16_t)kind, .begin = begin, .end = end, .peer = -1, .alg = -1};
    return e;
}

/* --- operations ------------------------------------------------------------------------------- */

void nbc_trace_begin(struct nbc_request *r)
{
    r->trace_id = ++nstarted;
    r->last_peer = -1;
}

void nbc_trace_end(const struct nbc_request *r)
{
    struct event *e = add(OPERATION, r->started, nbc_now());
    if (!e)
        return;
    e->id = r->trace_id;
    e->peer = r->last_peer;
    e->coll = (int16_t)r->coll;
    e->alg = r->alg ? (int16_t)(r->alg - nbc_algs) : -1;
    e->persistent = r->persistent;
    e->number = r->persistent ? r->tag - nbc_tag_ring + 1 : r->seq + 1;
}

int64_t nbc_trace_seen(void)
{
    return seen;
}

void nbc_trace_inside(int64_t begin, int64_t seen_before, bool always)
{
    int64_t end = nbc_now();
    inside += end - begin;
    if (always || seen != seen_before)
        add(always ? START : PROGRESS, begin, end);
}

/* --- messages and reductions ------------------------------------------------------------------ */

/* A message under way: what the executor takes for its handle is the address of this. */
struct message {
    nbc_handle below;
    int64_t begin, bytes;
    int32_t peer;
    bool sends;
    struct message *next;
};

static struct message *spare; /* linked by next */

static struct message *message_new(void)
{
    struct message *m = spare;
    if (m)
        spare = m->next;
    else
        m = malloc(sizeof *m);
    return m;
}

static void message_free(struct message *m)
{
    m->next = spare;
    spare = m;
}

static int world_rank(const struct nbc_run *run, int peer)
{
    MPI_Group group;
    int rank = -1;
    if (run->request->context->remote_size ? NEXT(Comm_remote_group)(run->comm, &group)
                                           : NEXT(Comm_group)(run->comm, &group))
        return -1;
    NEXT(Group_translate_ranks)(group, 1, &peer, world, &rank);
    NEXT(Group_free)(&group);
    return rank == MPI_UNDEFINED ? -1 : rank; /* of another job */
}

static int post(void *self, bool sends, uintptr_t addr, int64_t count, int type, int peer,
                nbc_handle *h)
{
    struct nbc_run *run = self;
    struct message *m = message_new();
    if (!m)
        return MPI_ERR_NO_MEM;
    const struct nbc_transport *t = &nbc_mpi_transport;
    *m = (struct message){.begin = nbc_now(), .sends = sends, .peer = world_rank(run, peer)};
    m->bytes = count * run->holdings.types[type]->layout.size;
    int error = (sends ? t->send : t->recv)(self, addr, count, type, peer, &m->below);
    if (error)
        message_free(m);
    else
        *h = (nbc_handle)m;
    return error;
}

static int send(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    return post(self, true, addr, count, type, peer, h);
}

static int receive(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    return post(self, false, addr, count, type, peer, h);
}

static void message_done(struct nbc_request *r, struct message *m)
{
    struct event *e = add(m->sends ? SEND : RECV, m->begin, nbc_now());
    if (!m->sends)
        r->last_peer = m->peer;
    if (e) {
        e->id = r->trace_id;
        e->peer = m->peer;
        e->bytes = m->bytes;
    }
    message_free(m);
}

static int poll(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    enum { FEW = 64 };
    nbc_handle few[FEW], *below = n > FEW ? malloc((size_t)n * sizeof *below) : few;
    *ndone = 0;
    if (!below)
        return 0; /* the next poll may find memory */
    for (int i = 0; i < n; i++)
        below[i] = ((struct message *)h[i])->below;
    int error = nbc_mpi_transport.poll(self, n, below, done, ndone);
    for (int i = 0; i < *ndone; i++)
        message_done(((struct nbc_run *)self)->request, (struct message *)h[done[i]]);
    if (below != few)
        free(below);
    return error;
}

static bool drop(void *self, nbc_handle h, bool is_send)
{
    struct message *m = (struct message *)h;
    nbc_handle below = m->below;
    message_free(m);
    return nbc_mpi_transport.drop(self, below, is_send);
}

static void computed(const struct nbc_request *r, enum kind kind, int64_t begin, int64_t bytes)
{
    struct event *e = add(kind, begin, nbc_now());
    if (!e)
        return;
    e->id = r->trace_id;
    e->bytes = bytes;
}

static int copy(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src, int64_t scount,
                int stype)
{
    const struct nbc_run *run = self;
    int64_t begin = nbc_now();
    int error = nbc_mpi_transport.copy(self, dst, dcount, dtype, src, scount, stype);
    computed(run->request, COPY, begin, dcount * run->holdings.types[dtype]->layout.size);
    return error;
}

static int reduce(void *self, uintptr_t dst, uintptr_t left, uintptr_t right, int64_t count,
                  int type)
{
    const struct nbc_run *run = self;
    int64_t begin = nbc_now();
    int error = nbc_mpi_transport.reduce(self, dst, left, right, count, type);
    computed(run->request, REDUCE, begin, count * run->holdings.types[type]->layout.size);
    return error;
}

const struct nbc_transport nbc_traced_transport = {
    .send = send,
    .recv = receive,
    .poll = poll,
    .drop = drop,
    .copy = copy,
    .reduce = reduce,
};

/* --- clocks ----------------------------------------------------------------------------------- */

enum { PINGS = 10 };

static void answer(int peer)
{
    for (int i = 0; i < PINGS; i++) {
        int64_t now;
        NEXT(Recv)(&now, 0, MPI_BYTE, peer, 0, side, MPI_STATUS_IGNORE);
        now = nbc_now();
        NEXT(Send)(&now, sizeof now, MPI_BYTE, peer, 0, side);
    }
}

/* The fastest of some round trips tells best what rank 0's clock shows in its middle. */
static void ask(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < PINGS; i++) {
        int64_t there, begin = nbc_now();
        NEXT(Send)(&there, 0, MPI_BYTE, 0, 0, side);
        NEXT(Recv)(&there, sizeof there, MPI_BYTE, 0, 0, side, MPI_STATUS_IGNORE);
        int64_t trip = nbc_now() - begin;
        if (trip >= least)
            continue;
        least = trip;
        offset = there - (begin + trip / 2);
    }
}

/* No memory on one rank: no trace at all. */
static bool has_room(void)
{
    events = malloc((size_t)nbc_settings.trace_events * sizeof *events);
    int mine = events != NULL, all = 0;
    NEXT(Allreduce)(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

void nbc_trace_setup(void)
{
    int rank, size;
    if (!has_room() || NEXT(Comm_dup)(MPI_COMM_WORLD, &side)) {
        free(events);
        events = NULL;
        return;
    }
    NEXT(Comm_rank)(side, &rank);
    NEXT(Comm_size)(side, &size);
    NEXT(Comm_group)(side, &world);
    for (int peer = 1; rank == 0 && peer < size; peer++)
        answer(peer);
    if (rank > 0)
        ask();
    nbc_tracing = nbc_timing_on = true;
}

/* --- the file --------------------------------------------------------------------------------- */

struct summary {
    int64_t nevents, dropped, inside, offset;
};

/* Microseconds, as the format wants them; with a point, whatever the program's locale has. */
static void put_time(FILE *out, const char *name, int64_t ns)
{
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    fprintf(out, ", \"%s\": %s%" PRIu64 ".%03d", name, ns < 0 ? "-" : "", size / 1000,
            (int)(size % 1000));
}

static void put_head(FILE *out, const char *phase, int rank, int thread)
{
    fprintf(out, ",\n{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d", phase, rank, thread);
}

static void put_name(FILE *out, const struct event *e)
{
    fputs(", \"name\": \"", out);
    if (e->kind == OPERATION && e->alg < 0)
        fprintf(out, "%s", nbc_coll_name(e->coll));
    else if (e->kind == OPERATION)
        fprintf(out, "%s:%s", nbc_coll_name(e->coll), nbc_algs[e->alg].name);
    else if (e->kind == SEND || e->kind == RECV)
        fprintf(out, "%s %d", words[e->kind], (int)e->peer);
    else
        fprintf(out, "%s", words[e->kind]);
    fputc('"', out);
}

/* Operations and messages overlap: asynchronous spans, from "b" to "e". */
static void put_span(FILE *out, const struct event *e, int rank, int n, int64_t start)
{
    const char *category = e->kind == OPERATION ? "operation" : "message";
    for (int end = 0; end <= 1; end++) {
        put_head(out, end ? "e" : "b", rank, 0);
        fprintf(out, ", \"cat\": \"%s\", \"id\": \"%d.%d\"", category, rank, n);
        put_name(out, e);
        put_time(out, "ts", (end ? e->end : e->begin) - start);
        fprintf(out, ", \"args\": {\"operation\": \"%d.%d\"", rank, (int)e->id);
        if (e->kind != OPERATION)
            fprintf(out, ", \"peer\": %d, \"bytes\": %" PRId64, (int)e->peer, e->bytes);
        else
            fprintf(out, ", \"number\": %" PRId64 ", \"persistent\": %s, \"waited_for\": %d",
                    e->number, e->persistent ? "true" : "false", (int)e->peer);
        fputs("}}", out);
    }
}

/* What the shim did itself is one after the other, or one within the other. */
static void put_slice(FILE *out, const struct event *e, int rank, int64_t start)
{
    put_head(out, "X", rank, 1);
    put_name(out, e);
    put_time(out, "ts", e->begin - start);
    put_time(out, "dur", e->end - e->begin);
    if (e->kind == REDUCE || e->kind == COPY)
        fprintf(out, ", \"args\": {\"operation\": \"%d.%d\", \"bytes\": %" PRId64 "}", rank,
                (int)e->id, e->bytes);
    fputc('}', out);
}

static void put_rank(FILE *out, int rank, const struct summary *s, const struct event *list,
                     int64_t start)
{
    fprintf(out,
            "%s\n{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", "
            "\"args\": {\"name\": \"rank %d\", \"events\": %" PRId64 ", \"dropped\": %" PRId64
            ", \"inside_us\": %" PRId64 "}}",
            rank ? "," : "", rank, rank, s->nevents, s->dropped, s->inside / 1000);
    put_head(out, "M", rank, 1);
    fputs(", \"name\": \"thread_name\", \"args\": {\"name\": \"inside nbcshim\"}}", out);
    for (int i = 0; i < s->nevents; i++)
        if (list[i].kind <= RECV)
            put_span(out, &list[i], rank, i, start - s->offset);
        else
            put_slice(out, &list[i], rank, start - s->offset);
}

/* What another rank has kept. */
static void fetch(int rank, struct summary *s, struct event *list)
{
    NEXT(Recv)(s, sizeof *s, MPI_BYTE, rank, 0, side, MPI_STATUS_IGNORE);
    if (!list)
        s->nevents = 0;
    NEXT(Send)(s, 0, MPI_BYTE, rank, s->nevents ? 1 : 2, side);
    if (!s->nevents)
        return;
    int bytes = (int)(s->nevents * (int64_t)sizeof *list);
    NEXT(Recv)(list, bytes, MPI_BYTE, rank, 0, side, MPI_STATUS_IGNORE);
}

/* The events of one rank after the other: rank 0 never holds more than two ranks' together. */
static void collect(FILE *out, int size, const struct summary *mine, int64_t start)
{
    struct event *list = malloc((size_t)nbc_settings.trace_events * sizeof *list);
    for (int rank = 0; rank < size; rank++) {
        struct summary s = *mine;
        if (rank)
            fetch(rank, &s, list);
        if (out)
            put_rank(out, rank, &s, rank ? list : events, start);
    }
    free(list);
}

static void deliver(const struct summary *mine)
{
    MPI_Status status;
    NEXT(Send)((void *)(uintptr_t)mine, sizeof *mine, MPI_BYTE, 0, 0, side);
    NEXT(Recv)(NULL, 0, MPI_BYTE, 0, MPI_ANY_TAG, side, &status);
    if (status.MPI_TAG == 1)
        NEXT(Send)(events, (int)(mine->nevents * (int64_t)sizeof *events), MPI_BYTE, 0, 0, side);
}

static void write_file(int size, const struct summary *mine)
{
    FILE *out = nbc_env_open(nbc_settings.trace);
    int64_t start = nevents ? events[0].begin : 0;
    for (int i = 0; i < nevents; i++)
        if (events[i].begin < start)
            start = events[i].begin;
    if (out)
        fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", out);
    collect(out, size, mine, start);
    if (out)
        fputs("\n]}\n", out);
    if (!out || fclose(out))
        fprintf(stderr, "nbcshim: NBCSHIM_TRACE: cannot write %s\n", nbc_settings.trace);
}

void nbc_trace_write(void)
{
    int rank, size;
    if (!nbc_tracing)
        return;
    const struct summary mine = {nevents, dropped, inside, offset};
    NEXT(Comm_rank)(side, &rank);
    NEXT(Comm_size)(side, &size);
    if (rank == 0)
        write_file(size, &mine);
    else
        deliver(&mine);
    NEXT(Group_free)(&world);
    NEXT(Comm_free)(&side);
    free(events);
    events = NULL;
    nbc_tracing = false;
    while (spare) {
        struct message *m = spare;
        spare = m->next;
        free(m);
    }
}
