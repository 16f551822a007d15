/* SPDX-License-Identifier: MIT */
/* Collective calls that nbcshim does not implement (constructors, windows, files) block in the MPI
 * below, where no operation of nbcshim progresses. So their ranks first make a barrier of nbcshim,
 * in which all operations progress: the presync. When a rank leaves the barrier, all ranks have
 * made the call, and none depends on what another one has yet to do outside it.
 *
 * All ranks of a group decide alike: whether there is a barrier depends on what they have agreed on
 * (that the communicator has a context, the hook, the settings), never on pending operations. */
#ifndef NBC_PRESYNC_H
#define NBC_PRESYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "below/next.h"

/* Whether there are such barriers: unless the MPI calls nbcshim while it blocks (the hook), or
 * NBCSHIM_BLOCKING=native forgoes them. NBCSHIM_CHECK compares the ranks' calls in them, so it has
 * them with the hook too. */
bool nbc_calls_need_help(void);

/* The barrier before a call that is collective over a communicator. Does nothing if the
 * communicator has no context, or unless nbc_calls_need_help. Without the lock. Returns
 * MPI_SUCCESS, or an error after raising it on the communicator. */
int nbc_presync(MPI_Comm comm);

/* The same before a call that waits outside the progress loop of the MPI: with the hook, too. */
int nbc_presync_outside_loop(MPI_Comm comm);

/* A gate is the persistent barrier of one window or file. These are made from a communicator, but
 * their calls are ordered among themselves only: a fence may come before a collective on one rank
 * and after it on another. So they cannot share the barriers of the communicator. */
enum nbc_gate_kind { NBC_GATE_WINDOW, NBC_GATE_FILE, NBC_GATE_KINDS };

struct nbc_gate;

/* A handle as the key of its gate. */
#define NBC_GATE_KEY(handle) nbc_gate_key(&(handle), sizeof(handle))
uint64_t nbc_gate_key(const void *handle, size_t size);

/* Makes the gate of a new window or file, where nbc_presync makes a barrier; also where
 * windows need its signals. Collective over the
 * communicator. Without the lock, as all below. Returns as nbc_presync does. */
int nbc_gate_new(enum nbc_gate_kind kind, uint64_t key, MPI_Comm comm);

/* The gate of a window or file, NULL if there is none. */
struct nbc_gate *nbc_gate_find(enum nbc_gate_kind kind, uint64_t key);

/* The barrier before a call that is collective over the window or file. gate may be NULL. Returns
 * an MPI error code, not raised. */
int nbc_gate_pass(struct nbc_gate *gate);

/* For calls that free the window or file. remove: before the call the gate leaves the table, since
 * another thread may get the same handle at once. After the call free ends the gate, or restore
 * puts it back if the call has failed. gate may be NULL. */
void nbc_gate_remove(struct nbc_gate *gate);
void nbc_gate_restore(struct nbc_gate *gate);
void nbc_gate_free(struct nbc_gate *gate);

/* The context of the communicator from which the window or file was made, and the number of the
 * gate there: no other gate of the communicator has the same. */
struct nbc_context *nbc_gate_context(const struct nbc_gate *gate);
int nbc_gate_number(const struct nbc_gate *gate);

/* Whether MPI_Win_start has begun an epoch that is not complete. The callers set it. */
bool *nbc_gate_started(struct nbc_gate *gate);

#endif
