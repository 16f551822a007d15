/* SPDX-License-Identifier: MIT */
/* Reports pending operations, and the ranks that each waits for, on standard error. NBCSHIM_TIMEOUT
 * starts a thread that reports operations pending for longer; SIGUSR1 reports all that are pending
 * now. */
#ifndef NBC_HANG_REPORT_H
#define NBC_HANG_REPORT_H

/* Called right before and right after the MPI is initialized. The first finds out whether the
 * program has a handler for SIGUSR1, the second whether the MPI has one. */
void nbc_hang_report_before_init(void);
void nbc_hang_report_after_init(void);

/* Called at init with the rank of this process among all processes of the job and the thread level
 * of the MPI. Installs the signal handler and starts the thread; that needs the lock, so this is
 * called before the first use of nbc_threaded. */
void nbc_hang_report_setup(int rank, int level);

/* Called at finalize, without the lock. Ends the thread and restores the signal handler. */
void nbc_hang_report_stop(void);

#endif
