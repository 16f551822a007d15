/* SPDX-License-Identifier: MIT */
/* What an algorithm costs, counted in its schedules, against the formula at its head: messages one
 * after the other (the factor of α), messages and bytes in all, and most bytes that one rank sends
 * or receives (the factor of nβ). A new builder needs a line in the table below. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "topo.h"
#include "unit.h"

/* --- counting --------------------------------------------------------------------------------- */

struct cost {
    int64_t rounds, messages, bytes, most;
};

/* When an operation starts and is done, in messages one after the other. A message takes from when
 * both its ends have started, and the one before it on its way has arrived, to one later. */
struct when {
    int start, done;
    const struct when *mate;   /* the other end */
    const struct when *before; /* the message before */
};

static struct world *world;
static struct when **clocks; /* per rank and operation */

static int peer_id(int id, int peer)
{
    return world->c.remote && id < world->c.size ? world->c.size + peer : peer;
}

/* The k-th send from x to y meets the k-th receive at y from x. */
static void marry(int id)
{
    const struct nbc_sched *s = world->party[id].sched;
    int *next = calloc((size_t)world->n, sizeof *next); /* where to look on at the peer */
    const struct when **before = calloc((size_t)world->n, sizeof *before);
    for (nbc_id op = 0; op < s->nops; op++) {
        if (s->ops[op].kind != NBC_OP_SEND)
            continue;
        int to = peer_id(id, s->ops[op].peer), at = next[to];
        const struct nbc_sched *r = world->party[to].sched;
        while (r->ops[at].kind != NBC_OP_RECV || peer_id(to, r->ops[at].peer) != id)
            at++;
        next[to] = at + 1;
        clocks[id][op].mate = &clocks[to][at];
        clocks[to][at].mate = &clocks[id][op];
        clocks[id][op].before = clocks[to][at].before = before[to];
        before[to] = &clocks[id][op];
    }
    free(before);
    free(next);
}

static bool later(int *time, int than)
{
    if (*time >= than)
        return false;
    *time = than;
    return true;
}

/* Moves the clocks of a rank on; false when nothing has changed. */
static bool advance(int id)
{
    const struct nbc_sched *s = world->party[id].sched;
    bool changed = false;
    for (nbc_id op = 0; op < s->nops; op++) {
        struct when *w = &clocks[id][op];
        changed |= later(&w->done, w->start);
        if (w->mate) {
            changed |= later(&w->done, 1 + w->start);
            changed |= later(&w->done, 1 + w->mate->start);
            changed |= w->before && later(&w->done, 1 + w->before->done);
        }
        const struct nbc_op *o = &s->ops[op];
        for (int32_t i = 0; i < o->nsucc_issue + o->nsucc_done; i++)
            changed |= later(&clocks[id][s->succ[o->succ + i]].start,
                             i < o->nsucc_issue ? w->start : w->done);
    }
    return changed;
}

static int count_rounds(void)
{
    bool changed = true;
    int rounds = 0;
    for (int id = 0; id < world->n; id++)
        marry(id);
    while (changed) {
        changed = false;
        for (int id = 0; id < world->n; id++)
            changed |= advance(id);
    }
    for (int id = 0; id < world->n; id++)
        for (nbc_id op = 0; op < world->party[id].sched->nops; op++)
            later(&rounds, clocks[id][op].done);
    return rounds;
}

static struct cost count(struct world *w)
{
    struct cost c = {0};
    world = w;
    clocks = calloc((size_t)w->n, sizeof *clocks);
    for (int id = 0; id < w->n; id++) {
        const struct party *p = &w->party[id];
        int64_t bytes[2] = {0};
        clocks[id] = calloc((size_t)p->sched->nops + 1, sizeof **clocks);
        for (nbc_id op = 0; op < p->sched->nops; op++) {
            const struct nbc_op *o = &p->sched->ops[op];
            bool sends = o->kind == NBC_OP_SEND;
            c.messages += sends;
            if (sends || o->kind == NBC_OP_RECV)
                bytes[sends] += nbc_ref_bytes(&p->shape, nbc_op_a(o));
        }
        c.bytes += bytes[1];
        for (int i = 0; i < 2; i++)
            c.most = bytes[i] > c.most ? bytes[i] : c.most;
    }
    c.rounds = count_rounds();
    for (int id = 0; id < w->n; id++)
        free(clocks[id]);
    free(clocks);
    return c;
}

/* --- words of the formulas -------------------------------------------------------------------- */

struct at {
    int64_t P, R; /* ranks; of the remote group */
    int64_t n;    /* bytes of a block, or of the vector */
    int64_t segment;
    enum nbc_coll coll;
    const struct world *w;
};

typedef int64_t formula(const struct at *a);

/* For which numbers of ranks `rounds` and `most` are exact; elsewhere they are bounds. */
enum exact { ALWAYS, POWERS_OF_2, POWERS_OF_4, BOUND };

enum { UNKNOWN = -1 }; /* the head says nothing */

static int64_t log_ceil(int64_t n, int64_t k)
{
    int64_t l = 0;
    for (int64_t reach = 1; reach < n; reach *= k)
        l++;
    return l;
}

static int64_t zero(const struct at *a)
{
    (void)a;
    return 0;
}

static int64_t one(const struct at *a)
{
    return a->P > 1 || a->R;
}

static int64_t up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static int64_t log2P(const struct at *a)
{
    return log_ceil(a->P, 2);
}

static int64_t log4P(const struct at *a)
{
    return log_ceil(a->P, 4);
}

static int64_t pow2(const struct at *a)
{
    return nbc_pow2_floor((int)a->P);
}

static int64_t floor_log2P(const struct at *a)
{
    return log_ceil(pow2(a), 2);
}

/* Ranks beyond the power of two. */
static int64_t rest(const struct at *a)
{
    return a->P - pow2(a);
}

/* Peers d·k^i < P, 0 < d < k: children of a k-nomial root, partners of dissemination. */
static int64_t peers_of(int64_t P, int64_t k)
{
    int64_t n = 0;
    for (int64_t step = 1; step < P; step *= k)
        for (int64_t d = 1; d < k && d * step < P; d++)
            n++;
    return n;
}

/* Ranks in all k-nomial subtrees but the root's: what a gather's or scatter's messages hold. */
static int64_t subtrees(int64_t P, int64_t k)
{
    int64_t sum = 0;
    for (int64_t rank = 1; rank < P; rank++) {
        int64_t size = 1;
        while (rank % (size * k) == 0)
            size *= k;
        sum += size < P - rank ? size : P - rank;
    }
    return sum;
}

/* Nonzero digits of 0 … P − 1 in base k: how often blocks of an alltoall move. */
static int64_t digits(int64_t P, int64_t k)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < P; i++)
        for (int64_t j = i; j > 0; j /= k)
            sum += j % k != 0;
    return sum;
}

static int64_t larger(const struct at *a)
{
    return a->P > a->R ? a->P : a->R;
}

static int64_t smaller(const struct at *a)
{
    return a->P < a->R ? a->P : a->R;
}

/* --- the formulas ----------------------------------------------------------------------------- */

enum { WINDOW = 8 };

/* P − 1 messages in all, and what they hold */
static int64_t P_1(const struct at *a)
{
    return a->P - 1;
}

static int64_t P_1_n(const struct at *a)
{
    return (a->P - 1) * a->n;
}

static int64_t PP_1(const struct at *a)
{
    return a->P * (a->P - 1);
}

static int64_t PP_1_n(const struct at *a)
{
    return a->P * (a->P - 1) * a->n;
}

static int64_t P_log2P(const struct at *a)
{
    return a->P * log2P(a);
}

static int64_t in_windows(const struct at *a)
{
    return up(a->P - 1, WINDOW);
}

/* All at once where they have room, else in windows. */
static int64_t in_room(const struct at *a)
{
    return a->P > WINDOW && a->P * a->n > 128 * 1024 ? in_windows(a) : a->P > 1;
}

/* barriers */
static int64_t dissemination4_messages(const struct at *a)
{
    return a->P * peers_of(a->P, 4);
}

static int64_t twice_log4P(const struct at *a)
{
    return 2 * log4P(a);
}

static int64_t twice_P_1(const struct at *a)
{
    return 2 * (a->P - 1);
}

/* k-nomial trees */
static int64_t log2P_n(const struct at *a)
{
    return log2P(a) * a->n;
}

static int64_t children4_n(const struct at *a)
{
    return peers_of(a->P, 4) * a->n;
}

static int64_t subtrees2_n(const struct at *a)
{
    return subtrees(a->P, 2) * a->n;
}

static int64_t subtrees4_n(const struct at *a)
{
    return subtrees(a->P, 4) * a->n;
}

/* pipelines; without a segment size of the caller's the reductions have a choice of their own */
static int64_t pieces(const struct at *a)
{
    return a->segment && a->P > 1 ? up(a->n, a->segment) : 1;
}

static int64_t chain_rounds(const struct at *a)
{
    return a->P > 1 ? a->P - 2 + pieces(a) : 0;
}

/* Broadcasts cut what is longer than this in pieces of their own choice. */
enum { UNCUT = 4096 };

static int64_t bcast_chain_rounds(const struct at *a)
{
    return a->segment || a->n <= UNCUT ? chain_rounds(a) : UNKNOWN;
}

static int64_t chain_messages(const struct at *a)
{
    return (a->P - 1) * pieces(a);
}

static int64_t own_chain_rounds(const struct at *a)
{
    return a->segment ? chain_rounds(a) : UNKNOWN;
}

static int64_t own_chain_messages(const struct at *a)
{
    return a->segment ? chain_messages(a) : UNKNOWN;
}

static int64_t bcast_chain_messages(const struct at *a)
{
    return a->segment || a->n <= UNCUT ? chain_messages(a) : UNKNOWN;
}

static int64_t once_n(const struct at *a)
{
    return a->P > 1 ? a->n : 0;
}

static int64_t binary_tree_rounds(const struct at *a)
{
    if (!a->segment && a->n > UNCUT)
        return UNKNOWN;
    return a->P > 1 ? 2 * log2P(a) + 2 * pieces(a) : 0;
}

static int64_t binary_tree_most(const struct at *a)
{
    return (a->P > 2 ? 2 : a->P - 1) * a->n;
}

static int64_t two_tree_rounds(const struct at *a)
{
    return a->segment && a->P > 1 ? 2 * log2P(a) + pieces(a) : UNKNOWN;
}

/* Half of the pieces twice; what is not cut goes along one tree alone. */
static int64_t two_tree_most(const struct at *a)
{
    bool cut = a->segment && a->n > a->segment;
    return cut ? a->n + a->segment : binary_tree_most(a);
}

/* scatter and allgather */
static int64_t log2P_and_P_1(const struct at *a)
{
    return log2P(a) + a->P - 1;
}

/* Every rank gets all chunks once: those of its subtree in one message, the others one by one. */
static int64_t scatter_allgather_messages(const struct at *a)
{
    return a->P - 1 + a->P * (a->P - 1) - subtrees(a->P, 2);
}

static int64_t twice_log2P(const struct at *a)
{
    return 2 * log2P(a);
}

static int64_t twice_P_1_by_P_n(const struct at *a)
{
    return 2 * (a->P - 1) * a->n / a->P;
}

/* allgather */
static int64_t folded_rounds(const struct at *a)
{
    return floor_log2P(a) + (rest(a) ? 2 : 0);
}

static int64_t folded_messages(const struct at *a)
{
    return pow2(a) * floor_log2P(a) + 2 * rest(a);
}

static int64_t allgather_doubling_bytes(const struct at *a)
{
    return (rest(a) + a->P * (pow2(a) - 1) + rest(a) * a->P) * a->n;
}

static int64_t allgather_doubling_most(const struct at *a)
{
    return rest(a) ? 3 * (a->P - 1) * a->n : (a->P - 1) * a->n;
}

static int64_t half_P(const struct at *a)
{
    return a->P / 2;
}

static int64_t P_half_P(const struct at *a)
{
    return a->P * a->P / 2;
}

/* alltoall */
static int64_t bruck_bytes(const struct at *a)
{
    return a->P * digits(a->P, 2) * a->n;
}

static int64_t bruck_most(const struct at *a)
{
    return up(a->P * log2P(a), 2) * a->n;
}

static int64_t bruck4_messages(const struct at *a)
{
    return a->P * peers_of(a->P, 4);
}

static int64_t bruck4_bytes(const struct at *a)
{
    return a->P * digits(a->P, 4) * a->n;
}

static int64_t bruck4_most(const struct at *a)
{
    return up(3 * a->P * log4P(a), 4) * a->n;
}

/* reduce, Rabenseifner: fold, halving, binomial gather of the parts */
static int64_t reduce_rabenseifner_rounds(const struct at *a)
{
    return 2 * floor_log2P(a) + (rest(a) > 0);
}

static int64_t reduce_rabenseifner_messages(const struct at *a)
{
    return rest(a) + pow2(a) * floor_log2P(a) + pow2(a) - 1;
}

static int64_t reduce_rabenseifner_bytes(const struct at *a)
{
    return rest(a) * a->n + (pow2(a) - 1) * a->n + subtrees(pow2(a), 2) * (a->n / pow2(a));
}

static int64_t reduce_rabenseifner_most(const struct at *a)
{
    return 2 * (pow2(a) - 1) * (a->n / pow2(a)) + (rest(a) ? a->n : 0);
}

/* allreduce */
static int64_t folded_messages_n(const struct at *a)
{
    return folded_messages(a) * a->n;
}

static int64_t folded_log2P_n(const struct at *a)
{
    return (floor_log2P(a) + (rest(a) > 0)) * a->n;
}

/* Groups of 4 as long as P asks for it, then one of 2, 3, 5, 7. Sum of (size − 1), or the number of
 * groups; what is left over folds: the head tells no more. */
static int64_t groups(int64_t P, bool sum)
{
    const int64_t sizes[] = {4, 2, 3, 5, 7};
    int64_t total = 0;
    for (int i = 0; i < 5; i++)
        for (; P % sizes[i] == 0; P /= sizes[i])
            total += sum ? sizes[i] - 1 : 1;
    return P == 1 ? total : UNKNOWN;
}

static int64_t multiplying_rounds(const struct at *a)
{
    return groups(a->P, false);
}

static int64_t multiplying_messages(const struct at *a)
{
    int64_t each = groups(a->P, true);
    return each == UNKNOWN ? UNKNOWN : a->P * each;
}

static int64_t multiplying_bytes(const struct at *a)
{
    int64_t messages = multiplying_messages(a);
    return messages == UNKNOWN ? UNKNOWN : messages * a->n;
}

static int64_t multiplying_most(const struct at *a)
{
    int64_t each = groups(a->P, true);
    return each == UNKNOWN ? UNKNOWN : each * a->n;
}

static int64_t allreduce_rabenseifner_rounds(const struct at *a)
{
    return 2 * floor_log2P(a) + (rest(a) ? 2 : 0);
}

static int64_t allreduce_rabenseifner_messages(const struct at *a)
{
    return 2 * pow2(a) * floor_log2P(a) + 2 * rest(a);
}

static int64_t allreduce_rabenseifner_bytes(const struct at *a)
{
    return 2 * (pow2(a) - 1) * a->n + 2 * rest(a) * a->n;
}

/* Pieces of each of the P parts of a vector. */
static int64_t part_pieces(const struct at *a)
{
    return a->segment ? up(a->n / a->P, a->segment) : 1;
}

static int64_t twice_PP_1_pieces(const struct at *a)
{
    return 2 * a->P * (a->P - 1) * part_pieces(a);
}

static int64_t PP_1_pieces(const struct at *a)
{
    return a->P * (a->P - 1) * part_pieces(a);
}

static int64_t twice_P_1_n(const struct at *a)
{
    return 2 * (a->P - 1) * a->n;
}

static int64_t two_rounds(const struct at *a)
{
    return a->P > 1 ? 2 * part_pieces(a) : 0;
}

/* The next piece sets out when the one before has been passed on. */
static int64_t ring_rounds(const struct at *a)
{
    return a->P > 1 ? 2 * (a->P - 1) * part_pieces(a) : 0;
}

/* One a rank and round, and one more where what it sends goes over the last part: in a round that
 * sends m parts that is so for m − 1 ranks. */
static int64_t circle_messages(const struct at *a)
{
    return a->P * log2P(a) + a->P - 1 - log2P(a);
}

/* … and the two pieces of such a message are posted one after the other. */
static int64_t twice_circle_rounds(const struct at *a)
{
    return 4 * log2P(a);
}

static int64_t twice_circle_messages(const struct at *a)
{
    return 2 * circle_messages(a);
}

/* reduce_scatter; n: the whole vector */
static int64_t P_1_by_P_n(const struct at *a)
{
    return (a->P - 1) * (a->n / a->P);
}

static int64_t halving_bytes(const struct at *a)
{
    return (pow2(a) - 1) * a->n + rest(a) * (a->n + a->n / a->P);
}

/* The first rank that others fold onto keeps the largest halves: they have two blocks a rank. */
static int64_t halving_most(const struct at *a)
{
    int64_t blocks = 0;
    for (int64_t half = pow2(a) / 2; half > 0; half /= 2)
        blocks += half + (half < rest(a) ? half : rest(a));
    return (rest(a) ? a->n : 0) + blocks * (a->n / a->P);
}

static int64_t butterfly_rounds(const struct at *a)
{
    return floor_log2P(a) + (rest(a) > 0) + (a->P > 2);
}

/* Blocks that bit reversal leaves where they are; with folded ranks the head tells no more. */
static int64_t butterfly_moves(const struct at *a)
{
    return rest(a) ? UNKNOWN : a->P - (INT64_C(1) << (log2P(a) + 1) / 2);
}

static int64_t butterfly_messages(const struct at *a)
{
    int64_t moves = butterfly_moves(a);
    return moves == UNKNOWN ? UNKNOWN : P_log2P(a) + moves;
}

static int64_t butterfly_bytes(const struct at *a)
{
    int64_t moves = butterfly_moves(a);
    return moves == UNKNOWN ? UNKNOWN : (a->P - 1) * a->n + moves * (a->n / a->P);
}

static int64_t butterfly_most(const struct at *a)
{
    return P_1_by_P_n(a) + (a->P > 2 ? a->n / a->P : 0) + (rest(a) ? 2 * a->n : 0);
}

static int64_t scatter_doubling_bytes(const struct at *a)
{
    return (pow2(a) * floor_log2P(a) + rest(a)) * a->n + rest(a) * (a->n / a->P);
}

static int64_t scatter_doubling_most(const struct at *a)
{
    return floor_log2P(a) * a->n + (rest(a) ? a->n + a->n / a->P : 0);
}

static int64_t ring_once_rounds(const struct at *a)
{
    return (a->P - 1) * part_pieces(a);
}

/* scan */
static int64_t scan_doubling_messages(const struct at *a)
{
    int64_t sum = 0;
    for (int64_t step = 1; step < a->P; step *= 2)
        sum += a->P - step;
    return sum;
}

static int64_t scan_doubling_bytes(const struct at *a)
{
    return scan_doubling_messages(a) * a->n;
}

/* For a piece every rank sends up whose subtree is not at the end, and every rank hears whose is
 * not at the beginning. */
static int64_t scan_tree_messages(const struct at *a, int tree)
{
    int64_t messages = 0;
    for (int rank = 0; rank < a->P; rank++) {
        struct nbc_inner at = nbc_two_tree_inner(rank, (int)a->P, tree);
        messages += at.low + at.high;
    }
    return messages;
}

static int64_t scan_trees_messages(const struct at *a)
{
    int64_t second = pieces(a) / 2;
    return (pieces(a) - second) * scan_tree_messages(a, 0) + second * scan_tree_messages(a, 1);
}

static int64_t own_scan_trees_messages(const struct at *a)
{
    return a->segment ? scan_trees_messages(a) : UNKNOWN;
}

static int64_t own_scan_trees_bytes(const struct at *a)
{
    return a->segment ? scan_trees_messages(a) * (a->n / pieces(a)) : UNKNOWN;
}

static int64_t scan_trees_rounds(const struct at *a)
{
    return a->segment && a->P > 1 ? 4 * log2P(a) + 2 * pieces(a) : UNKNOWN;
}

/* Half of the pieces thrice, the others once; what is not cut goes along one tree alone. */
static int64_t scan_trees_most(const struct at *a)
{
    bool cut = a->segment && a->n > a->segment;
    return cut ? 2 * a->n + a->segment : 3 * a->n;
}

static int64_t pairs(const struct at *a)
{
    return a->P * (a->P - 1) / 2;
}

static int64_t pairs_n(const struct at *a)
{
    return pairs(a) * a->n;
}

/* Two nodes: what goes within them, and one exchange or message between them. The parts are trees
 * as long as there are few ranks, then what the rules say, which is not for the heads to tell. */
static bool few(const struct at *a)
{
    return a->P <= 16;
}

static int64_t within_nodes(const struct at *a)
{
    return a->P - 2;
}

static int64_t barrier_nodes_messages(const struct at *a)
{
    return few(a) ? 2 * within_nodes(a) + 2 : UNKNOWN;
}

static int64_t tree_nodes_messages(const struct at *a)
{
    return few(a) ? a->P - 1 : UNKNOWN;
}

static int64_t tree_nodes_bytes(const struct at *a)
{
    return few(a) ? P_1_n(a) : UNKNOWN;
}

static int64_t nodes_rounds(const struct at *a)
{
    return few(a) ? 1 + log2P(a) : UNKNOWN;
}

static int64_t twice_nodes_rounds(const struct at *a)
{
    return few(a) ? 1 + 2 * log2P(a) : UNKNOWN;
}

static int64_t allreduce_nodes_bytes(const struct at *a)
{
    return few(a) ? (2 * within_nodes(a) + 2) * a->n : UNKNOWN;
}

/* reduce_scatter, one exchange, allgather: of parts of a node's ranks. */
static int64_t split_bytes(const struct at *a)
{
    int64_t p = nbc_node_size(&a->w->nodes, 0);
    bool folds = p & (p - 1), halves = a->w->nodes.nnodes == 2;
    return folds || !halves ? UNKNOWN : a->P * (2 * (p - 1) * a->n / p + a->n / p);
}

static int64_t split_rounds(const struct at *a)
{
    return 2 + 4 * log2P(a) + a->P;
}

/* The gathers of blocks, the exchange of what nodes have, the broadcasts of everything. */
static int64_t allgather_nodes_bytes(const struct at *a)
{
    int64_t blocks = 0;
    for (int node = 0; node < 2 && few(a); node++)
        blocks += subtrees(nbc_node_size(&a->w->nodes, node), 2);
    return few(a) ? (blocks + a->P + within_nodes(a) * a->P) * a->n : UNKNOWN;
}

static int64_t unknown(const struct at *a)
{
    (void)a;
    return UNKNOWN;
}

static int64_t gather_nodes_most(const struct at *a)
{
    return few(a) ? (log2P(a) + 2) * a->P * a->n : UNKNOWN;
}

/* By the linear algorithm, which small numbers of ranks have; both steps move every block. */
static int64_t alltoall_nodes_messages(const struct at *a)
{
    int64_t N = a->w->nodes.nnodes, p = a->P / N;
    return N >= 16 || p >= 16 ? UNKNOWN : a->P * (p - 1 + N - 1);
}

static int64_t alltoall_nodes_bytes(const struct at *a)
{
    int64_t N = a->w->nodes.nnodes, p = a->P / N;
    return N >= 16 || p >= 16 ? UNKNOWN : a->P * ((p - 1) * N + (N - 1) * p) * a->n;
}

static int64_t alltoall_nodes_most(const struct at *a)
{
    return 4 * a->P * log2P(a) * a->n;
}

/* neighborhoods */
static int64_t count_edges(const struct at *a, bool combined)
{
    int64_t n = 0;
    for (int id = 0; id < a->P; id++) {
        const struct nbc_neighbors *l = &a->w->party[id].neighbors;
        for (int k = 0; k < l->outdegree; k++) {
            bool first = true;
            for (int j = 0; j < k && combined; j++)
                first = first && l->destinations[j] != l->destinations[k];
            n += first && l->destinations[k] >= 0 && l->destinations[k] != id;
        }
    }
    return n;
}

static int64_t edges(const struct at *a)
{
    return count_edges(a, false);
}

static int64_t edges_n(const struct at *a)
{
    return count_edges(a, false) * a->n;
}

static int64_t edge_pairs(const struct at *a)
{
    return count_edges(a, true);
}

/* Of an allgather the one block travels once. */
static int64_t combined_bytes(const struct at *a)
{
    bool allgather = a->coll == NBC_NEIGHBOR_ALLGATHER || a->coll == NBC_NEIGHBOR_ALLGATHERV;
    return count_edges(a, allgather) * a->n;
}

static int64_t degree(const struct at *a)
{
    int64_t most = 0;
    for (int id = 0; id < a->P; id++) {
        const struct nbc_neighbors *l = &a->w->party[id].neighbors;
        most = l->outdegree > most ? l->outdegree : most;
        most = l->indegree > most ? l->indegree : most;
    }
    return most;
}

static int64_t degree_n(const struct at *a)
{
    return degree(a) * a->n;
}

static int64_t any_edge(const struct at *a)
{
    return count_edges(a, false) > 0;
}

/* two groups */
static int64_t R(const struct at *a)
{
    return a->R;
}

static int64_t R_n(const struct at *a)
{
    return a->R * a->n;
}

static int64_t twice_PR(const struct at *a)
{
    return 2 * a->P * a->R;
}

static int64_t twice_PR_n(const struct at *a)
{
    return 2 * a->P * a->R * a->n;
}

static int64_t larger_n(const struct at *a)
{
    return larger(a) * a->n;
}

static int64_t larger_in_windows(const struct at *a)
{
    return up(larger(a), WINDOW);
}

/* Vectors that are received into WINDOW places, each free when the next one has been reduced. */
static int64_t fold_rounds_of(int64_t vectors)
{
    return vectors > WINDOW ? 1 + up(vectors - WINDOW, WINDOW - 1) : 1;
}

/* The last one is received in the place of the result. */
static int64_t fold_rounds(const struct at *a)
{
    return fold_rounds_of(larger(a) - 1);
}

static int64_t fold_part_rounds(const struct at *a)
{
    return fold_rounds_of(larger(a));
}

static int64_t reduce_inter_rounds(const struct at *a)
{
    return fold_rounds_of(a->R - 1);
}

static int64_t inter_dissemination_rounds(const struct at *a)
{
    return 1 + log_ceil(smaller(a), 2) + (a->P == a->R ? 0 : 2);
}

static int64_t inter_dissemination_messages(const struct at *a)
{
    return a->P == a->R ? 2 * a->P * (1 + log2P(a)) : UNKNOWN;
}

static int64_t inter_doubling_rounds(const struct at *a)
{
    int64_t T = nbc_pow2_floor((int)smaller(a));
    return 1 + 2 * log_ceil(T, 2) + (a->P == T && a->R == T ? 0 : 2);
}

/* Two vectors a round but for the last, where nobody asks for the other. */
static int64_t inter_doubling_messages(const struct at *a)
{
    bool teams_of_two = a->P == a->R && !rest(a);
    return !teams_of_two ? UNKNOWN : 2 * a->P * (1 + 2 * log2P(a) - (a->P > 1));
}

static int64_t inter_doubling_bytes(const struct at *a)
{
    int64_t messages = inter_doubling_messages(a);
    return messages == UNKNOWN ? UNKNOWN : messages * a->n;
}

static int64_t inter_doubling_most(const struct at *a)
{
    int64_t T = nbc_pow2_floor((int)smaller(a));
    return (1 + 2 * log_ceil(T, 2) + 2 + up(larger(a), T)) * a->n;
}

static int64_t scattered_most(const struct at *a)
{
    return larger(a) * up(a->n, smaller(a));
}

static int64_t bounce_rounds(const struct at *a)
{
    return 3 + a->P + a->R + larger(a);
}

/* Each group: its vectors' parts to the other, the results back, and spread by way of one. */
static int64_t bounce_messages(const struct at *a)
{
    int64_t both = 2 * a->P * a->R;
    for (int i = 0; i < 2; i++) {
        int64_t L = i ? a->R : a->P;
        if (L > 1)
            both += L + L * (L - 1);
    }
    return both;
}

/* R vectors to the other group, the reduced one back, and L − 1 times on. */
static int64_t bounce_bytes(const struct at *a)
{
    int64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        int64_t L = i ? a->R : a->P, remote = i ? a->P : a->R;
        sum += remote * a->n + (L > 1 ? L * a->n : 0);
    }
    return sum;
}

static int64_t bounce_most(const struct at *a)
{
    int64_t L = smaller(a), M = larger(a);
    return (2 * up(M, L) + 2) * a->n;
}

static int64_t twice_vector_by_blocks(const struct at *a)
{
    return (a->P + a->R) * a->n;
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct row {
    nbc_builder *build;
    enum exact exact;
    formula *rounds, *messages, *bytes, *most;
} table[] = {
    {nbc_barrier_dissemination, ALWAYS, log2P, P_log2P, zero, zero},
    {nbc_barrier_dissemination4, ALWAYS, log4P, dissemination4_messages, zero, zero},
    {nbc_barrier_tree, POWERS_OF_4, twice_log4P, twice_P_1, zero, zero},
    {nbc_barrier_nodes, BOUND, twice_nodes_rounds, barrier_nodes_messages, zero, zero},
    {nbc_barrier_inter_linear, ALWAYS, one, twice_PR, zero, zero},
    {nbc_barrier_inter_dissemination, BOUND, inter_dissemination_rounds,
     inter_dissemination_messages, zero, zero},

    {nbc_bcast_binomial, POWERS_OF_2, log2P, P_1, P_1_n, log2P_n},
    {nbc_bcast_knomial4, POWERS_OF_4, log4P, P_1, P_1_n, children4_n},
    {nbc_bcast_linear, ALWAYS, one, P_1, P_1_n, P_1_n},
    {nbc_bcast_nodes, BOUND, nodes_rounds, tree_nodes_messages, P_1_n, P_1_n},
    {nbc_bcast_chain, ALWAYS, bcast_chain_rounds, bcast_chain_messages, P_1_n, once_n},
    {nbc_bcast_binary_tree, BOUND, binary_tree_rounds, bcast_chain_messages, P_1_n,
     binary_tree_most},
    {nbc_bcast_two_tree, BOUND, two_tree_rounds, bcast_chain_messages, P_1_n, two_tree_most},
    {nbc_bcast_scatter_allgather, BOUND, log2P_and_P_1, scatter_allgather_messages, P_1_n,
     twice_P_1_by_P_n},
    {nbc_bcast_scatter_doubling, BOUND, twice_log2P, P_log2P, P_1_n, twice_P_1_by_P_n},
    {nbc_bcast_inter_linear, ALWAYS, one, R, R_n, R_n},

    {nbc_gather_binomial, POWERS_OF_2, log2P, P_1, subtrees2_n, P_1_n},
    {nbc_gather_knomial4, POWERS_OF_4, log4P, P_1, subtrees4_n, P_1_n},
    {nbc_gather_linear, ALWAYS, one, P_1, P_1_n, P_1_n},
    {nbc_gather_windowed, ALWAYS, in_windows, P_1, P_1_n, P_1_n},
    {nbc_gather_inter_linear, ALWAYS, one, R, R_n, R_n},

    {nbc_scatter_binomial, POWERS_OF_2, log2P, P_1, subtrees2_n, P_1_n},
    {nbc_scatter_knomial4, POWERS_OF_4, log4P, P_1, subtrees4_n, P_1_n},
    {nbc_scatter_linear, ALWAYS, one, P_1, P_1_n, P_1_n},
    {nbc_scatter_windowed, ALWAYS, in_windows, P_1, P_1_n, P_1_n},
    {nbc_scatter_inter_linear, ALWAYS, one, R, R_n, R_n},

    {nbc_allgather_recursive_doubling, POWERS_OF_2, folded_rounds, folded_messages,
     allgather_doubling_bytes, allgather_doubling_most},
    {nbc_allgather_bruck, ALWAYS, log2P, P_log2P, PP_1_n, P_1_n},
    {nbc_allgather_ring, ALWAYS, P_1, PP_1, PP_1_n, P_1_n},
    {nbc_allgather_linear, ALWAYS, one, PP_1, PP_1_n, P_1_n},
    {nbc_allgather_neighbor_exchange, ALWAYS, half_P, P_half_P, PP_1_n, P_1_n},

    {nbc_allgather_nodes, BOUND, twice_nodes_rounds, barrier_nodes_messages, allgather_nodes_bytes,
     gather_nodes_most},
    {nbc_alltoall_nodes, BOUND, twice_nodes_rounds, alltoall_nodes_messages, alltoall_nodes_bytes,
     alltoall_nodes_most},

    {nbc_alltoall_linear, ALWAYS, one, PP_1, PP_1_n, P_1_n},
    {nbc_alltoall_throttled, BOUND, in_windows, PP_1, PP_1_n, P_1_n},
    {nbc_alltoall_pairwise, BOUND, P_1, PP_1, PP_1_n, P_1_n},
    {nbc_alltoall_bruck, POWERS_OF_2, log2P, P_log2P, bruck_bytes, bruck_most},
    {nbc_alltoall_bruck4, POWERS_OF_4, log4P, bruck4_messages, bruck4_bytes, bruck4_most},

    {nbc_reduce_binomial, POWERS_OF_2, log2P, P_1, P_1_n, log2P_n},
    {nbc_reduce_knomial4, POWERS_OF_4, log4P, P_1, P_1_n, children4_n},
    {nbc_reduce_linear, ALWAYS, in_room, P_1, P_1_n, P_1_n},
    {nbc_reduce_chain, ALWAYS, own_chain_rounds, own_chain_messages, P_1_n, once_n},
    {nbc_reduce_two_tree, BOUND, two_tree_rounds, own_chain_messages, P_1_n, two_tree_most},
    {nbc_reduce_rabenseifner, POWERS_OF_2, reduce_rabenseifner_rounds, reduce_rabenseifner_messages,
     reduce_rabenseifner_bytes, reduce_rabenseifner_most},
    {nbc_reduce_nodes, BOUND, nodes_rounds, tree_nodes_messages, tree_nodes_bytes, twice_P_1_n},
    {nbc_reduce_inter_linear, ALWAYS, reduce_inter_rounds, R, R_n, R_n},

    {nbc_allreduce_recursive_doubling, POWERS_OF_2, folded_rounds, folded_messages,
     folded_messages_n, folded_log2P_n},
    {nbc_allreduce_recursive_multiplying, ALWAYS, multiplying_rounds, multiplying_messages,
     multiplying_bytes, multiplying_most},
    {nbc_allreduce_one_round, ALWAYS, one, PP_1, PP_1_n, P_1_n},
    {nbc_allreduce_rabenseifner, POWERS_OF_2, allreduce_rabenseifner_rounds,
     allreduce_rabenseifner_messages, allreduce_rabenseifner_bytes, reduce_rabenseifner_most},
    {nbc_allreduce_two_rounds, ALWAYS, two_rounds, twice_PP_1_pieces, twice_P_1_n,
     twice_P_1_by_P_n},
    {nbc_allreduce_circulant, BOUND, twice_circle_rounds, twice_circle_messages, twice_P_1_n,
     twice_P_1_by_P_n},
    {nbc_allreduce_ring, BOUND, ring_rounds, twice_PP_1_pieces, twice_P_1_n, twice_P_1_by_P_n},
    {nbc_allreduce_nodes, BOUND, twice_nodes_rounds, barrier_nodes_messages, allreduce_nodes_bytes,
     twice_P_1_n},
    {nbc_allreduce_nodes_split, BOUND, split_rounds, unknown, split_bytes, twice_P_1_n},
    {nbc_allreduce_inter_linear, BOUND, fold_rounds, twice_PR, twice_PR_n, larger_n},
    {nbc_allreduce_inter_recursive_doubling, BOUND, inter_doubling_rounds, inter_doubling_messages,
     inter_doubling_bytes, inter_doubling_most},
    {nbc_allreduce_inter_bounce, BOUND, bounce_rounds, bounce_messages, bounce_bytes, bounce_most},

    {nbc_reduce_scatter_pairwise, ALWAYS, in_windows, PP_1, P_1_n, P_1_by_P_n},
    {nbc_reduce_scatter_recursive_halving, POWERS_OF_2, folded_rounds, folded_messages,
     halving_bytes, halving_most},
    {nbc_reduce_scatter_circulant, BOUND, twice_log2P, circle_messages, P_1_n, P_1_by_P_n},
    {nbc_reduce_scatter_recursive_doubling, POWERS_OF_2, folded_rounds, folded_messages,
     scatter_doubling_bytes, scatter_doubling_most},
    {nbc_reduce_scatter_butterfly, POWERS_OF_2, butterfly_rounds, butterfly_messages,
     butterfly_bytes, butterfly_most},
    {nbc_reduce_scatter_ring, BOUND, ring_once_rounds, PP_1_pieces, P_1_n, P_1_by_P_n},
    {nbc_reduce_scatter_inter_linear, BOUND, fold_part_rounds, twice_PR, twice_PR_n, larger_n},
    {nbc_reduce_scatter_block_inter_linear, BOUND, fold_rounds, twice_PR, twice_vector_by_blocks,
     scattered_most},
    {nbc_reduce_scatter_inter_bounce, BOUND, bounce_rounds, bounce_messages, bounce_bytes,
     bounce_most},

    {nbc_scan_recursive_doubling, POWERS_OF_2, log2P, scan_doubling_messages, scan_doubling_bytes,
     log2P_n},
    {nbc_scan_one_round, ALWAYS, in_room, pairs, pairs_n, P_1_n},
    {nbc_scan_chain, ALWAYS, own_chain_rounds, own_chain_messages, P_1_n, once_n},
    {nbc_scan_two_tree, BOUND, scan_trees_rounds, own_scan_trees_messages, own_scan_trees_bytes,
     scan_trees_most},

    {nbc_neighbor_linear, BOUND, degree, edges, edges_n, degree_n},
    {nbc_neighbor_combined, BOUND, any_edge, edge_pairs, combined_bytes, degree_n},
};

/* Builders that serve one group and two. */
static const struct row inter_table[] = {
    {nbc_alltoall_linear, ALWAYS, one, twice_PR, twice_PR_n, larger_n},
    {nbc_alltoall_throttled, BOUND, larger_in_windows, twice_PR, twice_PR_n, larger_n},
};

static const struct row *row_of(const struct nbc_alg *alg)
{
    for (size_t i = 0; i < sizeof inter_table / sizeof *inter_table; i++)
        if (alg->needs & NBC_INTER && inter_table[i].build == alg->build)
            return &inter_table[i];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].build == alg->build)
            return &table[i];
    return NULL;
}

/* --- the comparison --------------------------------------------------------------------------- */

static void compare(const char *name, const char *what, int64_t counted, int64_t wanted, bool exact)
{
    if (wanted == UNKNOWN || counted == wanted || (!exact && counted <= wanted))
        return;
    ck_abort_msg("%s: %" PRId64 " %s, %s%" PRId64 " by the formula", name, counted, what,
                 exact ? "" : "at most ", wanted);
}

static bool is_exact(enum exact exact, int64_t P)
{
    int64_t power = 1;
    while (power < P && (exact == POWERS_OF_2 || exact == POWERS_OF_4))
        power *= exact == POWERS_OF_2 ? 2 : 4;
    return exact != BOUND && (exact == ALWAYS || power == P);
}

static int64_t bytes_of(const struct world *w)
{
    enum nbc_coll coll = w->c.alg->coll;
    int64_t units = w->c.count;
    if (coll == NBC_REDUCE_SCATTER)
        units *= w->c.size + w->c.remote;
    if (coll == NBC_REDUCE_SCATTER_BLOCK)
        units *= w->c.size * (w->c.remote ? w->c.remote : 1);
    return units * ATOM;
}

static void check_cost(const struct row *row, const struct test_case *c)
{
    char name[500];
    struct world *w = world_new(c);
    case_print(&w->c, name, sizeof name);
    if (world_applies(w)) {
        ck_assert_msg(!world_build(w), "%s", w->text);
        struct cost cost = count(w);
        struct at at = {
            .P = c->size, .R = c->remote, .segment = c->segment, .coll = c->alg->coll, .w = w};
        at.n = bytes_of(w);
        bool exact = is_exact(row->exact, at.P);
        compare(name, "messages one after the other", cost.rounds, row->rounds(&at), exact);
        compare(name, "messages in all", cost.messages, row->messages(&at), true);
        compare(name, "bytes in all", cost.bytes, row->bytes(&at), true);
        compare(name, "bytes at one rank", cost.most, row->most(&at), exact);
    }
    world_free(w);
}

static int64_t least_common_multiple(int64_t x, int64_t y)
{
    int64_t multiple = x;
    while (multiple % y)
        multiple += x;
    return multiple;
}

/* Divisible by P and by powers of two, so that parts are equal. */
static int64_t count_for(const struct nbc_alg *alg, int P, int remote)
{
    bool vector = alg->coll == NBC_BCAST || nbc_coll_reduces(alg->coll);
    bool scatters = alg->coll == NBC_REDUCE_SCATTER || alg->coll == NBC_REDUCE_SCATTER_BLOCK;
    if (scatters)
        return 3;
    return vector ? least_common_multiple(P, remote ? remote : nbc_pow2_floor(P)) : 3;
}

START_TEST(cost_is_as_the_head_says)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 64};
    const struct nbc_alg *alg = &nbc_algs[_i];
    const struct row *row = row_of(alg);
    ck_assert_msg(row, "no formula for %s:%s", nbc_coll_name(alg->coll), alg->name);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int P = sizes[i];
        if (alg->needs & NBC_INTER && P > 17)
            break;
        for (int r = 0; r < (alg->needs & NBC_INTER ? 3 : 1); r++)
            for (int cut = 0; cut < 2; cut++) {
                int remote = alg->needs & NBC_INTER ? (r == 0 ? P : r == 1 ? P + 3 : up(P, 2)) : 0;
                struct test_case c = {.alg = alg,
                                      .size = P,
                                      .remote = remote,
                                      .count = count_for(alg, P, remote),
                                      .even = true,
                                      .graph = P % 6,
                                      .nodes = alg->needs & NBC_NODES ? 2 : 0,
                                      .runs = 1,
                                      .seed = (uint64_t)P};
                if (cut) /* a few pieces; the window must not fill */
                    c.segment = c.count * ATOM / 4 > 8 ? c.count * ATOM / 4 : 8;
                case_normalize(&c);
                check_cost(row, &c);
            }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cost");
    add_for_each_row(suite, cost_is_as_the_head_says);
    return run_suite(suite);
}
