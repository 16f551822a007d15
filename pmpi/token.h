/* SPDX-License-Identifier: MIT */
/* Signals between two ranks of a communicator: for calls that not all its ranks make. They travel
 * on the hidden duplicate under a tag of their own, so nothing of the program's and no collective
 * meets them, and are told apart by kind and number (a tag of the program, a window). */
#ifndef NBC_TOKEN_H
#define NBC_TOKEN_H

#include "context.h"

enum nbc_token_kind { NBC_TOKEN_GROUP, NBC_TOKEN_LEADER, NBC_TOKEN_POST };

struct nbc_token {
    int kind, number;
    int value; /* what it says, if anything */
};

/* Local. peer: of the remote group where there is one. Not under the lock, as the next two. Returns
 * an MPI error code. */
int nbc_token_send(struct nbc_context *c, int peer, struct nbc_token token);

/* Waits for the next token of that kind and number, and moves all else on meanwhile. */
int nbc_token_wait(struct nbc_context *c, int source, struct nbc_token *token);

/* Waits until n ranks, this one the me-th of them, have all called this. */
int nbc_token_barrier(struct nbc_context *c, const int *ranks, int n, int me,
                      struct nbc_token token);

/* Whether one that was sent there is still on its way. Under the lock. */
bool nbc_token_pending(const struct nbc_context *c);

/* The n ranks of a group in a communicator; NULL without memory. The caller frees them. */
int *nbc_ranks_of(MPI_Group group, int n, MPI_Comm comm);

/* Forgets the tokens that came for a communicator that ends. */
struct nbc_mail;
void nbc_token_forget(struct nbc_mail *mail);

/* At finalize. */
void nbc_token_cleanup(void);

#endif
