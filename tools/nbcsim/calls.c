/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include <stdlib.h>

#include "hash.h"

const char call_too_large[] = "too large";

/* --- arguments -------------------------------------------------------------------------------- */

/* The sides of the collective that have counts and displacements. */
static const struct {
    bool send, recv;
} counted[NBC_NCOLLS] = {
    [NBC_GATHERV] = {false, true},
    [NBC_SCATTERV] = {true, false},
    [NBC_ALLGATHERV] = {false, true},
    [NBC_ALLTOALLV] = {true, true},
    [NBC_ALLTOALLW] = {true, true},
    [NBC_REDUCE_SCATTER] = {true, false},
    [NBC_NEIGHBOR_ALLGATHERV] = {false, true},
    [NBC_NEIGHBOR_ALLTOALLV] = {true, true},
    [NBC_NEIGHBOR_ALLTOALLW] = {true, true},
};

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
    if (counted[call->coll].send || counted[call->coll].recv) {
        if (!make_counts(a, call->bytes / size)) {
            arguments_free(a);
            return false;
        }
        if (counted[call->coll].send)
            use_counts(a, &a->send);
        if (counted[call->coll].recv)
            use_counts(a, &a->recv);
    }
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
    return alg->build(&own->shape);
}

/* A summary of the operations of a rank. */
struct doings {
    uint64_t messages; /* hash of its sends and receives, in order */
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
        uint64_t words[] = {(uint64_t)op->kind, (uint64_t)bytes, (uint64_t) class};
        for (int w = 0; w < 3; w++)
            d.messages = nbc_hash(d.messages, words[w]);
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
        if (i > 0 && (d.messages != most.messages || d.reduced != most.reduced ||
                      !nearly(d.copied, most.copied)))
            return -1;
        if (i == 0 || d.copied > most.copied) {
            most = d;
            busiest = sample[i] % size;
        }
    }
    return busiest;
}

/* Sets the representative rank. */
static enum symmetry symmetry_of(const struct arguments *a, const struct nbc_alg *alg, int *rank)
{
    int size = a->call.size;
    if (a->call.ppn > 1 && a->call.ppn < size)
        return NONE;
    if (size < 3)
        return NONE;
    if ((*rank = one_for_all(a, alg, ROTATION)) >= 0)
        return ROTATION;
    if (size % 2 == 0 && (*rank = one_for_all(a, alg, MIRROR)) >= 0)
        return MIRROR;
    bool power = (size & (size - 1)) == 0;
    return power && (*rank = one_for_all(a, alg, CUBE)) >= 0 ? CUBE : NONE;
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

struct program *call_program(const struct arguments *a, const struct nbc_alg *alg,
                             const struct limits *limits, const char **wrong)
{
    int size = a->call.size, stands = 0;
    enum symmetry symmetry = limits->no_symmetry ? NONE : symmetry_of(a, alg, &stands);
    int nranks = symmetry == NONE ? size : 1;
    *wrong = call_too_large;
    if (limits->ops && guess_ops(a, alg) * nranks / size > limits->ops)
        return NULL;
    struct program *p = program_new(size, symmetry);
    *wrong = p ? NULL : "out of memory";
    for (int i = 0; p && i < nranks && !*wrong; i++)
        if (!add_rank(p, a, alg, symmetry == NONE ? i : stands))
            *wrong = "out of memory";
    if (p && !*wrong)
        *wrong = program_match(p);
    if (!*wrong)
        return p;
    program_free(p);
    return NULL;
}
