/* SPDX-License-Identifier: MIT */
/* From the arguments of a call to a shape: determines which arguments are significant on this rank,
 * checks them and binds them. All is local. */
#ifndef NBC_BIND_H
#define NBC_BIND_H

#include "op/call.h"
#include "op/members.h"
#include "op/types.h"

/* A shape, and the datatypes and the operator to which it refers. */
struct nbc_bound {
    struct nbc_shape shape;
    struct nbc_datatype **types; /* by slot */
    struct nbc_operator *reducer;
    bool reads_send, reads_recv; /* without arrays: the side has data of a predefined datatype, so
                                  * its buffer may not be NULL */
    int64_t alias_offset;        /* if the send buffer is this many bytes after the receive buffer,
                                  * this rank's block is the same memory in both */

    /* Room for both arrays if there are no datatypes per peer. */
    struct nbc_type few_layouts[NBC_TYPE_FIRST_PEER];
    struct nbc_datatype *few_types[NBC_TYPE_FIRST_PEER];
    void *many; /* otherwise both arrays, allocated; NULL if not used */
};

/* Fills *b for a call on a communicator with these members. Returns MPI_SUCCESS, or the class of
 * the error in the call. After success the caller ends *b with nbc_unbind. Under the lock. */
int nbc_bind(const struct nbc_call *call, struct nbc_members *members, struct nbc_bound *b);

/* Describes the error of the call that nbc_bind has just refused, with the name and the value of
 * the argument; empty if memory ran out. Under the lock. */
const char *nbc_bind_fault(void);

/* How many bytes of its send buffer a nonblocking reduction copies at its start; 0: it reads the
 * buffer until it is complete, as the standard permits. Programs exist that change a small buffer
 * earlier, and do not notice it over MPICH or Open MPI, which read such a buffer at the start:
 * DOLFINx 0.5 to 0.9 passes to MPI_Iexscan a variable whose scope ends before the wait. */
size_t nbc_bound_input(const struct nbc_bound *b);

/* Whether this rank is the root of a rooted collective. */
bool nbc_bind_is_root(const struct nbc_shape *s);

/* The sides whose arguments are significant on this rank. */
struct nbc_significant {
    bool send, recv;
};

struct nbc_significant nbc_bind_significant(const struct nbc_shape *s);

/* The number of blocks of a side. If the side is significant, its arrays have this many entries. */
int nbc_bind_peers(const struct nbc_shape *s, bool send);

/* Frees what nbc_bind has allocated. */
void nbc_unbind(struct nbc_bound *b);

#endif
