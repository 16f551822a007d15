/* SPDX-License-Identifier: MIT */
/* NBCSHIM_TRACE, the part that writes: what all ranks have recorded, merged into one file that
 * about://tracing and Perfetto show. */
#ifndef NBC_TRACE_FILE_H
#define NBC_TRACE_FILE_H

/* At init, where all ranks have the variable, and at finalize. Collective over MPI_COMM_WORLD; rank
 * 0 writes the file. Not under the lock. */
void nbc_trace_setup(void);
void nbc_trace_write(void);

#endif
