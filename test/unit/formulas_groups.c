/* SPDX-License-Identifier: MIT */
/* Ranks on nodes, neighborhoods, two groups. */
#include "formulas.h"
#include "topo.h"

/* --- nodes, and by way of rank 0 -------------------------------------------------------------- */

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

static int64_t barrier_hierarchical_messages(const struct at *a)
{
    return few(a) ? 2 * within_nodes(a) + 2 : UNKNOWN;
}

static int64_t tree_hierarchical_messages(const struct at *a)
{
    return few(a) ? a->P - 1 : UNKNOWN;
}

static int64_t tree_hierarchical_bytes(const struct at *a)
{
    return few(a) ? P_1_n(a) : UNKNOWN;
}

static int64_t hierarchical_rounds(const struct at *a)
{
    return few(a) ? 1 + log2P(a) : UNKNOWN;
}

static int64_t twice_hierarchical_rounds(const struct at *a)
{
    return few(a) ? 1 + 2 * log2P(a) : UNKNOWN;
}

/* By way of rank 0, the parts along trees. */
static int64_t reduce_bcast_rounds(const struct at *a)
{
    return few(a) ? 2 * log2P(a) : UNKNOWN;
}

static int64_t reduce_bcast_messages(const struct at *a)
{
    return few(a) ? 2 * (a->P - 1) : UNKNOWN;
}

static int64_t allreduce_reduce_bcast_bytes(const struct at *a)
{
    return few(a) ? 2 * P_1_n(a) : UNKNOWN;
}

static int64_t allreduce_reduce_bcast_most(const struct at *a)
{
    return few(a) ? P_1_n(a) : UNKNOWN;
}

static int64_t allreduce_hierarchical_bytes(const struct at *a)
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
static int64_t allgather_hierarchical_bytes(const struct at *a)
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
static int64_t alltoall_hierarchical_messages(const struct at *a)
{
    int64_t N = a->w->nodes.nnodes, p = a->P / N;
    return N >= 16 || p >= 16 ? UNKNOWN : a->P * (p - 1 + N - 1);
}

static int64_t alltoall_hierarchical_bytes(const struct at *a)
{
    int64_t N = a->w->nodes.nnodes, p = a->P / N;
    return N >= 16 || p >= 16 ? UNKNOWN : a->P * ((p - 1) * N + (N - 1) * p) * a->n;
}

static int64_t alltoall_hierarchical_most(const struct at *a)
{
    return 4 * a->P * log2P(a) * a->n;
}

/* --- neighborhoods ---------------------------------------------------------------------------- */

static bool is_allgather(const struct at *a)
{
    return a->coll == NBC_NEIGHBOR_ALLGATHER || a->coll == NBC_NEIGHBOR_ALLGATHERV;
}

static int count_to(const struct nbc_neighbors *l, int n, int peer)
{
    int count = 0;
    for (int k = 0; k < n; k++)
        count += l->destinations[k] == peer;
    return count;
}

/* Whether edge k shares the message of an earlier one. */
static bool is_shared(const struct at *a, const struct nbc_neighbors *l, int k)
{
    int peer = l->destinations[k];
    bool together = is_allgather(a) || count_to(l, l->outdegree, peer) * a->n <= 4096;
    return together && count_to(l, k, peer) > 0;
}

static int64_t count_edges(const struct at *a, bool combined)
{
    int64_t n = 0;
    for (int id = 0; id < a->P; id++) {
        const struct nbc_neighbors *l = &a->w->party[id].neighbors;
        for (int k = 0; k < l->outdegree; k++)
            n += l->destinations[k] >= 0 && l->destinations[k] != id &&
                 !(combined && is_shared(a, l, k));
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
    return count_edges(a, is_allgather(a)) * a->n;
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

/* Two edges of this size have a message each. */
static int64_t combined_rounds(const struct at *a)
{
    return !is_allgather(a) && 2 * a->n > 4096 ? degree(a) : any_edge(a);
}

/* What test_cost counts by itself. */
static int64_t three(const struct at *a)
{
    (void)a;
    return 3;
}

static int64_t thrice_edges_n(const struct at *a)
{
    return 3 * count_edges(a, false) * a->n;
}

/* --- two groups ------------------------------------------------------------------------------- */

static int64_t smaller(const struct at *a)
{
    return a->P < a->R ? a->P : a->R;
}

static int64_t larger(const struct at *a)
{
    return a->P > a->R ? a->P : a->R;
}

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

/* A reduction, there and back. Where all goes through one rank, there is nothing to be cut. */
static int64_t bounce_rounds(const struct at *a)
{
    return fold_rounds(a) + (smaller(a) > 1 ? 2 : 0);
}

/* To each group come the parts of the other's vectors; the results go back, and to all but one. */
static int64_t bounce_messages(const struct at *a)
{
    return smaller(a) > 1 ? 2 * smaller(a) * (a->P + a->R) : twice_PR(a);
}

static int64_t bounce_bytes(const struct at *a)
{
    return smaller(a) > 1 ? 2 * (a->P + a->R) * a->n : twice_PR_n(a);
}

/* A rank of the smaller group: its vector, and a part to the other one and for all of that. */
static int64_t bounce_most(const struct at *a)
{
    int64_t part = up(a->n / ATOM, smaller(a)) * ATOM;
    return smaller(a) > 1 ? a->n + larger(a) * part : larger_n(a);
}

static int64_t twice_vector_by_blocks(const struct at *a)
{
    return (a->P + a->R) * a->n;
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct row table[] = {
    {nbc_barrier_hierarchical, BOUND, twice_hierarchical_rounds, barrier_hierarchical_messages,
     zero, zero},
    {nbc_bcast_hierarchical, BOUND, hierarchical_rounds, tree_hierarchical_messages, P_1_n, P_1_n},
    {nbc_allgather_hierarchical, BOUND, twice_hierarchical_rounds, barrier_hierarchical_messages,
     allgather_hierarchical_bytes, gather_nodes_most},
    {nbc_alltoall_hierarchical, BOUND, twice_hierarchical_rounds, alltoall_hierarchical_messages,
     alltoall_hierarchical_bytes, alltoall_hierarchical_most},
    {nbc_reduce_hierarchical, BOUND, hierarchical_rounds, tree_hierarchical_messages,
     tree_hierarchical_bytes, twice_P_1_n},
    {nbc_allreduce_reduce_bcast, BOUND, reduce_bcast_rounds, reduce_bcast_messages,
     allreduce_reduce_bcast_bytes, allreduce_reduce_bcast_most},
    {nbc_allreduce_hierarchical, BOUND, twice_hierarchical_rounds, barrier_hierarchical_messages,
     allreduce_hierarchical_bytes, twice_P_1_n},
    {nbc_allreduce_hierarchical_split, BOUND, split_rounds, unknown, split_bytes, twice_P_1_n},

    {nbc_neighbor_linear, BOUND, degree, edges, edges_n, degree_n},
    {nbc_neighbor_combined, BOUND, combined_rounds, edge_pairs, combined_bytes, degree_n},
    {nbc_neighbor_locality, BOUND, three, unknown, unknown, thrice_edges_n},

    {nbc_barrier_inter_linear, ALWAYS, one, twice_PR, zero, zero},
    {nbc_barrier_inter_dissemination, BOUND, inter_dissemination_rounds,
     inter_dissemination_messages, zero, zero},
    {nbc_bcast_inter_linear, ALWAYS, one, R, R_n, R_n},
    {nbc_gather_inter_linear, ALWAYS, one, R, R_n, R_n},
    {nbc_scatter_inter_linear, ALWAYS, one, R, R_n, R_n},
    {nbc_reduce_inter_linear, ALWAYS, reduce_inter_rounds, R, R_n, R_n},
    {nbc_allreduce_inter_linear, BOUND, fold_rounds, twice_PR, twice_PR_n, larger_n},
    {nbc_allreduce_inter_recursive_doubling, BOUND, inter_doubling_rounds, inter_doubling_messages,
     inter_doubling_bytes, inter_doubling_most},
    {nbc_allreduce_inter_bounce, BOUND, bounce_rounds, bounce_messages, bounce_bytes, bounce_most},
    {nbc_reduce_scatter_inter_linear, BOUND, fold_part_rounds, twice_PR, twice_PR_n, larger_n},
    {nbc_reduce_scatter_block_inter_linear, BOUND, fold_rounds, twice_PR, twice_vector_by_blocks,
     scattered_most},
    {nbc_reduce_scatter_inter_bounce, BOUND, bounce_rounds, bounce_messages, bounce_bytes,
     bounce_most},
    {nbc_alltoall_linear, ALWAYS, one, twice_PR, twice_PR_n, larger_n},
    {nbc_alltoall_throttled, BOUND, larger_in_windows, twice_PR, twice_PR_n, larger_n},
};

const struct row *formulas_of_groups(nbc_builder *build)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].build == build)
            return &table[i];
    return NULL;
}
