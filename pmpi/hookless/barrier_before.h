/* SPDX-License-Identifier: MIT */
/* Collective calls that nbcshim does not implement (constructors, windows, files) block in the MPI
 * below, where no operation of nbcshim progresses unless the MPI calls nbcshim (the hook). So their
 * ranks first make a barrier of nbcshim, in which all operations progress. When a rank leaves the
 * barrier, all ranks have made the call, and none depends on what another one has yet to do outside
 * it.
 *
 * All ranks of a group decide alike: whether there is a barrier depends on what they have agreed on
 * (that the communicator has a context, the hook, the settings), never on pending operations. With
 * the hook, or with NBCSHIM_BLOCKING=native, there is none but those of the constructors of some
 * MPIs; NBCSHIM_CHECK compares the ranks' calls in the barriers, so it has them with the hook too.
 *
 * All without the lock. */
#ifndef NBC_BARRIER_BEFORE_H
#define NBC_BARRIER_BEFORE_H

#include "comm/context.h"

struct nbc_request;

/* The barrier before a call that is collective over a communicator. Does nothing if the
 * communicator has no context. Returns MPI_SUCCESS, or an error after raising it on the
 * communicator. */
int nbc_barrier_before(MPI_Comm comm);

/* The same before a call that waits outside the progress loop of the MPI: with the hook, too. */
int nbc_barrier_before_outside_loop(MPI_Comm comm);

/* The same before a call that makes a communicator, window or file: with the hook, too, where the
 * MPI makes these in an order that the ranks may not share (NBC_CONSTRUCTORS_WAIT). */
int nbc_barrier_before_constructor(MPI_Comm comm);

/* The same before a call that is collective over a group of ranks in a communicator. tag
 * distinguishes the calls of several threads for groups that overlap. */
int nbc_barrier_before_group(struct nbc_context *c, MPI_Group group, int tag);

/* The persistent barrier of one window or file. These are made from a communicator, but their calls
 * are ordered among themselves only: a fence may come before a collective on one rank and after it
 * on another. So they cannot share the barriers of the communicator. */
enum nbc_object { NBC_WINDOW, NBC_FILE, NBC_NOBJECTS };

struct nbc_object_barrier {
    uint64_t key;
    enum nbc_object object;
    struct nbc_request *request; /* no other one of its communicator has the same tag */
    struct nbc_signal posted;    /* of a window: what MPI_Win_post sends */
    bool started;                /* MPI_Win_start has begun an epoch that is not complete */
    UT_hash_handle hh;
};

/* A handle as the key of its barrier. */
#define NBC_KEY(handle) nbc_object_key(&(handle), sizeof(handle))
uint64_t nbc_object_key(const void *handle, size_t size);

/* Makes the barrier of a new window or file, where nbc_barrier_before makes one; also where windows
 * need it for signals. Collective over the communicator. Returns as nbc_barrier_before does. */
int nbc_object_barrier_new(enum nbc_object object, uint64_t key, MPI_Comm comm);

/* The barrier of a window or file, NULL if there is none. */
struct nbc_object_barrier *nbc_object_barrier_find(enum nbc_object object, uint64_t key);

/* Passes the barrier before a call that is collective over the window or file. b may be NULL, as in
 * the next function. ends: before a call that frees it, the barrier also leaves the table, since
 * another thread may get the same handle at once. Returns an MPI error code, not raised. */
int nbc_object_barrier_pass(struct nbc_object_barrier *b, bool ends);

/* After such a call. `freed`: it has succeeded. */
void nbc_object_barrier_ended(struct nbc_object_barrier *b, bool freed);

/* --- signals ---------------------------------------------------------------------------------- */

/* Signals between two ranks of a communicator, for calls that not all its ranks make. They are
 * messages on the hidden communicator with a tag of their own, so they match neither messages of
 * the program nor those of collectives. A kind and a number (a tag of the program, a window)
 * distinguish signals. Ranks are those of the hidden communicator. All without the lock; the
 * functions return an MPI error code. */
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
