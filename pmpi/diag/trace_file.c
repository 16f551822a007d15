/* SPDX-License-Identifier: MIT */
/* NBCSHIM_TRACE, the part that writes: merges the events that all ranks have recorded
 * (trace_transport.h) into one file for about://tracing and Perfetto. */
#include "diag/diag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/in_mpi.h"
#include "base/collect.h"
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
    if (!all_can_trace() || !nbc_collect_begin()) {
        nbc_trace_record_cleanup();
        return;
    }
    NEXT(Comm_group)(nbc_collect_comm, &nbc_trace_world);
    nbc_tracing = nbc_timing_on = true;
}

/* --- arrows ----------------------------------------------------------------------------------- */

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

/* A message has an arrow if the other rank has recorded it too: each rank tells each other one the
 * identities of their messages. Collective. */
static void trace_find_arrows(int rank, int size)
{
    int64_t *mine = nbc_trace.identities, *theirs = mine + nbc_settings.test.trace_events;
    struct nbc_trace_event *events = nbc_trace.events, *end = events + nbc_trace.nevents, *e;
    for (int distance = 1; distance < size; distance++) {
        int to = (rank + distance) % size, from = (rank - distance + size) % size, n = 0;
        MPI_Status status;
        for (e = events; e < end; e++)
            if (e->peer == to && may_have_arrow(e))
                mine[n++] = e->number;
        NEXT(Sendrecv)
        (mine, n, MPI_LONG_LONG, to, 0, theirs, (int)nbc_settings.test.trace_events, MPI_LONG_LONG,
         from, 0, nbc_collect_comm, &status);
        NEXT(Get_count)(&status, MPI_LONG_LONG, &n);
        qsort(theirs, n, sizeof *theirs, compare_ids);
        for (e = events; e < end; e++)
            if (e->peer == from && may_have_arrow(e))
                e->has_arrow = bsearch(&e->number, theirs, n, sizeof *theirs, compare_ids);
    }
}

/* --- the file --------------------------------------------------------------------------------- */

static int64_t start; /* of the trace, by this rank's clock */

/* Opens an event, which "}" closes. The first one of all comes first. */
static void put_head(FILE *out, const char *phase, int rank, int thread, const char *name)
{
    fprintf(out, "%s\n{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d, \"name\": \"%s\"",
            strcmp(name, "process_name") || rank ? "," : "", phase, rank, thread, name);
}

/* A time in microseconds, as the format requires. */
static void put_time(FILE *out, const char *name, int64_t ns)
{
    long long size = llabs(ns);
    fprintf(out, ", \"%s\": %s%lld.%03lld", name, ns < 0 ? "-" : "", size / 1000, size % 1000);
}

static const char *name_of(const struct nbc_trace_event *e)
{
    static char name[64];
    if (e->kind == NBC_TRACE_OPERATION)
        snprintf(name, sizeof name, "%s:%s", nbc_coll_name(e->coll), nbc_algs[e->alg].name);
    else
        snprintf(name, sizeof name, is_message(e) ? "%s %d" : "%s", event_names[e->kind],
                 (int)e->peer);
    return name;
}

static void put_args(FILE *out, const struct nbc_trace_event *e, int rank)
{
    fprintf(out, ", \"args\": {\"operation\": \"%d.%d\"", rank, e->id);
    if (e->bytes < 0)
        fprintf(out, ", \"bytes\": null");
    else
        fprintf(out, ", \"bytes\": %" PRId64, e->bytes);
    if (is_message(e))
        fprintf(out, ", \"peer\": %d", e->peer);
    if (e->kind == NBC_TRACE_OPERATION) {
        fprintf(out, ", \"number\": %" PRId64 ", \"persistent\": %s, \"waited_for\": %d", e->number,
                e->persistent ? "true" : "false", e->peer);
        if (e->comm >= 0) {
            fprintf(out, ", \"ranks\": %d, \"communicator\": ", nbc_trace.comms[e->comm].size);
            nbc_json_quoted(out, nbc_trace.comms[e->comm].name);
        }
    }
    fprintf(out, "}");
}

/* An operation or a message. They overlap, so they are asynchronous spans, from "b" to "e". */
static void put_span(FILE *out, const struct nbc_trace_event *e, int rank, int n)
{
    for (int end = 0; end <= 1; end++) {
        put_head(out, end ? "e" : "b", rank, 0, name_of(e));
        fprintf(out, ", \"cat\": \"%s\", \"id\": \"%d.%d\"",
                e->kind == NBC_TRACE_OPERATION ? "operation" : "message", rank, n);
        put_time(out, "ts", (end ? e->end : e->begin) - start);
        put_args(out, e, rank);
        fprintf(out, "}");
    }
}

/* An end of an arrow from the slice in which a message is sent to that in which it has arrived:
 * "bp" says, in the slice around it, not in the next one. */
static void put_arrow(FILE *out, const struct nbc_trace_event *e, int rank)
{
    bool sends = e->kind == NBC_TRACE_SEND;
    put_head(out, sends ? "s" : "f", rank, 1, "message");
    fprintf(out, ", \"cat\": \"arrow\", \"id\": \"%016" PRIx64 "\"%s", e->number,
            sends ? "" : ", \"bp\": \"e\"");
    put_time(out, "ts", arrow_time(e) - start);
    fprintf(out, "}");
}

/* Time spent in nbcshim. Such events follow one another or are nested. */
static void put_slice(FILE *out, const struct nbc_trace_event *e, int rank)
{
    put_head(out, "X", rank, 1, name_of(e));
    put_time(out, "ts", e->begin - start);
    put_time(out, "dur", e->end - e->begin);
    if (e->kind == NBC_TRACE_REDUCE || e->kind == NBC_TRACE_COPY)
        put_args(out, e, rank);
    fprintf(out, "}");
}

/* The names of a rank and of its rows, and what it has recorded in all. */
static void put_metadata(FILE *out, int rank)
{
    char host[MPI_MAX_PROCESSOR_NAME + 1] = "", name[MPI_MAX_PROCESSOR_NAME + 32];
    int length;
    NEXT(Get_processor_name)(host, &length);
    snprintf(name, sizeof name, "rank %d on %s", rank, host);
    put_head(out, "M", rank, 0, "process_name");
    fprintf(out,
            ", \"args\": {\"events\": %" PRId64 ", \"dropped\": %" PRId64
            ", \"inside_us\": %" PRId64 ", \"name\": ",
            nbc_trace.nevents, nbc_trace.dropped, nbc_trace.inside / 1000);
    nbc_json_quoted(out, name);
    fprintf(out, "}}");
    put_head(out, "M", rank, 0, "process_sort_index");
    fprintf(out, ", \"args\": {\"sort_index\": %d}}", rank);
    put_head(out, "M", rank, 1, "thread_name");
    fprintf(out, ", \"args\": {\"name\": \"inside nbcshim\"}}");
}

static void put_rank(FILE *out, int rank)
{
    put_metadata(out, rank);
    for (int i = 0; i < nbc_trace.nevents; i++) {
        const struct nbc_trace_event *e = &nbc_trace.events[i];
        if (e->kind <= NBC_TRACE_RECV)
            put_span(out, e, rank, i);
        else
            put_slice(out, e, rank);
        if (e->has_arrow)
            put_arrow(out, e, rank);
    }
}

/* The file of rank 0. */
static FILE *trace_begin(void)
{
    FILE *out = nbc_settings_open_file("NBCSHIM_TRACE", nbc_settings.trace);
    if (out)
        fprintf(out, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
    start = nbc_trace.nevents ? nbc_trace.events[0].begin : 0;
    for (int64_t i = 0; i < nbc_trace.nevents; i++)
        if (nbc_trace.events[i].begin < start)
            start = nbc_trace.events[i].begin;
    return out;
}

void nbc_trace_write(void)
{
    int rank, size;
    if (!nbc_tracing)
        return;
    NEXT(Comm_rank)(nbc_collect_comm, &rank);
    NEXT(Comm_size)(nbc_collect_comm, &size);
    trace_find_arrows(rank, size);
    FILE *out = rank ? NULL : trace_begin();
    NEXT(Bcast)(&start, sizeof start, MPI_BYTE, 0, nbc_collect_comm);
    start -= nbc_collect_offset;
    nbc_collect(out, put_rank);
    if (out) {
        fprintf(out, "\n]}\n");
        nbc_settings_close_file(out, "NBCSHIM_TRACE", nbc_settings.trace);
    }
    NEXT(Group_free)(&nbc_trace_world);
    nbc_collect_end();
    nbc_trace_record_cleanup();
}
