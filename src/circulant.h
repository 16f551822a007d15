/* SPDX-License-Identifier: MIT */
/* Reduce-scatter and allgather on circulant graphs, where every rank has the same partners relative
 * to its own number: a vector of one part per rank, for any number of ranks P, is reduced and
 * gathered in ⌈log₂P⌉ rounds each (Träff, "Optimal, non-pipelined reduce-scatter and allreduce
 * algorithms", 2024), or around a ring. For commutative operators. */
#ifndef NBC_CIRCULANT_H
#define NBC_CIRCULANT_H

#include "sched.h"

enum { NBC_CIRCULANT_ROUNDS = 32 };

struct nbc_circulant {
    const struct nbc_shape *shape;
    /* First element of a part; for part = P, the number of elements of the vector. */
    int64_t (*first)(const void *layout, int part);
    const void *layout;
    struct nbc_ref input; /* the vector */
    struct nbc_ref home;  /* room for a vector, in which the sums grow; may be the input itself */
    /* Set by nbc_circulant_reduce, per round: done when what the round sends has left `home` (in
     * the first round: the input). */
    nbc_id sent[NBC_CIRCULANT_ROUNDS];
};

/* Emits the reduce-scatter. Returns an id; when it is done, `home` holds the result of this rank's
 * part, and its other parts hold intermediate results. */
nbc_id nbc_circulant_reduce(struct nbc_sched *s, struct nbc_circulant *circulant);

/* Emits the allgather, after nbc_circulant_reduce: fills `home` with the results of all parts. The
 * result of this rank's part is there when `ready` is done. */
void nbc_circulant_gather(struct nbc_sched *s, const struct nbc_circulant *circulant, nbc_id ready);

/* Emits the reduce-scatter around the ring on at least two ranks, and, if `gathers`, the allgather.
 * Of `home`, only the part of this rank is written, or all if `gathers`. Returns, for calls in
 * place, an id that is done when all reads of the input are, and the reductions of this rank's
 * part. */
nbc_id nbc_ring(struct nbc_sched *s, const struct nbc_circulant *circulant, bool gathers);

#endif
