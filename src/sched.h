/* SPDX-License-Identifier: MIT */
/* A schedule: the operations of one rank in a collective, as a directed acyclic graph.
 *
 * Vertices are sends, receives, copies and reductions. An edge from x to y means that y starts only
 * after x is done. A schedule holds no addresses, handles, tags or communicators. It is a pure
 * function of a shape, so it can be checked, printed, simulated, cached, shared and started any
 * number of times.
 *
 * A builder calls emitters in an order in which the operations could run one after the other. An
 * emitter returns the id of its operation and takes the id of an operation that must be done before
 * it (NBC_NONE: it waits for none); nbc_after adds more. Emitters report no errors: when memory
 * runs out, the schedule remembers it, and nbc_build returns NULL.
 *
 * Messages of one schedule between the same two ranks match in the order in which the builder
 * emitted them: nbc_build adds the edges that make the executor post them in that order.
 *
 * All functions are local and need no lock; a schedule under construction belongs to one thread. */
#ifndef NBC_SCHED_H
#define NBC_SCHED_H

#include "block.h"

typedef int32_t nbc_id;
#define NBC_NONE ((nbc_id)-1)

/* Those after JOIN are in staged schedules only (staged.h). */
enum nbc_op_kind {
    NBC_OP_SEND,
    NBC_OP_RECV,
    NBC_OP_COPY,
    NBC_OP_REDUCE,
    NBC_OP_JOIN,
    NBC_OP_FETCH,  /* copies from the device's memory of a buffer to the host's */
    NBC_OP_STORE,  /* the other way */
    NBC_OP_MOVE,   /* a copy of which a side, or both, is in a device's memory; b is like a */
    NBC_OP_SETTLE, /* is over when the device's memory has what the program has written there */
    NBC_OP_RELEASE /* the last operation: nothing uses the host's memory any more */
};

/* An operation on up to three references, which nbc_op_a, nbc_op_b and nbc_op_c return. Schedules
 * are cached, so the struct is small: it stores once what the references have in common. */
struct nbc_op {
    int64_t off, count; /* of a */
    int64_t b_off;      /* COPY, REDUCE, MOVE */
    union {
        int64_t c_off;   /* REDUCE */
        int64_t b_count; /* COPY */
    };
    int32_t type; /* of a */
    union {
        int32_t peer;   /* SEND, RECV */
        int32_t b_type; /* COPY */
    };
    int32_t npre;        /* number of edges that end at this operation */
    int32_t succ;        /* index in nbc_sched.succ of the first operation that waits for this */
    int32_t nsucc_done;  /* number of operations that wait until this one is done */
    uint8_t nsucc_issue; /* number, 0 or 1, that wait only until this one is posted, to keep the */
                         /* order of messages; they come first in the list */
    uint8_t kind;        /* enum nbc_op_kind */
    uint8_t buf;         /* of a */
    uint8_t b_buf : 3, c_buf : 3;
    uint8_t uneven : 1; /* REDUCE: the counts of the three differ, which is a builder's error */
};

/* Returns, for SEND and RECV, the data; for COPY, REDUCE and MOVE, the destination. */
static inline struct nbc_ref nbc_op_a(const struct nbc_op *op)
{
    return (struct nbc_ref){op->off, op->count, op->type, op->buf};
}

/* Returns, for COPY and MOVE, the source; for REDUCE, the left operand. */
static inline struct nbc_ref nbc_op_b(const struct nbc_op *op)
{
    bool copy = op->kind == NBC_OP_COPY;
    return (struct nbc_ref){op->b_off, copy ? op->b_count : op->count, copy ? op->b_type : op->type,
                            op->b_buf};
}

/* Returns, for REDUCE, the right operand. */
static inline struct nbc_ref nbc_op_c(const struct nbc_op *op)
{
    return (struct nbc_ref){op->c_off, op->count, op->type, op->c_buf};
}

struct nbc_sched {
    struct nbc_op *ops;
    int32_t *succ;
    int32_t nops, nsucc;
    int32_t nmsgs;             /* operations that the transport's poll ends */
    int64_t segment;           /* that of the shape that it was built for */
    bool local, sockets;       /* likewise */
    int64_t temp_bytes;        /* size of the temporary buffer, which is aligned like malloc's */
    struct nbc_staged *staged; /* what staged.h has made of it, or NULL */
    int refs;                  /* reference count; code that shares schedules guards it by a lock */
    struct nbc_unfinished *build; /* NULL once finished */
};

/* The memory that a finished schedule takes. */
static inline size_t nbc_sched_bytes(const struct nbc_sched *s)
{
    return sizeof *s + (size_t)s->nops * sizeof *s->ops + (size_t)s->nsucc * sizeof *s->succ;
}

/* Emits the operations of a call into an empty schedule. */
typedef void nbc_builder(struct nbc_sched *s, const struct nbc_shape *shape);

/* Returns the schedule of a call, with one reference, or NULL if memory ran out. */
struct nbc_sched *nbc_build(nbc_builder *emit, const struct nbc_shape *shape);

/* The same in three steps: an empty schedule, emitters, the end, which frees it and returns the
 * finished schedule, or NULL if memory ran out. Both may return NULL, and nbc_sched_finish accepts
 * it. */
struct nbc_sched *nbc_sched_new(const struct nbc_shape *shape);
struct nbc_sched *nbc_sched_finish(struct nbc_sched *s);

/* Emit a send to, or a receive from, a peer. A reference without bytes is legal; its message is
 * still sent. A builder that omits empty messages must do so on both sides.
 *
 * Data that may have been sent as bytes must be received as bytes or as elements of a packed type:
 * the message may arrive in fragments that end within an element, which MPICH 4.0.2 fails to place
 * ("message truncated"). Data sent as elements may be received either way. */
nbc_id nbc_send(struct nbc_sched *s, struct nbc_ref data, int peer, nbc_id after);
nbc_id nbc_recv(struct nbc_sched *s, struct nbc_ref data, int peer, nbc_id after);

/* Emits a copy. Returns `after` itself if there is nothing to copy: no bytes, or dst is src. */
nbc_id nbc_copy(struct nbc_sched *s, struct nbc_ref dst, struct nbc_ref src, nbc_id after);

/* Emits dst = left op right, element by element; all three have the count and the type of dst. For
 * rank order, left must hold contributions of lower ranks than right. dst may be right, and is
 * otherwise disjoint from both operands. */
nbc_id nbc_reduce(struct nbc_sched *s, struct nbc_ref dst, struct nbc_ref left,
                  struct nbc_ref right, nbc_id after);

/* Returns an id that is done when both are. NBC_NONE counts as done. */
nbc_id nbc_join(struct nbc_sched *s, nbc_id x, nbc_id y);

/* The same for n ids. With n = 0 it returns a new id, to which nbc_after may add predecessors. */
nbc_id nbc_join_of(struct nbc_sched *s, const nbc_id *ids, int n);

/* Makes `op` wait for `pre` too. pre was emitted before op, or is NBC_NONE. */
void nbc_after(struct nbc_sched *s, nbc_id op, nbc_id pre);

/* The same for n ids, and for all operations that were emitted from `first` on. */
void nbc_after_all(struct nbc_sched *s, nbc_id op, const nbc_id *pre, int n);
void nbc_after_since(struct nbc_sched *s, nbc_id op, nbc_id first);

/* Reserve space in the temporary buffer: n bytes (type BYTE), or space for the elements of `like`
 * with their type and extent. Reservations are disjoint. */
struct nbc_ref nbc_temp_bytes(struct nbc_sched *s, int64_t n);
struct nbc_ref nbc_temp_like(struct nbc_sched *s, struct nbc_ref like);

/* Emits a copy of an operation of another schedule, without its edges. */
nbc_id nbc_emit_again(struct nbc_sched *s, const struct nbc_op *op);

/* Emits the edges of another schedule, of which operation i has become first[i] to last[i] here;
 * not those that keep messages in order, which nbc_sched_finish adds. */
void nbc_emit_edges(struct nbc_sched *s, const struct nbc_sched *from, const nbc_id *first,
                    const nbc_id *last);

/* Emits an operation of a staged schedule on these data; from: of a MOVE. */
nbc_id nbc_emit_staged(struct nbc_sched *s, enum nbc_op_kind kind, struct nbc_ref data,
                       struct nbc_ref from);

/* Returns memory for n elements until the schedule is finished, or NULL, which the schedule
 * remembers too. */
void *nbc_scratch(struct nbc_sched *s, size_t n, size_t size);

/* Records that something else has failed for want of memory. */
void nbc_sched_fail(struct nbc_sched *s);

/* Frees a schedule whatever its reference count. NULL is accepted. */
void nbc_sched_free(struct nbc_sched *s);

/* Drops a reference; frees the schedule with the last one. Accepts NULL. */
void nbc_sched_release(struct nbc_sched *s);

#endif
