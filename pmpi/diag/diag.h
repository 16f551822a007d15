/* SPDX-License-Identifier: MIT */
/* What init and shutdown call for NBCSHIM_CHECK, _STATS, _TRACE, _TIMEOUT and SIGUSR1. Without the
 * lock. */
#ifndef NBC_DIAG_H
#define NBC_DIAG_H

#include <signal.h>
#include <stdbool.h>

/* --- broken_pipe.c --- */

/* Between the two calls SIGPIPE and the signals of timers do not reach this thread. A SIGPIPE is
 * dropped, the others arrive afterwards. */
void nbc_broken_pipe_ignore(sigset_t *before);
void nbc_broken_pipe_heed(const sigset_t *before);

/* --- check.c --- */

/* Called at init if the variable is set. Each operation launched later has a check as its
 * start condition. Returns an MPI error code. */
int nbc_check_setup(void);

/* Called at finalize. Does nothing without a setup. */
void nbc_check_cleanup(void);

/* --- hang_report.c --- */

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

/* --- current_call.c --- */

enum nbc_place {
    NBC_PLACE_UNKNOWN, /* the MPI or nbcshim is a static library, or the stack cannot be read */
    NBC_PLACE_PROGRAM, /* outside MPI */
    NBC_PLACE_MPI,     /* in a call of the MPI */
    NBC_PLACE_SHIM     /* in a call that nbcshim carries out */
};

struct nbc_current {
    enum nbc_place place;
    const char *name; /* of the function of MPI that the program has called, without prefix; NULL:
                       * not known */
    const char *site; /* to which that call returns, behind the MPI's Fortran binding; or NULL */
};

/* in_handler: the caller is a signal handler, which may have interrupted the program; otherwise it
 * is in a call of the program. */
struct nbc_current nbc_current_call(bool in_handler);

/* --- launcher.c --- */

/* The rank of this process as the launcher of an MPI tells it, -1 if it does not. */
int nbc_launcher_rank(void);

/* Writes a line if the launcher's variables say that each of several processes is alone; only the
 * first of them does. `size` is that of MPI_COMM_WORLD, which no other job has spawned. */
void nbc_launcher_check(int size);

/* --- statistics.c --- */

/* At init, when the ranks have agreed: the wall time begins. of_all: NBCSHIM_STATS is set on all
 * ranks of MPI_COMM_WORLD, so that the report can be about all of them. */
void nbc_statistics_begin(bool of_all);

/* Called at the set-up: a rank that leads and cannot write the file reports that, and takes
 * NBCSHIM_STATS as not set. From then on the time in calls counts, if the variable is set. */
void nbc_statistics_setup(bool leads);

/* If NBCSHIM_STATS=verbose, prints some lines on standard error: versions, whether nbcshim is
 * active and why, ranks, nodes, progress, rules. If another variable asks for output that an
 * inactive nbcshim does not write, prints why it is inactive. For one rank, at the end of init. */
void nbc_statistics_introduce(void);

/* Gathers the figures of all ranks, if nbc_statistics_begin said so. Collective over
 * MPI_COMM_WORLD, while MPI_Finalize still allows it. */
void nbc_statistics_collect(void);

/* Writes the statistics as NBCSHIM_STATS says, on the rank that leads. */
void nbc_statistics_print(void);

/* --- trace_file.c --- */

/* Called at init if the variable is set on all ranks. Measures the offsets of the ranks' clocks and
 * begins to record. There is no trace if some rank lacks memory, or, which is reported, if rank 0
 * cannot write the file. Collective over MPI_COMM_WORLD. */
void nbc_trace_setup(void);

/* Called at finalize: rank 0 collects the events and writes the file. Does nothing without a trace.
 * Collective over MPI_COMM_WORLD. */
void nbc_trace_write(void);

#endif
