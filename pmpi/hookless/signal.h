/* SPDX-License-Identifier: MIT */
/* Signals between two ranks of a communicator, for calls that not all its ranks make. They are
 * messages on the hidden communicator with a tag of their own, so they match neither messages of
 * the program nor those of collectives. A kind and a number (a tag of the program, a window)
 * distinguish signals. Ranks are those of the hidden communicator. All functions but
 * nbc_signal_pending without the lock; they return an MPI error code. */
#ifndef NBC_SIGNAL_H
#define NBC_SIGNAL_H

#include "comm/context.h"

enum nbc_signal_kind { NBC_SIGNAL_GROUP, NBC_SIGNAL_LEADER, NBC_SIGNAL_POST };

/* Sends a signal. Local. */
int nbc_signal_send(struct nbc_context *c, int peer, struct nbc_signal signal);

/* Waits for the next signal from a rank with the kind and number of *signal, and progresses all
 * operations meanwhile. */
int nbc_signal_wait(struct nbc_context *c, int source, struct nbc_signal *signal);

/* Sends a signal to each process of a group, waits for one from each, or passes a barrier of the
 * group, in which this process is. */
enum nbc_signal_use { NBC_SIGNAL_SEND, NBC_SIGNAL_WAIT, NBC_SIGNAL_BARRIER };
int nbc_signal_group(struct nbc_context *c, MPI_Group group, struct nbc_signal signal,
                     enum nbc_signal_use use);

/* Whether a signal that was sent in this context is not complete. Under the lock. Local. */
bool nbc_signal_pending(const struct nbc_context *c);

/* Frees the signals that have been sent, at finalize. */
void nbc_signal_cleanup(void);

#endif
