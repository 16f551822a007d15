/* SPDX-License-Identifier: MIT */
/* A schedule: what one rank does in a collective, as a graph of operations.
 *
 * Nodes are sends, receives, copies and reductions; an edge says that one starts only after another
 * is done. A schedule holds no addresses, handles, tags or communicators: it is a pure function of
 * a shape, so it can be checked, printed, simulated, cached, shared and started any number of
 * times.
 *
 * A builder calls nbc_sched_new, then the emitters in an order in which they could run one after
 * the other, then nbc_sched_finish. Emitters never fail in the builder's hands: running out of
 * memory is remembered and told by finish. An emitter returns the id of its operation, and takes
 * the id of one it must wait for (NBC_NONE: none); nbc_after adds more.
 *
 * Messages of one schedule between the same two ranks match in the order in which the builder
 * emitted them: finish adds what makes the executor post them in that order. */
#ifndef NBC_SCHED_H
#define NBC_SCHED_H

#include <stdio.h>

#include "block.h"

typedef int32_t nbc_id;
#define NBC_NONE ((nbc_id)-1)

enum nbc_op_kind { NBC_OP_SEND, NBC_OP_RECV, NBC_OP_COPY, NBC_OP_REDUCE, NBC_OP_JOIN };

/* Small, since schedules are kept: up to three places (nbc_op_a and its like), without what these
 * have in common. */
struct nbc_op {
    int64_t off, count; /* of a */
    int64_t b_off;
    union {
        int64_t c_off;   /* REDUCE */
        int64_t b_count; /* COPY */
    };
    int32_t type; /* of a */
    union {
        int32_t peer;   /* SEND, RECV */
        int32_t b_type; /* COPY */
    };
    int32_t npre;        /* number of edges that end here */
    int32_t succ;        /* index in nbc_sched.succ of the first operation that waits for this */
    int32_t nsucc_done;  /* so many wait until this one is done; before them in the list */
    uint8_t nsucc_issue; /* one, or none, waits only until this one is posted (message order) */
    uint8_t kind;        /* enum nbc_op_kind */
    uint8_t buf;         /* of a */
    uint8_t b_buf : 3, c_buf : 3;
    uint8_t uneven : 1; /* REDUCE: a builder's mistake: counts of the three differ */
};

/* SEND, RECV: the data; COPY, REDUCE: the destination. */
static inline struct nbc_ref nbc_op_a(const struct nbc_op *op)
{
    return (struct nbc_ref){op->off, op->count, op->type, op->buf};
}

/* COPY: the source; REDUCE: the left operand. */
static inline struct nbc_ref nbc_op_b(const struct nbc_op *op)
{
    bool copy = op->kind == NBC_OP_COPY;
    return (struct nbc_ref){op->b_off, copy ? op->b_count : op->count, copy ? op->b_type : op->type,
                            op->b_buf};
}

/* REDUCE: the right operand. */
static inline struct nbc_ref nbc_op_c(const struct nbc_op *op)
{
    return (struct nbc_ref){op->c_off, op->count, op->type, op->c_buf};
}

struct nbc_sched {
    struct nbc_op *ops;
    int32_t *succ;
    int32_t nops, nsucc;
    int32_t nmsgs;           /* sends and receives */
    int64_t segment;         /* of the shape it was made for */
    int64_t temp_bytes;      /* size of the temporary buffer; it is aligned like malloc's */
    int refs;                /* owners; whoever shares schedules keeps it under its own lock */
    struct nbc_build *build; /* until finished */
};

/* An empty schedule, or NULL. ops_hint: how many operations to expect. */
struct nbc_sched *nbc_sched_new(const struct nbc_shape *shape, int ops_hint);

/* Emitters. Data without bytes is legal everywhere, except that its messages are still sent:
 * a builder that wants none (both sides must agree) does not emit them.
 *
 * What may have been sent as bytes is received as bytes, or as elements of a packed type: a message
 * may arrive in parts that end within an element, and MPICH 4.0.2 then fails to place them
 * ("message truncated"). What is sent as elements may be received either way. */
nbc_id nbc_send(struct nbc_sched *s, struct nbc_ref data, int peer, nbc_id after);
nbc_id nbc_recv(struct nbc_sched *s, struct nbc_ref data, int peer, nbc_id after);

/* Returns `after` itself where there is nothing to copy: no bytes, or dst and src are one place. */
nbc_id nbc_copy(struct nbc_sched *s, struct nbc_ref dst, struct nbc_ref src, nbc_id after);

/* dst = left op right, element by element: counts and types are those of dst. In rank order when
 * left comes from lower ranks. dst is another place than left and right, or right's. */
nbc_id nbc_reduce(struct nbc_sched *s, struct nbc_ref dst, struct nbc_ref left,
                  struct nbc_ref right, nbc_id after);

/* An id that is done when both are (NBC_NONE counts as done). */
nbc_id nbc_join(struct nbc_sched *s, nbc_id x, nbc_id y);

/* The same for n of them; for none, one that others may be added to. */
nbc_id nbc_join_of(struct nbc_sched *s, const nbc_id *ids, int n);

/* `op` waits for `pre` too. pre was emitted earlier, or is NBC_NONE. */
void nbc_after(struct nbc_sched *s, nbc_id op, nbc_id pre);

/* An id that is done when everything emitted since the last fence is: what is emitted from now on
 * waits for it. For algorithms that think in rounds. */
void nbc_fence(struct nbc_sched *s);

/* Room in the temporary buffer: for n bytes (type BYTE), or for the elements of `like` laid out
 * with their own type and extents. Never shared with another request for room. */
struct nbc_ref nbc_temp_bytes(struct nbc_sched *s, int64_t n);
struct nbc_ref nbc_temp_like(struct nbc_sched *s, struct nbc_ref like);

/* A builder ran out of memory of its own: finish will say so. */
void nbc_sched_fail(struct nbc_sched *s);

/* Ends the building. Returns the schedule, or NULL (and frees it) when memory ran out on the way.
 */
struct nbc_sched *nbc_sched_finish(struct nbc_sched *s);

void nbc_sched_free(struct nbc_sched *s);

/* One owner less; with the last it is freed. */
void nbc_sched_release(struct nbc_sched *s);

/* One line an operation, stable: golden files are made of it. */
void nbc_sched_print(const struct nbc_sched *s, FILE *out);

#endif
