/* SPDX-License-Identifier: MIT */
/* NBCSHIM_TRACE, the part that writes: merges the events that all ranks have recorded
 * (trace_transport.h) into one file for about://tracing and Perfetto. */
#ifndef NBC_TRACE_FILE_H
#define NBC_TRACE_FILE_H

/* Called at init if the variable is set on all ranks. Measures the offsets of the ranks' clocks and
 * begins to record. There is no trace if some rank lacks memory, or, which is reported, if rank 0
 * cannot write the file. Collective over MPI_COMM_WORLD,
 * without the lock. */
void nbc_trace_setup(void);

/* Called at finalize: rank 0 collects the events and writes the file. Does nothing without a trace.
 * Collective over MPI_COMM_WORLD, without the lock. */
void nbc_trace_write(void);

#endif
