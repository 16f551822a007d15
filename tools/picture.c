/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct nbc_op *op_at(const struct picture *p, int i)
{
    int rank = p->rank[i];
    return &p->ranks[rank].sched->ops[i - p->first[rank]];
}

static int peer_of(const struct picture *p, int i)
{
    return tool_peer(p->call, p->rank[i], op_at(p, i)->peer);
}

/* The k-th receive of a rank from another matches the k-th send from there. So the next send is
 * kept for each pair of ranks. */
static const char *meet(struct picture *p)
{
    const char *wrong = NULL;
    int *next = malloc((size_t)p->nranks * sizeof *next);
    if (!next)
        return "out of memory";
    for (int to = 0; to < p->nranks; to++) {
        for (int from = 0; from < p->nranks; from++)
            next[from] = p->first[from];
        for (int i = p->first[to]; i < p->first[to + 1]; i++) {
            if (op_at(p, i)->kind != NBC_OP_RECV)
                continue;
            int from = peer_of(p, i), *s = &next[from];
            while (*s < p->first[from + 1] &&
                   !(op_at(p, *s)->kind == NBC_OP_SEND && peer_of(p, *s) == to))
                (*s)++;
            if (*s == p->first[from + 1])
                wrong = "a receive without a matching send";
            else
                p->meets[i] = (*s)++;
        }
    }
    free(next);
    return wrong;
}

static void reach(struct picture *p, int from, int to, bool done)
{
    if (p->level[to] <= p->level[from])
        p->level[to] = p->level[from] + 1;
    int round = p->round[from];
    if (done && p->round[to] < round)
        p->round[to] = round;
}

/* A walk over the operations that an operation releases: its successors, and the matching receive.
 */
struct edges {
    int *waits; /* per operation: edges not yet walked */
    int *met;   /* per operation: of a send, the matching receive; else −1 */
    int *stack;
    int nstack;
};

static void walk(struct picture *p, struct edges *e, int from, int to, bool done)
{
    reach(p, from, to, done);
    if (--e->waits[to] == 0)
        e->stack[e->nstack++] = to;
}

static void leave(struct picture *p, struct edges *e, int i)
{
    const struct nbc_op *op = op_at(p, i);
    const struct nbc_sched *s = p->ranks[p->rank[i]].sched;
    if (op->kind == NBC_OP_SEND)
        p->round[i]++;
    if (e->met[i] >= 0)
        walk(p, e, i, e->met[i], true);
    for (int k = 0; k < op->nsucc_issue + op->nsucc_done; k++)
        walk(p, e, i, p->first[p->rank[i]] + s->succ[op->succ + k], k >= op->nsucc_issue);
}

/* Levels and rounds, in an order in which the operations can happen. */
static const char *order(struct picture *p)
{
    int done = 0;
    struct edges e = {0};
    e.waits = malloc(3 * ((size_t)p->nops + 1) * sizeof *e.waits);
    if (!e.waits)
        return "out of memory";
    e.met = e.waits + p->nops + 1;
    e.stack = e.met + p->nops + 1;
    for (int i = 0; i < p->nops; i++)
        e.met[i] = -1;
    for (int i = 0; i < p->nops; i++) {
        e.waits[i] = op_at(p, i)->npre + (p->meets[i] >= 0);
        if (p->meets[i] >= 0)
            e.met[p->meets[i]] = i;
        if (e.waits[i] == 0)
            e.stack[e.nstack++] = i;
    }
    while (e.nstack > 0) {
        leave(p, &e, e.stack[--e.nstack]);
        done++;
    }
    free(e.waits);
    return done == p->nops ? NULL : "a cycle of dependencies";
}

static void sum_up(struct picture *p)
{
    for (int rank = 0; rank < p->nranks; rank++) {
        int64_t sent = 0;
        for (int i = p->first[rank]; i < p->first[rank + 1]; i++) {
            if (p->round[i] > p->rounds)
                p->rounds = p->round[i];
            if (p->level[i] >= p->nlevels)
                p->nlevels = p->level[i] + 1;
            if (op_at(p, i)->kind != NBC_OP_SEND)
                continue;
            p->messages++;
            sent += nbc_ref_bytes(&p->ranks[rank].shape, nbc_op_a(op_at(p, i)));
        }
        p->bytes += sent;
        if (sent > p->most)
            p->most = sent;
    }
}

static bool allocate(struct picture *p)
{
    p->first = calloc((size_t)p->nranks + 1, sizeof *p->first);
    if (!p->first)
        return false;
    for (int rank = 0; rank < p->nranks; rank++)
        p->first[rank + 1] = p->first[rank] + p->ranks[rank].sched->nops;
    p->nops = p->first[p->nranks];
    p->rank = calloc(4 * ((size_t)p->nops + 1), sizeof *p->rank);
    if (!p->rank)
        return false;
    p->meets = p->rank + p->nops + 1;
    p->level = p->meets + p->nops + 1;
    p->round = p->level + p->nops + 1;
    for (int rank = 0; rank < p->nranks; rank++)
        for (int i = p->first[rank]; i < p->first[rank + 1]; i++) {
            p->rank[i] = rank;
            p->meets[i] = -1;
        }
    return true;
}

const char *picture_make(struct picture *p, const struct tool_call *call,
                         const struct tool_rank *ranks)
{
    *p = (struct picture){.call = call, .ranks = ranks, .nranks = tool_call_ranks(call)};
    const char *wrong = allocate(p) ? meet(p) : "out of memory";
    if (!wrong)
        wrong = order(p);
    if (wrong)
        picture_free(p);
    else
        sum_up(p);
    return wrong;
}

void picture_free(struct picture *p)
{
    free(p->first);
    free(p->rank);
    p->first = p->rank = NULL;
}

/* --- drawing ---------------------------------------------------------------------------------- */

static const struct {
    const char *word, *color;
} looks[] = {
    [NBC_OP_SEND] = {"send", "#cfe2f3"}, [NBC_OP_RECV] = {"recv", "#d9ead3"},
    [NBC_OP_COPY] = {"copy", "#eeeeee"}, [NBC_OP_REDUCE] = {"reduce", "#f9cb9c"},
    [NBC_OP_JOIN] = {"", "#ffffff"},
};

/* Inches. */
#define LANE 0.95
#define ROW 0.75

static void print_bytes(FILE *out, int64_t bytes)
{
    static const char units[] = " KMG";
    int unit = 0;
    while (unit < 3 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    fprintf(out, "%" PRId64 " ", bytes);
    if (unit)
        fprintf(out, "%ci", units[unit]);
    fprintf(out, "B");
}

static void dot_node(const struct picture *p, int i, double x, FILE *out)
{
    const struct nbc_op *op = op_at(p, i);
    fprintf(out, "  n%d [pos=\"%.2f,%.2f!\", fillcolor=\"%s\", label=\"%s", i, x,
            -ROW * p->level[i], looks[op->kind].color, looks[op->kind].word);
    if (op->kind == NBC_OP_SEND)
        fprintf(out, " to %d", peer_of(p, i));
    if (op->kind == NBC_OP_RECV)
        fprintf(out, " from %d", peer_of(p, i));
    if (op->kind != NBC_OP_JOIN) {
        fprintf(out, "\\n");
        print_bytes(out, nbc_ref_bytes(&p->ranks[p->rank[i]].shape, nbc_op_a(op)));
    }
    fprintf(out, "\"%s];\n", op->kind == NBC_OP_JOIN ? ", shape=point, width=0.06" : "");
}

static void dot_edges(const struct picture *p, int i, FILE *out)
{
    const struct nbc_op *op = op_at(p, i);
    const struct nbc_sched *s = p->ranks[p->rank[i]].sched;
    for (int k = 0; k < op->nsucc_done; k++)
        fprintf(out, "  n%d -> n%d;\n", i,
                p->first[p->rank[i]] + s->succ[op->succ + op->nsucc_issue + k]);
    if (p->meets[i] >= 0)
        fprintf(out, "  n%d -> n%d [color=\"#1155cc\", penwidth=1.4, tooltip=\"round %d\"];\n",
                p->meets[i], i, p->round[i]);
}

/* Draws a line at the first send of each round. */
static void dot_rounds(const struct picture *p, double right, FILE *out)
{
    for (int round = 1; round <= p->rounds; round++) {
        int top = p->nlevels;
        for (int i = 0; i < p->nops; i++)
            if (p->round[i] == round && op_at(p, i)->kind == NBC_OP_SEND && p->level[i] < top)
                top = p->level[i];
        double y = -ROW * top + ROW / 2;
        fprintf(out,
                "  r%d [pos=\"-0.9,%.2f!\", label=\"round %d\", shape=plaintext, style=\"\"];\n",
                round, y, round);
        fprintf(out, "  e%d [pos=\"%.2f,%.2f!\", label=\"\", shape=none, width=0, height=0];\n",
                round, right, y);
        fprintf(out, "  r%d -> e%d [style=dotted, arrowhead=none, color=\"#bbbbbb\"];\n", round,
                round);
    }
}

/* Returns the largest number of operations of a rank on one level, and sets the lane of each. */
static int dot_lanes(const struct picture *p, int rank, int *used, int *lane)
{
    int most = 1;
    for (int level = 0; level < p->nlevels; level++)
        used[level] = 0;
    for (int i = p->first[rank]; i < p->first[rank + 1]; i++) {
        lane[i] = used[p->level[i]]++;
        if (used[p->level[i]] > most)
            most = used[p->level[i]];
    }
    return most;
}

void picture_dot(const struct picture *p, const char *title, FILE *out)
{
    double x = 0;
    int *used = malloc(((size_t)p->nlevels + (size_t)p->nops + 1) * sizeof *used);
    if (!used)
        return;
    int *lane = used + p->nlevels;
    fprintf(
        out,
        "digraph schedule {\n"
        "  layout=neato; splines=line; outputorder=edgesfirst; labelloc=t; fontname=Helvetica;\n"
        "  label=\"%s: %d rounds, %d messages, ",
        title, p->rounds, p->messages);
    print_bytes(out, p->bytes);
    fprintf(out, "\";\n"
                 "  node [shape=box, style=\"filled,rounded\", fontname=Helvetica, fontsize=9, "
                 "height=0.3, width=0.8, margin=\"0.03,0.02\", color=\"#888888\"];\n"
                 "  edge [color=\"#aaaaaa\", arrowsize=0.6];\n");
    for (int rank = 0; rank < p->nranks; rank++) {
        int lanes = dot_lanes(p, rank, used, lane);
        fprintf(out,
                "  p%d [pos=\"%.2f,%.2f!\", label=\"rank %d\", shape=plaintext, style=\"\", "
                "fontsize=12];\n",
                rank, x + LANE * (lanes - 1) / 2, ROW, rank);
        for (int i = p->first[rank]; i < p->first[rank + 1]; i++)
            dot_node(p, i, x + LANE * lane[i], out);
        x += LANE * lanes + 0.5;
    }
    for (int i = 0; i < p->nops; i++)
        dot_edges(p, i, out);
    dot_rounds(p, x - 0.5, out);
    fprintf(out, "}\n");
    free(used);
}
