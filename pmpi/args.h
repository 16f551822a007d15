/* SPDX-License-Identifier: MIT */
/* From arguments to a shape: which of them are significant on this rank, whether they are right,
 * and what they say. */
#ifndef NBC_ARGS_H
#define NBC_ARGS_H

#include "call.h"
#include "context.h"
#include "types.h"

/* A shape and the handles behind its type slots. */
struct nbc_bound {
    struct nbc_shape shape;
    struct nbc_datatype **types; /* by slot */
    struct nbc_operator *reducer;
    bool reads_send, reads_recv; /* without arrays: data of a predefined type must be there */

    /* Room for both when there are no per-peer types. */
    struct nbc_type few_layouts[NBC_TYPE_FIRST_PEER];
    struct nbc_datatype *few_types[NBC_TYPE_FIRST_PEER];
    void *many; /* malloced otherwise */
};

/* Fills *b. Under the lock. Returns MPI_SUCCESS or the class of what is wrong with the call. */
int nbc_args_bind(const struct nbc_call *call, struct nbc_context *context, struct nbc_bound *b);

/* How many blocks a side has, hence entries its arrays have where it is significant. */
int nbc_args_peers(const struct nbc_shape *s, bool send);

/* Frees what bind allocated. */
void nbc_args_unbind(struct nbc_bound *b);

#endif
