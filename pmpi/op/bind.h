/* SPDX-License-Identifier: MIT */
/* From arguments to a shape: which of them are significant on this rank, whether they are right,
 * and what they say. */
#ifndef NBC_BIND_H
#define NBC_BIND_H

#include "op/call.h"
#include "op/members.h"
#include "op/types.h"

/* A shape and the handles behind its type slots. */
struct nbc_bound {
    struct nbc_shape shape;
    struct nbc_datatype **types; /* by slot */
    struct nbc_operator *reducer;
    bool reads_send, reads_recv; /* without arrays: data of a predefined type must be there */
    int64_t own_at;              /* this far behind the receive buffer, the send buffer would make
                                  * this rank's block the same in both */

    /* Room for both when there are no per-peer types. */
    struct nbc_type few_layouts[NBC_TYPE_FIRST_PEER];
    struct nbc_datatype *few_types[NBC_TYPE_FIRST_PEER];
    void *many; /* malloced otherwise */
};

/* Fills *b for a call on a communicator with these members. Under the lock. Returns MPI_SUCCESS or
 * the class of what is wrong with the call. */
int nbc_bind(const struct nbc_call *call, struct nbc_members *members, struct nbc_bound *b);

/* Whether the data of a collective that has a root flows to the root, not from it. */
bool nbc_bind_to_root(enum nbc_coll coll);

/* Whether this rank is the root of a rooted collective. */
bool nbc_bind_is_root(const struct nbc_shape *s);

/* Which sides the standard reads on this rank. */
struct nbc_significant {
    bool send, recv;
};

struct nbc_significant nbc_bind_significant(const struct nbc_shape *s);

/* How many blocks a side has, hence entries its arrays have where it is significant. */
int nbc_bind_peers(const struct nbc_shape *s, bool send);

/* Frees what bind allocated. */
void nbc_unbind(struct nbc_bound *b);

#endif
