/* SPDX-License-Identifier: MIT */
/* Subcollectives: a collective among some of the ranks of a call, emitted as a part of the call's
 * schedule. For algorithms made of others, such as hierarchical ones. */
#ifndef NBC_SUBCOLLECTIVE_H
#define NBC_SUBCOLLECTIVE_H

#include "sched.h"

struct nbc_subcollective {
    enum nbc_coll coll;
    const struct nbc_alg *alg;               /* NULL: select it by the built-in rules */
    int rank, size, root;                    /* in the group of ranks that take part */
    int (*member)(const void *group, int i); /* the rank in the call of one of that group */
    const void *group;
    bool in_place;
    struct nbc_ref send, recv;      /* its buffers: a block, or the whole vector */
    struct nbc_ints counts, displs; /* of the side that has such arrays */
    bool local;                     /* all its ranks share a node */
    int beside; /* so many like it run at the same time and share its ports: selected as for the
                 * data of all; 0: none, or the network is fast */
    bool early; /* its receives do not wait for `after`; its other operations do */
};

/* One with these buffers; the caller says which ranks take part. */
static inline struct nbc_subcollective nbc_sub_of(enum nbc_coll coll, struct nbc_ref send,
                                                  struct nbc_ref recv, bool in_place)
{
    return (struct nbc_subcollective){
        .coll = coll, .send = send, .recv = recv, .in_place = in_place};
}

/* Emits the operations of this rank in a subcollective; they start when `after` is done. Returns an
 * id that is done when all of them are, `after` if there are none. Out of memory is recorded in the
 * schedule. */
nbc_id nbc_emit_subcollective(struct nbc_sched *s, const struct nbc_shape *shape,
                              const struct nbc_subcollective *sub, nbc_id after);

#endif
