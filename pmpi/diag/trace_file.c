/* SPDX-License-Identifier: MIT */
#include "diag/trace_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/settings.h"
#include "below/next.h"
#include "op/trace_transport.h"

#include "coll.h"
#include "json.h"
#include "select.h"

static const char *const event_names[] = {
    [NBC_TRACE_SEND] = "send to", [NBC_TRACE_RECV] = "recv from", [NBC_TRACE_REDUCE] = "reduce",
    [NBC_TRACE_COPY] = "copy",    [NBC_TRACE_START] = "start",    [NBC_TRACE_PROGRESS] = "progress",
};

static MPI_Comm side;  /* a duplicate of MPI_COMM_WORLD */
static int64_t offset; /* rank 0's clock minus this rank's, in nanoseconds */

/* --- clocks ----------------------------------------------------------------------------------- */

enum { PINGS = 10 };

static void clock_answer(int peer)
{
    for (int i = 0; i < PINGS; i++) {
        int64_t now;
        NEXT(Recv)(&now, 0, MPI_BYTE, peer, 0, side, MPI_STATUS_IGNORE);
        now = nbc_now();
        NEXT(Send)(&now, sizeof now, MPI_BYTE, peer, 0, side);
    }
}

/* Takes the fastest of some round trips and assumes that rank 0 read its clock in its middle. */
static void clock_ask(void)
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

/* Whether all ranks have the memory for their events, and rank 0 can write the file. */
static bool all_can_trace(void)
{
    int rank, mine = nbc_trace_record_setup(), all = 0;
    NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    if (rank == 0 && !nbc_settings_try_file("NBCSHIM_TRACE", nbc_settings.trace))
        mine = false;
    NEXT(Allreduce)(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

void nbc_trace_setup(void)
{
    int rank, size;
    if (!all_can_trace() || NEXT(Comm_dup)(MPI_COMM_WORLD, &side)) {
        nbc_trace_record_cleanup();
        return;
    }
    NEXT(Comm_rank)(side, &rank);
    NEXT(Comm_size)(side, &size);
    NEXT(Comm_group)(side, &nbc_trace_world);
    for (int peer = 1; rank == 0 && peer < size; peer++)
        clock_answer(peer);
    if (rank > 0)
        clock_ask();
    nbc_tracing = nbc_timing_on = true;
}

/* --- arrows --------------------------------------------------------------------------------------
 */

static bool is_message(const struct nbc_trace_event *e)
{
    return e->kind == NBC_TRACE_SEND || e->kind == NBC_TRACE_RECV;
}

/* The end of a message's arrow: the send that is posted, or the receive that is complete. */
static int64_t arrow_time(const struct nbc_trace_event *e)
{
    return e->kind == NBC_TRACE_SEND ? e->begin : e->end;
}

static bool may_have_arrow(const struct nbc_trace_event *e)
{
    return is_message(e) && e->peer >= 0 && e->number && arrow_time(e) < nbc_trace.covered;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* What each rank tells each other one: the identities of their messages. */
struct exchange {
    int *to, *from, *to_place, *from_place; /* by rank: numbers, and indices in mine, theirs */
    int64_t *mine, *theirs;
    int ntheirs;
};

static bool exchange_begin(struct exchange *x, int size)
{
    int *numbers = calloc(4 * (size_t)size, sizeof *numbers);
    *x = (struct exchange){.to = numbers, .mine = malloc((size_t)nbc_trace.nevents * 8 + 8)};
    if (!numbers || !x->mine)
        return false; /* unreached: no memory */
    x->from = numbers + size;
    x->to_place = numbers + 2 * (size_t)size;
    x->from_place = numbers + 3 * (size_t)size;
    return true;
}

/* Fills mine in the order of the ranks. */
static void exchange_fill(struct exchange *x, int size)
{
    for (int64_t i = 0; i < nbc_trace.nevents; i++)
        if (may_have_arrow(&nbc_trace.events[i]))
            x->to[nbc_trace.events[i].peer]++;
    for (int i = 1; i < size; i++)
        x->to_place[i] = x->to_place[i - 1] + x->to[i - 1];
    for (int64_t i = 0; i < nbc_trace.nevents; i++)
        if (may_have_arrow(&nbc_trace.events[i]))
            x->mine[x->to_place[nbc_trace.events[i].peer]++] = nbc_trace.events[i].number;
    for (int i = 0; i < size; i++)
        x->to_place[i] -= x->to[i];
}

static bool all_have(bool mine)
{
    int own = mine, all = false;
    return !NEXT(Allreduce)(&own, &all, 1, MPI_INT, MPI_MIN, side) && all;
}

static bool exchange_run(struct exchange *x, int size)
{
    if (!all_have(exchange_begin(x, size)))
        return false; /* unreached: no memory */
    exchange_fill(x, size);
    NEXT(Alltoall)(x->to, 1, MPI_INT, x->from, 1, MPI_INT, side);
    for (int i = 0; i < size; i++) {
        x->from_place[i] = x->ntheirs;
        x->ntheirs += x->from[i];
    }
    x->theirs = malloc((size_t)x->ntheirs * 8 + 8);
    if (!all_have(x->theirs != NULL))
        return false; /* unreached: no memory */
    return !NEXT(Alltoallv)(x->mine, x->to, x->to_place, MPI_LONG_LONG, x->theirs, x->from,
                            x->from_place, MPI_LONG_LONG, side);
}

/* A message has an arrow if the other rank has recorded it too. Collective. */
static void trace_find_arrows(int size)
{
    struct exchange x;
    if (exchange_run(&x, size)) {
        qsort(x.theirs, x.ntheirs, sizeof *x.theirs, compare_ids);
        for (int64_t i = 0; i < nbc_trace.nevents; i++) {
            struct nbc_trace_event *e = &nbc_trace.events[i];
            e->has_arrow = may_have_arrow(e) &&
                           bsearch(&e->number, x.theirs, x.ntheirs, sizeof *x.theirs, compare_ids);
        }
    }
    free(x.to);
    free(x.mine);
    free(x.theirs);
}

/* --- the file --------------------------------------------------------------------------------- */

struct summary {
    int64_t nevents, dropped, inside, offset;
    int ncomms;
    char host[MPI_MAX_PROCESSOR_NAME + 1];
};

/* A time in microseconds, as the format requires. */
static void trace_put_time(struct nbc_json *j, const char *name, int64_t ns)
{
    nbc_json_fixed(j, name, ns, 3);
}

static void trace_put_head(struct nbc_json *j, const char *phase, int rank, int thread)
{
    nbc_json_line(j, NULL, "{");
    nbc_json_string(j, "ph", phase);
    nbc_json_int(j, "pid", rank);
    nbc_json_int(j, "tid", thread);
}

/* A number that is an identifier in the whole file. */
static void trace_put_id(struct nbc_json *j, const char *name, int rank, int number)
{
    char id[32];
    snprintf(id, sizeof id, "%d.%d", rank, number);
    nbc_json_string(j, name, id);
}

static void trace_put_name(struct nbc_json *j, const struct nbc_trace_event *e)
{
    char name[64];
    if (e->kind == NBC_TRACE_OPERATION)
        snprintf(name, sizeof name, "%s:%s", nbc_coll_name(e->coll), nbc_algs[e->alg].name);
    else if (is_message(e))
        snprintf(name, sizeof name, "%s %d", event_names[e->kind], (int)e->peer);
    else
        snprintf(name, sizeof name, "%s", event_names[e->kind]);
    nbc_json_string(j, "name", name);
}

/* The communicators of the rank that is written. */
static const struct nbc_trace_comm *comms;

static void trace_put_args(struct nbc_json *j, const struct nbc_trace_event *e, int rank)
{
    nbc_json_open(j, "args", "{");
    trace_put_id(j, "operation", rank, e->id);
    if (e->kind == NBC_TRACE_OPERATION) {
        const struct nbc_trace_comm *c = e->comm >= 0 && comms ? &comms[e->comm] : NULL;
        nbc_json_string(j, "communicator", c ? c->name : NULL);
        if (c)
            nbc_json_int(j, "ranks", c->size);
        if (e->bytes >= 0)
            nbc_json_int(j, "bytes", e->bytes);
        else
            nbc_json_string(j, "bytes", NULL);
        nbc_json_int(j, "number", e->number);
        nbc_json_bool(j, "persistent", e->persistent);
        nbc_json_int(j, "waited_for", e->peer);
    } else {
        if (is_message(e))
            nbc_json_int(j, "peer", e->peer);
        nbc_json_int(j, "bytes", e->bytes);
    }
    nbc_json_close(j, "}");
}

/* An operation or a message. They overlap, so they are asynchronous spans, from "b" to "e". */
static void trace_put_span(struct nbc_json *j, const struct nbc_trace_event *e, int rank, int n,
                           int64_t start)
{
    for (int end = 0; end <= 1; end++) {
        trace_put_head(j, end ? "e" : "b", rank, 0);
        nbc_json_string(j, "cat", e->kind == NBC_TRACE_OPERATION ? "operation" : "message");
        trace_put_id(j, "id", rank, n);
        trace_put_name(j, e);
        trace_put_time(j, "ts", (end ? e->end : e->begin) - start);
        trace_put_args(j, e, rank);
        nbc_json_close(j, "}");
    }
}

/* An end of an arrow from the slice in which a message is sent to that in which it has arrived. */
static void trace_put_arrow(struct nbc_json *j, const struct nbc_trace_event *e, int rank,
                            int64_t start)
{
    char id[32];
    snprintf(id, sizeof id, "%016llx", (unsigned long long)e->number);
    trace_put_head(j, e->kind == NBC_TRACE_SEND ? "s" : "f", rank, 1);
    nbc_json_string(j, "cat", "arrow");
    nbc_json_string(j, "id", id);
    nbc_json_string(j, "name", "message");
    if (e->kind == NBC_TRACE_RECV)
        nbc_json_string(j, "bp", "e"); /* ends in the slice around it, not in the next one */
    trace_put_time(j, "ts", arrow_time(e) - start);
    nbc_json_close(j, "}");
}

/* Time spent in nbcshim. Such events follow one another or are nested. */
static void trace_put_slice(struct nbc_json *j, const struct nbc_trace_event *e, int rank,
                            int64_t start)
{
    trace_put_head(j, "X", rank, 1);
    trace_put_name(j, e);
    trace_put_time(j, "ts", e->begin - start);
    trace_put_time(j, "dur", e->end - e->begin);
    if (e->kind == NBC_TRACE_REDUCE || e->kind == NBC_TRACE_COPY)
        trace_put_args(j, e, rank);
    nbc_json_close(j, "}");
}

/* The names of a rank and of its rows, and what it has recorded in all. */
static void trace_put_metadata(struct nbc_json *j, int rank, const struct summary *s)
{
    char name[MPI_MAX_PROCESSOR_NAME + 32];
    snprintf(name, sizeof name, "rank %d on %s", rank, s->host);
    nbc_json_line(j, NULL, "{");
    nbc_json_string(j, "ph", "M");
    nbc_json_int(j, "pid", rank);
    nbc_json_string(j, "name", "process_name");
    nbc_json_open(j, "args", "{");
    nbc_json_string(j, "name", name);
    nbc_json_int(j, "events", s->nevents);
    nbc_json_int(j, "dropped", s->dropped);
    nbc_json_int(j, "inside_us", s->inside / 1000);
    nbc_json_close(j, "}}");
    trace_put_head(j, "M", rank, 0);
    nbc_json_string(j, "name", "process_sort_index");
    nbc_json_open(j, "args", "{");
    nbc_json_int(j, "sort_index", rank);
    nbc_json_close(j, "}}");
    trace_put_head(j, "M", rank, 1);
    nbc_json_string(j, "name", "thread_name");
    nbc_json_open(j, "args", "{");
    nbc_json_string(j, "name", "inside nbcshim");
    nbc_json_close(j, "}}");
}

static void trace_put_rank(struct nbc_json *j, int rank, const struct summary *s,
                           const struct nbc_trace_event *list, int64_t start)
{
    trace_put_metadata(j, rank, s);
    for (int i = 0; i < s->nevents; i++) {
        if (list[i].kind <= NBC_TRACE_RECV)
            trace_put_span(j, &list[i], rank, i, start - s->offset);
        else
            trace_put_slice(j, &list[i], rank, start - s->offset);
        if (list[i].has_arrow)
            trace_put_arrow(j, &list[i], rank, start - s->offset);
    }
}

/* Receives the events and communicators of another rank. Without a list it receives none. */
static struct nbc_trace_comm *trace_fetch(int rank, struct summary *s, struct nbc_trace_event *list)
{
    NEXT(Recv)(s, sizeof *s, MPI_BYTE, rank, 0, side, MPI_STATUS_IGNORE);
    struct nbc_trace_comm *c = malloc((size_t)s->ncomms * sizeof *c + 1);
    if (!list || !c)
        s->nevents = 0; /* unreached: no memory */
    NEXT(Send)(s, 0, MPI_BYTE, rank, s->nevents ? 1 : 2, side);
    if (!s->nevents)
        return c;
    int bytes = (int)(s->nevents * (int64_t)sizeof *list);
    NEXT(Recv)(list, bytes, MPI_BYTE, rank, 0, side, MPI_STATUS_IGNORE);
    bytes = s->ncomms * (int)sizeof *c;
    NEXT(Recv)(c, bytes, MPI_BYTE, rank, 0, side, MPI_STATUS_IGNORE);
    return c;
}

/* Collects the events one rank at a time: rank 0 never holds those of more than two ranks. */
static void trace_collect(struct nbc_json *j, int size, const struct summary *mine, int64_t start)
{
    struct nbc_trace_event *list = malloc((size_t)nbc_settings.trace_events * sizeof *list);
    for (int rank = 0; rank < size; rank++) {
        struct summary s = *mine;
        struct nbc_trace_comm *fetched = rank ? trace_fetch(rank, &s, list) : NULL;
        comms = rank ? fetched : nbc_trace.comms;
        if (j->out)
            trace_put_rank(j, rank, &s, rank ? list : nbc_trace.events, start);
        free(fetched);
    }
    comms = NULL;
    free(list);
}

static void trace_deliver(const struct summary *mine)
{
    MPI_Status status;
    NEXT(Send)((void *)(uintptr_t)mine, sizeof *mine, MPI_BYTE, 0, 0, side);
    NEXT(Recv)(NULL, 0, MPI_BYTE, 0, MPI_ANY_TAG, side, &status);
    if (status.MPI_TAG != 1)
        return;
    int bytes = (int)(mine->nevents * (int64_t)sizeof *nbc_trace.events);
    NEXT(Send)(nbc_trace.events, bytes, MPI_BYTE, 0, 0, side);
    NEXT(Send)(nbc_trace.comms, mine->ncomms * (int)sizeof *comms, MPI_BYTE, 0, 0, side);
}

static void trace_write_file(int size, const struct summary *mine)
{
    struct nbc_json j = {.out = nbc_settings_open_file("NBCSHIM_TRACE", nbc_settings.trace)};
    const struct nbc_trace_event *events = nbc_trace.events;
    int64_t start = nbc_trace.nevents ? events[0].begin : 0;
    for (int64_t i = 0; i < nbc_trace.nevents; i++)
        if (events[i].begin < start)
            start = events[i].begin;
    if (j.out) {
        nbc_json_open(&j, NULL, "{");
        nbc_json_string(&j, "displayTimeUnit", "ns");
        nbc_json_open(&j, "traceEvents", "[");
    }
    trace_collect(&j, size, mine, start);
    if (!j.out)
        return; /* unreached: no memory */
    nbc_json_close(&j, "\n]}\n");
    nbc_settings_close_file(j.out, "NBCSHIM_TRACE", nbc_settings.trace);
}

void nbc_trace_write(void)
{
    int rank, size, length;
    if (!nbc_tracing)
        return;
    NEXT(Comm_rank)(side, &rank);
    NEXT(Comm_size)(side, &size);
    trace_find_arrows(size);
    struct summary mine = {
        nbc_trace.nevents, nbc_trace.dropped, nbc_trace.inside, offset, nbc_trace.ncomms, ""};
    NEXT(Get_processor_name)(mine.host, &length);
    if (rank == 0)
        trace_write_file(size, &mine);
    else
        trace_deliver(&mine);
    NEXT(Group_free)(&nbc_trace_world);
    NEXT(Comm_free)(&side);
    nbc_trace_record_cleanup();
}
