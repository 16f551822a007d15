/* SPDX-License-Identifier: MIT */
/* NBCSHIM_CHECK=1 checks that the collective calls of all ranks match.
 *
 * Each call is checked by a small nonblocking allreduce, whose operator compares the calls of two
 * groups of ranks. The operation of the call starts when its check has passed; otherwise it
 * completes with an error on every rank. Checks have the queue of the blocking operations with its
 * numbers and tags, because mismatched calls may take a different number of tags. */
#include "diag/diag.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "comm/rank_lines.h"
#include "below/next.h"
#include "comm/context.h"
#include "engine/launch.h"
#include "engine/progress.h"
#include "op/bind.h"
#include "op/call.h"
#include "op/types.h"
#include "request/request.h"

#include "block.h"
#include "coll.h"
#include "hash.h"
#include "select.h"

/* --- the facts of a call ---------------------------------------------------------------------- */

/* All ranks that know one of these facts must agree on it. A mismatch is reported for the first of
 * them, which explains the later ones. OUT and IN are the sizes in bytes of the block (of the
 * vector, in reductions) that a rank sends and that it expects, where all blocks have one size. */
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

enum { UNKNOWN = -1, NO_RANK = -1 };

struct fact {
    int64_t value;
    int64_t rank; /* the rank that states it; NO_RANK if it is unknown */
};

/* Where each pair of ranks has its own size, the sizes are added up four times: plain, weighted by
 * the sender, weighted by the receiver, and weighted by a hash of the pair. Sizes match when the
 * sums of the senders equal those of the receivers. If only one pair differs, the weighted sums
 * show which. */
enum { PLAIN, SENDER, RECEIVER, MIXED, NSUMS };

/* The facts of the call of one rank, or of a group of ranks: the data of the allreduce. */
struct account {
    struct fact fact[NFACTS];
    uint64_t out[NSUMS], in[NSUMS];
    uint64_t roots;       /* number of ranks that give MPI_ROOT */
    int64_t differ;       /* the first fact on which two ranks differ, or NFACTS */
    struct fact one, two; /* the values of that fact on these ranks */
};

static void fact_set(struct account *a, int fact, int64_t value, int rank)
{
    a->fact[fact] = (struct fact){value, rank};
}

/* --- the account of one rank ------------------------------------------------------------------ */

/* Whether this rank sends data and receives data. Differs from nbc_bind_significant in a broadcast,
 * where every rank gives one buffer. */
static struct nbc_significant data_flow(const struct nbc_shape *s)
{
    struct nbc_significant both = nbc_bind_significant(s);
    if (s->coll != NBC_BCAST || !both.recv)
        return both;
    bool root = nbc_bind_is_root(s);
    return (struct nbc_significant){root, !root};
}

/* Whether each pair of ranks has its own size. */
static bool has_paired_sizes(enum nbc_coll coll)
{
    return coll == NBC_GATHERV || coll == NBC_SCATTERV || coll == NBC_ALLGATHERV ||
           coll == NBC_ALLTOALLV || coll == NBC_ALLTOALLW || nbc_coll_is_neighborhood(coll);
}

static void sums_add(uint64_t sum[NSUMS], uint64_t bytes, uint64_t sender, uint64_t receiver)
{
    sum[PLAIN] += bytes;
    sum[SENDER] += bytes * sender;
    sum[RECEIVER] += bytes * receiver;
    sum[MIXED] += bytes * nbc_hash_pair(sender, receiver);
}

/* Whether all data that a rank sends goes to the root, or all that it receives comes from there. */
static bool only_with_root(const struct nbc_shape *s, bool out)
{
    return nbc_coll_has_root(s->coll) && out == nbc_coll_is_to_root(s->coll);
}

/* The k-th rank that this one sends to, or receives from; negative for MPI_PROC_NULL. */
static int peer_rank(const struct nbc_shape *s, int k, bool out)
{
    if (s->neighbors)
        return out ? s->neighbors->destinations[k] : s->neighbors->sources[k];
    return only_with_root(s, out) ? s->root : k;
}

static void account_add_pairs(struct account *a, const struct nbc_shape *s, bool out)
{
    int n = only_with_root(s, out) ? 1 : nbc_bind_peers(s, out);
    for (int k = 0; k < n; k++) {
        int other = peer_rank(s, k, out);
        struct nbc_ref block = out ? nbc_send_block(s, k) : nbc_recv_block(s, k);
        uint64_t bytes = (uint64_t)nbc_ref_bytes(s, block);
        if (other >= 0 && out)
            sums_add(a->out, bytes, s->rank, other);
        else if (other >= 0)
            sums_add(a->in, bytes, other, s->rank);
    }
}

static void account_add_scattered(struct account *a, const struct nbc_shape *s)
{
    uint64_t total = 0, hash = 0;
    for (int i = 0; i < s->size; i++) {
        uint64_t bytes = (uint64_t)nbc_ref_bytes(s, nbc_send_block(s, i));
        total += bytes;
        hash += bytes * nbc_hash_pair(0, i);
    }
    fact_set(a, FACT_OUT, (int64_t)total, s->rank);
    fact_set(a, FACT_IN, (int64_t)total, s->rank);
    fact_set(a, FACT_COUNTS, (int64_t)(hash >> 1), s->rank);
}

static void account_add_sizes(struct account *a, const struct nbc_shape *s)
{
    bool paired = has_paired_sizes(s->coll);
    struct nbc_significant flow = data_flow(s);
    if (s->coll == NBC_REDUCE_SCATTER || s->coll == NBC_REDUCE_SCATTER_BLOCK) {
        account_add_scattered(a, s);
        return;
    }
    if (paired && flow.send)
        account_add_pairs(a, s, true);
    else if (flow.send)
        fact_set(a, FACT_OUT, nbc_ref_bytes(s, nbc_send_block(s, 0)), s->rank);
    if (paired && flow.recv)
        account_add_pairs(a, s, false);
    else if (flow.recv)
        fact_set(a, FACT_IN, nbc_ref_bytes(s, nbc_recv_block(s, 0)), s->rank);
}

static void account_add_root(struct account *a, const struct nbc_shape *s)
{
    if (!nbc_coll_has_root(s->coll))
        return;
    bool here = s->root == NBC_ROOT_HERE;
    if (s->remote_size)
        fact_set(a, FACT_SIDE, here || s->root == NBC_ROOT_IDLE, s->rank);
    a->roots = here;
    if (s->root != NBC_ROOT_IDLE)
        fact_set(a, FACT_ROOT, here ? s->rank : s->root, s->rank);
}

/* The value of FACT_OP for a predefined operator is its number: the ABI of MPI-5 has no conversion
 * to a number of Fortran. For user-defined operators it is user_op, plus 1 for commutative ones:
 * nothing else about them can be compared. */
static const int64_t user_op = INT64_C(1) << 40;

static void account_add_algorithm(struct account *a, const struct nbc_call *call,
                                  const struct nbc_context *c, struct nbc_shape *s)
{
    struct nbc_preferences preferences = nbc_launch_preferences(call, c);
    const struct nbc_alg *alg = nbc_launch_choose(s, &preferences);
    fact_set(a, FACT_ALG, alg - nbc_algs, s->rank);
    fact_set(a, FACT_SEGMENT, s->segment, s->rank);
}

static int account_make(struct account *a, struct nbc_context *c, const struct nbc_call *call)
{
    struct nbc_bound b;
    int error = nbc_bind(call, &c->members, &b);
    if (error)
        return error;
    memset(a, 0, sizeof *a);
    a->differ = NFACTS;
    for (int f = 0; f < NFACTS; f++)
        fact_set(a, f, UNKNOWN, NO_RANK);
    fact_set(a, FACT_CALL, /* see text_put_call */
             (call->purpose * (int64_t)NBC_NKINDS + call->kind) * NBC_NCOLLS + call->coll,
             c->members.rank);
    account_add_root(a, &b.shape);
    if (b.reducer)
        fact_set(a, FACT_OP, b.reducer->named ? b.reducer->named : user_op + b.reducer->commutative,
                 c->members.rank);
    account_add_sizes(a, &b.shape);
    account_add_algorithm(a, call, c, &b.shape);
    nbc_unbind(&b);
    return MPI_SUCCESS;
}

/* --- the account of several ranks ------------------------------------------------------------- */

static void fact_compare(struct account *left, int fact, struct fact one, struct fact two)
{
    if (one.rank == NO_RANK || two.rank == NO_RANK || one.value == two.value ||
        fact >= left->differ)
        return;
    left->differ = fact;
    left->one = one;
    left->two = two;
}

/* Adds the account of higher ranks to `left`, that of lower ranks. */
static void account_merge(struct account *left, const struct account *right)
{
    for (int f = 0; f < NFACTS; f++) {
        fact_compare(left, f, left->fact[f], right->fact[f]);
        if (left->fact[f].rank == NO_RANK)
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

static void account_combine(void *in, void *inout, int *n, MPI_Datatype *type)
{
    struct account *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *n; i++) {
        struct account both = left[i];
        account_merge(&both, &right[i]);
        right[i] = both;
    }
}

/* Made at init, only read afterwards. */
static MPI_Datatype account_type = MPI_DATATYPE_NULL;
static MPI_Op account_op = MPI_OP_NULL;

/* --- the verdict ------------------------------------------------------------------------------ */

static void text_put_call(struct nbc_line *t, int64_t number)
{
    static const char *const others[] = {
        [NBC_FOR_OTHERS] = "another collective function (on a communicator, window or file)",
        [NBC_FOR_TAGS] = "MPI_..._init, which negotiates a tag",
        [NBC_FOR_FINALIZE] = "MPI_Finalize",
    };
    int purpose = (int)(number / (NBC_NKINDS * NBC_NCOLLS));
    int kind = (int)(number / NBC_NCOLLS % NBC_NKINDS);
    char name[MPI_MAX_OBJECT_NAME];
    nbc_coll_function(nbc_coll_name(number % NBC_NCOLLS), kind == NBC_KIND_NONBLOCKING,
                      kind == NBC_KIND_PERSISTENT ? "_init" : "", name, sizeof name);
    nbc_line_put(t, "%s", purpose == NBC_FOR_PROGRAM ? name : others[purpose]);
}

static const char *operator_name(int64_t value)
{
    if (value < user_op)
        return nbc_operator_name((int)value);
    return value > user_op ? "a commutative user-defined operator" : "a user-defined operator";
}

/* A fact as a predicate, for example "gives root 1". */
static void text_put_fact(struct nbc_line *t, int fact, int64_t value)
{
    static const struct {
        const char *before, *after;
    } words[NFACTS] = {
        [FACT_CALL] = {"calls ", ""},         [FACT_SIDE] = {"places the root in ", " group"},
        [FACT_ROOT] = {"gives root ", ""},    [FACT_OP] = {"gives ", ""},
        [FACT_OUT] = {"sends ", " bytes"},    [FACT_IN] = {"expects ", " bytes"},
        [FACT_ALG] = {"uses algorithm ", ""}, [FACT_SEGMENT] = {"uses segments of ", " bytes"},
    };
    nbc_line_put(t, "%s", words[fact].before);
    if (fact == FACT_CALL)
        text_put_call(t, value);
    else if (fact == FACT_SIDE)
        nbc_line_put(t, value ? "its own" : "the other");
    else if (fact == FACT_OP || fact == FACT_ALG)
        nbc_line_put(t, "%s", fact == FACT_OP ? operator_name(value) : nbc_algs[value].name);
    else
        nbc_line_put(t, "%" PRId64, value);
    nbc_line_put(t, "%s", words[fact].after);
}

/* The check of one call. An intercommunicator takes two passes: its allreduce gives each group the
 * account of the remote group, and the second one returns that of the local group. */
struct check {
    struct nbc_start_condition base;    /* first; its request is the last allreduce */
    struct nbc_start_condition between; /* of the second pass: the first one */
    struct nbc_context *c;
    int64_t seq;
    int error;                             /* of the start of the second pass */
    struct account mine, remote, together; /* of this rank, the remote group, the local group */
};

enum { SHOWN = 64 }; /* letters of the name of a communicator */

/* Begins a line, with the name of the call unless that is what differs. */
static void text_put_common(struct nbc_line *t, const struct check *check, int fact)
{
    char name[MPI_MAX_OBJECT_NAME + SHOWN + 1] = "";
    const struct nbc_context *c = check->c;
    int length;
    if (c->user != MPI_COMM_NULL)
        NEXT(Comm_get_name)(c->user, name, &length);
    nbc_line_put(t, "ranks disagree in collective call %" PRId64 " on ", check->seq + 1);
    name[SHOWN] = '\0';
    nbc_line_put(t, "%s", *name ? name : "an unnamed communicator");
    nbc_line_put(t, " of %d ranks: ", c->members.size + c->members.remote_size);
    if (fact == FACT_CALL)
        return;
    text_put_call(t, check->together.fact[FACT_CALL].value);
    nbc_line_put(t, ": ");
}

/* The value of a fact on one rank of the account of a group. */
struct statement {
    int fact;
    struct fact stated;
    const struct account *of;
};

/* Behind the rank of a group: an intercommunicator has two. */
static const char *group_name(const struct check *check, const struct account *a)
{
    return a == &check->together ? "" : " of the other group";
}

static void text_put_difference(struct nbc_line *t, const struct check *check, struct statement one,
                                struct statement two)
{
    text_put_common(t, check, one.fact);
    if (one.fact == FACT_COUNTS) {
        nbc_line_put(t, "ranks %" PRId64 " and %" PRId64 "%s give different counts",
                     one.stated.rank, two.stated.rank, group_name(check, two.of));
        return;
    }
    nbc_line_put(t, "rank %" PRId64 "%s ", one.stated.rank, group_name(check, one.of));
    text_put_fact(t, one.fact, one.stated.value);
    nbc_line_put(t, ", rank %" PRId64 "%s ", two.stated.rank, group_name(check, two.of));
    text_put_fact(t, two.fact, two.stated.value);
}

/* Finds the pair of ranks that differs in size, if only one does: then each sum is the surplus of
 * this pair times its weight. */
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
           surplus[MIXED] == surplus[PLAIN] * nbc_hash_pair(*sender, *receiver);
}

static int group_size(const struct check *check, const struct account *a)
{
    const struct nbc_members *m = &check->c->members;
    return a == &check->together ? m->size : m->remote_size;
}

/* Whether the sizes of pairs differ, sent by one group and expected by another, or by the same.
 * Then *reporter is the rank that prints the line. */
static bool sizes_differ(struct nbc_line *t, const struct check *check, const struct account *from,
                         const struct account *to, int *reporter)
{
    uint64_t surplus[NSUMS], any = 0;
    int64_t sender, receiver;
    for (int i = 0; i < NSUMS; i++)
        any |= surplus[i] = from->out[i] - to->in[i];
    if (!any)
        return false;
    text_put_common(t, check, FACT_OUT);
    *reporter = 0;
    if (!find_pair(surplus, group_size(check, from), group_size(check, to), &sender, &receiver)) {
        nbc_line_put(t,
                     "several pairs of ranks give different sizes (%" PRId64
                     " bytes sent and %" PRId64 " bytes expected in total)",
                     (int64_t)from->out[PLAIN], (int64_t)to->in[PLAIN]);
        return true;
    }
    int64_t bytes = (int64_t)surplus[PLAIN];
    *reporter = (int)(from == &check->together ? sender : receiver);
    nbc_line_put(t,
                 "rank %" PRId64 "%s sends rank %" PRId64 "%s %" PRId64
                 " bytes %s than the receiver expects",
                 sender, group_name(check, from), receiver, group_name(check, to),
                 bytes < 0 ? -bytes : bytes, bytes < 0 ? "less" : "more");
    return true;
}

/* Whether ranks of one group differ in one of the facts from first to last. */
static bool group_differs(struct nbc_line *t, const struct check *check, const struct account *a,
                          int first, int last, int *reporter)
{
    const int fact = (int)a->differ;
    if (fact < first || fact > last)
        return false;
    *reporter = a == &check->together ? (int)a->one.rank : 0;
    text_put_difference(t, check, (struct statement){fact, a->one, a},
                        (struct statement){fact, a->two, a});
    return true;
}

/* The fact of the other side that must equal a fact of this one. */
static int counterpart(int fact)
{
    return fact == FACT_OUT ? FACT_IN : fact == FACT_IN ? FACT_OUT : fact;
}

/* Whether a fact differs between the sides of a call: the groups of an intercommunicator, or those
 * that send and those that receive. */
static bool sides_differ(struct nbc_line *t, const struct check *check, const struct account *here,
                         const struct account *there, int fact, int *reporter)
{
    struct fact one = here->fact[fact], two = there->fact[counterpart(fact)];
    bool known = one.rank != NO_RANK && two.rank != NO_RANK;
    if (!known || (one.value == two.value) == (fact != FACT_SIDE))
        return false;
    *reporter = (int)one.rank;
    text_put_difference(t, check, (struct statement){fact, one, here},
                        (struct statement){counterpart(fact), two, there});
    return true;
}

/* Whether the calls differ. `here` and `there` are the two groups, or the only one. */
static bool calls_differ(struct nbc_line *t, const struct check *check, int *reporter)
{
    const bool inter = check->c->members.remote_size > 0;
    const struct account *here = &check->together, *there = inter ? &check->remote : here;
    *reporter = 0;
    if (group_differs(t, check, here, 0, FACT_IN, reporter) ||
        group_differs(t, check, there, 0, FACT_IN, reporter))
        return true;
    for (int fact = 0; fact <= FACT_IN; fact++) /* later facts may differ between the groups */
        if (sides_differ(t, check, here, there, fact, reporter))
            return true;
    if (here->fact[FACT_SIDE].rank != NO_RANK && here->roots + there->roots != 1) {
        text_put_common(t, check, FACT_ROOT);
        nbc_line_put(t, "no rank gives MPI_ROOT");
        return true;
    }
    return sizes_differ(t, check, here, there, reporter) ||
           sizes_differ(t, check, there, here, reporter) ||
           group_differs(t, check, here, FACT_COUNTS, NFACTS - 1, reporter) ||
           group_differs(t, check, there, FACT_COUNTS, NFACTS - 1, reporter);
}

static int judge(const struct check *check)
{
    struct nbc_line t = {.n = 0};
    int reporter;
    if (!calls_differ(&t, check, &reporter))
        return MPI_SUCCESS;
    if (reporter == check->c->members.rank)
        fprintf(stderr, "nbcshim: %s\n", t.text);
    if (sizeof t.text > MPI_MAX_ERROR_STRING)
        t.text[MPI_MAX_ERROR_STRING - 1] = '\0';
    return nbc_error_text(NBC_ERROR_MISMATCH, t.text);
}

/* --- the allreduce ---------------------------------------------------------------------------- */

/* Starts when `after` is over if that is not NULL. */
static int check_exchange(struct check *check, struct account *all,
                          struct nbc_start_condition *after, struct nbc_request **out)
{
    struct nbc_context *c = check->c;
    const int64_t seq = c->blocking.next_seq++;
    const struct nbc_call call = {
        .coll = NBC_ALLREDUCE,
        .purpose = NBC_FOR_CHECK,
        .comm = c->user,
        .send = {.buf = &check->mine, .count = 1, .type = account_type},
        .recv = {.buf = all, .count = 1, .type = account_type},
        .op = account_op,
    };
    int error = nbc_launch_make(&call, c, out);
    if (error) {
        nbc_context_mark_number_undeliverable(c, &c->blocking, seq);
        return error;
    }
    (*out)->start_condition = after;
    nbc_request_number(*out, &c->blocking, seq);
    nbc_progress_start(*out);
    return MPI_SUCCESS;
}

static bool pass_is_over(struct nbc_start_condition *self, int *error)
{
    if (self->request->state != NBC_COMPLETE)
        return false;
    *error = self->request->error;
    nbc_request_free(self->request);
    return true;
}

static bool first_is_over(struct nbc_start_condition *self, int *error)
{
    struct check *check = (struct check *)((char *)self - offsetof(struct check, between));
    if (!pass_is_over(self, error))
        return false;
    /* All ranks have the same account of the other group, so only one of them sends its sums. */
    check->mine = check->remote;
    if (check->c->members.rank > 0) {
        memset(check->mine.out, 0, sizeof check->mine.out);
        memset(check->mine.in, 0, sizeof check->mine.in);
        check->mine.roots = 0;
    }
    return true;
}

static bool check_is_over(struct nbc_start_condition *self, int *error)
{
    struct check *check = (struct check *)self;
    if (!pass_is_over(self, error))
        return false;
    if (!*error)
        *error = check->error;
    if (*error && check->c->delivery != NBC_DELIVERY_SOUND)
        /* unreached: the MPI fails */
        nbc_context_mark_lost(check->c); /* the others wait for this check before all later calls */
    if (!*error)
        *error = judge(check);
    free(check);
    return true;
}

/* Starts the passes. If the second one cannot start, the check ends with that error. */
static int check_start(struct check *check)
{
    if (!check->c->members.remote_size)
        return check_exchange(check, &check->together, NULL, &check->base.request);
    int error = check_exchange(check, &check->remote, NULL, &check->between.request);
    if (error)
        return error;
    check->error = check_exchange(check, &check->together, &check->between, &check->base.request);
    if (check->error)
        check->base.request = check->between.request;
    return MPI_SUCCESS;
}

static int check_new(struct nbc_context *c, const struct nbc_call *call, int64_t seq,
                     struct nbc_start_condition **out)
{
    *out = NULL;
    if (c->members.size == 1 && !c->members.remote_size)
        return MPI_SUCCESS;
    struct check *check = malloc(sizeof *check);
    if (!check)
        return MPI_ERR_NO_MEM;
    *check = (struct check){
        .base = {.over = check_is_over}, .between = {.over = first_is_over}, .c = c, .seq = seq};
    int error = account_make(&check->mine, c, call);
    if (!error)
        error = check_start(check);
    if (error)
        free(check);
    else
        *out = &check->base;
    return error;
}

int nbc_check_setup(void)
{
    nbc_launch_start_condition = check_new;
    int error = NEXT(Type_contiguous)((int)sizeof(struct account), MPI_BYTE, &account_type);
    if (!error)
        error = NEXT(Type_commit)(&account_type);
    return error ? error : NEXT(Op_create)(account_combine, 0, &account_op);
}

void nbc_check_cleanup(void)
{
    nbc_launch_start_condition = NULL;
    if (account_type != MPI_DATATYPE_NULL)
        NEXT(Type_free)(&account_type);
    if (account_op != MPI_OP_NULL)
        NEXT(Op_free)(&account_op);
}
