/* SPDX-License-Identifier: MIT */
/* Signals between two ranks of a communicator, for calls that not all its ranks make. They are
 * messages on the hidden communicator with a tag of their own, so they match neither messages of
 * the program nor those of collectives. A kind and a number (a tag of the program, a window)
 * distinguish signals. All ranks here are those of the hidden communicator. Without the lock unless
 * stated. */
#ifndef NBC_SIGNAL_H
#define NBC_SIGNAL_H

#include "comm/context.h"

enum nbc_signal_kind { NBC_SIGNAL_GROUP, NBC_SIGNAL_LEADER, NBC_SIGNAL_POST };

/* Sends a signal. Local. Returns an MPI
 * error code. */
int nbc_signal_send(struct nbc_context *c, int peer, struct nbc_signal signal);

/* Waits for the next signal from a rank with the kind and number of *signal, and progresses all
 * operations meanwhile. Returns an MPI error code. */
int nbc_signal_wait(struct nbc_context *c, int source, struct nbc_signal *signal);

/* A barrier of n ranks; this rank is ranks[me]. Returns an MPI error code. */
int nbc_signal_barrier(struct nbc_context *c, const int *ranks, int n, int me,
                       struct nbc_signal signal);

/* Whether a signal that was sent in this context is not complete. Under the lock. Local. */
bool nbc_signal_pending(const struct nbc_context *c);

/* The ranks of the n processes of a group. Local. NULL on an error. The caller frees the result. */
int *nbc_signal_ranks(const struct nbc_context *c, MPI_Group group, int n);

/* Frees the signals that have been sent, at finalize. */
void nbc_signal_cleanup(void);

#endif
