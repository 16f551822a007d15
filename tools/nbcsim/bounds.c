/* SPDX-License-Identifier: MIT */
/* Lower bounds. Those of bytes and reductions are of Chan, Heimlich, Purkayastha, van de Geijn,
 * "Collective communication: theory, practice, and experience", 2007. Their latency, α log P,
 * assumes one message per rank at a time. In LogGP a rank may send before its last message has
 * arrived; the least latency is that of Karp, Sahay, Santos, Schauser, "Optimal broadcast and
 * summation in the LogP model", 1993. */
#include <stdlib.h>

#include "calls.h"
#include "topo.h"

/* Returns the time of an optimal broadcast: every rank that has the data sends it as often as
 * possible. A queue of the ranks' next sends is sorted, since all ranks have the same gap. */
static double spread(int P, const struct link *l)
{
    double one = l->L + 2 * l->o, pause = l->g > l->o ? l->g : l->o;
    double *since =
        malloc((size_t)P * sizeof *since); /* time at which a rank has the data; ascending */
    double *next = malloc((size_t)P * sizeof *next); /* time at which its next message arrives */
    double last = 0;
    if (!since || !next) {
        free(since);
        free(next);
        return 0;
    }
    /* Candidates: rank i's first message, in order of i; its later ones, in order of being made. */
    int knows = 1, fresh = 0, head = 0, tail = 0;
    since[0] = 0;
    while (knows < P) {
        bool first = fresh < knows && (head == tail || since[fresh] + one <= next[head]);
        double arrives = first ? since[fresh++] + one : next[head++];
        since[knows++] = last = arrives;
        next[tail++] = arrives + pause;
    }
    free(since);
    free(next);
    return last;
}

/* Returns the bytes that pass through the port of some rank, as a multiple of the call's bytes. */
static double bytes_factor(enum nbc_coll coll, double P)
{
    switch (coll) {
    case NBC_BARRIER:
        return 0;
    case NBC_GATHER:
    case NBC_GATHERV:
    case NBC_SCATTER:
    case NBC_SCATTERV:
    case NBC_ALLGATHER:
    case NBC_ALLGATHERV:
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
    case NBC_REDUCE_SCATTER:
    case NBC_REDUCE_SCATTER_BLOCK:
        return P - 1;
    case NBC_ALLREDUCE:
        return 2 * (P - 1) / P;
    case NBC_NEIGHBOR_ALLGATHER:
    case NBC_NEIGHBOR_ALLGATHERV:
        return P > 2 ? 2 : 1; /* both neighbors of two ranks are one */
    case NBC_NEIGHBOR_ALLTOALL:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return 2;
    default:
        return 1;
    }
}

static double work_factor(enum nbc_coll coll, double P)
{
    if (!nbc_coll_reduces(coll))
        return 0;
    return coll == NBC_REDUCE_SCATTER || coll == NBC_REDUCE_SCATTER_BLOCK ? P - 1 : (P - 1) / P;
}

struct bounds call_bounds(const struct call *call, const struct network *net)
{
    /* The better of the two links in each parameter, so that the bound holds for any mixture. */
    bool alone = call->size <= net->ppn, spans = net->ppn == 1;
    struct link l = alone ? net->within : net->between;
    if (!alone && !spans) {
        const struct link *w = &net->within;
        l.L = w->L < l.L ? w->L : l.L;
        l.o = w->o < l.o ? w->o : l.o;
        l.g = w->g < l.g ? w->g : l.g;
        l.G = w->G < l.G ? w->G : l.G;
    }
    double P = call->size, n = (double)call->bytes;
    struct bounds b = {0};
    if (call->size == 1)
        return b;
    bool far = !nbc_coll_is_neighborhood(call->coll); /* data of one rank must reach all */
    b.latency = far ? spread(call->size, &l) : l.L + 2 * l.o;
    b.rounds = (far ? nbc_log2_ceil(call->size) : 1) * (l.L + 2 * l.o);
    b.bytes = bytes_factor(call->coll, P) * n * l.G;
    b.work = work_factor(call->coll, P) * n * net->reduce;
    return b;
}

double bounds_most(const struct bounds *b)
{
    double most = b->latency > b->bytes ? b->latency : b->bytes;
    return most > b->work ? most : b->work;
}
