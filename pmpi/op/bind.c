/* SPDX-License-Identifier: MIT */
#include "op/bind.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "below/quirks.h"
#include "op/nodemap.h"

#include "block.h"
#include "coll.h"

/* --- the error in words ----------------------------------------------------------------------- */

static char fault[160]; /* under the lock */

/* Returns the class. */
static int refuse(int class, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

static int refuse(int class, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(fault, sizeof fault, format, args);
    va_end(args);
    return class;
}

const char *nbc_bind_fault(void)
{
    return fault;
}

/* The names of arguments in the standard. */

static const char *buffer_name(enum nbc_coll coll, bool send)
{
    return coll == NBC_BCAST ? "buffer" : send ? "sendbuf" : "recvbuf";
}

static const char *count_name(enum nbc_coll coll, bool send)
{
    if (coll == NBC_REDUCE_SCATTER || coll == NBC_REDUCE_SCATTER_BLOCK)
        return "recvcount";
    return coll == NBC_BCAST || nbc_coll_reduces(coll) ? "count" : send ? "sendcount" : "recvcount";
}

static const char *type_name(enum nbc_coll coll, bool send)
{
    return coll == NBC_BCAST || nbc_coll_reduces(coll) ? "datatype"
           : send                                      ? "sendtype"
                                                       : "recvtype";
}

static const char *displs_name(enum nbc_coll coll, bool send)
{
    const uint32_t two = NBC_BIT(ALLTOALLV) | NBC_BIT(ALLTOALLW) | NBC_BIT(NEIGHBOR_ALLTOALLV) |
                         NBC_BIT(NEIGHBOR_ALLTOALLW);
    return !(two >> coll & 1) ? "displs" : send ? "sdispls" : "rdispls";
}

static const char *type_fault(MPI_Datatype type)
{
    return type == MPI_DATATYPE_NULL ? "MPI_DATATYPE_NULL" : "not a committed datatype";
}

/* --- the arguments ---------------------------------------------------------------------------- */

bool nbc_bind_is_root(const struct nbc_shape *s)
{
    return s->remote_size ? s->root == NBC_ROOT_HERE : s->root == s->rank;
}

struct nbc_significant nbc_bind_significant(const struct nbc_shape *s)
{
    if (s->coll == NBC_BARRIER || s->root == NBC_ROOT_IDLE)
        return (struct nbc_significant){false, false};
    if (!nbc_coll_has_root(s->coll))
        return (struct nbc_significant){true, true};
    if (s->coll == NBC_BCAST)
        return (struct nbc_significant){false, true};
    bool root = nbc_bind_is_root(s), leaf = !root || s->remote_size == 0;
    return nbc_coll_is_to_root(s->coll) ? (struct nbc_significant){leaf, root}
                                        : (struct nbc_significant){root, leaf};
}

/* Roots of intercommunicators: MPI-4.1 section 6.2.3. */
static int bind_root(const struct nbc_call *call, struct nbc_shape *s)
{
    s->root = 0;
    if (!nbc_coll_has_root(call->coll))
        return MPI_SUCCESS;
    s->root = call->root;
    if (s->remote_size && call->root == MPI_ROOT)
        s->root = NBC_ROOT_HERE;
    else if (s->remote_size && call->root == MPI_PROC_NULL)
        s->root = NBC_ROOT_IDLE;
    else if (call->root < 0 || call->root >= (s->remote_size ? s->remote_size : s->size))
        return refuse(MPI_ERR_ROOT, "root is %d, not between 0 and %d%s", call->root,
                      (s->remote_size ? s->remote_size : s->size) - 1,
                      s->remote_size ? ", MPI_ROOT or MPI_PROC_NULL" : "");
    return MPI_SUCCESS;
}

static int misplaced(enum nbc_coll coll, bool send)
{
    return refuse(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which is not allowed here",
                  buffer_name(coll, send));
}

/* MPI_IN_PLACE is valid as the receive buffer of a scatter's root, as the send buffer of the root
 * of a gather or reduce, and as the send buffer of every rank of the other collectives. */
static int bind_in_place(const struct nbc_call *call, struct nbc_shape *s)
{
    bool send = call->send.buf == MPI_IN_PLACE, recv = call->recv.buf == MPI_IN_PLACE;
    if (!send && !recv)
        return MPI_SUCCESS;
    struct nbc_significant both = nbc_bind_significant(s);
    send = send && both.send;
    recv = recv && both.recv;
    bool scatter = s->coll == NBC_SCATTER || s->coll == NBC_SCATTERV;
    if (!send && !recv)
        return MPI_SUCCESS;
    if (s->remote_size || nbc_coll_is_neighborhood(s->coll) || s->coll == NBC_BCAST)
        return misplaced(s->coll, send);
    if (scatter ? send || s->root != s->rank : recv)
        return misplaced(s->coll, scatter && send);
    if (nbc_coll_is_to_root(s->coll) && s->root != s->rank)
        return misplaced(s->coll, true);
    s->in_place = true;
    return MPI_SUCCESS;
}

int nbc_bind_peers(const struct nbc_shape *s, bool send)
{
    if (nbc_coll_is_neighborhood(s->coll))
        return send ? s->neighbors->outdegree : s->neighbors->indegree;
    if (s->coll == NBC_REDUCE_SCATTER)
        return s->size;
    return s->remote_size ? s->remote_size : s->size;
}

static int check_arrays(const struct nbc_args *a, enum nbc_coll coll, bool send)
{
    if (!a->counts.data)
        return refuse(MPI_ERR_ARG, "%ss is NULL", count_name(coll, send));
    if (coll != NBC_REDUCE_SCATTER && !a->displs.data)
        return refuse(MPI_ERR_ARG, "%s is NULL", displs_name(coll, send));
    if (nbc_coll_has_types(coll) && !a->types)
        return refuse(MPI_ERR_ARG, "%ss is NULL", type_name(coll, send));
    return MPI_SUCCESS;
}

/* Without a peer (a process topology may have none) the arrays are not read. */
static int check_counts(const struct nbc_args *a, int n, enum nbc_coll coll, bool send)
{
    if (!a->counts.width)
        return a->count >= 0
                   ? MPI_SUCCESS
                   : refuse(MPI_ERR_COUNT, "%s is %" PRId64, count_name(coll, send), a->count);
    int error = n > 0 ? check_arrays(a, coll, send) : MPI_SUCCESS;
    if (error)
        return error;
    for (int i = 0; i < n; i++)
        if (nbc_ints_at(a->counts, i) < 0)
            return refuse(MPI_ERR_COUNT, "%ss[%d] is %" PRId64, count_name(coll, send), i,
                          nbc_ints_at(a->counts, i));
    return MPI_SUCCESS;
}

static int bind_type(struct nbc_bound *b, int slot, MPI_Datatype type)
{
    struct nbc_datatype *t;
    int error = nbc_datatype_find(type, &t);
    if (error)
        return error;
    b->types[slot] = t;
    ((struct nbc_type *)b->shape.types)[slot] = t->layout;
    return MPI_SUCCESS;
}

static bool has_data(const struct nbc_args *a, int n)
{
    if (!a->counts.width)
        return n > 0 && a->count > 0;
    for (int i = 0; i < n; i++)
        if (nbc_ints_at(a->counts, i) > 0)
            return true;
    return false;
}

static int missing(enum nbc_coll coll, bool send)
{
    return refuse(MPI_ERR_BUFFER, "%s is NULL", buffer_name(coll, send));
}

/* Displacements of blocks from MPI_BOTTOM are addresses. */
static bool lacks_peer_buffer(const struct nbc_args *a, const struct nbc_datatype *t, int peer)
{
    struct nbc_type there = t->layout;
    if (a->buf || nbc_ints_at(a->counts, peer) == 0)
        return false;
    there.true_lb += nbc_ints_at(a->displs, peer);
    return nbc_is_relative(&there);
}

/* Programs pass MPI_DATATYPE_NULL with a count of zero. */
static bool lacks_type(const struct nbc_args *a, int peer)
{
    bool may_lack = NBC_ANY_TYPE_FOR_NOTHING || a->types[peer] == MPI_DATATYPE_NULL;
    return may_lack && nbc_ints_at(a->counts, peer) == 0;
}

static int bind_peer(struct nbc_bound *b, const struct nbc_side *side, const struct nbc_args *a,
                     int peer)
{
    enum nbc_coll coll = b->shape.coll;
    bool send = side == &b->shape.send;
    if (lacks_type(a, peer))
        return MPI_SUCCESS; /* the slot keeps MPI_BYTE */
    int slot = side->type + peer, error = bind_type(b, slot, a->types[peer]);
    if (error == MPI_ERR_TYPE)
        return refuse(error, "%ss[%d] is %s", type_name(coll, send), peer,
                      type_fault(a->types[peer]));
    return !error && lacks_peer_buffer(a, b->types[slot], peer) ? missing(coll, send) : error;
}

static int bind_side(struct nbc_bound *b, const struct nbc_args *a, bool send)
{
    struct nbc_shape *s = &b->shape;
    struct nbc_side *side = send ? &s->send : &s->recv;
    int n = nbc_bind_peers(s, send), error = check_counts(a, n, s->coll, send);
    if (error)
        return error;
    side->count = a->count;
    side->counts = a->counts;
    side->displs = a->displs;
    side->displs_implied = a->counts.data && !a->displs.data;
    if (!nbc_coll_has_types(s->coll)) {
        error = bind_type(b, side->type, a->type);
        if (error == MPI_ERR_TYPE)
            return refuse(error, "%s is %s", type_name(s->coll, send), type_fault(a->type));
        /* NULL is MPI_BOTTOM in the MPIs we know: data may be there, as far as the type says. */
        bool lacks = !error && !a->buf && b->types[side->type]->relative && has_data(a, n);
        return lacks ? missing(s->coll, send) : error;
    }
    side->peer_types = side->displs_bytes = true;
    side->type = NBC_TYPE_FIRST_PEER + (send ? 0 : nbc_bind_peers(s, true));
    for (int i = 0; i < n && !error; i++)
        error = bind_peer(b, side, a, i);
    return error;
}

/* Allocates the arrays of layouts and of datatypes by slot, with MPI_BYTE in every slot. */
static int bind_slots(struct nbc_bound *b)
{
    struct nbc_shape *s = &b->shape;
    struct nbc_type *layouts = b->few_layouts;
    s->ntypes = NBC_TYPE_FIRST_PEER;
    b->types = b->few_types;
    if (nbc_coll_has_types(s->coll)) {
        s->ntypes += nbc_bind_peers(s, true) + nbc_bind_peers(s, false);
        b->many = malloc(s->ntypes * (sizeof *layouts + sizeof *b->types));
        if (!b->many)
            return MPI_ERR_NO_MEM;
        layouts = b->many;
        b->types = (struct nbc_datatype **)(layouts + s->ntypes);
    }
    s->types = layouts;
    struct nbc_datatype *byte;
    int error = nbc_datatype_find(MPI_BYTE, &byte);
    if (error)
        return error;
    for (int i = 0; i < s->ntypes; i++) {
        b->types[i] = byte;
        layouts[i] = byte->layout;
    }
    s->send.type = NBC_TYPE_SEND;
    s->recv.type = NBC_TYPE_RECV;
    return MPI_SUCCESS;
}

static int bind_neighbors(struct nbc_members *m, MPI_Comm comm, struct nbc_shape *s)
{
    int error;
    if (!nbc_coll_is_neighborhood(s->coll))
        return MPI_SUCCESS;
    if (!m->topology)
        m->topology = nbc_topology_new(comm, &error);
    if (!m->topology)
        return error == MPI_ERR_TOPOLOGY ? refuse(error, "comm has no topology") : error;
    s->neighbors = &m->topology->neighbors;
    return MPI_SUCCESS;
}

/* A rank that passes MPI_PROC_NULL as the root takes no part, and its arguments may be anything. */
static int bind_op(const struct nbc_call *call, struct nbc_bound *b)
{
    if (!nbc_coll_reduces(call->coll) || b->shape.root == NBC_ROOT_IDLE)
        return MPI_SUCCESS;
    int error = nbc_operator_find(call->op, &b->reducer);
    if (error == MPI_ERR_OP)
        refuse(error, "op is %s", call->op == MPI_OP_NULL ? "MPI_OP_NULL" : "not an operator");
    if (error)
        return error;
    b->shape.commutative = b->reducer->commutative;
    return MPI_SUCCESS;
}

/* Copies the datatype and count of a reduction to the side that has none. The receive count of
 * reduce_scatter is that of this rank. */
static void bind_reduction(const struct nbc_call *call, struct nbc_bound *b)
{
    struct nbc_shape *s = &b->shape;
    int from =
        call->coll == NBC_REDUCE && !nbc_bind_significant(s).send ? NBC_TYPE_RECV : NBC_TYPE_SEND;
    int to = from == NBC_TYPE_SEND ? NBC_TYPE_RECV : NBC_TYPE_SEND;
    b->types[to] = b->types[from];
    b->few_layouts[to] = b->few_layouts[from];
    struct nbc_side *f = from == NBC_TYPE_SEND ? &s->send : &s->recv;
    struct nbc_side *t = from == NBC_TYPE_SEND ? &s->recv : &s->send;
    t->count = f->count;
    if (call->coll == NBC_REDUCE_SCATTER)
        s->recv.count = nbc_ints_at(s->send.counts, s->rank);
}

/* Whether two blocks are the same memory. The addresses of the buffers alone do not show this: the
 * data of a datatype may begin elsewhere, as that of halos does. */
static bool same_data(const struct nbc_call *call, const struct nbc_bound *b, struct nbc_ref send,
                      struct nbc_ref recv)
{
    const struct nbc_datatype *s = b->types[send.type], *r = b->types[recv.type];
    return send.count > 0 && recv.count > 0 && s->layout.size > 0 && r->layout.size > 0 &&
           (const char *)call->send.buf + send.off == (const char *)call->recv.buf + recv.off &&
           (s == r || (s->layout.packed && r->layout.packed));
}

/* The alias_offset of struct nbc_bound. Also 0 if no block belongs to this rank itself. */
static int64_t alias_offset_of(const struct nbc_shape *s)
{
    if (s->remote_size || nbc_coll_is_neighborhood(s->coll) || nbc_coll_reduces(s->coll))
        return 0;
    return nbc_recv_block(s, s->rank).off - nbc_send_block(s, s->rank).off;
}

/* Rank 0 of an exscan receives nothing, and its receive buffer is not significant: MPI-4.1 section
 * 6.11.2. */
static bool is_first_of_exscan(const struct nbc_shape *s)
{
    return s->coll == NBC_EXSCAN && s->rank == 0;
}

/* Whether this rank sends data to peer i and receives data from it. A neighbor MPI_PROC_NULL has
 * blocks, but they are neither sent nor received. */
static bool is_peer(const struct nbc_shape *s, int i)
{
    return !s->neighbors || (s->neighbors->destinations[i] >= 0 && s->neighbors->sources[i] >= 0);
}

/* Whether data is both sent and received although MPI_IN_PLACE is not given: a vector reduced into
 * itself, a block that is sent to a peer and received from it, or this rank's own block in both
 * buffers. */
static bool buffers_alias(const struct nbc_call *call, const struct nbc_bound *b)
{
    const struct nbc_shape *s = &b->shape;
    bool same = call->send.buf == call->recv.buf;
    if (!call->send.buf || (is_first_of_exscan(s) && !NBC_CHECKS_FIRST_OF_EXSCAN))
        return false;
    if (nbc_coll_reduces(s->coll))
        return same && s->recv.count > 0 && b->types[NBC_TYPE_RECV]->layout.size > 0;
    if (!same)
        return (uintptr_t)call->send.buf - (uintptr_t)call->recv.buf ==
                   (uintptr_t)b->alias_offset &&
               same_data(call, b, nbc_send_block(s, s->rank), nbc_recv_block(s, s->rank));
    int out = nbc_bind_peers(s, true), in = nbc_bind_peers(s, false), n = out < in ? out : in;
    for (int i = 0; i < n; i++)
        if (is_peer(s, i) && same_data(call, b, nbc_send_block(s, i), nbc_recv_block(s, i)))
            return true;
    return false;
}

static int bind_data(const struct nbc_call *call, struct nbc_bound *b)
{
    struct nbc_shape *s = &b->shape;
    struct nbc_significant both = nbc_bind_significant(s);
    bool scatter = s->coll == NBC_SCATTER || s->coll == NBC_SCATTERV;
    bool reduces = nbc_coll_reduces(s->coll);
    int error = MPI_SUCCESS;
    /* The side that is in place has no arguments, except in reductions. */
    if (both.send && (!s->in_place || scatter || reduces))
        error = bind_side(b, &call->send, true);
    if (!error && both.recv && (!s->in_place || !scatter) && (!reduces || !both.send))
        error = bind_side(b, &call->recv, false);
    if (!error && reduces && s->root != NBC_ROOT_IDLE)
        bind_reduction(call, b);
    bool two = !error && both.send && both.recv && !s->in_place;
    b->alias_offset = two ? alias_offset_of(s) : 0;
    if (two && buffers_alias(call, b))
        error = refuse(MPI_ERR_BUFFER, "sendbuf and recvbuf have data in the same place, for which "
                                       "there is MPI_IN_PLACE");
    if (!error && reduces && both.recv && !is_first_of_exscan(s) && !call->recv.buf &&
        s->recv.count > 0 && b->types[NBC_TYPE_RECV]->relative)
        error = missing(s->coll, false);
    if (!error && b->reducer && s->root != NBC_ROOT_IDLE)
        error = nbc_operator_check(b->reducer, b->types[NBC_TYPE_RECV]);
    if (error == MPI_ERR_OP)
        refuse(error, "op does not work on this datatype");
    /* mutants: >= for >, || for &&: plans are used less often */
    b->reads_send = both.send && s->send.count > 0 && b->types[NBC_TYPE_SEND]->relative;
    /* mutants: >= for >, || for &&: plans are used less often */
    b->reads_recv = both.recv && s->recv.count > 0 && b->types[NBC_TYPE_RECV]->relative;
    return error;
}

size_t nbc_bound_input(const struct nbc_bound *b)
{
    enum { SMALL = 1024 };
    const struct nbc_shape *s = &b->shape;
    const struct nbc_datatype *type = b->types[NBC_TYPE_SEND];
    if (!b->reducer || !b->reads_send || s->in_place || s->remote_size || s->send.counts.data ||
        !type->named || !type->layout.packed)
        return 0;
    int64_t blocks = s->coll == NBC_REDUCE_SCATTER_BLOCK ? s->size : 1;
    int64_t most = SMALL / (type->layout.size * blocks);
    return s->send.count <= most ? (size_t)(s->send.count * blocks * type->layout.size) : 0;
}

int nbc_bind(const struct nbc_call *call, struct nbc_members *members, struct nbc_bound *b)
{
    struct nbc_shape *s = &b->shape;
    b->reducer = NULL;
    b->many = NULL;
    fault[0] = '\0';
    *s = (struct nbc_shape){
        .coll = call->coll,
        .rank = members->rank,
        .size = members->size,
        .remote_size = members->remote_size,
        .local = members->local,
        .sockets = members->sockets,
        .oversubscribed = members->oversubscribed,
        .handshake = members->handshake,
    };
    if (s->remote_size && (s->coll == NBC_SCAN || s->coll == NBC_EXSCAN))
        return refuse(MPI_ERR_COMM, "comm is an intercommunicator");
    int error = bind_root(call, s);
    if (!error)
        error = bind_neighbors(members, call->comm, s);
    if (!error)
        error = nbc_nodemap_of(members, call->comm, &s->nodes);
    if (!error)
        error = bind_in_place(call, s);
    if (!error)
        error = bind_op(call, b);
    if (!error)
        error = bind_slots(b);
    if (!error)
        error = bind_data(call, b);
    if (error)
        nbc_unbind(b);
    return error;
}

void nbc_unbind(struct nbc_bound *b)
{
    free(b->many);
    b->many = NULL;
}
