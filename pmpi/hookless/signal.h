/* SPDX-License-Identifier: MIT */
/* Signals between two ranks of a communicator, for calls that not all its ranks make. They are
 * messages on the hidden communicator with a tag of their own, so they match neither messages of
 * the program nor those of collectives. A kind and a number (a tag of the program, a window)
 * distinguish signals. Ranks are those of the hidden communicator. All without the lock; the
 * functions return an MPI error code. */
#ifndef NBC_SIGNAL_H
#define NBC_SIGNAL_H

#include "comm/context.h"

enum nbc_signal_kind { NBC_SIGNAL_GROUP, NBC_SIGNAL_LEADER, NBC_SIGNAL_POST };

/* Sends *signal to one rank, and waits for the next signal of this kind and number from another
 * one, or the same, which it becomes. All operations progress meanwhile. */
int nbc_signal_exchange(struct nbc_context *c, int to, int from, struct nbc_signal *signal);

/* Sends *signal to each process of a group, which does not wait for them: until they have received
 * it, it must not change; waits for one from each; or passes a barrier of the group, in which this
 * process is. */
enum nbc_signal_use { NBC_SIGNAL_POST_ALL, NBC_SIGNAL_AWAIT_ALL, NBC_SIGNAL_BARRIER };
int nbc_signal_group(struct nbc_context *c, MPI_Group group, const struct nbc_signal *signal,
                     enum nbc_signal_use use);

#endif
