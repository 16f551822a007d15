/* SPDX-License-Identifier: MIT */
/* NBCSHIM_TRACE, the part that records: what this rank did when, in a bounded memory. Messages,
 * copies and reductions are seen by a transport in front of the real one, so that an operation that
 * is not traced pays nothing for it. All under the lock, but for setup and cleanup. */
#ifndef NBC_TRACE_TRANSPORT_H
#define NBC_TRACE_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "below/next.h"

#include "transport.h"

enum nbc_trace_kind {
    NBC_TRACE_OPERATION,
    NBC_TRACE_SEND,
    NBC_TRACE_RECV,
    NBC_TRACE_REDUCE,
    NBC_TRACE_COPY,
    NBC_TRACE_START,
    NBC_TRACE_PROGRESS
};

struct nbc_trace_event {
    int64_t begin, end; /* nanoseconds of nbc_now */
    int64_t bytes;
    int64_t number;    /* operation: of the call on its communicator, from 1 */
    int32_t id;        /* of the operation, from 1 */
    int32_t peer;      /* rank in MPI_COMM_WORLD; operation: whose message came last; −1: none */
    int16_t kind, alg; /* alg: place in nbc_algs, −1: none */
    int16_t coll, persistent;
};

/* What has been recorded. Later events than NBCSHIM_TRACE_EVENTS allows are only counted. */
struct nbc_trace_record {
    struct nbc_trace_event *events;
    int64_t nevents, dropped;
    int64_t inside; /* nanoseconds spent in nbcshim */
};

/* Set at init, read only afterwards. */
extern bool nbc_tracing;
extern struct nbc_trace_record nbc_trace;

extern const struct nbc_transport nbc_traced_transport;

/* Takes memory for the events. Returns false without it. */
bool nbc_trace_record_setup(void);
void nbc_trace_record_cleanup(void);

/* The processes of MPI_COMM_WORLD, by which peers are named. Set before the first operation. */
extern MPI_Group nbc_trace_world;

/* The number of a new operation. */
int32_t nbc_trace_next_id(void);

/* Room for one more event, NULL when there is none. peer and alg are −1, the rest is zero. */
struct nbc_trace_event *nbc_trace_add(enum nbc_trace_kind kind, int64_t begin, int64_t end);

/* Time spent in nbcshim, from `begin` until now: an event where `always`, or where something
 * happened in it; seen is what nbc_trace_seen returned at its beginning. */
int64_t nbc_trace_seen(void);
void nbc_trace_inside(int64_t begin, int64_t seen, bool always);

#endif
