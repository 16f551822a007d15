/* SPDX-License-Identifier: MIT */
/* Persistent neighborhood collectives and alltoall, alltoallv, alltoallw whose ranks send together
 * to other nodes (the algorithm `locality`): the ranks of a node tell one another their edges, and
 * all ranks agree whether it is worth it. MPI_..._init may wait for the other ranks (MPI-4.1,
 * section 6.13: it is nonlocal). */
#include "engine/launch.h"

#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"
#include "op/bind.h"

#include "nodes.h"
#include "pattern.h"
#include "select.h"

/* Longer lists of edges of a node are not exchanged: for each edge a rank takes about 150 bytes of
 * memory until it knows its schedule. */
enum { MOST_EDGES = 1 << 17 };

struct agreement {
    struct nbc_context *c;
    struct nbc_bound bound;
    struct nbc_offer offer;
    struct nbc_edge *offers; /* of the ranks of this node, `room` elements each; then this rank's */
    int room;
    int *mates; /* the ranks of this node */
    int nmates;
    struct nbc_pattern pattern;
    struct nbc_sched *together, *apart;
};

/* --- operations of the agreement -------------------------------------------------------------- */

/* The largest of the ranks' numbers. */
static int largest(struct agreement *a, int64_t *numbers, int n)
{
    struct nbc_request *r;
    const struct nbc_call call = {
        .coll = NBC_ALLREDUCE,
        .purpose = NBC_FOR_TAGS,
        .comm = a->c->user,
        .send = {.buf = MPI_IN_PLACE, .count = n, .type = MPI_LONG_LONG},
        .recv = {.buf = numbers, .count = n, .type = MPI_LONG_LONG},
        .op = MPI_MAX,
    };
    int error = nbc_launch_checked(&call, a->c, &call, &r);
    return error ? error : nbc_launch_finish(r);
}

/* Makes the operation that gives each rank of the node the offers of all: an allgather among them,
 * each of which is the neighbor of all. Returns NULL without memory. */
static struct nbc_request *exchange_new(const struct agreement *a)
{
    struct nbc_datatype *byte, *types[NBC_TYPE_FIRST_PEER];
    struct nbc_type layouts[NBC_TYPE_FIRST_PEER];
    if (nbc_datatype_find(MPI_BYTE, &byte))
        return NULL;
    for (int i = 0; i < NBC_TYPE_FIRST_PEER; i++) {
        types[i] = byte;
        layouts[i] = byte->layout;
    }
    const struct nbc_neighbors all = {.sources = a->mates,
                                      .destinations = a->mates,
                                      .indegree = a->nmates,
                                      .outdegree = a->nmates};
    int64_t bytes = a->room * (int64_t)sizeof *a->offers;
    const struct nbc_shape shape = {.coll = NBC_NEIGHBOR_ALLGATHER,
                                    .rank = a->c->members.rank,
                                    .size = a->c->members.size,
                                    .send = {.count = bytes, .type = NBC_TYPE_SEND},
                                    .recv = {.count = bytes, .type = NBC_TYPE_RECV},
                                    .types = layouts,
                                    .ntypes = NBC_TYPE_FIRST_PEER,
                                    .neighbors = &all};
    struct nbc_sched *sched = nbc_build(nbc_neighbor_linear, &shape);
    if (!sched)
        return NULL;
    const struct nbc_handle_refs handles = {types, NBC_TYPE_FIRST_PEER, NULL, false};
    const struct nbc_alg *alg = nbc_alg_by_name(shape.coll, "linear"); /* for NBCSHIM_TRACE */
    const struct nbc_call call = {
        .coll = NBC_NEIGHBOR_ALLGATHER,
        .purpose = NBC_FOR_TAGS,
        .send = {.buf = a->offers + (size_t)a->nmates * (size_t)a->room},
        .recv = {.buf = a->offers},
    };
    struct nbc_run *run = nbc_run_new(sched, &handles, 0);
    nbc_sched_release(sched);
    if (run)
        run->bytes = -1;
    return nbc_request_new(a->c, &call, alg, NULL, run);
}

/* --- the steps -------------------------------------------------------------------------------- */

/* Whether the ranks agree at all. All of them decide alike, also one without memory; a communicator
 * of several jobs has no nodes. Sets *forced if the user asks for the algorithm.
 */
static bool is_candidate(const struct nbc_call *call, const struct nbc_context *c, bool *forced)
{
    const struct nbc_members *m = &c->members;
    *forced = false;
    if (!nbc_coll_has_edges(call->coll) || m->remote_size || !m->mixed || m->local)
        return false;
    struct nbc_preferences preferences = nbc_launch_preferences(call, c);
    const struct nbc_alg *alg = preferences.alg;
    if (!alg) {
        const struct nbc_nodes some = nbc_nodes_blocks(m->size, 1);
        const struct nbc_pattern any = {0};
        int size = 0;
        if (call->coll == NBC_ALLTOALL) /* a rule may depend on its bytes */
            NEXT(Type_size)(call->recv.type, &size);
        const struct nbc_type type = {.size = size};
        const struct nbc_shape shape = {.coll = call->coll,
                                        .recv.count = call->recv.count,
                                        .types = &type,
                                        .size = m->size,
                                        .sockets = m->sockets,
                                        .nodes = &some,
                                        .pattern = &any};
        const struct nbc_rule *rule = nbc_rule_find(&shape, nbc_tuning);
        alg = rule ? rule->alg : NULL;
    }
    *forced = alg && alg->build == nbc_neighbor_locality;
    return !alg || *forced;
}

/* Binds the call again, and lists this rank's edges. Returns whether it has all that it needs. */
static bool prepare(struct agreement *a, const struct nbc_call *call)
{
    if (nbc_bind(call, &a->c->members, &a->bound))
        return false; /* unreached: no memory */
    struct nbc_shape *shape = &a->bound.shape;
    if (!shape->nodes || shape->in_place)
        return false;
    a->nmates = nbc_node_size(shape->nodes, nbc_node_of(shape->nodes, shape->rank));
    return nbc_offer_make(&a->offer, shape);
}

/* Makes room for the offers of the node, and the operation that exchanges them. */
static struct nbc_request *exchange_prepare(struct agreement *a)
{
    const struct nbc_shape *shape = &a->bound.shape;
    int node = nbc_node_of(shape->nodes, shape->rank);
    a->offers = calloc(((size_t)a->nmates + 1) * (size_t)a->room, sizeof *a->offers);
    a->mates = malloc((size_t)a->nmates * sizeof *a->mates);
    if (!a->offers || !a->mates)
        return NULL; /* unreached: no memory */
    for (int i = 0; i < a->nmates; i++)
        a->mates[i] = nbc_node_member(shape->nodes, node, i);
    memcpy(a->offers + (size_t)a->nmates * (size_t)a->room, a->offer.edges,
           (size_t)a->offer.n * sizeof *a->offers);
    return exchange_new(a);
}

/* Exchanges the offers, if all ranks can. *done: whether they have. */
static int exchange(struct agreement *a, bool *done)
{
    struct nbc_request *r = exchange_prepare(a);
    int64_t lacks = !r;
    int error = largest(a, &lacks, 1);
    *done = !error && !lacks;
    if (r && !*done)
        nbc_request_free(r); /* unreached: no memory on another rank */
    if (!*done)
        return error;
    nbc_launch_internal(a->c, r);
    return nbc_launch_finish(r);
}

/* Builds both schedules. Returns false without memory. */
static bool build(struct agreement *a, const struct nbc_preferences *preferences)
{
    struct nbc_shape *shape = &a->bound.shape;
    if (!nbc_pattern_make(&a->pattern, a->offers, a->nmates, a->room))
        return false; /* unreached: no memory */
    nbc_launch_choose(shape, preferences);
    shape->pattern = &a->pattern;
    a->together = nbc_build(nbc_neighbor_locality, shape);
    a->pattern.apart = true;
    a->apart = nbc_build(nbc_neighbor_locality, shape);
    return a->together && a->apart;
}

/* All ranks choose one of the schedules, or that of `r`: NULL. */
static int choose(struct agreement *a, const struct nbc_request *r, bool good, bool forced,
                  struct nbc_sched **best)
{
    int64_t n[NBC_PATTERN_NUMBERS + 1] = {[NBC_PATTERN_NUMBERS] = !good};
    *best = NULL;
    if (good)
        nbc_pattern_numbers(&a->bound.shape, r->run->sched, a->apart, a->together, n);
    int error = largest(a, n, NBC_PATTERN_NUMBERS + 1);
    if (error || n[NBC_PATTERN_NUMBERS])
        return error;
    enum nbc_pattern_choice choice = nbc_pattern_choose(n, forced);
    *best = choice == NBC_PATTERN_APART      ? a->apart
            : choice == NBC_PATTERN_TOGETHER ? a->together
                                             : NULL;
    return MPI_SUCCESS;
}

static int replace(const struct agreement *a, struct nbc_request *r, struct nbc_sched *sched)
{
    const struct nbc_bound *b = &a->bound;
    const struct nbc_handle_refs handles = {b->types, b->shape.ntypes, b->reducer, false};
    struct nbc_run *run = nbc_run_new(sched, &handles, 0);
    if (!run)
        return MPI_ERR_NO_MEM; /* unreached: no memory */
    run->bytes = nbc_shape_bytes(&b->shape);
    nbc_request_replace(r, run, nbc_alg_by_name(b->shape.coll, "locality"));
    return MPI_SUCCESS;
}

static int agree(struct agreement *a, const struct nbc_call *call, struct nbc_request *r,
                 bool forced)
{
    enum { LACKS, BUSIEST, ROOM, MATES, FORCED, N };
    bool good = r && prepare(a, call), exchanged;
    int64_t n[N] = {!good, a->offer.busiest, a->offer.n, a->nmates, forced};
    int error = largest(a, n, N);
    forced = n[FORCED]; /* the same on all ranks, even if the info of one alone asks for it */
    if (error || n[LACKS] || n[ROOM] * n[MATES] > MOST_EDGES || n[BUSIEST] == 0 ||
        (n[BUSIEST] < NBC_PATTERN_LEAST && !forced))
        return error;
    a->room = (int)n[ROOM];
    error = exchange(a, &exchanged);
    if (error || !exchanged)
        return error;
    struct nbc_preferences preferences = nbc_launch_preferences(call, a->c);
    struct nbc_sched *best;
    error = choose(a, r, build(a, &preferences), forced, &best);
    return error || !best ? error : replace(a, r, best);
}

int nbc_locality_agree(const struct nbc_call *call, struct nbc_context *c, struct nbc_request *r)
{
    struct agreement a = {.c = c};
    bool forced;
    if (!is_candidate(call, c, &forced))
        return MPI_SUCCESS;
    int error = agree(&a, call, r, forced);
    nbc_unbind(&a.bound);
    nbc_sched_release(a.together);
    nbc_sched_release(a.apart);
    nbc_pattern_free(&a.pattern);
    free(a.mates);
    free(a.offers);
    free(a.offer.edges);
    return error;
}
