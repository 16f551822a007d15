/* SPDX-License-Identifier: MIT */
/* Calls that are collective, but not ours (constructors, windows, files), block below us, where
 * nothing of ours moves on. So before each of them its ranks pass a barrier of ours, which does
 * move all else on. When a rank has passed it, all are in the call: it depends on nothing any more
 * that a rank has still to do outside.
 *
 * All ranks of a group take the same way: whether there is a barrier depends on what they have
 * agreed on (that the communicator is known, NBCSHIM_BLOCKING), never on what is pending. */
#ifndef NBC_PRESYNC_H
#define NBC_PRESYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "below/next.h"

/* Whether a call on this communicator concerns us: the same on all its ranks. */
bool nbc_knows(MPI_Comm comm);

/* Before a call that is collective over a communicator. Nothing for one that we do not know.
 * Returns MPI_SUCCESS, or an error after raising it on the communicator. */
int nbc_presync(MPI_Comm comm);

/* Windows and files are made from a communicator, but their calls are ordered among themselves
 * only: a fence on one rank may come before a collective, on another behind it. So each has a
 * barrier of its own, a persistent one: its gate. */
enum nbc_gate_kind { NBC_GATE_WINDOW, NBC_GATE_FILE, NBC_GATE_KINDS };

struct nbc_gate;

/* A handle as a key of the table of gates. */
#define NBC_GATE_KEY(handle) nbc_gate_key(&(handle), sizeof(handle))
uint64_t nbc_gate_key(const void *handle, size_t size);

/* Makes the gate of a window or a file just made. Collective over the communicator; nothing for one
 * that we do not know. Returns as nbc_presync. */
int nbc_gate_new(enum nbc_gate_kind kind, uint64_t key, MPI_Comm comm);

/* NULL: it has none. */
struct nbc_gate *nbc_gate_find(enum nbc_gate_kind kind, uint64_t key);

/* Before a call that is collective over the window or file. gate may be NULL. Returns an MPI error
 * code, not raised. */
int nbc_gate_pass(struct nbc_gate *gate);

/* Before a call that ends the window or file its gate leaves the table, since the handle may come
 * back at once; after it the gate ends, or returns if the call failed. gate may be NULL. */
void nbc_gate_remove(struct nbc_gate *gate);
void nbc_gate_restore(struct nbc_gate *gate);
void nbc_gate_free(struct nbc_gate *gate);

/* The communicator of a gate, and a number that tells it from the others there. */
struct nbc_context *nbc_gate_context(const struct nbc_gate *gate);
int nbc_gate_number(const struct nbc_gate *gate);

/* Whether MPI_Win_start has begun an epoch that is not complete. Its callers set it. */
bool *nbc_gate_started(struct nbc_gate *gate);

#endif
