/* SPDX-License-Identifier: MIT */
/* A hang explains itself: NBCSHIM_TIMEOUT makes a thread look for operations that have been pending
 * for too long, and SIGUSR1 shows those that are pending now. Both write what each waits for. */
#ifndef NBC_HANG_REPORT_H
#define NBC_HANG_REPORT_H

/* Before the MPI is initialized: whether the program leaves SIGUSR1 to us. And right behind: which
 * handler is the MPI's. */
void nbc_hang_report_before_init(void);
void nbc_hang_report_after_init(void);

/* At init, with the thread level of the MPI, before nbc_threaded is looked at by anyone: the thread
 * reads what is pending, so it needs the lock. And at the end. */
void nbc_hang_report_setup(int level);
void nbc_hang_report_stop(void);

#endif
