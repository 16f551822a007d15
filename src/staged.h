/* SPDX-License-Identifier: MIT */
/* Staged schedules: a schedule whose buffers are in a device's memory runs on copies of them in the
 * host's. Its operations stay as they are. Before those that use what the program's buffer holds
 * come copies from the device (NBC_OP_FETCH), after those that write results come copies to it
 * (NBC_OP_STORE); long ones in pieces, each of which waits for, and holds up, only the operations
 * that use bytes of it. So no builder knows of devices.
 *
 * Direct schedules, for transports that send from the device's memory and receive there: messages
 * use the program's buffers. Only copies change, since they take time: a copy of which a side is on
 * the device becomes a copy of the device's (NBC_OP_MOVE). Elements with gaps are copied to the
 * host, packed or unpacked there, and copied back. What is temporary stays in the host's memory:
 * most algorithms have no copies but to it and from it, and blocks with gaps must pass through it.
 */
#ifndef NBC_STAGED_H
#define NBC_STAGED_H

#include "sched.h"

enum { NBC_STAGE_SEND = 1 << NBC_BUF_SEND, NBC_STAGE_RECV = 1 << NBC_BUF_RECV };

struct nbc_span {
    int64_t low, high; /* the lowest byte and the highest + 1; the same: none */
};

/* Bytes of a buffer that are used, without long gaps. On the host they are `shift` bytes lower:
 * long gaps, as between two allocations, take no memory there. */
struct nbc_part {
    struct nbc_span span;
    int64_t shift;
};

/* What is kept with a schedule. */
struct nbc_staged {
    struct nbc_part *parts[2]; /* of the send and the receive buffer, ascending */
    int nparts[2];
    struct nbc_sched *with[(NBC_STAGE_SEND | NBC_STAGE_RECV) + 1]; /* by the buffers on a device */
    struct nbc_sched *direct[(NBC_STAGE_SEND | NBC_STAGE_RECV) + 1]; /* likewise */
};

/* Returns what is kept with a schedule, with the parts; NULL without memory. types: the layouts of
 * its shape. A gap is long from `far` bytes on; shifts are multiples of it. */
struct nbc_staged *nbc_staged_of(struct nbc_sched *s, const struct nbc_type *types, int ntypes,
                                 int64_t far);

/* The bytes of a buffer on the host. */
int64_t nbc_staged_size(const struct nbc_staged *staged, int buf);

/* The shift of a byte that is used. */
int64_t nbc_staged_shift(const struct nbc_staged *staged, int buf, int64_t at);

/* After nbc_staged_of. Returns the staged schedule for these buffers, which is kept with `s`; NULL
 * without memory. No copy has more than `piece` bytes, unless its type has gaps; 0: the direct
 * schedule. Bytes that no operation writes are not written to the device. */
struct nbc_sched *nbc_stage(struct nbc_sched *s, const struct nbc_type *types, int ntypes,
                            unsigned buffers, int64_t piece);

/* Whether a schedule has a direct one: if it only moves data. */
bool nbc_has_direct(const struct nbc_sched *s);

/* Whether its direct one is better than the staged one: where more copies use these buffers than
 * messages do, as in Bruck's algorithms, one copy of all of it is faster than one for each block.
 */
bool nbc_direct_is_better(const struct nbc_sched *s, unsigned buffers);

/* Accepts NULL. */
void nbc_staged_free(struct nbc_staged *staged);

#endif
