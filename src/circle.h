/* SPDX-License-Identifier: MIT */
/* A vector in as many parts as there are ranks, any number of them, reduced and gathered in
 * ⌈log₂P⌉ rounds each: Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms",
 * 2024. Commutative operations. */
#ifndef NBC_CIRCLE_H
#define NBC_CIRCLE_H

#include "sched.h"

enum { NBC_CIRCLE_ROUNDS = 32 };

struct nbc_circle {
    const struct nbc_shape *shape;
    int64_t (*first)(const void *layout, int part); /* element; of part P: the end */
    const void *layout;
    struct nbc_ref input; /* the vector */
    struct nbc_ref home;  /* room for as much, in which sums grow; may be where the input is */
    nbc_id
        sent[NBC_CIRCLE_ROUNDS]; /* per round of the reduction: what of home, or of the input in */
                                 /* the first one, went away */
};

/* Reduces: this rank's part of all vectors is in home when what it returns is done. The other parts
 * of home are spoiled. */
nbc_id nbc_circle_reduce(struct nbc_sched *s, struct nbc_circle *circle);

/* Afterwards: fills home with all ranks' parts. ready: this rank's is there. */
void nbc_circle_gather(struct nbc_sched *s, const struct nbc_circle *circle, nbc_id ready);

#endif
