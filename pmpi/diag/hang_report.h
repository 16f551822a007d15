/* SPDX-License-Identifier: MIT */
/* Reports pending operations, and the ranks that each waits for, on standard error. NBCSHIM_TIMEOUT
 * starts a thread that reports operations pending for longer; SIGUSR1 reports all that are pending
 * now. */
#ifndef NBC_HANG_REPORT_H
#define NBC_HANG_REPORT_H

#include <stdbool.h>

/* Called right before and right after the MPI is initialized. The first finds out whether the
 * program has a handler for SIGUSR1, the second whether the MPI has one. From the first on, if
 * nbcshim is wanted, the signal is answered. */
void nbc_hang_report_before_init(bool wanted);
void nbc_hang_report_after_init(void);

/* Called at init with the rank of this process among all processes of the job and the thread level
 * of the MPI. Installs the signal handler and starts the thread; that needs the lock, so this is
 * called before the first use of nbc_threaded. */
void nbc_hang_report_setup(int rank, int level);

/* The end of MPI_Init; if nbcshim is inactive, the signal is left alone. */
void nbc_hang_report_init_ends(void);

/* The beginning and the end of MPI_Finalize, during which the signal is answered, and after which
 * too. Between them, without the lock, nbc_hang_report_stop ends the thread. */
void nbc_hang_report_finalize_begins(void);
void nbc_hang_report_stop(void);
void nbc_hang_report_finalize_ends(void);

#endif
