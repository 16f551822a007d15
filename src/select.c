/* SPDX-License-Identifier: MIT */
#include "select.h"

#include "nodes.h"

const struct nbc_alg nbc_algs[] = {
#define ALG(coll, name, needs, builder, purpose) {NBC_##coll, #name, needs, nbc_##builder, purpose},
#include "algs.def"
#undef ALG
};

void nbc_by_mpi(struct nbc_sched *s, const struct nbc_shape *shape)
{
    (void)s, (void)shape;
}

const int nbc_nalgs = sizeof nbc_algs / sizeof *nbc_algs;

const struct nbc_alg *nbc_alg_by_name(enum nbc_coll coll, const char *name)
{
    if (coll == NBC_BARRIER && nbc_same_word(name, "tree"))
        name = "linear"; /* that of 0.3 is gone: this one has as few messages */
    for (int i = 0; i < nbc_nalgs; i++)
        if (nbc_algs[i].coll == coll && nbc_same_word(nbc_algs[i].name, name))
            return &nbc_algs[i];
    return NULL;
}

/* The number of ranks, the same in both groups of an intercommunicator. */
static int ranks(const struct nbc_shape *shape)
{
    return shape->size + shape->remote_size;
}

/* Returns the preconditions that a call does not meet, NBC_INTER apart. */
static unsigned lacking(const struct nbc_shape *shape)
{
    unsigned lacks = 0;
    int n = ranks(shape);
    if (!shape->commutative)
        lacks |= NBC_COMMUTATIVE;
    if (n & (n - 1))
        lacks |= NBC_POW2;
    if (n % 2)
        lacks |= NBC_EVEN;
    if (!shape->nodes)
        lacks |= NBC_NODES;
    if (!shape->nodes || !nbc_nodes_equal(shape->nodes))
        lacks |= NBC_EQUAL;
    if (!shape->pattern)
        lacks |= NBC_PATTERN;
    if (n < 2)
        lacks |= NBC_MULTI;
    if (!shape->by_mpi)
        lacks |= NBC_BY_MPI;
    lacks |= shape->local ? NBC_SPREAD : NBC_LOCAL;
    if (!shape->sockets)
        lacks |= NBC_SOCKETS;
    if (!shape->oversubscribed)
        lacks |= NBC_OVERSUBSCRIBED;
    if (!shape->handshake)
        lacks |= NBC_HANDSHAKE;
    lacks |= shape->order == NBC_ORDER_RANKS ? NBC_NOT_RANKS : NBC_RANKS;
    lacks |= shape->order == NBC_ORDER_TREE ? NBC_NOT_TREE : NBC_TREE;
    return lacks;
}

static bool applies(const struct nbc_alg *alg, const struct nbc_shape *shape, unsigned lacks)
{
    bool inter = shape->remote_size > 0;
    return !(alg->needs & lacks) && inter == !!(alg->needs & NBC_INTER);
}

bool nbc_alg_applies(const struct nbc_alg *alg, const struct nbc_shape *shape)
{
    return applies(alg, shape, lacking(shape));
}

static bool has_bytes(const struct nbc_rule *r, int64_t bytes)
{
    if (bytes < 0)
        return r->min_bytes == 0 && r->max_bytes == INT64_MAX;
    return bytes >= r->min_bytes && bytes <= r->max_bytes;
}

const struct nbc_rule *nbc_rule_find(const struct nbc_shape *shape, const struct nbc_rules *rules)
{
    int64_t bytes = nbc_shape_bytes(shape);
    unsigned lacks = lacking(shape);
    if (!rules)
        return NULL;
    const int n = ranks(shape), *first = &rules->first[shape->coll];
    const struct nbc_rule *r = rules->rule + first[0];
    const struct nbc_rule *end = rules->rule + (first[1] ? first[1] : rules->nrules);
    for (; r < end; r++) {
        if (r->needs & lacks || n < r->min_size || n > r->max_size || r->coll != shape->coll)
            continue;
        if (has_bytes(r, bytes) && applies(r->alg, shape, lacks))
            return r;
    }
    return NULL;
}

/* The first row of a collective: more than the few steps to it would be taken in vain before. */
static const struct nbc_alg *first_row(enum nbc_coll coll)
{
    int low = 0, high = nbc_nalgs - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (nbc_algs[middle].coll < coll)
            low = middle + 1;
        else
            high = middle;
    }
    return &nbc_algs[low];
}

const struct nbc_alg *nbc_select(const struct nbc_shape *shape, const struct nbc_alg *override,
                                 const struct nbc_rules *rules, int64_t *segment)
{
    *segment = 0;
    if (override && override->coll == shape->coll && nbc_alg_applies(override, shape))
        return override;
    const struct nbc_rule *rule = nbc_rule_find(shape, rules);
    if (rule) {
        *segment = rule->segment;
        return rule->alg;
    }
    const struct nbc_alg *alg = first_row(shape->coll);
    unsigned lacks = lacking(shape);
    while (!applies(alg, shape, lacks))
        alg++;
    return alg;
}
