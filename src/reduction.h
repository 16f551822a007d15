/* SPDX-License-Identifier: MIT */
/* What the reductions have in common.
 *
 * The one operation all of them use is "put what came in front of what is here" (nbc_prepend):
 * here = came op here. It is what MPI_Reduce_local does, it needs no third place, it keeps rank
 * order when what came is from lower ranks, and it computes the same bits on every rank that
 * combines the same two operands, also where x op y and y op x differ in their bits (-0 and +0,
 * NaN). Nothing here makes the destination of a reduction its left operand. */
#ifndef NBC_REDUCTION_H
#define NBC_REDUCTION_H

#include "sched.h"
#include "topo.h"

/* A partial result. */
struct nbc_acc {
    struct nbc_ref at;
    nbc_id ready; /* done when it is there */
    nbc_id read;  /* done when sending it is; sends of it wait for `ready` */
    bool ours;    /* may be overwritten: not input that must live on */
};

/* This rank's vector. In place it lies in the receive buffer and may be overwritten there. */
struct nbc_acc nbc_acc_input(const struct nbc_shape *shape);

/* Sends it; if acc is ours, remembers that in acc->read. */
nbc_id nbc_acc_send(struct nbc_sched *s, struct nbc_acc *acc, int peer);

/* acc = left op acc, where acc is; acc->ours. */
void nbc_prepend(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref left, nbc_id heard);

/* acc = acc op right, where right is: a place that the caller gives up. */
void nbc_append(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref right, nbc_id heard);

/* acc = left op acc, in `place`, another one than theirs. */
void nbc_prepend_to(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref place,
                    struct nbc_ref left, nbc_id heard);

/* Moves acc to `place`, where it may be overwritten. */
void nbc_own(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref place);

/* Whether nbc_merge will append. */
static inline bool nbc_appends(const struct nbc_shape *shape, const struct nbc_acc *acc,
                               bool theirs_left)
{
    return shape->commutative ? !acc->ours : !theirs_left;
}

/* Combines acc with `theirs`, in rank order unless the operation is commutative; then in whatever
 * order needs no copy: acc stays where it is once it is ours. Where it neither appends nor is acc
 * ours, the result goes to `place`. To be used only where no other rank combines the same operands.
 */
void nbc_merge(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_acc *acc,
               struct nbc_ref theirs, nbc_id heard, bool theirs_left, struct nbc_ref place);

/* Receives the vector of the rank that folded onto this one and combines it with acc; the result is
 * ours. It is in *place, which is free, if acc was not ours; NULL: somewhere temporary. */
void nbc_take_over(struct nbc_sched *s, const struct nbc_shape *shape, const struct nbc_fold *fold,
                   struct nbc_acc *acc, const struct nbc_ref *place);

/* Room in the temporary buffer for vectors that arrive. As long as they are small each has a place
 * of its own, so that all receives can be posted at the start; large ones share `limit` places: one
 * that is given back is taken again when everything else is in use. */
enum { NBC_ROOM_LIMIT = 8 };

struct nbc_room {
    struct nbc_ref like;
    bool shared;
    int left, nfree, first; /* places not made yet; free: a queue */
    struct nbc_ref free[NBC_ROOM_LIMIT];
    nbc_id until[NBC_ROOM_LIMIT]; /* … when this is done */
};

/* For vectors like `like`, of which about `expected` will be taken in all. limit: how many are in
 * use at the same time at most, ≤ NBC_ROOM_LIMIT. */
struct nbc_room nbc_room_new(const struct nbc_shape *shape, struct nbc_ref like, int64_t expected,
                             int limit);

/* A place for the first `count` elements of `like`. It may be written when *free is done. */
struct nbc_ref nbc_room_take(struct nbc_sched *s, struct nbc_room *room, int64_t count,
                             nbc_id *free);

/* The place may be overwritten when `last` is done. */
void nbc_room_give(struct nbc_room *room, struct nbc_ref place, nbc_id last);

/* Takes room and receives. */
struct nbc_ref nbc_room_recv(struct nbc_sched *s, struct nbc_room *room, int64_t count, int peer,
                             nbc_id *heard);

/* Receives from a rank and prepends what came. An acc that is not ours moves to `place`. Returns
 * the receive. */
nbc_id nbc_prepend_rank(struct nbc_sched *s, struct nbc_room *room, struct nbc_acc *acc,
                        struct nbc_ref place, int peer);

/* The same with `n` ranks, first, first − 1, …, counted round. */
void nbc_prepend_ranks(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room,
                       struct nbc_acc *acc, struct nbc_ref place, int first, int n);

/* Receives a vector from every other rank, from the one below on, counted round, and combines
 * all of them with acc. The result is in `place`, which may be where acc is and is else free. */
void nbc_reduce_from_all(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room,
                         struct nbc_acc *acc, struct nbc_ref place);

/* Pieces in which a pipelined algorithm moves `count` elements of a type like that of `vector`; at
 * least 1. Where the shape does not say how long they are, they are as long as the caches like. */
int nbc_pieces(const struct nbc_shape *shape, struct nbc_ref vector, int64_t count);

/* The same for a pipeline `hops` messages long. With S pieces of n bytes it takes (hops + S) times
 * the cost m + n/S of one, which is least where the length n/S of a piece is √(nm/hops). */
int nbc_pipeline_pieces(const struct nbc_shape *shape, struct nbc_ref vector, int hops);

/* The exchange in rounds behind recursive doubling and multiplying: virtual ranks are numbers whose
 * digit t counts to radix[t]; in round t those that differ only in it all exchange what they have,
 * so that it covers ever longer ranges of ranks. */
struct nbc_exchange {
    const struct nbc_shape *shape;
    const struct nbc_fold *fold;
    const int *radix; /* their product is fold->onto */
    int nrounds;
    struct nbc_ref result; /* a free place, or where the input is */
};

/* For ranks that take part (virtual ≥ 0). acc: this rank's vector. Takes in the partner that folded
 * onto this rank. The result is in x->result afterwards. Returns, for calls in place, an id that is
 * done when nothing that acc->ready does not wait for reads the input. */
nbc_id nbc_exchange(struct nbc_sched *s, const struct nbc_exchange *x, struct nbc_acc *acc);

/* Reduce-scatter by vector halving with distance doubling: in round k virtual ranks that differ in
 * bit k each keep one half of the parts that they have in common. It works on contiguous ranges of
 * ranks in rank order, and leaves virtual rank v with part bit-reversed(v). */
struct nbc_halving {
    const struct nbc_shape *shape;
    const struct nbc_fold *fold;                    /* onto a power of two */
    int64_t (*first)(const void *layout, int part); /* its first element, for 0 … fold->onto */
    const void *layout;
    struct nbc_ref
        home; /* a vector of which this rank may use what it keeps after the first round */
    int part; /* the part this rank got */
    int nrounds;
    nbc_id sent[31]; /* per round: the send of the other half */
};

/* Elements of n parts, in the coordinates of `vector`. */
struct nbc_ref nbc_parts(const struct nbc_halving *h, struct nbc_ref vector, int part, int n);

/* Sets h->home to room for what this rank keeps of a vector like `like`. */
void nbc_halving_home(struct nbc_sched *s, struct nbc_halving *h, struct nbc_ref like);

/* For ranks that take part. acc: this rank's vector (whole); afterwards its part alone. It is in
 * h->home if acc was not ours, or was there, and the operation is commutative. Temporary: what is
 * kept after each round, at most one vector in all. */
void nbc_halve(struct nbc_sched *s, struct nbc_halving *h, struct nbc_acc *acc);

#endif
