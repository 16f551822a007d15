/* SPDX-License-Identifier: MIT */
/* NBCSHIM_TRACE, the recording part: a bounded record of the events of this rank. A transport that
 * wraps the real one records messages, copies and reductions, so it costs nothing without
 * tracing. Under the lock, except setup and cleanup. Local. */
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
    int64_t number; /* operation: number of the call on its communicator, from 1; message: its */
                    /* identity, the same at both ends */
    int32_t id;     /* of the operation, from 1 */
    int32_t peer;   /* rank in MPI_COMM_WORLD, −1: none; operation: source of its last message */
    int32_t comm;   /* operation: index in nbc_trace.comms, −1: unknown */
    int16_t kind, alg, coll; /* alg: index in nbc_algs, −1: none */
    bool persistent;
    bool has_arrow; /* message: both ends are in the trace, within slices */
};

/* A communicator of operations. */
struct nbc_trace_comm {
    uint64_t key; /* the same on all ranks */
    int32_t size;
    char name[MPI_MAX_OBJECT_NAME + 1];
};

/* The recorded events. Events beyond trace_events of NBCSHIM_TEST are only counted. */
struct nbc_trace_record {
    struct nbc_trace_event *events;
    int64_t nevents, dropped;
    int64_t inside;  /* nanoseconds spent in nbcshim */
    int64_t covered; /* until then, all messages are within recorded slices of time in nbcshim */
    struct nbc_trace_comm *comms;
    int ncomms;
    int64_t *identities; /* space for two per event */
};

/* Set at init, afterwards only read. */
extern NBC_HIDDEN bool nbc_tracing;
extern struct nbc_trace_record nbc_trace;

extern const struct nbc_transport nbc_traced_transport;

/* Allocates memory for the events. Returns false without memory. nbc_trace_record_cleanup frees
 * it. */
bool nbc_trace_record_setup(void);
void nbc_trace_record_cleanup(void);

/* The group of MPI_COMM_WORLD, in which peers are numbered. Set before the first operation. */
extern MPI_Group nbc_trace_world;

/* Returns the index of the communicator of an operation, −1 without memory. comm may be
 * MPI_COMM_NULL if the communicator is known already. */
int32_t nbc_trace_comm_of(uint64_t key, MPI_Comm comm, int size);

/* Adds an event, with peer and alg −1 and the remaining fields zero. Returns NULL if the record is
 * full. */
struct nbc_trace_event *nbc_trace_add(enum nbc_trace_kind kind, int64_t begin, int64_t end);

/* The number of events so far, including those that were dropped. */
extern int64_t nbc_trace_seen;

/* Accounts the time from `begin` until now as spent in nbcshim. Adds an event if `always`, or if
 * events were added since nbc_trace_seen was `seen`. */
void nbc_trace_inside(int64_t begin, int64_t seen, bool always);

#endif
