/* SPDX-License-Identifier: MIT */
/* Schedules made of schedules: a collective of some of the ranks as a part of a collective of all,
 * by the builder that the rules choose for it. */
#ifndef NBC_SUBCOLLECTIVE_H
#define NBC_SUBCOLLECTIVE_H

#include "sched.h"

struct nbc_subcollective {
    enum nbc_coll coll;
    const struct nbc_alg *alg;               /* NULL: by the rules */
    int rank, size, root;                    /* among those that take part */
    int (*member)(const void *group, int i); /* their ranks among all */
    const void *group;
    bool in_place;
    struct nbc_ref send, recv;      /* what the part has for its buffers: a block, or the vector */
    struct nbc_ints counts, displs; /* of the side that has them */
    bool local;                     /* all of them share a node */
    bool early; /* its receives need not wait for `after`, only its other operations */
};

/* Emits what this rank does in the part, once `after` is done. Returns an id that is done when all
 * of it is. A part of one rank with nothing to move is nothing. */
nbc_id nbc_emit_subcollective(struct nbc_sched *s, const struct nbc_shape *shape,
                              const struct nbc_subcollective *sub, nbc_id after);

#endif
