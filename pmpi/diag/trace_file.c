/* SPDX-License-Identifier: MIT */
#include "diag/trace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/settings.h"
#include "below/next.h"
#include "op/trace_transport.h"

#include "coll.h"
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

/* Whether all ranks have the memory for their events. */
static bool all_have_memory(void)
{
    int mine = nbc_trace_record_setup(), all = 0;
    NEXT(Allreduce)(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

void nbc_trace_setup(void)
{
    int rank, size;
    if (!all_have_memory() || NEXT(Comm_dup)(MPI_COMM_WORLD, &side)) {
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

/* --- the file --------------------------------------------------------------------------------- */

struct summary {
    int64_t nevents, dropped, inside, offset;
};

/* A time in microseconds, as the format requires; with a decimal point in any locale. */
static void trace_put_time(FILE *out, const char *name, int64_t ns)
{
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    fprintf(out, ", \"%s\": %s%" PRIu64 ".%03d", name, ns < 0 ? "-" : "", size / 1000,
            (int)(size % 1000));
}

static void trace_put_head(FILE *out, const char *phase, int rank, int thread)
{
    fprintf(out, ",\n{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d", phase, rank, thread);
}

static void trace_put_name(FILE *out, const struct nbc_trace_event *e)
{
    fputs(", \"name\": \"", out);
    if (e->kind == NBC_TRACE_OPERATION && e->alg < 0)
        fprintf(out, "%s", nbc_coll_name(e->coll));
    else if (e->kind == NBC_TRACE_OPERATION)
        fprintf(out, "%s:%s", nbc_coll_name(e->coll), nbc_algs[e->alg].name);
    else if (e->kind == NBC_TRACE_SEND || e->kind == NBC_TRACE_RECV)
        fprintf(out, "%s %d", event_names[e->kind], (int)e->peer);
    else
        fprintf(out, "%s", event_names[e->kind]);
    fputc('"', out);
}

/* An operation or a message. They overlap, so they are asynchronous spans, from "b" to "e". */
static void trace_put_span(FILE *out, const struct nbc_trace_event *e, int rank, int n,
                           int64_t start)
{
    const char *category = e->kind == NBC_TRACE_OPERATION ? "operation" : "message";
    for (int end = 0; end <= 1; end++) {
        trace_put_head(out, end ? "e" : "b", rank, 0);
        fprintf(out, ", \"cat\": \"%s\", \"id\": \"%d.%d\"", category, rank, n);
        trace_put_name(out, e);
        trace_put_time(out, "ts", (end ? e->end : e->begin) - start);
        fprintf(out, ", \"args\": {\"operation\": \"%d.%d\"", rank, (int)e->id);
        if (e->kind != NBC_TRACE_OPERATION)
            fprintf(out, ", \"peer\": %d, \"bytes\": %" PRId64, (int)e->peer, e->bytes);
        else
            fprintf(out, ", \"number\": %" PRId64 ", \"persistent\": %s, \"waited_for\": %d",
                    e->number, e->persistent ? "true" : "false", (int)e->peer);
        fputs("}}", out);
    }
}

/* Time spent in nbcshim. Such events follow one another or are nested. */
static void trace_put_slice(FILE *out, const struct nbc_trace_event *e, int rank, int64_t start)
{
    trace_put_head(out, "X", rank, 1);
    trace_put_name(out, e);
    trace_put_time(out, "ts", e->begin - start);
    trace_put_time(out, "dur", e->end - e->begin);
    if (e->kind == NBC_TRACE_REDUCE || e->kind == NBC_TRACE_COPY)
        fprintf(out, ", \"args\": {\"operation\": \"%d.%d\", \"bytes\": %" PRId64 "}", rank,
                (int)e->id, e->bytes);
    fputc('}', out);
}

static void trace_put_rank(FILE *out, int rank, const struct summary *s,
                           const struct nbc_trace_event *list, int64_t start)
{
    fprintf(out,
            "%s\n{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", "
            "\"args\": {\"name\": \"rank %d\", \"events\": %" PRId64 ", \"dropped\": %" PRId64
            ", \"inside_us\": %" PRId64 "}}",
            rank ? "," : "", rank, rank, s->nevents, s->dropped, s->inside / 1000);
    trace_put_head(out, "M", rank, 1);
    fputs(", \"name\": \"thread_name\", \"args\": {\"name\": \"inside nbcshim\"}}", out);
    for (int i = 0; i < s->nevents; i++)
        if (list[i].kind <= NBC_TRACE_RECV)
            trace_put_span(out, &list[i], rank, i, start - s->offset);
        else
            trace_put_slice(out, &list[i], rank, start - s->offset);
}

/* Receives the events of another rank. Without a list it receives none. */
static void trace_fetch(int rank, struct summary *s, struct nbc_trace_event *list)
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

/* Collects the events one rank at a time: rank 0 never holds those of more than two ranks. */
static void trace_collect(FILE *out, int size, const struct summary *mine, int64_t start)
{
    struct nbc_trace_event *list = malloc((size_t)nbc_settings.trace_events * sizeof *list);
    for (int rank = 0; rank < size; rank++) {
        struct summary s = *mine;
        if (rank)
            trace_fetch(rank, &s, list);
        if (out)
            trace_put_rank(out, rank, &s, rank ? list : nbc_trace.events, start);
    }
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
}

static void trace_write_file(int size, const struct summary *mine)
{
    FILE *out = nbc_settings_open_file(nbc_settings.trace);
    const struct nbc_trace_event *events = nbc_trace.events;
    int64_t start = nbc_trace.nevents ? events[0].begin : 0;
    for (int64_t i = 0; i < nbc_trace.nevents; i++)
        if (events[i].begin < start)
            start = events[i].begin;
    if (out)
        fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", out);
    trace_collect(out, size, mine, start);
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
    const struct summary mine = {nbc_trace.nevents, nbc_trace.dropped, nbc_trace.inside, offset};
    NEXT(Comm_rank)(side, &rank);
    NEXT(Comm_size)(side, &size);
    if (rank == 0)
        trace_write_file(size, &mine);
    else
        trace_deliver(&mine);
    NEXT(Group_free)(&nbc_trace_world);
    NEXT(Comm_free)(&side);
    nbc_trace_record_cleanup();
}
