/* SPDX-License-Identifier: MIT */
#include "op/plan.h"

#include <stdlib.h>
#include <string.h>

#include "below/next.h"
#include "op/call.h"
#include "op/types.h"

#include "coll.h"
#include "sched.h"
#include "select.h"

enum {
    SETS = 8,           /* plans of a communicator: each has its set, and any place there */
    WAYS = 8,           /* places of a set */
    MAX_OPS = 1024,     /* larger schedules are not kept: memory per communicator stays small */
    MAX_ENTRIES = 2048, /* of arrays, for the same reason */
    MAX_IDLE = 32       /* idle runs of a plan */
};

struct set {
    uint32_t mark[WAYS]; /* of the hash: tells most plans apart without a look at them; 0: free */
    uint32_t used[WAYS]; /* when: the one not used for longest makes room */
    struct nbc_plan *plan[WAYS];
};

struct nbc_plans {
    uint32_t now;
    struct set set[SETS];
};

static void make_key(const struct nbc_call *call, const struct nbc_alg *override, int64_t segment,
                     struct nbc_plan_key *k)
{
    k->send_count = call->send.count;
    k->recv_count = call->recv.count;
    k->send_type = call->send.type;
    k->recv_type = call->recv.type;
    k->op = call->op;
    k->override = override;
    k->segment = segment;
    k->coll = call->coll;
    k->root = call->root;
    k->send_in_place = call->send.buf == MPI_IN_PLACE;
    k->recv_in_place = call->recv.buf == MPI_IN_PLACE;
}

static bool same(const struct nbc_plan_key *x, const struct nbc_plan_key *y)
{
    return x->coll == y->coll && x->send_count == y->send_count && x->recv_count == y->recv_count &&
           x->send_type == y->send_type && x->recv_type == y->recv_type && x->op == y->op &&
           x->root == y->root && x->override == y->override && x->segment == y->segment &&
           x->send_in_place == y->send_in_place && x->recv_in_place == y->recv_in_place;
}

static bool has_arrays(const struct nbc_call *call)
{
    return call->send.counts.width || call->recv.counts.width;
}

/* --- arrays ------------------------------------------------------------------------------------*/

static bool equal(struct nbc_ints kept, struct nbc_ints given, int n)
{
    if (!kept.width)
        return true;
    return given.data && given.width == kept.width &&
           memcmp(kept.data, given.data, (size_t)n * (size_t)kept.width) == 0;
}

static bool same_arrays(const struct nbc_plan_arrays *kept, const struct nbc_args *given)
{
    size_t bytes = (size_t)kept->n * sizeof *given->types;
    if (kept->types && (!given->types || memcmp(kept->types, given->types, bytes) != 0))
        return false;
    return equal(kept->counts, given->counts, kept->n) &&
           equal(kept->displs, given->displs, kept->n);
}

static struct nbc_ints copy(struct nbc_ints from, int n, char **room)
{
    if (!from.width)
        return from;
    size_t bytes = (size_t)n * (size_t)from.width;
    struct nbc_ints to = {memcpy(*room, from.data, bytes), from.width};
    *room += bytes;
    return to;
}

static const void *copy_types(const MPI_Datatype *from, int n, char **room)
{
    size_t bytes = (size_t)n * sizeof *from;
    const void *to = memcpy(*room, from, bytes);
    *room += bytes;
    return to;
}

static struct nbc_plan_arrays copy_side(const struct nbc_shape *s, const struct nbc_args *args,
                                        bool send, char **room)
{
    const struct nbc_side *side = send ? &s->send : &s->recv;
    const struct nbc_ints none = {NULL, 0};
    int n = side->counts.width ? nbc_bind_peers(s, send) : 0;
    bool displs = n > 0 && side->displs.data;
    return (struct nbc_plan_arrays){
        .n = n,
        .types = n && side->peer_types ? copy_types(args->types, n, room) : NULL,
        .counts = copy(n ? side->counts : none, n, room),
        .displs = copy(displs ? side->displs : none, n, room)};
}

/* The widest entries for every block of both sides are room enough. */
static bool keep_arrays(struct nbc_plan *p, const struct nbc_shape *s, const struct nbc_call *call)
{
    size_t entries = (size_t)nbc_bind_peers(s, true) + (size_t)nbc_bind_peers(s, false);
    char *room = p->arrays =
        entries > MAX_ENTRIES ? NULL : malloc(3 * entries * sizeof(int64_t) + 1);
    if (!room)
        return false;
    p->send = copy_side(s, &call->send, true, &room);
    p->recv = copy_side(s, &call->recv, false, &room);
    /* What arrays say of buffers is looked at anew where one is NULL. */
    p->needs_send |= p->send.n > 0;
    p->needs_recv |= p->recv.n > 0;
    return true;
}

/* --- the table ---------------------------------------------------------------------------------*/

/* Where arrays lie tells calls apart whose arrays differ; it is no part of the key. */
static uint64_t hash(const struct nbc_plan_key *k, const struct nbc_call *call)
{
    uint64_t mix = (uint64_t)k->coll * 7 + (uint64_t)k->root * 131 + (uint64_t)k->send_count * 31 +
                   (uint64_t)k->recv_count * 37 + (uint64_t)(uintptr_t)k->recv_type +
                   (uint64_t)(uintptr_t)k->op + (uint64_t)(uintptr_t)call->send.counts.data * 3 +
                   (uint64_t)(uintptr_t)call->recv.counts.data * 5;
    return mix * UINT64_C(0x9E3779B97F4A7C15);
}

static uint32_t mark_of(uint64_t hash)
{
    return (uint32_t)(hash >> 24) | 1;
}

static struct set *set_of(struct nbc_plans *plans, uint64_t hash)
{
    return &plans->set[(hash >> 56) % SETS];
}

void nbc_plan_release(struct nbc_plan *plan)
{
    if (--plan->refs > 0)
        return;
    nbc_sched_release(plan->sched);
    free(plan->arrays);
    free(plan);
}

/* Takes a plan out of the table. */
static void retire(struct set *set, int i)
{
    struct nbc_plan *plan = set->plan[i];
    set->mark[i] = 0;
    while (plan->idle) {
        struct nbc_run *run = plan->idle;
        plan->idle = run->next;
        nbc_run_free(run);
    }
    plan->nidle = MAX_IDLE; /* takes none back */
    nbc_plan_release(plan);
}

static bool is_for(const struct nbc_plan *p, const struct nbc_plan_key *key,
                   const struct nbc_call *call)
{
    return same(&p->key, key) && (!p->arrays || (same_arrays(&p->send, &call->send) &&
                                                 same_arrays(&p->recv, &call->recv)));
}

/* The place of the plan for a call; WAYS: there is none. */
static int place_of(const struct set *set, uint32_t mark, const struct nbc_plan_key *key,
                    const struct nbc_call *call)
{
    for (int i = 0; i < WAYS; i++)
        if (set->mark[i] == mark && is_for(set->plan[i], key, call))
            return i;
    return WAYS;
}

static bool suits(const struct nbc_plan *p, const struct nbc_call *call)
{
    const void *send = call->send.buf, *recv = call->recv.buf;
    uintptr_t apart = (uintptr_t)send - (uintptr_t)recv;
    return (p->lasting || p->generation == nbc_types_generation) && !(p->needs_send && !send) &&
           !(p->needs_recv && !recv) &&
           !(p->needs_send && p->needs_recv && (apart == 0 || apart == (uintptr_t)p->own_at));
}

struct nbc_plan *nbc_plan_find(struct nbc_plans *plans, const struct nbc_call *call,
                               const struct nbc_alg *override, int64_t segment)
{
    struct nbc_plan_key key;
    if (!plans)
        return NULL;
    make_key(call, override, segment, &key);
    uint64_t h = hash(&key, call);
    struct set *set = set_of(plans, h);
    int i = place_of(set, mark_of(h), &key, call);
    if (i == WAYS || !suits(set->plan[i], call))
        return NULL;
    set->used[i] = ++plans->now;
    return set->plan[i];
}

/* A free place, or that of the plan not used for longest. */
static int make_room(const struct nbc_plans *plans, struct set *set)
{
    int oldest = 0;
    for (int i = 0; i < WAYS; i++) {
        if (!set->mark[i])
            return i;
        if (plans->now - set->used[i] > plans->now - set->used[oldest])
            oldest = i;
    }
    retire(set, oldest);
    return oldest;
}

/* In place of one that did not suit, if there is one. */
static void enter(struct nbc_plans *plans, const struct nbc_call *call, struct nbc_plan *p)
{
    uint64_t h = hash(&p->key, call);
    struct set *set = set_of(plans, h);
    int i = place_of(set, mark_of(h), &p->key, call);
    if (i < WAYS)
        retire(set, i);
    else
        i = make_room(plans, set);
    set->mark[i] = mark_of(h);
    set->used[i] = ++plans->now;
    set->plan[i] = p;
}

/* Predefined handles are never freed. */
static bool is_lasting(const struct nbc_bound *b)
{
    bool lasting = !b->reducer || b->reducer->named;
    for (int i = 0; i < b->shape.ntypes && lasting; i++)
        lasting = b->types[i]->named;
    return lasting;
}

struct nbc_plan *nbc_plan_keep(struct nbc_plans **plans, const struct nbc_call *call,
                               const struct nbc_bound *b, struct nbc_sched *sched,
                               const struct nbc_alg *alg, const struct nbc_alg *override,
                               int64_t segment)
{
    int ntypes = b->shape.ntypes;
    if (sched->nops > MAX_OPS)
        return NULL;
    if (!*plans)
        *plans = calloc(1, sizeof **plans);
    struct nbc_plan *p = *plans ? malloc(sizeof *p + (size_t)ntypes * sizeof *p->types) : NULL;
    if (!p)
        return NULL;
    *p = (struct nbc_plan){.sched = sched};
    p->needs_send = b->reads_send;
    p->needs_recv = b->reads_recv;
    p->own_at = b->own_at;
    if (has_arrays(call) && !keep_arrays(p, &b->shape, call)) {
        free(p);
        return NULL;
    }
    make_key(call, override, segment, &p->key);
    sched->refs++;
    p->alg = alg;
    memcpy(p->types, b->types, (size_t)ntypes * sizeof *p->types);
    p->holdings = (struct nbc_handle_refs){p->types, ntypes, b->reducer};
    p->bytes = nbc_shape_bytes(&b->shape);
    p->generation = nbc_types_generation;
    p->lasting = is_lasting(b);
    p->refs = 1;
    enter(*plans, call, p);
    return p;
}

struct nbc_run *nbc_plan_take(struct nbc_plan *plan)
{
    struct nbc_run *run = plan->idle;
    if (!run)
        return nbc_run_new(plan->sched, &plan->holdings);
    plan->idle = run->next;
    plan->nidle--;
    return run;
}

void nbc_plan_give(struct nbc_plan *plan, struct nbc_run *run)
{
    if (plan->nidle >= MAX_IDLE) {
        nbc_run_free(run);
        return;
    }
    run->next = plan->idle;
    plan->idle = run;
    plan->nidle++;
}

void nbc_plans_free(struct nbc_plans *plans)
{
    if (!plans)
        return;
    for (int i = 0; i < SETS * WAYS; i++)
        if (plans->set[i / WAYS].mark[i % WAYS])
            retire(&plans->set[i / WAYS], i % WAYS);
    free(plans);
}
