/* SPDX-License-Identifier: MIT */
/* NBCSHIM_TRACE: what each rank did when, in a bounded memory, merged at the end into one file that
 * about://tracing and Perfetto show. All under the lock, but for the beginning and the end.
 *
 * Messages, copies and reductions are seen by a transport that stands before the real one; so an
 * operation that is not traced pays nothing for it. */
#ifndef NBC_TRACE_H
#define NBC_TRACE_H

#include "request.h"

/* Set at init, read only afterwards. */
extern bool nbc_tracing;

extern const struct nbc_transport nbc_traced_transport;

/* At init, where all ranks have the variable, and at finalize; collective over MPI_COMM_WORLD, the
 * file is rank 0's. */
void nbc_trace_setup(void);
void nbc_trace_write(void);

/* r has been started, or is complete. */
void nbc_trace_begin(struct nbc_request *r);
void nbc_trace_end(const struct nbc_request *r);

/* Time spent in the shim, from `begin` until now: kept where `always`, or where something happened
 * in it; seen is nbc_trace_seen() at its beginning. */
int64_t nbc_trace_seen(void);
void nbc_trace_inside(int64_t begin, int64_t seen, bool always);

#endif
