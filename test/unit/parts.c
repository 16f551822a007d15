/* SPDX-License-Identifier: MIT */
#include "parts.h"

#include <stdarg.h>

void complain(struct world *w, const char *format, ...)
{
    if (w->text[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(w->text, sizeof w->text, format, args);
    va_end(args);
}

int unit_atoms(int layout)
{
    static const int atoms[NLAYOUTS] = {1, 2, 2, 3, 2, 1, 1, 0, 6};
    return atoms[layout];
}

int group_of(const struct world *w, int id)
{
    return id >= w->c.size;
}

const char *group_name(const struct world *w, int id)
{
    return group_of(w, id) ? " of the second group" : "";
}

int local_of(const struct world *w, int id)
{
    return group_of(w, id) ? id - w->c.size : id;
}

int group_size(const struct world *w, int group)
{
    return group ? w->c.remote : w->c.size;
}

static int npeers(const struct world *w, int id)
{
    return group_size(w, w->c.remote ? !group_of(w, id) : 0);
}

/* Number of a peer over both groups. */
static int peer_id(const struct world *w, int id, int peer)
{
    return w->c.remote && !group_of(w, id) ? w->c.size + peer : peer;
}

bool is_root(const struct world *w, int id)
{
    return id == w->c.root;
}

/* In the group that the root talks to. */
static bool is_leaf(const struct world *w, int id)
{
    return !w->c.remote || group_of(w, id);
}

bool uneven(enum nbc_coll coll)
{
    return nbc_coll_has_counts(coll, true) || nbc_coll_has_counts(coll, false);
}

/* Units of an uneven block that x and y tell from others: a quarter of them are empty. */
static int64_t some_units(const struct test_case *c, uint64_t x, uint64_t y)
{
    uint64_t h = hash3(c->seed, x, y);
    if (c->even)
        return c->count;
    if (c->count == 0 || h % 4 == 0)
        return 0;
    return (int64_t)(h / 4 % (2 * (uint64_t)c->count + 1));
}

int64_t scattered_units(const struct world *w, int group, int local)
{
    const struct test_case *c = &w->c;
    if (c->alg->coll == NBC_REDUCE_SCATTER_BLOCK)
        return c->remote ? c->count * group_size(w, !group) : c->count;
    if (!c->remote)
        return some_units(c, 0, (uint64_t)local);
    int64_t n = c->count * (c->size + c->remote), parts = group_size(w, group);
    int64_t skew = local + 1 < parts ? 0 : n % 3; /* the last one has a little more */
    n -= n % 3;
    return nbc_part_start(n, (int)parts, local + 1) - nbc_part_start(n, (int)parts, local) + skew;
}

/* Index in the source's destinations of the edge that is this one of our sources. */
static int matching_edge(const struct world *w, int id, int k)
{
    const struct nbc_neighbors *mine = &w->party[id].neighbors;
    if (mine->cartesian)
        return k ^ 1; /* what is sent upwards comes from below */
    const struct nbc_neighbors *theirs = &w->party[mine->sources[k]].neighbors;
    int nth = 0, j = 0;
    for (int i = 0; i < k; i++)
        nth += mine->sources[i] == mine->sources[k];
    while (theirs->destinations[j] != id || nth-- > 0)
        j++;
    return j;
}

/* Units in the block that goes from one rank to its peer (or neighbor) k. */
static int64_t units(const struct world *w, int from, int k)
{
    const struct test_case *c = &w->c;
    uint64_t to = (uint64_t)(nbc_coll_is_neighborhood(c->alg->coll) ? k : peer_id(w, from, k));
    uint64_t x = (uint64_t)from;
    if (!uneven(c->alg->coll))
        return c->count;
    switch (c->alg->coll) {
    case NBC_SCATTERV:
        return some_units(c, 0, to);
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        if (c->in_place && x > to) /* what goes there comes back */
            return some_units(c, to, x);
        return some_units(c, x, to);
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return some_units(c, x, to);
    default:
        return some_units(c, x, 0);
    }
}

int out_blocks(const struct world *w, int id)
{
    const struct nbc_neighbors *n = &w->party[id].neighbors;
    switch (w->c.alg->coll) {
    case NBC_BARRIER:
    case NBC_BCAST: /* has one side, the other one */
        return 0;
    case NBC_GATHER:
    case NBC_GATHERV:
    case NBC_REDUCE:
        return is_leaf(w, id);
    case NBC_SCATTER:
    case NBC_SCATTERV:
        return is_root(w, id) ? npeers(w, id) : 0;
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        return npeers(w, id);
    case NBC_REDUCE_SCATTER_BLOCK:
    case NBC_REDUCE_SCATTER:
        return group_size(w, group_of(w, id));
    case NBC_NEIGHBOR_ALLTOALL:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return n->outdegree;
    default:
        return 1;
    }
}

int in_blocks(const struct world *w, int id)
{
    switch (w->c.alg->coll) {
    case NBC_BARRIER:
        return 0;
    case NBC_GATHER:
    case NBC_GATHERV:
        return is_root(w, id) ? npeers(w, id) : 0;
    case NBC_REDUCE:
        return is_root(w, id);
    case NBC_BCAST:
        return is_root(w, id) || is_leaf(w, id);
    case NBC_SCATTER:
    case NBC_SCATTERV:
        return is_leaf(w, id);
    case NBC_ALLGATHER:
    case NBC_ALLGATHERV:
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        return npeers(w, id);
    default:
        return nbc_coll_is_neighborhood(w->c.alg->coll) ? w->party[id].neighbors.indegree : 1;
    }
}

int block_source(const struct world *w, int id, int i, int *number)
{
    *number = 0;
    switch (w->c.alg->coll) {
    case NBC_BCAST:
        return w->c.root;
    case NBC_SCATTER:
    case NBC_SCATTERV:
        *number = local_of(w, id);
        return w->c.root;
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        *number = local_of(w, id);
        return peer_id(w, id, i);
    case NBC_NEIGHBOR_ALLGATHER:
    case NBC_NEIGHBOR_ALLGATHERV:
        return w->party[id].neighbors.sources[i];
    case NBC_NEIGHBOR_ALLTOALL:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        *number = w->party[id].neighbors.sources[i] < 0 ? 0 : matching_edge(w, id, i);
        return w->party[id].neighbors.sources[i];
    default:
        return peer_id(w, id, i);
    }
}

int64_t out_units(const struct world *w, int id, int i)
{
    bool scatters =
        w->c.alg->coll == NBC_REDUCE_SCATTER || w->c.alg->coll == NBC_REDUCE_SCATTER_BLOCK;
    return scatters ? scattered_units(w, group_of(w, id), i) : units(w, id, i);
}

int64_t in_units(const struct world *w, int id, int i)
{
    enum nbc_coll coll = w->c.alg->coll;
    int number;
    if (coll == NBC_REDUCE_SCATTER || coll == NBC_REDUCE_SCATTER_BLOCK)
        return scattered_units(w, group_of(w, id), local_of(w, id));
    if (nbc_coll_reduces(coll))
        return w->c.count;
    int from = block_source(w, id, i, &number);
    return from < 0 ? w->c.count : units(w, from, number);
}
