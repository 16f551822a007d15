/* SPDX-License-Identifier: MIT */
/* Signals between two ranks of a communicator: for calls that not all its ranks make. They travel
 * on the hidden duplicate under a tag of their own, so nothing of the program's and no collective
 * meets them, and are told apart by kind and number (a tag of the program, a window). */
#ifndef NBC_SIGNAL_H
#define NBC_SIGNAL_H

#include "comm/context.h"

enum nbc_signal_kind { NBC_SIGNAL_GROUP, NBC_SIGNAL_LEADER, NBC_SIGNAL_POST };

/* Local. peer: of the remote group where there is one. Not under the lock, as the next two. Returns
 * an MPI error code. */
int nbc_signal_send(struct nbc_context *c, int peer, struct nbc_signal signal);

/* Waits for the next token of that kind and number, and moves all else on meanwhile. */
int nbc_signal_wait(struct nbc_context *c, int source, struct nbc_signal *signal);

/* Waits until n ranks, this one the me-th of them, have all called this. */
int nbc_signal_barrier(struct nbc_context *c, const int *ranks, int n, int me,
                       struct nbc_signal signal);

/* Whether one that was sent there is still on its way. Under the lock. */
bool nbc_signal_pending(const struct nbc_context *c);

/* The n ranks of a group in a communicator; NULL without memory. The caller frees them. */
int *nbc_ranks_of(MPI_Group group, int n, MPI_Comm comm);

/* At finalize. */
void nbc_signal_cleanup(void);

#endif
