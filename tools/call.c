/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <stdlib.h>
#include <string.h>

static int root_of(const struct tool_call *call, int id)
{
    if (!nbc_coll_has_root(call->coll) || !call->remote_size || id >= call->size)
        return 0;
    return id == 0 ? NBC_ROOT_HERE : NBC_ROOT_IDLE;
}

static int peers(const struct nbc_shape *s)
{
    if (nbc_coll_is_neighborhood(s->coll))
        return 2;
    return s->remote_size && s->coll != NBC_REDUCE_SCATTER ? s->remote_size : s->size;
}

/* Returns the size of an element: 8 if it divides the bytes, else 1. */
static int64_t element(int64_t bytes)
{
    return bytes % 8 ? 1 : 8;
}

static bool make_types(struct tool_rank *r, int64_t size)
{
    struct nbc_shape *s = &r->shape;
    s->ntypes = NBC_TYPE_FIRST_PEER + (nbc_coll_has_types(s->coll) ? 2 * peers(s) : 0);
    r->types = malloc((size_t)s->ntypes * sizeof *r->types);
    for (int i = 0; r->types && i < s->ntypes; i++) {
        int64_t n = i == NBC_TYPE_BYTE ? 1 : size;
        r->types[i] = (struct nbc_type){.size = n, .extent = n, .true_extent = n, .packed = true};
    }
    s->types = r->types;
    return r->types;
}

static bool make_arrays(struct tool_rank *r, int64_t count, int64_t unit)
{
    int n = peers(&r->shape);
    r->counts = malloc((size_t)n * sizeof *r->counts);
    r->displs = malloc((size_t)n * sizeof *r->displs);
    if (!r->counts || !r->displs)
        return false;
    for (int i = 0; i < n; i++) {
        r->counts[i] = count;
        r->displs[i] = i * count * unit;
    }
    return true;
}

static void make_side(struct tool_rank *r, struct nbc_side *side, bool send)
{
    if (!nbc_coll_has_counts(r->shape.coll, send))
        return;
    side->counts = (struct nbc_ints){r->counts, 8};
    side->displs_implied = r->shape.coll == NBC_REDUCE_SCATTER;
    if (!side->displs_implied)
        side->displs = (struct nbc_ints){r->displs, 8};
}

/* In a reduce_scatter on an intercommunicator each group divides the whole vector in its own way.
 * The vector has the block times both sizes, so that both groups have blocks of equal size. */
static int64_t count_of(const struct nbc_shape *s, int64_t count)
{
    bool cut = s->coll == NBC_REDUCE_SCATTER || s->coll == NBC_REDUCE_SCATTER_BLOCK;
    return s->remote_size && cut ? count * s->remote_size : count;
}

static void make_nodes(struct tool_rank *r, const struct tool_call *call)
{
    int size = r->shape.size, per_node = call->per_node;
    r->shape.local = !r->shape.remote_size && (!per_node || per_node >= size);
    r->shape.oversubscribed = r->shape.local && call->oversubscribed;
    r->shape.handshake = r->shape.local && call->handshake;
    r->shape.sockets = !r->shape.local && !r->shape.remote_size && call->sockets;
    if (per_node <= 1 || per_node >= size || r->shape.remote_size)
        return; /* all ranks share a node, or no two ranks do */
    int n = (size + per_node - 1) / per_node;
    r->nodes = (struct nbc_nodes){.size = size, .nnodes = n, .block = per_node, .ordered = true};
    r->shape.nodes = &r->nodes;
}

static struct nbc_neighbors ring(int size, int rank, int around[2])
{
    around[0] = (rank + size - 1) % size;
    around[1] = (rank + 1) % size;
    return (struct nbc_neighbors){around, around, 2, 2, true};
}

/* Whether the ranks may send together. With many ranks an alltoall has too many edges for a
 * simulation. */
static bool has_pattern(const struct nbc_shape *s)
{
    enum { MOST = 4096 };
    return s->nodes && nbc_coll_has_edges(s->coll) &&
           (s->neighbors || s->size * s->nodes->block <= MOST);
}

/* What the other ranks of the node would offer. */
static bool make_pattern(struct tool_rank *r)
{
    int first = r->shape.rank / r->nodes.block * r->nodes.block, left = r->shape.size - first;
    int n = left < r->nodes.block ? left : r->nodes.block;
    int room = r->shape.neighbors ? 5 : 2 * r->shape.size + 1;
    struct nbc_edge *offers = malloc((size_t)n * (size_t)room * sizeof *offers);
    bool good = offers;
    for (int i = 0; good && i < n; i++) {
        int around[2];
        struct nbc_neighbors neighbors = ring(r->shape.size, first + i, around);
        struct nbc_shape shape = r->shape;
        struct nbc_offer offer;
        shape.rank = first + i;
        shape.neighbors = r->shape.neighbors ? &neighbors : NULL;
        good = nbc_offer_make(&offer, &shape);
        if (good)
            memcpy(offers + i * room, offer.edges, (size_t)offer.n * sizeof *offers);
        free(offer.edges);
    }
    good = good && nbc_pattern_make(&r->pattern, offers, n, room);
    r->shape.pattern = &r->pattern;
    free(offers);
    return good;
}

bool tool_rank_make(struct tool_rank *r, const struct tool_call *call, int id)
{
    bool second = id >= call->size;
    int64_t size = element(call->bytes);
    *r = (struct tool_rank){
        .shape = {
            .coll = call->coll,
            .rank = second ? id - call->size : id,
            .size = second ? call->remote_size : call->size,
            .remote_size = second ? call->size : call->remote_size,
            .root = root_of(call, id),
            .commutative = nbc_coll_reduces(call->coll) && !call->ordered && !call->order,
            .order = call->order,
            .segment = call->segment,
            .eager = call->eager,
        }};
    struct nbc_shape *s = &r->shape;
    int64_t count = call->coll == NBC_BARRIER ? 0 : count_of(s, call->bytes / size);
    bool w = nbc_coll_has_types(call->coll);
    bool any = nbc_coll_has_counts(call->coll, true) || nbc_coll_has_counts(call->coll, false);
    if (!make_types(r, size) || (any && !make_arrays(r, count, w ? size : 1))) {
        tool_rank_free(r);
        return false;
    }
    make_nodes(r, call);
    s->send = (struct nbc_side){.count = count, .type = NBC_TYPE_SEND};
    s->recv = (struct nbc_side){.count = count, .type = NBC_TYPE_RECV};
    make_side(r, &s->send, true);
    make_side(r, &s->recv, false);
    if (w) {
        s->send.peer_types = s->send.displs_bytes = true;
        s->recv.peer_types = s->recv.displs_bytes = true;
        s->send.type = NBC_TYPE_FIRST_PEER;
        s->recv.type = NBC_TYPE_FIRST_PEER + peers(s);
    }
    if (nbc_coll_is_neighborhood(call->coll)) {
        r->neighbors = ring(call->size, id, r->around);
        s->neighbors = &r->neighbors;
    }
    if (has_pattern(s) && !make_pattern(r)) {
        tool_rank_free(r);
        return false;
    }
    return true;
}

void tool_rank_free(struct tool_rank *r)
{
    if (r->sched)
        nbc_sched_free(r->sched);
    free(r->types);
    free(r->counts);
    free(r->displs);
    nbc_pattern_free(&r->pattern);
    *r = (struct tool_rank){0};
}

struct tool_rank *tool_ranks_make(const struct tool_call *call, const struct nbc_alg *alg)
{
    int n = tool_call_ranks(call);
    struct tool_rank *ranks = calloc((size_t)n, sizeof *ranks);
    for (int id = 0; ranks && id < n; id++) {
        /* A shape refers to arrays in the rank itself, which therefore must not move. */
        if (tool_rank_make(&ranks[id], call, id))
            ranks[id].sched = nbc_build(alg->build, &ranks[id].shape);
        if (!ranks[id].sched) {
            tool_ranks_free(ranks, call);
            return NULL;
        }
    }
    return ranks;
}

void tool_ranks_free(struct tool_rank *ranks, const struct tool_call *call)
{
    for (int id = 0; ranks && id < tool_call_ranks(call); id++)
        tool_rank_free(&ranks[id]);
    free(ranks);
}

int tool_peer(const struct tool_call *call, int id, int peer)
{
    return call->remote_size && id < call->size ? call->size + peer : peer;
}
