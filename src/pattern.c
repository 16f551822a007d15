/* SPDX-License-Identifier: MIT */
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

#include "nodes.h"

int nbc_ends_list(const struct nbc_shape *shape, bool out, struct nbc_end *ends)
{
    const struct nbc_neighbors *n = shape->neighbors;
    int degree = nbc_degree(shape, out), count = 0;
    for (int i = 0; i < degree; i++) {
        int at = out || !n ? i : nbc_source_at(n, i);
        int peer = !n ? i : out ? n->destinations[at] : n->sources[at];
        if (peer < 0 || peer == shape->rank)
            continue;
        struct nbc_ref block = out ? nbc_send_block(shape, at) : nbc_recv_block(shape, at);
        if (nbc_ref_bytes(shape, block) > 0)
            ends[count++] = (struct nbc_end){peer, block};
    }
    return count;
}

/* Adds the edges to other nodes on one side. */
static int offer_side(struct nbc_offer *offer, const struct nbc_shape *shape, bool out,
                      struct nbc_end *ends)
{
    int node = nbc_node_of(shape->nodes, shape->rank), before = offer->n;
    int count = nbc_ends_list(shape, out, ends);
    for (int i = 0; i < count; i++) {
        int peer = ends[i].peer;
        if (nbc_node_of(shape->nodes, peer) == node)
            continue;
        offer->edges[offer->n++] = (struct nbc_edge){.from = out ? shape->rank : peer,
                                                     .to = out ? peer : shape->rank,
                                                     .bytes = nbc_ref_bytes(shape, ends[i].block)};
    }
    return offer->n - before;
}

bool nbc_offer_make(struct nbc_offer *offer, const struct nbc_shape *shape)
{
    size_t most = (size_t)nbc_degree(shape, false) + (size_t)nbc_degree(shape, true) + 1;
    struct nbc_end *ends = malloc(most * sizeof *ends);
    *offer = (struct nbc_offer){.edges = calloc(most, sizeof *offer->edges), .n = 1};
    bool good = ends && offer->edges;
    if (good) {
        int out = offer_side(offer, shape, true, ends), in = offer_side(offer, shape, false, ends);
        offer->edges[0] = (struct nbc_edge){.from = out, .to = in};
        offer->busiest = out > in ? out : in;
    } else {
        free(offer->edges);
        offer->edges = NULL;
    }
    free(ends);
    return good;
}

bool nbc_pattern_make(struct nbc_pattern *pattern, const struct nbc_edge *offers, int nranks,
                      int room)
{
    size_t out = 0, in = 0;
    for (int i = 0; i < nranks; i++) {
        out += (size_t)offers[(size_t)i * (size_t)room].from;
        in += (size_t)offers[(size_t)i * (size_t)room].to;
    }
    struct nbc_edge *all = malloc((out + in + 1) * sizeof *all);
    *pattern = (struct nbc_pattern){.out = all};
    if (!all)
        return false;
    pattern->in = all + out;
    for (int i = 0; i < nranks; i++) {
        const struct nbc_edge *offer = offers + (size_t)i * (size_t)room;
        int nout = offer->from, nin = offer->to;
        memcpy(pattern->out + pattern->nout, offer + 1, (size_t)nout * sizeof *offer);
        memcpy(pattern->in + pattern->nin, offer + 1 + nout, (size_t)nin * sizeof *offer);
        pattern->nout += nout;
        pattern->nin += nin;
    }
    return true;
}

void nbc_pattern_free(struct nbc_pattern *pattern)
{
    free(pattern->out);
    *pattern = (struct nbc_pattern){0};
}

/* Overheads in nanoseconds and bytes per nanosecond: of the faster one of the networks that nbcsim
 * knows. STEP: latency of one more message within a node. */
enum { BETWEEN = 200, WITHIN = 150, STEP = 600, COPY = 30, BYTES_BETWEEN = 16, BYTES_WITHIN = 4 };

static void add_times(const struct nbc_shape *shape, const struct nbc_sched *s, int64_t *within,
                      int64_t *between)
{
    int node = nbc_node_of(shape->nodes, shape->rank);
    for (nbc_id id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        int64_t bytes = op->kind == NBC_OP_JOIN ? 0 : nbc_ref_bytes(shape, nbc_op_a(op));
        if (op->kind == NBC_OP_COPY)
            *within += COPY + bytes / BYTES_WITHIN;
        else if (op->kind != NBC_OP_JOIN && nbc_node_of(shape->nodes, op->peer) == node)
            *within += WITHIN + bytes / BYTES_WITHIN;
        else if (op->kind != NBC_OP_JOIN)
            *between += BETWEEN + bytes / BYTES_BETWEEN;
    }
}

enum { LINEAR, APART_WITHIN, APART_BETWEEN, TOGETHER_WITHIN, TOGETHER_BETWEEN };

void nbc_pattern_numbers(const struct nbc_shape *shape, const struct nbc_sched *linear,
                         const struct nbc_sched *apart, const struct nbc_sched *together,
                         int64_t *numbers)
{
    for (int i = 0; i < NBC_PATTERN_NUMBERS; i++)
        numbers[i] = 0;
    add_times(shape, linear, &numbers[LINEAR], &numbers[LINEAR]);
    add_times(shape, apart, &numbers[APART_WITHIN], &numbers[APART_BETWEEN]);
    add_times(shape, together, &numbers[TOGETHER_WITHIN], &numbers[TOGETHER_BETWEEN]);
}

/* Within nodes and between them different ranks may be the busiest ones. The gain must be a fifth.
 */
enum nbc_pattern_choice nbc_pattern_choose(const int64_t *largest, bool forced)
{
    int64_t apart = largest[APART_WITHIN] + largest[APART_BETWEEN] + STEP;
    int64_t together = largest[TOGETHER_WITHIN] + largest[TOGETHER_BETWEEN] + (int64_t)2 * STEP;
    int64_t least = apart < together ? apart : together;
    if (!forced && least > largest[LINEAR] / 5 * 4)
        return NBC_PATTERN_NEITHER;
    return apart < together ? NBC_PATTERN_APART : NBC_PATTERN_TOGETHER;
}
