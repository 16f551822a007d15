/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include <stdlib.h>

#include "hash.h"

const char call_too_large[] = "too large";

/* --- arguments -------------------------------------------------------------------------------- */

static bool make_counts(struct arguments *a, int64_t count)
{
    size_t n = (size_t)a->call.size + 2;
    a->counts = malloc(n * sizeof *a->counts);
    a->displs = malloc(n * sizeof *a->displs);
    if (!a->counts || !a->displs)
        return false;
    for (size_t i = 0; i < n; i++) {
        a->counts[i] = count;
        a->displs[i] = (int64_t)i * count;
    }
    return true;
}

static void use_counts(const struct arguments *a, struct nbc_side *side)
{
    side->counts = (struct nbc_ints){a->counts, sizeof *a->counts};
    if (a->call.coll == NBC_REDUCE_SCATTER)
        side->displs_implied = true;
    else
        side->displs = (struct nbc_ints){a->displs, sizeof *a->displs};
}

bool arguments_make(struct arguments *a, const struct call *call)
{
    int64_t size = call->bytes % 8 ? 1 : 8; /* 8-byte elements if possible */
    *a = (struct arguments){.call = *call};
    a->has_nodes = call->ppn > 1 && call->ppn < call->size;
    if (a->has_nodes)
        a->nodes = nbc_nodes_blocks(call->size, call->ppn);
    for (int i = 0; i < NBC_TYPE_FIRST_PEER; i++)
        a->types[i] = (struct nbc_type){size, size, 0, size, true};
    a->types[NBC_TYPE_BYTE] = (struct nbc_type){1, 1, 0, 1, true};
    a->send = (struct nbc_side){.type = NBC_TYPE_SEND, .count = call->bytes / size};
    a->recv = (struct nbc_side){.type = NBC_TYPE_RECV, .count = call->bytes / size};
    bool send = nbc_coll_has_counts(call->coll, true),
         recv = nbc_coll_has_counts(call->coll, false);
    if ((send || recv) && !make_counts(a, call->bytes / size)) {
        arguments_free(a);
        return false;
    }
    if (send)
        use_counts(a, &a->send);
    if (recv)
        use_counts(a, &a->recv);
    return true;
}

void arguments_free(struct arguments *a)
{
    free(a->counts);
    free(a->displs);
    a->counts = a->displs = NULL;
}

void arguments_shape(const struct arguments *a, int rank, struct own *own)
{
    int size = a->call.size;
    own->around[0] = (rank + size - 1) % size;
    own->around[1] = (rank + 1) % size;
    own->neighbors = (struct nbc_neighbors){own->around, own->around, 2, 2, true};
    own->shape = (struct nbc_shape){.coll = a->call.coll,
                                    .rank = rank,
                                    .size = size,
                                    .root = a->call.root,
                                    .commutative = true,
                                    .send = a->send,
                                    .recv = a->recv,
                                    .types = a->types,
                                    .ntypes = NBC_TYPE_FIRST_PEER,
                                    .neighbors = &own->neighbors,
                                    .nodes = a->has_nodes ? &a->nodes : NULL,
                                    .local = size <= a->call.ppn,
                                    .sockets = size > a->call.ppn && a->call.sockets,
                                    .segment = a->call.segment,
                                    .eager = a->call.eager};
}

const struct nbc_alg *call_choice(const struct arguments *a, const struct nbc_rules *rules,
                                  int64_t *segment)
{
    struct own own;
    arguments_shape(a, 0, &own);
    return nbc_select(&own.shape, NULL, rules, segment);
}

/* --- programs --------------------------------------------------------------------------------- */

static struct nbc_sched *build_sched(const struct arguments *a, const struct nbc_alg *alg, int rank,
                                     struct own *own)
{
    arguments_shape(a, rank, own);
    return nbc_build(alg->build, &own->shape);
}

/* A summary of the operations of a rank. */
struct doings {
    uint64_t messages; /* hash of its sends and receives, in order (DIGITWISE: of the sends only) */
    uint64_t receives; /* DIGITWISE: hash of the receives, in any order */
    int64_t reduced, copied;
};

static struct doings doings_of(const struct nbc_sched *s, const struct own *own,
                               enum symmetry symmetry)
{
    struct doings d = {.messages = NBC_HASH_START};
    for (int i = 0; i < s->nops; i++) {
        const struct nbc_op *op = &s->ops[i];
        int64_t bytes = op->kind == NBC_OP_JOIN ? 0 : nbc_ref_bytes(&own->shape, nbc_op_a(op));
        if (op->kind != NBC_OP_SEND && op->kind != NBC_OP_RECV) {
            *(op->kind == NBC_OP_REDUCE ? &d.reduced : &d.copied) += bytes;
            continue;
        }
        int class = symmetry_class(symmetry, own->shape.size, own->shape.rank, op->peer,
                                   op->kind == NBC_OP_SEND);
        bool any_order = symmetry == DIGITWISE && op->kind == NBC_OP_RECV;
        uint64_t words[] = {(uint64_t)op->kind, (uint64_t)bytes, (uint64_t) class};
        uint64_t hash = any_order ? NBC_HASH_START : d.messages;
        for (int w = 0; w < 3; w++)
            hash = nbc_hash(hash, words[w]);
        if (any_order)
            d.receives += hash;
        else
            d.messages = hash;
    }
    return d;
}

/* Ranks may differ slightly in what they copy, since the cyclic order of ranks wraps around. */
static bool nearly(int64_t x, int64_t y)
{
    return (x > y ? x - y : y - x) <= (x > y ? x : y) / 12;
}

/* Returns a rank that represents all, the busiest of a sample; -1 if ranks differ. */
static int one_for_all(const struct arguments *a, const struct nbc_alg *alg, enum symmetry symmetry)
{
    int size = a->call.size, busiest = -1;
    const int sample[] = {size / 2, 0, size - 1, 1, size / 3, size / 2 + 1, size * 2L / 3 | 1};
    struct doings most = {0};
    for (size_t i = 0; i < sizeof sample / sizeof *sample; i++) {
        struct own own;
        struct nbc_sched *s = build_sched(a, alg, sample[i] % size, &own);
        if (!s)
            return -1;
        struct doings d = doings_of(s, &own, symmetry);
        nbc_sched_free(s);
        if (i > 0 && (d.messages != most.messages || d.receives != most.receives ||
                      d.reduced != most.reduced || !nearly(d.copied, most.copied)))
            return -1;
        if (i == 0 || d.copied > most.copied) {
            most = d;
            busiest = sample[i] % size;
        }
    }
    return busiest;
}

/* Ranks that are simulated for all. */
enum { MOST_CLASSES = 4 * 2 * 3 * 5 * 7 };
struct classes {
    enum symmetry symmetry;
    int n, rank[MOST_CLASSES];
};

/* Whether a receive is posted only after another operation: senders might wait for that. */
static bool receives_wait(const struct nbc_sched *s)
{
    for (int i = 0; i < s->nsucc; i++)
        if (s->ops[s->succ[i]].kind == NBC_OP_RECV)
            return true;
    return false;
}

/* One rank for each choice of a digit per radix. The ranks with which a rank exchanges digit t have
 * its digits below t, so they have done the same until then; they differ from it in the order in
 * which they reduce what they receive. The slowest rank is one that has, in all digits of a radix,
 * that with the slowest order. */
static bool digit_classes(const struct arguments *a, const struct nbc_alg *alg, struct classes *c)
{
    int radix[MOST_DIGITS], n = symmetry_digits(a->call.size, radix);
    struct own own;
    struct nbc_sched *s = n ? build_sched(a, alg, 0, &own) : NULL;
    bool good = s && !receives_wait(s) && one_for_all(a, alg, DIGITWISE) >= 0;
    nbc_sched_free(s);
    if (!good)
        return false;
    c->n = 0;
    for (int choice = 0; choice < MOST_CLASSES; choice++) {
        int rank = 0, left = choice, digit = 0;
        int64_t weight = 1;
        for (int t = 0; t < n; weight *= radix[t++]) {
            if (t == 0 || radix[t] != radix[t - 1]) {
                digit = left % radix[t];
                left /= radix[t];
            }
            rank += (int)(digit * weight);
        }
        if (left)
            break;
        c->rank[c->n++] = rank;
    }
    return true;
}

static void find_classes(const struct arguments *a, const struct nbc_alg *alg, struct classes *c)
{
    static const enum symmetry simple[] = {ROTATION, MIRROR, CUBE};
    int size = a->call.size;
    bool power = (size & (size - 1)) == 0;
    *c = (struct classes){.symmetry = NONE, .n = size};
    if ((a->call.ppn > 1 && a->call.ppn < size) || size < 3)
        return;
    for (int i = 0; i < 3; i++) {
        if ((simple[i] == MIRROR && size % 2) || (simple[i] == CUBE && !power))
            continue;
        if ((c->rank[0] = one_for_all(a, alg, simple[i])) < 0)
            continue;
        c->symmetry = simple[i];
        c->n = 1;
        return;
    }
    if (digit_classes(a, alg, c))
        c->symmetry = DIGITWISE;
}

static bool add_rank(struct program *p, const struct arguments *a, const struct nbc_alg *alg,
                     int rank)
{
    struct own own;
    struct nbc_sched *s = build_sched(a, alg, rank, &own);
    bool good = s && program_add(p, s, &own.shape);
    nbc_sched_free(s);
    return good;
}

/* Estimates the operations of all ranks: those of the root, and the mean of a sample of others. */
static int64_t guess_ops(const struct arguments *a, const struct nbc_alg *alg)
{
    enum { SAMPLE = 8 };
    int64_t size = a->call.size, sum = 0, roots = 0;
    for (int i = 0; i <= SAMPLE; i++) {
        struct own own;
        int64_t rank = i < SAMPLE ? (i * 2654435761LL + 1) % size : a->call.root;
        struct nbc_sched *s = build_sched(a, alg, (int)rank, &own);
        int64_t nops = s ? s->nops : 0;
        nbc_sched_free(s);
        sum += i < SAMPLE ? nops : 0;
        roots = nops;
    }
    return roots + sum * size / SAMPLE;
}

/* Returns the longest schedule of two ranks, of which the last has a part even of a short vector.
 */
static int ops_of(const struct arguments *a, const struct nbc_alg *alg, int size)
{
    struct arguments small;
    struct call call = a->call;
    int most = 0;
    call.size = size;
    call.root = size - 1;
    if (!arguments_make(&small, &call))
        return 0;
    for (int i = 1; i <= 2; i++) {
        struct own own;
        arguments_shape(&small, i == 1 ? size / 2 : 0, &own);
        struct nbc_sched *s =
            nbc_alg_applies(alg, &own.shape) ? nbc_build(alg->build, &own.shape) : NULL;
        most = s && s->nops > most ? s->nops : most;
        nbc_sched_free(s);
    }
    arguments_free(&small);
    return most;
}

/* Whether the schedule of one rank is too long even to be built, as far as those of fewer ranks
 * tell: these grow linearly with the number of ranks, or they do not grow that fast. */
static bool too_long(const struct arguments *a, const struct nbc_alg *alg, int64_t limit)
{
    enum { SMALL = 1 << 13, LONG = 1 << 19 };
    int size = a->call.size;
    if (!limit || size <= 8 * SMALL)
        return false;
    while (size > SMALL)
        size /= 2;
    int64_t few = ops_of(a, alg, size / 2), more = ops_of(a, alg, size);
    int64_t guess = few && more > few + few / 2 ? more * (a->call.size / size) : 0;
    return guess > (limit / 64 > LONG ? limit / 64 : LONG);
}

struct program *call_program(const struct arguments *a, const struct nbc_alg *alg,
                             const struct limits *limits, const char **wrong)
{
    struct classes c = {.symmetry = NONE, .n = a->call.size};
    *wrong = call_too_large;
    if (too_long(a, alg, limits->ops))
        return NULL;
    if (!limits->no_symmetry)
        find_classes(a, alg, &c);
    if (limits->ops && guess_ops(a, alg) * c.n / a->call.size > limits->ops)
        return NULL;
    struct program *p = program_new(a->call.size, c.n, c.symmetry);
    *wrong = p ? NULL : "out of memory";
    for (int i = 0; p && i < c.n && !*wrong; i++)
        if (!add_rank(p, a, alg, c.symmetry == NONE ? i : c.rank[i]))
            *wrong = "out of memory";
    if (p && !*wrong)
        *wrong = program_match(p);
    if (!*wrong)
        return p;
    program_free(p);
    return NULL;
}
