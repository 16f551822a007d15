/* SPDX-License-Identifier: MIT */
#include "diag/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/tag_space.h"
#include "below/next.h"
#include "comm/context.h"
#include "engine/launch.h"
#include "op/bind.h"
#include "op/call.h"
#include "op/types.h"
#include "request/request.h"

#include "block.h"
#include "coll.h"
#include "select.h"

/* --- what is compared ------------------------------------------------------------------------- */

/* Ranks agree on each of these, as far as they know it; an earlier one explains later ones. OUT and
 * IN: bytes of the block (of reductions: vector) that a rank sends and that it expects, where they
 * are the same for all. */
enum {
    FACT_CALL,
    FACT_SIDE, /* intercommunicators: whether the root is in this group */
    FACT_ROOT,
    FACT_OP,
    FACT_OUT,
    FACT_IN,
    FACT_COUNTS, /* reduce_scatter: the array */
    FACT_ALG,
    FACT_SEGMENT,
    NFACTS
};

enum { UNKNOWN = -1, NOBODY = -1 };

struct fact {
    int64_t value;
    int64_t rank; /* who says so; NOBODY */
};

/* Where every pair of ranks has a size of its own, all of them are added up, plain and weighted by
 * the sender, by the receiver and by a random number of the pair. Sizes match when the sums of the
 * senders and of the receivers do, and if only one pair differs the weights tell which. */
enum { PLAIN, SENDER, RECEIVER, MIXED, NSUMS };

struct account {
    struct fact fact[NFACTS];
    uint64_t out[NSUMS], in[NSUMS];
    uint64_t roots;       /* ranks that say MPI_ROOT */
    int64_t differ;       /* the first fact on which two ranks differ, or NFACTS */
    struct fact one, two; /* what they say of it */
};

static void say(struct account *a, int fact, int64_t value, int rank)
{
    a->fact[fact] = (struct fact){value, rank};
}

/* --- of one call ------------------------------------------------------------------------------ */

/* Which way data flows; the standard reads one side of a broadcast on every rank. */
static struct nbc_significant flows(const struct nbc_shape *s)
{
    struct nbc_significant both = nbc_bind_significant(s);
    if (s->coll != NBC_BCAST || !both.recv)
        return both;
    bool root = nbc_bind_is_root(s);
    return (struct nbc_significant){root, !root};
}

/* Every pair of ranks has a size of its own. */
static bool is_paired(enum nbc_coll coll)
{
    return coll == NBC_GATHERV || coll == NBC_SCATTERV || coll == NBC_ALLGATHERV ||
           coll == NBC_ALLTOALLV || coll == NBC_ALLTOALLW || nbc_coll_is_neighborhood(coll);
}

static uint64_t weight(uint64_t sender, uint64_t receiver)
{
    uint64_t x = (sender << 32 | receiver) + UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    return x ^ (x >> 27);
}

static void add(uint64_t sum[NSUMS], uint64_t bytes, uint64_t sender, uint64_t receiver)
{
    sum[PLAIN] += bytes;
    sum[SENDER] += bytes * sender;
    sum[RECEIVER] += bytes * receiver;
    sum[MIXED] += bytes * weight(sender, receiver);
}

/* All it sends goes to the root, or all it gets comes from there. */
static bool is_with_root(const struct nbc_shape *s, bool out)
{
    return nbc_coll_has_root(s->coll) && out == nbc_bind_to_root(s->coll);
}

/* The k-th rank that this one sends to (or receives from), negative for none. */
static int peer(const struct nbc_shape *s, int k, bool out)
{
    if (s->neighbors)
        return out ? s->neighbors->destinations[k] : s->neighbors->sources[k];
    return is_with_root(s, out) ? s->root : k;
}

static void add_pairs(struct account *a, const struct nbc_shape *s, bool out)
{
    int n = is_with_root(s, out) ? 1 : nbc_bind_peers(s, out);
    for (int k = 0; k < n; k++) {
        int other = peer(s, k, out);
        struct nbc_ref block = out ? nbc_send_block(s, k) : nbc_recv_block(s, k);
        uint64_t bytes = (uint64_t)nbc_ref_bytes(s, block);
        if (other >= 0 && out)
            add(a->out, bytes, s->rank, other);
        else if (other >= 0)
            add(a->in, bytes, other, s->rank);
    }
}

static void tell_scattered(struct account *a, const struct nbc_shape *s)
{
    uint64_t total = 0, hash = 0;
    for (int i = 0; i < s->size; i++) {
        uint64_t bytes = (uint64_t)nbc_ref_bytes(s, nbc_send_block(s, i));
        total += bytes;
        hash += bytes * weight(0, i);
    }
    say(a, FACT_OUT, (int64_t)total, s->rank);
    say(a, FACT_IN, (int64_t)total, s->rank);
    say(a, FACT_COUNTS, (int64_t)(hash >> 1), s->rank);
}

static void tell_sizes(struct account *a, const struct nbc_shape *s)
{
    bool paired = is_paired(s->coll);
    struct nbc_significant flow = flows(s);
    if (s->coll == NBC_REDUCE_SCATTER || s->coll == NBC_REDUCE_SCATTER_BLOCK) {
        tell_scattered(a, s);
        return;
    }
    if (paired && flow.send)
        add_pairs(a, s, true);
    else if (flow.send)
        say(a, FACT_OUT, nbc_ref_bytes(s, nbc_send_block(s, 0)), s->rank);
    if (paired && flow.recv)
        add_pairs(a, s, false);
    else if (flow.recv)
        say(a, FACT_IN, nbc_ref_bytes(s, nbc_recv_block(s, 0)), s->rank);
}

static void tell_root(struct account *a, const struct nbc_shape *s)
{
    if (!nbc_coll_has_root(s->coll))
        return;
    bool here = s->root == NBC_ROOT_HERE;
    if (s->remote_size)
        say(a, FACT_SIDE, here || s->root == NBC_ROOT_IDLE, s->rank);
    a->roots = here;
    if (s->root != NBC_ROOT_IDLE)
        say(a, FACT_ROOT, here ? s->rank : s->root, s->rank);
}

/* Operators of the program cannot be compared, but whether they commute. */
static const int64_t user_op = INT64_C(1) << 40;

static void tell_op(struct account *a, const struct nbc_bound *b)
{
    const struct nbc_operator *op = b->reducer;
    if (op)
        say(a, FACT_OP, op->named ? MPI_Op_c2f(op->handle) : user_op + op->commutative,
            b->shape.rank);
}

static void tell_algorithm(struct account *a, const struct nbc_call *call,
                           const struct nbc_context *c, struct nbc_shape *s)
{
    const struct nbc_alg *override;
    int64_t segment;
    nbc_launch_overrides(call, c, &override, &segment);
    const struct nbc_alg *alg = nbc_launch_choose(s, override, segment);
    say(a, FACT_ALG, alg - nbc_algs, s->rank);
    say(a, FACT_SEGMENT, s->segment, s->rank);
}

static int64_t call_number(const struct nbc_call *call, enum nbc_kind kind)
{
    return (call->purpose * (int64_t)NBC_NKINDS + kind) * NBC_NCOLLS + call->coll;
}

static int give_account(struct account *a, struct nbc_context *c, const struct nbc_call *call,
                        enum nbc_kind kind)
{
    struct nbc_bound b;
    int error = nbc_bind(call, &c->members, &b);
    if (error)
        return error;
    memset(a, 0, sizeof *a);
    a->differ = NFACTS;
    for (int f = 0; f < NFACTS; f++)
        say(a, f, UNKNOWN, NOBODY);
    say(a, FACT_CALL, call_number(call, kind), c->members.rank);
    tell_root(a, &b.shape);
    tell_op(a, &b);
    tell_sizes(a, &b.shape);
    tell_algorithm(a, call, c, &b.shape);
    nbc_unbind(&b);
    return MPI_SUCCESS;
}

/* --- of several ------------------------------------------------------------------------------- */

static void compare(struct account *left, int fact, struct fact one, struct fact two)
{
    if (one.rank == NOBODY || two.rank == NOBODY || one.value == two.value || fact >= left->differ)
        return;
    left->differ = fact;
    left->one = one;
    left->two = two;
}

/* left = what both say, left that of lower ranks. */
static void merge(struct account *left, const struct account *right)
{
    for (int f = 0; f < NFACTS; f++) {
        compare(left, f, left->fact[f], right->fact[f]);
        if (left->fact[f].rank == NOBODY)
            left->fact[f] = right->fact[f];
    }
    for (int i = 0; i < NSUMS; i++) {
        left->out[i] += right->out[i];
        left->in[i] += right->in[i];
    }
    left->roots += right->roots;
    if (right->differ < left->differ) {
        left->differ = right->differ;
        left->one = right->one;
        left->two = right->two;
    }
}

static void combine(void *in, void *inout, int *n, MPI_Datatype *type)
{
    struct account *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *n; i++) {
        struct account both = left[i];
        merge(&both, &right[i]);
        right[i] = both;
    }
}

/* Made at init, read afterwards. */
static MPI_Datatype account_type = MPI_DATATYPE_NULL;
static MPI_Op account_op = MPI_OP_NULL;

/* --- the judgement ---------------------------------------------------------------------------- */

struct text {
    char line[MPI_MAX_ERROR_STRING];
    size_t length;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *format, ...)
{
    va_list args;
    size_t room = sizeof t->line - t->length;
    va_start(args, format);
    int n = vsnprintf(t->line + t->length, room, format, args);
    va_end(args);
    t->length += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void put_call(struct text *t, int64_t number)
{
    static const char *const others[] = {
        [NBC_FOR_OTHERS] = "another collective function (on a communicator, window or file)",
        [NBC_FOR_TAGS] = "MPI_..._init, which negotiates a tag",
        [NBC_FOR_FINALIZE] = "MPI_Finalize",
    };
    static const char *const prefix[] = {"", "I", ""}, *const suffix[] = {"", "", "_init"};
    int purpose = (int)(number / (NBC_NKINDS * NBC_NCOLLS));
    int kind = (int)(number / NBC_NCOLLS % NBC_NKINDS);
    const char *name = nbc_coll_name(number % NBC_NCOLLS);
    if (purpose != NBC_FOR_PROGRAM)
        put(t, "%s", others[purpose]);
    else if (*prefix[kind])
        put(t, "MPI_%s%s%s", prefix[kind], name, suffix[kind]);
    else
        put(t, "MPI_%c%s%s", *name - 'a' + 'A', name + 1, suffix[kind]);
}

static const char *op_name(int64_t number)
{
    const struct {
        MPI_Op op;
        const char *name;
    } table[] = {
        {MPI_MAX, "MPI_MAX"},   {MPI_MIN, "MPI_MIN"},       {MPI_SUM, "MPI_SUM"},
        {MPI_PROD, "MPI_PROD"}, {MPI_LAND, "MPI_LAND"},     {MPI_BAND, "MPI_BAND"},
        {MPI_LOR, "MPI_LOR"},   {MPI_BOR, "MPI_BOR"},       {MPI_LXOR, "MPI_LXOR"},
        {MPI_BXOR, "MPI_BXOR"}, {MPI_MINLOC, "MPI_MINLOC"}, {MPI_MAXLOC, "MPI_MAXLOC"},
    };
    if (number >= user_op)
        return number > user_op ? "a commutative user-defined operator" : "a user-defined operator";
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (MPI_Op_c2f(table[i].op) == number)
            return table[i].name;
    return "another operator";
}

/* "gives root 1", for a fact. */
static void put_fact(struct text *t, int fact, int64_t value)
{
    switch (fact) {
    case FACT_CALL:
        put(t, "calls ");
        put_call(t, value);
        break;
    case FACT_SIDE:
        put(t, value ? "places the root in its own group" : "places the root in the other group");
        break;
    case FACT_ROOT:
        put(t, "gives root %" PRId64, value);
        break;
    case FACT_OP:
        put(t, "gives %s", op_name(value));
        break;
    case FACT_OUT:
        put(t, "sends %" PRId64 " bytes", value);
        break;
    case FACT_IN:
        put(t, "expects %" PRId64 " bytes", value);
        break;
    case FACT_ALG:
        put(t, "uses algorithm %s", nbc_algs[value].name);
        break;
    default:
        put(t, "uses segments of %" PRId64 " bytes", value);
    }
}

struct check {
    struct nbc_prerequisite base; /* its request: the allreduce under way */
    struct nbc_context *c;
    int64_t seq;
    bool second;                           /* of the two that an intercommunicator takes */
    struct account mine, remote, together; /* remote: of the other group, if there is one */
};

static void put_where(struct text *t, const struct check *check)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    const struct nbc_context *c = check->c;
    int length;
    if (c->user != MPI_COMM_NULL)
        NEXT(Comm_get_name)(c->user, name, &length);
    put(t, "ranks disagree in collective call %" PRId64 " on ", check->seq + 1);
    if (*name)
        put(t, "%.64s", name);
    else
        put(t, "an unnamed communicator");
    put(t, " of %d ranks: ", c->members.size + c->members.remote_size);
}

/* Begins a line about the call that all have made, if they have. */
static void put_common(struct text *t, const struct check *check, int fact)
{
    put_where(t, check);
    if (fact == FACT_CALL)
        return;
    put_call(t, check->together.fact[FACT_CALL].value);
    put(t, ": ");
}

static const char ours[] = "", theirs[] = " of the other group";

/* What a rank says of a fact. */
struct saying {
    int fact;
    struct fact said;
    const char *group;
};

static void put_difference(struct text *t, const struct check *check, struct saying one,
                           struct saying two)
{
    put_common(t, check, one.fact);
    if (one.fact == FACT_COUNTS) {
        put(t, "ranks %" PRId64 " and %" PRId64 "%s give different counts", one.said.rank,
            two.said.rank, two.group);
        return;
    }
    put(t, "rank %" PRId64 "%s ", one.said.rank, one.group);
    put_fact(t, one.fact, one.said.value);
    put(t, ", rank %" PRId64 "%s ", two.said.rank, two.group);
    put_fact(t, two.fact, two.said.value);
}

/* Which pair of ranks differs in size, if only one does: all sums are its surplus, weighted. */
static bool find_pair(const uint64_t surplus[NSUMS], int senders, int receivers, int64_t *sender,
                      int64_t *receiver)
{
    int64_t plain = (int64_t)surplus[PLAIN];
    if (plain == 0)
        return false;
    *sender = (int64_t)surplus[SENDER] / plain;
    *receiver = (int64_t)surplus[RECEIVER] / plain;
    return *sender >= 0 && *sender < senders && *receiver >= 0 && *receiver < receivers &&
           *sender * plain == (int64_t)surplus[SENDER] &&
           *receiver * plain == (int64_t)surplus[RECEIVER] &&
           surplus[MIXED] == surplus[PLAIN] * weight(*sender, *receiver);
}

/* Whether sizes of pairs differ: what one group sends, and what the other expects, which may be the
 * same group. Then *teller is the rank that shall print. */
static bool sizes_differ(struct text *t, const struct check *check, const struct account *from,
                         const struct account *to, int *teller)
{
    const struct nbc_context *c = check->c;
    uint64_t surplus[NSUMS], any = 0;
    int64_t sender, receiver;
    bool by_us = from == &check->together, to_us = to == &check->together;
    for (int i = 0; i < NSUMS; i++)
        any |= surplus[i] = from->out[i] - to->in[i];
    if (!any)
        return false;
    put_common(t, check, FACT_OUT);
    *teller = 0;
    if (!find_pair(surplus, by_us ? c->members.size : c->members.remote_size,
                   to_us ? c->members.size : c->members.remote_size, &sender, &receiver)) {
        put(t,
            "several pairs of ranks give different sizes (%" PRIu64 " bytes sent and %" PRIu64
            " bytes expected in total)",
            from->out[PLAIN], to->in[PLAIN]);
        return true;
    }
    int64_t bytes = (int64_t)surplus[PLAIN];
    *teller = (int)(by_us ? sender : receiver);
    put(t,
        "rank %" PRId64 "%s sends rank %" PRId64 "%s %" PRId64
        " bytes %s than the receiver expects",
        sender, by_us ? ours : theirs, receiver, to_us ? ours : theirs, bytes < 0 ? -bytes : bytes,
        bytes < 0 ? "less" : "more");
    return true;
}

static bool differ(struct fact one, struct fact two)
{
    return one.rank != NOBODY && two.rank != NOBODY && one.value != two.value;
}

/* Within one group: the facts from first to last. */
static bool judge_group(struct text *t, const struct check *check, const struct account *a,
                        int first, int last, int *teller)
{
    bool us = a == &check->together;
    if (a->differ < first || a->differ > last)
        return false;
    *teller = us ? (int)a->one.rank : 0;
    put_difference(t, check, (struct saying){(int)a->differ, a->one, us ? ours : theirs},
                   (struct saying){(int)a->differ, a->two, us ? ours : theirs});
    return true;
}

static bool judge_intra(struct text *t, const struct check *check, int *teller)
{
    const struct account *a = &check->together;
    struct fact out = a->fact[FACT_OUT], in = a->fact[FACT_IN];
    if (judge_group(t, check, a, 0, FACT_IN, teller))
        return true;
    if (differ(out, in)) {
        *teller = (int)out.rank;
        put_difference(t, check, (struct saying){FACT_OUT, out, ours},
                       (struct saying){FACT_IN, in, ours});
        return true;
    }
    return sizes_differ(t, check, a, a, teller) ||
           judge_group(t, check, a, FACT_COUNTS, NFACTS - 1, teller);
}

/* What the other group says of a fact has to be that, from this group's view. */
static int counterpart(int fact)
{
    return fact == FACT_OUT ? FACT_IN : fact == FACT_IN ? FACT_OUT : fact;
}

static bool judge_fact(struct text *t, const struct check *check, int fact, int *teller)
{
    struct fact here = check->together.fact[fact];
    struct fact there = check->remote.fact[counterpart(fact)];
    bool known = here.rank != NOBODY && there.rank != NOBODY;
    if (!known || (here.value == there.value) == (fact != FACT_SIDE))
        return false;
    *teller = (int)here.rank;
    put_difference(t, check, (struct saying){fact, here, ours},
                   (struct saying){counterpart(fact), there, theirs});
    return true;
}

static bool judge_inter(struct text *t, const struct check *check, int *teller)
{
    const struct account *here = &check->together, *there = &check->remote;
    *teller = 0;
    if (judge_group(t, check, here, 0, FACT_IN, teller) ||
        judge_group(t, check, there, 0, FACT_IN, teller))
        return true;
    for (int fact = 0; fact <= FACT_IN; fact++) /* what comes behind is a group's own */
        if (judge_fact(t, check, fact, teller))
            return true;
    if (here->fact[FACT_SIDE].rank != NOBODY && here->roots + there->roots != 1) {
        put_common(t, check, FACT_ROOT);
        put(t, "no rank gives MPI_ROOT");
        return true;
    }
    return sizes_differ(t, check, here, there, teller) ||
           sizes_differ(t, check, there, here, teller) ||
           judge_group(t, check, here, FACT_COUNTS, NFACTS - 1, teller) ||
           judge_group(t, check, there, FACT_COUNTS, NFACTS - 1, teller);
}

static int judge(const struct check *check)
{
    struct text t = {.length = 0};
    int teller;
    bool inter = check->c->members.remote_size > 0;
    if (!(inter ? judge_inter : judge_intra)(&t, check, &teller))
        return MPI_SUCCESS;
    if (teller == check->c->members.rank)
        fprintf(stderr, "nbcshim: %s\n", t.line);
    return nbc_error_text(NBC_ERROR_MISMATCH, t.line);
}

/* --- the exchange ----------------------------------------------------------------------------- */

int nbc_check_tag_limit(int tag_ub)
{
    /* A ring is at most as long as there are tags below: three parts, with some to spare. */
    return (tag_ub - 4) / (1 + NBC_NGUARDS);
}

/* The contexts of the two passes on a communicator. Both passes take their numbers in the order of
 * the calls that they are for. */
static struct nbc_context *guards_of(struct nbc_context *c)
{
    if (c->guards)
        return c->guards;
    struct nbc_context *g = calloc(NBC_NGUARDS, sizeof *g);
    for (int i = 0; g && i < NBC_NGUARDS; i++) {
        g[i].user = c->user; /* never null: it ends with its communicator only */
        g[i].hidden = c->hidden;
        g[i].members.rank = c->members.rank;
        g[i].members.size = c->members.size;
        g[i].members.remote_size = c->members.remote_size;
        g[i].queue.first_tag = nbc_tag_signal + 1 + i * nbc_tag_ring;
        g[i].guarded = c;
    }
    return c->guards = g;
}

static int exchange(struct check *check, const struct account *mine, struct account *all)
{
    const struct nbc_call call = {
        .coll = NBC_ALLREDUCE,
        .comm = check->c->user,
        .purpose = NBC_FOR_CHECK,
        .send = {.buf = mine, .count = 1, .type = account_type},
        .recv = {.buf = all, .count = 1, .type = account_type},
        .op = account_op,
    };
    return nbc_launch(&call, &check->c->guards[check->second], &check->base.request);
}

/* Between groups an allreduce tells of the other one; what it tells comes back by the second. */
static bool goes_on(struct check *check, int *error)
{
    if (*error || check->second || !check->c->members.remote_size)
        return false;
    check->second = true;
    /* All ranks here know the same of the other group: one of them tells its sums. */
    check->mine = check->remote;
    if (check->c->members.rank > 0) {
        memset(check->mine.out, 0, sizeof check->mine.out);
        memset(check->mine.in, 0, sizeof check->mine.in);
        check->mine.roots = 0;
    }
    *error = exchange(check, &check->mine, &check->together);
    return !*error;
}

static bool is_over(struct nbc_prerequisite *self, int *error)
{
    struct check *check = (struct check *)self;
    do {
        if (self->request->state != NBC_COMPLETE)
            return false;
        *error = self->request->error;
        nbc_request_free(self->request);
    } while (goes_on(check, error));
    if (!*error)
        *error = judge(check);
    free(check);
    return true;
}

static int check_new(struct nbc_context *c, const struct nbc_call *call, enum nbc_kind kind,
                     int64_t seq, struct nbc_prerequisite **out)
{
    *out = NULL;
    if (c->members.size == 1 && !c->members.remote_size)
        return MPI_SUCCESS;
    struct check *check = calloc(1, sizeof *check);
    if (!check || !guards_of(c)) {
        free(check);
        return MPI_ERR_NO_MEM;
    }
    check->base.over = is_over;
    check->c = c;
    check->seq = seq;
    int error = give_account(&check->mine, c, call, kind);
    if (!error)
        error = exchange(check, &check->mine,
                         c->members.remote_size ? &check->remote : &check->together);
    if (error)
        free(check);
    else
        *out = &check->base;
    return error;
}

int nbc_check_setup(void)
{
    nbc_launch_prerequisite = check_new;
    int error = NEXT(Type_contiguous)((int)sizeof(struct account), MPI_BYTE, &account_type);
    if (!error)
        error = NEXT(Type_commit)(&account_type);
    return error ? error : NEXT(Op_create)(combine, 0, &account_op);
}

void nbc_check_cleanup(void)
{
    nbc_launch_prerequisite = NULL;
    if (account_type != MPI_DATATYPE_NULL)
        NEXT(Type_free)(&account_type);
    if (account_op != MPI_OP_NULL)
        NEXT(Op_free)(&account_op);
}
