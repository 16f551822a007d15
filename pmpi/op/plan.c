/* SPDX-License-Identifier: MIT */
#include "op/plan.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "below/next.h"
#include "op/call.h"
#include "op/types.h"

#include "coll.h"
#include "sched.h"
#include "select.h"

enum {
    LISTS = 8,             /* of plans of a collective on a communicator */
    MOST_PLANS = 8,        /* of a list */
    MAX_IDLE = 64,         /* idle runs of a plan */
    LARGE = 1 << 16,       /* bytes from which on a plan, or one of its runs, is large */
    MOST_BYTES = 64 << 20, /* of all large plans and their idle runs */
};

/* Lists linked by next, the last one used first. The arguments in which calls of a program differ
 * most determine the list. */
struct nbc_plans {
    struct nbc_plan *of[NBC_NCOLLS][LISTS];
};

/* --- arrays ------------------------------------------------------------------------------------*/

static bool equal_ints(struct nbc_ints kept, struct nbc_ints given, int n)
{
    if (!kept.width)
        return true; /* mutants: false for true: plans are used less often */
    return given.data && given.width == kept.width &&
           memcmp(kept.data, given.data, (size_t)n * (size_t)kept.width) == 0;
}

static bool same_arrays(const struct nbc_args *kept, const struct nbc_args *given, int n)
{
    size_t bytes = (size_t)n * sizeof *given->types;
    if (kept->types && (!given->types || memcmp(kept->types, given->types, bytes) != 0))
        return false;
    return equal_ints(kept->counts, given->counts, n) && equal_ints(kept->displs, given->displs, n);
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

/* Replaces the arrays of a side by copies. Returns the number of their entries. */
static int copy_arrays(struct nbc_args *args, const struct nbc_shape *s, bool send, char **room)
{
    const struct nbc_side *side = send ? &s->send : &s->recv;
    const struct nbc_ints none = {NULL, 0};
    int n = side->counts.width ? nbc_bind_peers(s, send) : 0;
    bool displs = n > 0 && side->displs.data; /* mutants: >= for >: plans are used less often */
    args->types = n && side->peer_types ? copy_types(args->types, n, room) : NULL;
    args->counts = copy_ints(n ? side->counts : none, n, room);
    args->displs = copy_ints(displs ? side->displs : none, n, room);
    return n;
}

/* Allocates room for the widest entries of every block of both sides. */
static bool keep_arrays(struct nbc_plan *p, const struct nbc_shape *s)
{
    size_t entries = (size_t)nbc_bind_peers(s, true) + (size_t)nbc_bind_peers(s, false);
    /* mutants: - for +, forget + 1: room whose end no MPI here reaches */
    size_t bytes = 3 * entries * sizeof(int64_t) + 1;
    char *room = p->arrays = malloc(bytes);
    if (!room)
        return false;
    p->size += bytes;
    p->nsend = copy_arrays(&p->call.send, s, true, &room);
    p->nrecv = copy_arrays(&p->call.recv, s, false, &room);
    /* A call with arrays and a NULL buffer is bound again: its arrays may describe no data. */
    p->needs_send |= p->nsend > 0; /* mutants: >= for >: plans are used less often */
    p->needs_recv |= p->nrecv > 0; /* mutants: >= for >: plans are used less often */
    return true;                   /* mutants: false for true: plans are used less often */
}

/* --- the cache ---------------------------------------------------------------------------------*/

void nbc_plan_free(struct nbc_plan *plan)
{
    nbc_sched_release(plan->sched);
    free(plan->arrays);
    free(plan);
}

/* The large plans of all communicators, the last one used first, and the bytes of these and of
 * their idle runs. Under the lock. */
static struct nbc_plan *large;
static size_t large_bytes;

static size_t idle_bytes(const struct nbc_plan *plan)
{
    return plan->idle ? (size_t)plan->nidle * plan->idle->size : 0;
}

static void large_add(struct nbc_plan *plan)
{
    plan->large = true;
    DL_PREPEND2(large, plan, later, earlier);
    large_bytes += plan->size + idle_bytes(plan);
}

static void large_remove(struct nbc_plan *plan)
{
    plan->large = false;
    DL_DELETE2(large, plan, later, earlier);
    large_bytes -= plan->size + idle_bytes(plan);
}

/* Removes a plan from its list. */
static void plan_retire(struct nbc_plan *plan)
{
    LL_DELETE(*plan->list, plan);
    plan->list = NULL;
    if (plan->large)
        large_remove(plan);
    while (plan->idle) {
        struct nbc_run *run = plan->idle;
        plan->idle = run->next;
        nbc_run_free(run);
    }
    plan->nidle = 0;
    nbc_plan_release(plan);
}

/* The buffers of a call that are MPI_IN_PLACE, as a set. */
static inline unsigned in_place_of(const struct nbc_call *call)
{
    return (call->send.buf == MPI_IN_PLACE) | (call->recv.buf == MPI_IN_PLACE) << 1U;
}

static inline bool same_side(const struct nbc_args *kept, const struct nbc_args *given)
{
    return kept->count == given->count && kept->type == given->type;
}

static inline bool asked_for(const struct nbc_plan *p, const struct nbc_preferences *asked)
{
    return asked ? p->asks && p->preferences.alg == asked->alg &&
                       p->preferences.segment == asked->segment &&
                       p->preferences.order == asked->order
                 : !p->asks;
}

static inline bool plan_is_for(const struct nbc_plan *p, const struct nbc_call *call,
                               const struct nbc_preferences *preferences)
{
    const struct nbc_call *kept = &p->call;
    return same_side(&kept->send, &call->send) && same_side(&kept->recv, &call->recv) &&
           p->in_place == in_place_of(call) && kept->op == call->op && kept->root == call->root &&
           asked_for(p, preferences) &&
           (!p->arrays || (same_arrays(&kept->send, &call->send, p->nsend) &&
                           same_arrays(&kept->recv, &call->recv, p->nrecv)));
}

static inline bool plan_suits(const struct nbc_plan *p, const struct nbc_call *call)
{
    const void *send = call->send.buf, *recv = call->recv.buf;
    uintptr_t apart = (uintptr_t)send - (uintptr_t)recv;
    return (p->handles.predefined || p->generation == nbc_types_generation) &&
           !(p->needs_send && !send) && !(p->needs_recv && !recv) &&
           !(p->needs_send && p->needs_recv && (apart == 0 || apart == (uintptr_t)p->alias_offset));
}

static __attribute__((noinline)) struct nbc_plan *
plan_look_up(struct nbc_plan **list, const struct nbc_call *call,
             const struct nbc_preferences *preferences)
{
    struct nbc_plan **at = list, *plan;
    while ((plan = *at) && !plan_is_for(plan, call, preferences))
        at = &plan->next;
    if (!plan)
        return NULL;
    *at = plan->next;
    plan->next = *list;
    *list = plan;
    return plan_suits(plan, call) ? plan : NULL;
}

static inline struct nbc_plan **list_of(struct nbc_plans *plans, const struct nbc_call *call)
{
    /* mutants: - for +: another list */
    uint64_t mix = (uint64_t)call->send.count + (uint64_t)call->recv.count + (uint64_t)call->root +
                   /* mutants: - for +: another list */
                   (uint64_t)(uintptr_t)call->recv.type + (uintptr_t)call->send.counts.data;
    return &plans->of[call->coll][mix * UINT64_C(0x9E3779B97F4A7C15) >> 61];
}

struct nbc_plan *nbc_plan_find(struct nbc_plans *plans, const struct nbc_call *call,
                               const struct nbc_preferences *preferences)
{
    if (!plans)
        return NULL;
    struct nbc_plan **list = list_of(plans, call), *plan = *list;
    if (!plan || plan->arrays || !plan_is_for(plan, call, preferences))
        return plan_look_up(list, call, preferences);
    return plan_suits(plan, call) ? plan : NULL;
}

/* Adds a plan. It replaces that of an equal call that did not suit, or the one that was not used
 * for longest. */
static void plan_enter(struct nbc_plan **list, const struct nbc_call *call,
                       const struct nbc_preferences *preferences, struct nbc_plan *p)
{
    struct nbc_plan *old, *next;
    int n = 1;
    LL_FOREACH_SAFE (*list, old, next)
        if (n == MOST_PLANS || plan_is_for(old, call, preferences))
            plan_retire(old);
        else
            n++;
    p->list = list;
    LL_PREPEND(*list, p);
    if (p->size >= LARGE)
        large_add(p);
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
    if (!*plans)
        *plans = calloc(1, sizeof **plans);
    size_t size = sizeof(struct nbc_plan) + (size_t)ntypes * sizeof(struct nbc_datatype *);
    struct nbc_plan *p = *plans ? malloc(size) : NULL;
    if (!p)
        return NULL;
    *p = (struct nbc_plan){.call = *call,
                           .asks = preferences,
                           .in_place = in_place_of(call),
                           .sched = sched,
                           .size = size + nbc_sched_bytes(sched)};
    if (preferences)
        p->preferences = *preferences;
    p->needs_send = b->reads_send;
    p->needs_recv = b->reads_recv;
    p->alias_offset = b->alias_offset;
    if ((call->send.counts.width || call->recv.counts.width) && !keep_arrays(p, &b->shape)) {
        free(p);
        return NULL;
    }
    sched->refs++;
    p->alg = alg;
    memcpy(p->types, b->types, (size_t)ntypes * sizeof *p->types);
    p->handles = (struct nbc_handle_refs){p->types, ntypes, b->reducer, is_predefined(b)};
    p->bytes = nbc_shape_bytes(&b->shape);
    p->input = nbc_bound_input(b);
    p->generation = nbc_types_generation;
    p->refs = 1;
    plan_enter(list_of(*plans, call), call, preferences, p);
    return p;
}

static struct nbc_run *plan_make_run(struct nbc_plan *plan)
{
    struct nbc_run *run = nbc_run_new(plan->sched, &plan->handles, plan->input);
    if (run && run->size >= LARGE && plan->list && !plan->large)
        large_add(plan);
    return run;
}

struct nbc_run *nbc_plan_take(struct nbc_plan *plan)
{
    struct nbc_run *run = plan->idle;
    if (!run)
        return plan_make_run(plan);
    plan->idle = run->next;
    plan->nidle--; /* mutants: leave a count out: plans are used less often */
    if (__builtin_expect(plan->large, 0))
        large_bytes -= run->size;
    return run;
}

/* A large plan has been used: drops those that were not used for longest, maybe this one too. */
static __attribute__((cold)) void large_use(struct nbc_plan *plan)
{
    large_remove(plan);
    large_add(plan);
    while (large_bytes > MOST_BYTES)
        plan_retire(large->later);
}

void nbc_plan_give(struct nbc_plan *plan, struct nbc_run *run)
{
    if (!plan->list || plan->nidle >= MAX_IDLE || run->exec.abandoned) {
        nbc_run_free(run);
        return;
    }
    run->next = plan->idle;
    plan->idle = run;
    plan->nidle++; /* mutants: leave a count out: plans are used less often */
    if (__builtin_expect(!plan->large, 1))
        return;
    large_bytes += run->size;
    large_use(plan);
}

void nbc_plans_free(struct nbc_plans *plans)
{
    if (!plans)
        return;
    for (int i = 0; i < NBC_NCOLLS * LISTS; i++)
        while (plans->of[i / LISTS][i % LISTS])
            plan_retire(plans->of[i / LISTS][i % LISTS]);
    free(plans);
}
