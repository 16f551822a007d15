/* SPDX-License-Identifier: MIT */
/* Building blocks of reductions: partial results, space for incoming vectors, and the exchanges
 * that several algorithms share.
 *
 * The basic step is nbc_prepend: acc = incoming op acc. It is what MPI_Reduce_local computes, so it
 * needs no third vector. It keeps rank order if the incoming vector is that of lower ranks. It
 * yields the same bits on every rank that combines the same two operands, even where x op y and
 * y op x differ in their bits (-0 and +0, NaN). No function here makes the destination of a
 * reduction its left operand. */
#ifndef NBC_REDUCTION_H
#define NBC_REDUCTION_H

#include "sched.h"
#include "topo.h"

/* A partial result, or accumulator. */
struct nbc_acc {
    struct nbc_ref at;
    nbc_id ready;  /* done when the data is there */
    nbc_id read;   /* done when the sends of it are, which themselves wait for `ready` */
    bool writable; /* may be overwritten; false for the user's input */
};

/* Returns this rank's input vector. In place, that is in the receive buffer and is writable. */
struct nbc_acc nbc_acc_input(const struct nbc_shape *shape);

/* Sends acc. If acc is writable, acc->read then covers the send. Returns the send. */
nbc_id nbc_acc_send(struct nbc_sched *s, struct nbc_acc *acc, int peer);

/* Reduces acc = left op acc, where acc is; acc must be writable. `received` is done when left is
 * there. */
void nbc_prepend(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref left, nbc_id received);

/* Reduces acc = acc op right; acc moves to the place of right. */
void nbc_append(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref right, nbc_id received);

/* Reduces acc = left op acc; acc moves to `place`, which is disjoint from both. */
void nbc_prepend_to(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref place,
                    struct nbc_ref left, nbc_id received);

/* Copies acc to `place`, where it is writable. */
void nbc_own(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref place);

/* Whether nbc_merge will append the incoming vector. */
static inline bool nbc_appends(const struct nbc_shape *shape, const struct nbc_acc *acc,
                               bool theirs_left)
{
    return shape->commutative ? !acc->writable : !theirs_left;
}

/* Combines acc with `theirs`: in rank order, unless the operator is commutative; then in the order
 * that needs no copy, so that a writable acc stays where it is. If it neither appends nor acc is
 * writable, the result goes to `place`. Only for operands that no other rank combines too: the bits
 * of the result depend on the order. */
void nbc_merge(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_acc *acc,
               struct nbc_ref theirs, nbc_id received, bool theirs_left, struct nbc_ref place);

/* Temporary space for incoming vectors. Small vectors each get a slot, so that all receives can be
 * posted at the start. Large ones share `limit` slots: a slot is reused after it was given back,
 * when all others are in use. */
enum { NBC_ROOM_LIMIT = 8 };

struct nbc_room {
    struct nbc_ref like;
    bool shared;
    int left;         /* slots not reserved yet */
    int nfree, first; /* length and head of the queue of free slots */
    struct nbc_ref free[NBC_ROOM_LIMIT];
    nbc_id until[NBC_ROOM_LIMIT]; /* a free slot may be overwritten when this is done */
};

/* Returns space for vectors like `like`. expected: about how many slots will be taken in all.
 * limit: how many are in use at the same time at most, ≤ NBC_ROOM_LIMIT. */
struct nbc_room nbc_room_new(const struct nbc_shape *shape, struct nbc_ref like, int64_t expected,
                             int limit);

/* Takes a slot for the first `count` elements of `like`. It may be written when *free is done. */
struct nbc_ref nbc_room_take(struct nbc_sched *s, struct nbc_room *room, int64_t count,
                             nbc_id *free);

/* Gives a slot back. It may be overwritten when `last` is done. */
void nbc_room_give(struct nbc_room *room, struct nbc_ref place, nbc_id last);

/* Takes a slot and receives a vector into it; *received is set to the receive. */
struct nbc_ref nbc_room_recv(struct nbc_sched *s, struct nbc_room *room, int64_t count, int peer,
                             nbc_id *received);

/* Receives the vector of the rank that folded onto this one and combines it with acc, which is
 * writable afterwards. If it was not, it moves to `home`. room: for that vector; NULL: it has
 * temporary space of its own. */
void nbc_take_over(struct nbc_sched *s, const struct nbc_shape *shape, const struct nbc_fold *fold,
                   struct nbc_acc *acc, struct nbc_ref home, struct nbc_room *room);

/* Receives a vector from a rank and prepends it. If acc is not writable, it moves to `place`.
 * Returns the receive. */
nbc_id nbc_prepend_rank(struct nbc_sched *s, struct nbc_room *room, struct nbc_acc *acc,
                        struct nbc_ref place, int peer);

/* Receives the vectors of the ranks 0 … end − 1, this one excepted, and combines them in the order
 * ((0 + 1) + 2) + …, with this rank's vector, acc, if it is one of them. The result is in `place`,
 * which is that of acc, or may be written when `free` is done. */
void nbc_fold_ranks(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room,
                    struct nbc_acc *acc, struct nbc_ref place, nbc_id free, int end);

/* Receives a vector from every other rank, and combines all of them with acc: in descending order
 * from the rank below, modulo the size, or if the operator is not commutative as nbc_fold_ranks.
 * The result is in `place`, which is that of acc or unused. */
void nbc_reduce_from_all(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room,
                         struct nbc_acc *acc, struct nbc_ref place);

/* Returns the number of segments, at least 1, in which `count` elements of the type of `vector`
 * move. Their length is the shape's, or else one that suits the caches, and a pipeline of so many
 * hops (nbc_segment_bytes). */
int nbc_pieces(const struct nbc_shape *shape, struct nbc_ref vector, int64_t count, int hops);

/* The same for an algorithm whose messages do not wait for each other. Where messages between nodes
 * begin with a handshake, it takes the time of one for all of them. */
int nbc_pieces_at_once(const struct nbc_shape *shape, struct nbc_ref vector, int64_t count);

/* The exchange of recursive doubling and recursive multiplying. Virtual ranks are written as mixed-
 * radix numbers, digit t in radix[t]. In round t, the ranks that differ only in digit t exchange
 * their partial results, all with all; each result then covers a longer range of ranks. */
struct nbc_exchange {
    const struct nbc_shape *shape;
    const struct nbc_fold *fold;
    const int *radix; /* their product is fold->onto */
    int nrounds;
    struct nbc_ref result; /* where the result goes: unused, or where the input is */
};

/* Emits the exchange on ranks that take part (virtual ≥ 0). acc: this rank's vector. The vector of
 * the partner that folded onto this rank is received and combined first. The result is in
 * x->result. Returns, for calls in place, an id that is done when all reads of the input are that
 * acc->ready does not cover. */
nbc_id nbc_exchange(struct nbc_sched *s, const struct nbc_exchange *x, struct nbc_acc *acc);

/* Reduce-scatter by vector halving and distance doubling. In round k, partners in the butterfly of
 * the fold each keep one half of the parts that they have in common: virtual rank v ends with
 * nbc_butterfly_part. Partial results cover contiguous ranges of ranks, in rank order, unless the
 * butterfly is that of Bine trees: then the operator must be commutative. */
struct nbc_halving {
    const struct nbc_shape *shape;
    const struct nbc_fold *fold;                    /* onto a power of two */
    int64_t (*first)(const void *layout, int part); /* first element of a part, 0 … fold->onto; */
    const void *layout;                             /* NULL: the parts are nearly equal */
    struct nbc_ref home; /* a vector; this rank may use the half that it keeps after round 0 */
    const struct nbc_ref *result; /* another place for that part; or NULL */
    int part;                     /* the part that this rank ends with */
    int nrounds;
    nbc_id sent[31]; /* per round: the send of the other half */
};

/* Sets h->home to temporary space for the half that this rank keeps of a vector like `like`. */
void nbc_halving_home(struct nbc_sched *s, struct nbc_halving *h, struct nbc_ref like);

/* Emits the reduce-scatter on ranks that take part. acc: this rank's whole vector before, its part
 * after. The part is in h->home if acc was not writable, or was there, and the operator is
 * commutative. Temporary: what is kept after each round, at most one vector in all. */
void nbc_halve(struct nbc_sched *s, struct nbc_halving *h, struct nbc_acc *acc);

/* Emits the rounds of a halving in reverse, after which h->home has all parts: on all ranks, those
 * that had folded away included, or on virtual rank `root` alone, −1: all. In each round either the
 * parts of every rank double, or half of the remaining ranks send theirs and are done. */
void nbc_gather_halves(struct nbc_sched *s, const struct nbc_halving *h, struct nbc_acc *acc,
                       int root);

#endif
