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
    SETS = 8,           /* sets of a communicator; the hash of a plan determines its set */
    WAYS = 8,           /* plans of a set */
    MAX_OPS = 1024,     /* larger schedules are not cached, to bound the memory per communicator */
    MAX_ENTRIES = 2048, /* longer arrays are not cached, for the same reason */
    MAX_IDLE = 32       /* idle runs of a plan */
};

struct set {
    uint32_t mark[WAYS]; /* part of the hash, which distinguishes most plans; 0: free */
    uint32_t used[WAYS]; /* time of the last use; the least recently used plan is evicted */
    struct nbc_plan *plan[WAYS];
};

struct nbc_plans {
    uint32_t now;
    struct nbc_plan *recent[NBC_NCOLLS]; /* the last plan found for each collective, or NULL */
    struct set set[SETS];
};

static void plan_key_of(const struct nbc_call *call, const struct nbc_preferences *preferences,
                        struct nbc_plan_key *k)
{
    k->send_count = call->send.count;
    k->recv_count = call->recv.count;
    k->send_type = call->send.type;
    k->recv_type = call->recv.type;
    k->op = call->op;
    k->preferences = *preferences;
    k->coll = call->coll;
    k->root = call->root;
    /* mutants: != for ==: plans are not found again, which takes time only */
    k->send_in_place = call->send.buf == MPI_IN_PLACE;
    /* mutants: != for ==: plans are not found again, which takes time only */
    k->recv_in_place = call->recv.buf == MPI_IN_PLACE;
}

/* Whether plan_key_of would give this key. */
static inline bool is_key_of(const struct nbc_plan_key *k, const struct nbc_call *call,
                             const struct nbc_preferences *preferences)
{
    return k->coll == (int)call->coll && k->send_count == call->send.count &&
           k->recv_count == call->recv.count && k->send_type == call->send.type &&
           k->recv_type == call->recv.type && k->op == call->op && k->root == call->root &&
           k->preferences.alg == preferences->alg &&
           k->preferences.segment == preferences->segment &&
           k->preferences.order == preferences->order &&
           k->send_in_place == (call->send.buf == MPI_IN_PLACE) &&
           k->recv_in_place == (call->recv.buf == MPI_IN_PLACE);
}

static bool has_arrays(const struct nbc_call *call)
{
    return call->send.counts.width || call->recv.counts.width;
}

/* --- arrays ------------------------------------------------------------------------------------*/

static bool equal_ints(struct nbc_ints kept, struct nbc_ints given, int n)
{
    if (!kept.width)
        return true; /* mutants: false for true: plans are used less often */
    return given.data && given.width == kept.width &&
           memcmp(kept.data, given.data, (size_t)n * (size_t)kept.width) == 0;
}

static bool same_arrays(const struct nbc_plan_arrays *kept, const struct nbc_args *given)
{
    size_t bytes = (size_t)kept->n * sizeof *given->types;
    if (kept->types && (!given->types || memcmp(kept->types, given->types, bytes) != 0))
        return false;
    return equal_ints(kept->counts, given->counts, kept->n) &&
           equal_ints(kept->displs, given->displs, kept->n);
}

static struct nbc_ints copy_ints(struct nbc_ints from, int n, char **room)
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
    bool displs = n > 0 && side->displs.data; /* mutants: >= for >: plans are used less often */
    return (struct nbc_plan_arrays){
        .n = n,
        .types = n && side->peer_types ? copy_types(args->types, n, room) : NULL,
        .counts = copy_ints(n ? side->counts : none, n, room),
        .displs = copy_ints(displs ? side->displs : none, n, room)};
}

/* Allocates room for the widest entries of every block of both sides. */
static bool keep_arrays(struct nbc_plan *p, const struct nbc_shape *s, const struct nbc_call *call)
{
    size_t entries = (size_t)nbc_bind_peers(s, true) + (size_t)nbc_bind_peers(s, false);
    char *room = p->arrays =
        /* mutants: - for +, forget + 1, >= for >: room and limits whose ends no MPI here reaches */
        entries > MAX_ENTRIES ? NULL : malloc(3 * entries * sizeof(int64_t) + 1);
    if (!room)
        return false;
    p->send = copy_side(s, &call->send, true, &room);
    p->recv = copy_side(s, &call->recv, false, &room);
    /* A call with arrays and a NULL buffer is bound again: its arrays may describe no data. */
    p->needs_send |= p->send.n > 0; /* mutants: >= for >: plans are used less often */
    p->needs_recv |= p->recv.n > 0; /* mutants: >= for >: plans are used less often */
    return true;                    /* mutants: false for true: plans are used less often */
}

/* --- the table ---------------------------------------------------------------------------------*/

/* The addresses of the arrays distinguish calls with different arrays; they are not part of the
 * key. */
static uint64_t plan_hash(const struct nbc_call *call)
{
    const struct nbc_args *send = &call->send, *recv = &call->recv;
    /* mutants: - for +: another place in the table */
    uint64_t mix = (uint64_t)call->coll * 7 + (uint64_t)call->root * 131 +
                   /* mutants: - for +: another place in the table */
                   (uint64_t)send->count * 31 + (uint64_t)recv->count * 37 +
                   /* mutants: - for +: another place in the table */
                   (uint64_t)(uintptr_t)recv->type + (uint64_t)(uintptr_t)call->op +
                   (uint64_t)(uintptr_t)send->counts.data * 3 +
                   (uint64_t)(uintptr_t)recv->counts.data * 5;
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

/* Removes a plan from the table. */
static void plan_retire(struct nbc_plans *plans, struct set *set, int i)
{
    struct nbc_plan *plan = set->plan[i];
    set->mark[i] = 0;
    if (plans->recent[plan->key.coll] == plan)
        plans->recent[plan->key.coll] = NULL;
    while (plan->idle) {
        struct nbc_run *run = plan->idle;
        plan->idle = run->next;
        nbc_run_free(run);
    }
    plan->nidle = MAX_IDLE; /* nbc_plan_give frees the runs */
    nbc_plan_release(plan);
}

static inline bool plan_is_for(const struct nbc_plan *p, const struct nbc_call *call,
                               const struct nbc_preferences *preferences)
{
    return is_key_of(&p->key, call, preferences) &&
           (!p->arrays ||
            (same_arrays(&p->send, &call->send) && same_arrays(&p->recv, &call->recv)));
}

/* The index of the plan for a call, WAYS if there is none. */
static int place_of(const struct set *set, uint32_t mark, const struct nbc_call *call,
                    const struct nbc_preferences *preferences)
{
    for (int i = 0; i < WAYS; i++)
        if (set->mark[i] == mark && plan_is_for(set->plan[i], call, preferences))
            return i;
    return WAYS;
}

static inline bool plan_suits(const struct nbc_plan *p, const struct nbc_call *call)
{
    const void *send = call->send.buf, *recv = call->recv.buf;
    uintptr_t apart = (uintptr_t)send - (uintptr_t)recv;
    return (p->predefined || p->generation == nbc_types_generation) && !(p->needs_send && !send) &&
           !(p->needs_recv && !recv) &&
           !(p->needs_send && p->needs_recv && (apart == 0 || apart == (uintptr_t)p->alias_offset));
}

static struct nbc_plan *plan_look_up(struct nbc_plans *plans, const struct nbc_call *call,
                                     const struct nbc_preferences *preferences)
{
    uint64_t h = plan_hash(call);
    struct set *set = set_of(plans, h);
    int i = place_of(set, mark_of(h), call, preferences);
    return i < WAYS ? plans->recent[call->coll] = set->plan[i] : NULL;
}

struct nbc_plan *nbc_plan_find(struct nbc_plans *plans, const struct nbc_call *call,
                               const struct nbc_preferences *preferences)
{
    if (!plans)
        return NULL;
    struct nbc_plan *plan = plans->recent[call->coll];
    if (!plan || !plan_is_for(plan, call, preferences))
        plan = plan_look_up(plans, call, preferences);
    if (!plan || !plan_suits(plan, call))
        return NULL;
    *plan->used = ++plans->now;
    return plan;
}

/* Returns a free index, or evicts the least recently used plan. */
static int set_make_room(struct nbc_plans *plans, struct set *set)
{
    int oldest = 0;
    for (int i = 0; i < WAYS; i++) {
        if (!set->mark[i])
            return i;
        /* mutants: >= for >: no two were used at the same time */
        if (plans->now - set->used[i] > plans->now - set->used[oldest])
            oldest = i;
    }
    plan_retire(plans, set, oldest);
    return oldest;
}

/* Enters a plan into the table. It replaces the plan of an equal call that did not suit, if there
 * is one. */
static void plan_enter(struct nbc_plans *plans, const struct nbc_call *call, struct nbc_plan *p)
{
    uint64_t h = plan_hash(call);
    struct set *set = set_of(plans, h);
    int i = place_of(set, mark_of(h), call, &p->key.preferences);
    if (i < WAYS)
        plan_retire(plans, set, i);
    else
        i = set_make_room(plans, set);
    set->mark[i] = mark_of(h);
    set->used[i] = ++plans->now;
    set->plan[i] = p;
    p->used = &set->used[i];
}

/* Whether a plan depends on predefined handles only, which are never freed. */
static bool is_predefined(const struct nbc_bound *b)
{
    bool predefined = !b->reducer || b->reducer->named;
    for (int i = 0; i < b->shape.ntypes && predefined; i++)
        predefined = b->types[i]->named;
    return predefined;
}

struct nbc_plan *nbc_plan_keep(struct nbc_plans **plans, const struct nbc_call *call,
                               const struct nbc_bound *b, struct nbc_sched *sched,
                               const struct nbc_alg *alg, const struct nbc_preferences *preferences)
{
    int ntypes = b->shape.ntypes;
    if (sched->nops > MAX_OPS) /* mutants: >= for >: plans are used less often */
        return NULL;
    if (!*plans)
        *plans = calloc(1, sizeof **plans);
    struct nbc_plan *p = *plans ? malloc(sizeof *p + (size_t)ntypes * sizeof *p->types) : NULL;
    if (!p)
        return NULL;
    *p = (struct nbc_plan){.sched = sched};
    p->needs_send = b->reads_send;
    p->needs_recv = b->reads_recv;
    p->alias_offset = b->alias_offset;
    if (has_arrays(call) && !keep_arrays(p, &b->shape, call)) {
        free(p);
        return NULL;
    }
    plan_key_of(call, preferences, &p->key);
    sched->refs++;
    p->alg = alg;
    memcpy(p->types, b->types, (size_t)ntypes * sizeof *p->types);
    p->handles = (struct nbc_handle_refs){p->types, ntypes, b->reducer};
    p->bytes = nbc_shape_bytes(&b->shape);
    p->input = nbc_bound_input(b);
    p->generation = nbc_types_generation;
    p->predefined = is_predefined(b);
    p->refs = 1;
    plan_enter(*plans, call, p);
    return p;
}

struct nbc_run *nbc_plan_take(struct nbc_plan *plan)
{
    struct nbc_run *run = plan->idle;
    if (!run)
        return nbc_run_new(plan->sched, &plan->handles, plan->input);
    plan->idle = run->next;
    plan->nidle--; /* mutants: leave a count out: plans are used less often */
    return run;
}

void nbc_plan_give(struct nbc_plan *plan, struct nbc_run *run)
{
    if (plan->nidle >= MAX_IDLE || run->exec.abandoned) {
        nbc_run_free(run);
        return;
    }
    run->next = plan->idle;
    plan->idle = run;
    plan->nidle++; /* mutants: leave a count out: plans are used less often */
}

void nbc_plans_free(struct nbc_plans *plans)
{
    if (!plans)
        return;
    for (int i = 0; i < SETS * WAYS; i++)
        if (plans->set[i / WAYS].mark[i % WAYS])
            plan_retire(plans, &plans->set[i / WAYS], i % WAYS);
    free(plans);
}
