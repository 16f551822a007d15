/* SPDX-License-Identifier: MIT */
/* Runs whose buffers are in a device's memory: such a run executes the staged schedule (staged.h in
 * src/) on pinned memory of the host, from a pool; or the direct one, if the MPI takes the buffers.
 * What the buffers are is asked at each start. Under the lock. Local.
 *
 * A buffer that is neither memory of the host nor of a device is treated as a device's whose copies
 * fail: the operation ends with MPI_ERR_BUFFER, and the other ranks get the messages that they wait
 * for, if without data. */
#ifndef NBC_OP_STAGE_H
#define NBC_OP_STAGE_H

#include "below/device.h"
#include "op/run.h"

/* Prepares the execution of a run whose buffers are set; `transport` is that of staged schedules.
 * Returns MPI_SUCCESS or MPI_ERR_NO_MEM. */
int nbc_stage_begin(struct nbc_run *run, const struct nbc_transport *transport);

/* Whether a run has another schedule than its own: it is active. */
bool nbc_stage_is_on(const struct nbc_run *run);

/* Whether the MPI gets its buffers, which may be a device's. */
bool nbc_stage_is_direct(const struct nbc_run *run);

/* Makes the run as if it were not staged: it is not active. */
void nbc_stage_undo(struct nbc_run *run);

/* The functions of struct nbc_transport. */
int nbc_stage_copy(void *self, const struct nbc_op *op, nbc_handle *h);
void nbc_stage_release(void *self);

/* Before and after a call of the MPI with buffers of a run. A direct run's are those of a device,
 * whose context is then current. Returns the device to leave, or NULL. If that fails, sets *error,
 * unless that is NULL. */
struct nbc_device *nbc_stage_enter(const struct nbc_run *run, void **before, int *error);
void nbc_stage_leave(struct nbc_device *entered, void *before);

/* The same around a poll of all operations by the progress thread: the device is that of those that
 * are direct, if there are any. Others do not become direct meanwhile. */
struct nbc_device *nbc_stage_enter_pending(void **before);
void nbc_stage_leave_pending(struct nbc_device *entered, void *before);

/* Whether entry i of the handles in flight is one of nbc_stage_copy. */
bool nbc_stage_is_copy(const struct nbc_run *run, int i);

/* Returns an MPI error code. */
int nbc_stage_test(struct nbc_run *run, nbc_handle h, bool *over);

/* Frees what a run has for this. */
void nbc_stage_free(struct nbc_run *run);

/* Frees the pool, at finalize. */
void nbc_stage_cleanup(void);

/* Starts with buffers of devices so far: staged and direct ones. */
extern int64_t nbc_stage_starts[2];

/* Bytes copied so far: from devices, to devices. */
extern int64_t nbc_stage_bytes[2];

/* If nbc_timing_on: how many ns copies have been under way, one or more at a time. */
extern int64_t nbc_stage_time;

#endif
