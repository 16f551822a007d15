/* SPDX-License-Identifier: MIT */
#include "circulant.h"

#include "topo.h"

/* Parts are counted in cyclic order from this rank's own. A range of them is one contiguous run of
 * elements, or two. */
struct arc {
    int n;
    struct nbc_ref run[2];
};

static struct arc arc(const struct nbc_circulant *c, struct nbc_ref vector, int from, int n)
{
    struct arc arc = {0};
    int size = c->shape->size, start = (int)(((int64_t)c->shape->rank + from) % size);
    for (int k; n > 0; n -= k, start = 0) {
        k = size - start < n ? size - start : n;
        int64_t first = c->first(c->layout, start), end = c->first(c->layout, start + k);
        if (end > first)
            arc.run[arc.n++] = nbc_ref_part(c->shape, vector, first, end - first);
    }
    return arc;
}

static nbc_id send_arc(struct nbc_sched *s, const struct arc *arc, int peer, nbc_id after)
{
    nbc_id sent = NBC_NONE;
    for (int i = 0; i < arc->n; i++)
        sent = nbc_join(s, sent, nbc_send(s, arc->run[i], peer, after));
    return sent;
}

/* Sets left[k] to the parts left before round k, and the last to 1. Returns the number of rounds.
 */
static int halve(int size, int *left)
{
    int nrounds = 0;
    left[0] = size;
    for (; left[nrounds] > 1; nrounds++)
        left[nrounds + 1] = left[nrounds] / 2 + left[nrounds] % 2;
    return nrounds;
}

/* Receives the first n parts and reduces them into this rank's. moves: this rank's are in the
 * input, the results in home. */
static nbc_id add_arc(struct nbc_sched *s, const struct nbc_circulant *c, int n, int peer,
                      nbc_id ready, bool moves)
{
    struct arc mine = arc(c, moves ? c->input : c->home, 0, n), sum = arc(c, c->home, 0, n);
    nbc_id all = NBC_NONE;
    for (int i = 0; i < sum.n; i++) {
        struct nbc_ref theirs = moves ? sum.run[i] : nbc_temp_like(s, sum.run[i]);
        nbc_id received = nbc_recv(s, theirs, peer, NBC_NONE);
        /* mutants: swap operands: the operation commutes */
        nbc_id added = moves ? nbc_reduce(s, sum.run[i], mine.run[i], theirs, received)
                             : nbc_reduce(s, sum.run[i], theirs, mine.run[i], received);
        nbc_after(s, added, ready);
        all = nbc_join(s, all, added);
    }
    return all != NBC_NONE ? all : ready;
}

/* Copies the middle part to home: with an odd number of parts it is not reduced in the first round.
 */
static nbc_id move_middle(struct nbc_sched *s, const struct nbc_circulant *c, nbc_id ready)
{
    int middle = c->shape->size / 2;
    struct arc from = arc(c, c->input, middle, 1), to = arc(c, c->home, middle, 1);
    return from.n ? nbc_join(s, ready, nbc_copy(s, to.run[0], from.run[0], NBC_NONE)) : ready;
}

nbc_id nbc_circulant_reduce(struct nbc_sched *s, struct nbc_circulant *c)
{
    int rank = c->shape->rank, size = c->shape->size;
    int left[NBC_CIRCULANT_ROUNDS], nrounds = halve(size, left);
    bool elsewhere = !nbc_same_place(c->input, c->home);
    nbc_id ready = NBC_NONE;
    for (int k = 0; k < nrounds; k++) {
        int keep = left[k + 1], give = left[k] - keep;
        int to = nbc_absolute(rank, keep, size), from = nbc_relative(rank, keep, size);
        struct arc out = arc(c, k == 0 ? c->input : c->home, keep, give);
        c->sent[k] = send_arc(s, &out, to, ready);
        ready = add_arc(s, c, give, from, ready, elsewhere && k == 0);
        if (elsewhere && k == 0 && keep > give)
            ready = move_middle(s, c, ready);
    }
    return ready;
}

/* Receives of longer messages are posted round by round: the message of a later round is twice as
 * long, and must not arrive first only because its sender is early. */
enum { LONG = 32 * 1024 };

void nbc_circulant_gather(struct nbc_sched *s, const struct nbc_circulant *c, nbc_id ready)
{
    int rank = c->shape->rank, size = c->shape->size;
    int left[NBC_CIRCULANT_ROUNDS], nrounds = halve(size, left);
    bool elsewhere = !nbc_same_place(c->input, c->home);
    for (int k = nrounds - 1; k >= 0; k--) {
        int have = left[k + 1], more = left[k] - have;
        struct arc mine = arc(c, c->home, 0, more), theirs = arc(c, c->home, have, more);
        nbc_id before = ready, free = elsewhere && k == 0 ? NBC_NONE : c->sent[k];
        send_arc(s, &mine, nbc_relative(rank, have, size), ready);
        for (int i = 0; i < theirs.n; i++) {
            nbc_id received = nbc_recv(s, theirs.run[i], nbc_absolute(rank, have, size), free);
            if (nbc_ref_bytes(c->shape, theirs.run[i]) > LONG)
                nbc_after(s, received, before);
            ready = nbc_join(s, ready, received);
        }
    }
}
