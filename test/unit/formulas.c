/* SPDX-License-Identifier: MIT */
#include "formulas.h"
#include "topo.h"

/* Broadcasts cut what is longer than UNCUT in pieces of their own choice. */
enum { WINDOW = 8, UNCUT = 4096 };

/* --- words ------------------------------------------------------------------------------------ */

int64_t up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static int64_t log_ceil(int64_t n, int64_t k)
{
    int64_t l = 0;
    for (int64_t reach = 1; reach < n; reach *= k)
        l++;
    return l;
}

static int64_t pow2_floor(int64_t n)
{
    return nbc_pow2_floor((int)n);
}

static int64_t known_if(bool known, int64_t number)
{
    return known ? number : UNKNOWN;
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

/* A Bine tree on a power of two has the subtrees of a binomial one; one that others fold onto has
 * them too, and each of these is in all subtrees above it. */
static int64_t bine_subtrees(int64_t P)
{
    int64_t sum = 0;
    for (int rank = 1; rank < P; rank++)
        sum += nbc_knomial_subtree(rank, (int)P, NBC_BINE).n;
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

/* Groups of 4 as long as P asks for it, then one of 2, 3, 5, 7. Sum of (size − 1), or the number of
 * groups; what is left over folds: the head tells no more. */
static int64_t groups(int64_t P, bool sum)
{
    const int64_t sizes[] = {4, 2, 3, 5, 7};
    int64_t total = 0;
    for (int i = 0; i < 5; i++)
        for (; P % sizes[i] == 0; P /= sizes[i])
            total += sum ? sizes[i] - 1 : 1;
    return known_if(P == 1, total);
}

/* The first rank that others fold onto keeps the largest halves: they have two blocks a rank. */
static int64_t halved_blocks(int64_t p2, int64_t rest)
{
    int64_t blocks = 0;
    for (int64_t half = p2 / 2; half > 0; half /= 2)
        blocks += half + (half < rest ? half : rest);
    return blocks;
}

/* Parts of a Bine butterfly that are not where they belong. */
static int64_t bine_moves(int64_t p2)
{
    int64_t moves = 0;
    for (int rank = 0; rank < p2; rank++) {
        struct nbc_fold fold = nbc_fold_onto(rank, (int)p2, (int)p2, -1);
        fold.bine = true;
        moves += nbc_butterfly_part(&fold) != rank;
    }
    return moves;
}

static int64_t scan_doubling_messages(int64_t P)
{
    int64_t sum = 0;
    for (int64_t step = 1; step < P; step *= 2)
        sum += P - step;
    return sum;
}

/* For a piece every rank sends up whose subtree is not at the end, and every rank hears whose is
 * not at the beginning. */
static int64_t scan_tree_messages(int64_t P, int tree)
{
    int64_t messages = 0;
    for (int rank = 0; rank < P; rank++) {
        struct nbc_inner at = nbc_two_tree_inner(rank, (int)P, tree);
        messages += at.low + at.high;
    }
    return messages;
}

/* --- one group of ranks that are all as far from one another ---------------------------------- */

#define COST(builder, ...)                      \
    do {                                        \
        if (build == builder) {                 \
            *f = (struct formula){__VA_ARGS__}; \
            return true;                        \
        }                                       \
    } while (0)

static bool barrier_or_bcast(nbc_builder *build, const struct at *a, struct formula *f)
{
    const int64_t P = a->P, n = a->n, others = P - 1;
    const int64_t log2P = log_ceil(P, 2), log4P = log_ceil(P, 4);
    const int64_t pieces = a->segment && P > 1 ? up(n, a->segment) : 1;
    const bool asked = a->segment || n <= UNCUT; /* the pieces are those that were asked for */
    /* Of a broadcast in two rounds, the pieces of each chunk. */
    const int64_t of_chunk = a->segment && P > 1 ? up(up(n, others), a->segment) : 1;
    /* Half of the pieces twice; what is not cut goes along one tree alone. */
    const bool cut = a->segment && n > a->segment;
    const int64_t tree_most = (P > 2 ? 2 : others) * n;

    COST(nbc_barrier_dissemination, ALWAYS, log2P, P * log2P, 0, 0);
    COST(nbc_barrier_dissemination4, ALWAYS, log4P, P * peers_of(P, 4), 0, 0);
    COST(nbc_barrier_one_round, ALWAYS, P > 1, P * others, 0, 0);
    COST(nbc_barrier_linear, ALWAYS, P > 1 ? 2 : 0, 2 * others, 0, 0);

    COST(nbc_bcast_binomial, POWERS_OF_2, log2P, others, others * n, log2P * n);
    COST(nbc_bcast_knomial4, POWERS_OF_4, log4P, others, others * n, peers_of(P, 4) * n);
    COST(nbc_bcast_bine, POWERS_OF_2, log2P, others, others * n, log2P * n);
    COST(nbc_bcast_linear, ALWAYS, P > 1, others, others * n, others * n);
    COST(nbc_bcast_two_rounds, BOUND, known_if(asked || P<2, P> 1 ? 1 + of_chunk : 0),
         known_if(asked || P < 2, others * others * of_chunk), others * n, P > 1 ? n + P : 0);
    COST(nbc_bcast_chain, ALWAYS, known_if(asked, P > 1 ? P - 2 + pieces : 0),
         known_if(asked, others * pieces), others * n, P > 1 ? n : 0);
    COST(nbc_bcast_binary_tree, BOUND, known_if(asked, P > 1 ? 2 * log2P + 2 * pieces : 0),
         known_if(asked, others * pieces), others * n, tree_most);
    COST(nbc_bcast_two_tree, BOUND, known_if(a->segment && P > 1, 2 * log2P + pieces),
         known_if(asked, others * pieces), others * n, cut ? n + a->segment : tree_most);
    /* Every rank gets all chunks once: those of its subtree in one message, the others one by one.
     */
    COST(nbc_bcast_scatter_allgather, BOUND, log2P + others, others + P * others - subtrees(P, 2),
         others * n, 2 * others * n / P);
    COST(nbc_bcast_scatter_doubling, BOUND, 2 * log2P, P * log2P, others * n, 2 * others * n / P);
    return false;
}

/* Of blocks of n bytes. */
static bool of_blocks(nbc_builder *build, const struct at *a, struct formula *f)
{
    const int64_t P = a->P, n = a->n, others = P - 1;
    const int64_t log2P = log_ceil(P, 2), log4P = log_ceil(P, 4);
    const int64_t p2 = pow2_floor(P), rest = P - p2, logp2 = log_ceil(p2, 2);
    const int64_t windows = up(others, WINDOW);
    const int64_t in_all = P * others * n;

    COST(nbc_gather_scatter_binomial, POWERS_OF_2, log2P, others, subtrees(P, 2) * n, others * n);
    COST(nbc_gather_scatter_knomial4, POWERS_OF_4, log4P, others, subtrees(P, 4) * n, others * n);
    COST(nbc_gather_scatter_bine, POWERS_OF_2, log2P, others, bine_subtrees(P) * n, others * n);
    COST(nbc_gather_scatter_linear, ALWAYS, P > 1, others, others * n, others * n);
    COST(nbc_gather_scatter_windowed, ALWAYS, windows, others, others * n, others * n);

    COST(nbc_allgather_recursive_doubling, POWERS_OF_2, logp2 + (rest ? 2 : 0),
         p2 * logp2 + 2 * rest, (rest + P * (p2 - 1) + rest * P) * n, (rest ? 3 : 1) * others * n);
    COST(nbc_allgather_bruck, ALWAYS, log2P, P * log2P, in_all, others * n);
    COST(nbc_allgather_ring, ALWAYS, others, P * others, in_all, others * n);
    COST(nbc_allgather_linear, ALWAYS, P > 1, P * others, in_all, others * n);
    COST(nbc_allgather_sparbit, ALWAYS, P / 2, P * others, in_all, others * n);
    COST(nbc_allgather_bine, POWERS_OF_2, logp2 + (rest > 0) + (P > 2),
         known_if(!rest, P * log2P + bine_moves(p2)), known_if(!rest, in_all + bine_moves(p2) * n),
         others * n + (P > 2 ? n : 0));
    COST(nbc_allgather_neighbor_exchange, ALWAYS, P / 2, P * P / 2, in_all, others * n);
    COST(nbc_allgather_gather_bcast_linear, ALWAYS, P > 1 ? 2 : 0, 2 * others,
         others * n + P * others * n, P * others * n);

    COST(nbc_alltoall_linear, ALWAYS, P > 1, P * others, in_all, others * n);
    COST(nbc_alltoall_throttled, BOUND, windows, P * others, in_all, others * n);
    COST(nbc_alltoall_pairwise, BOUND, others, P * others, in_all, others * n);
    COST(nbc_alltoall_bruck, POWERS_OF_2, log2P, P * log2P, P * digits(P, 2) * n,
         up(P * log2P, 2) * n);
    COST(nbc_alltoall_bine, ALWAYS, log2P, P * log2P, P * digits(P, 2) * n, up(P * log2P, 2) * n);
    COST(nbc_alltoall_bruck4, POWERS_OF_4, log4P, P * peers_of(P, 4), P * digits(P, 4) * n,
         up(3 * P * log4P, 4) * n);
    return false;
}

/* Of vectors of n bytes, whose parts have n / P. */
static bool reductions(nbc_builder *build, const struct at *a, struct formula *f)
{
    const int64_t P = a->P, n = a->n, others = P - 1, part = n / P;
    const int64_t log2P = log_ceil(P, 2), log4P = log_ceil(P, 4);
    const int64_t p2 = pow2_floor(P), rest = P - p2, logp2 = log_ceil(p2, 2), part2 = n / p2;
    const int64_t windows = up(others, WINDOW);
    /* All at once where they have room, else in windows. */
    const int64_t in_room = P > WINDOW && P * n > 128 * 1024 ? windows : P > 1;
    /* Without a segment size of the caller's they have a choice of their own. */
    const bool asked = a->segment;
    const int64_t pieces = asked && P > 1 ? up(n, a->segment) : 1;
    const int64_t pieces_of_part = asked ? up(part, a->segment) : 1;
    const bool cut = asked && n > a->segment;
    const int64_t folded = p2 * logp2 + 2 * rest; /* messages of a butterfly */
    /* Rabenseifner: fold, halving, binomial gather of the parts. */
    const int64_t halving_messages = rest + p2 * logp2 + p2 - 1,
                  halving_bytes = rest * n + (p2 - 1) * n + subtrees(p2, 2) * part2,
                  halving_most = 2 * (p2 - 1) * part2 + (rest ? n : 0);
    /* One a rank and round, and one more where what it sends goes over the last part: in a round
     * that sends m parts that is so for m − 1 ranks. */
    const int64_t circulant = P * log2P + others - log2P;
    /* Blocks that bit reversal moves; with folded ranks the head tells no more. */
    const int64_t moves = P - (INT64_C(1) << (log2P + 1) / 2);
    /* Pieces take two trees in turns. */
    const int64_t tree_pieces =
        (pieces - pieces / 2) * scan_tree_messages(P, 0) + pieces / 2 * scan_tree_messages(P, 1);

    COST(nbc_reduce_binomial, POWERS_OF_2, log2P, others, others * n, log2P * n);
    COST(nbc_reduce_knomial4, POWERS_OF_4, log4P, others, others * n, peers_of(P, 4) * n);
    COST(nbc_reduce_bine, POWERS_OF_2, log2P, others, others * n, log2P * n);
    COST(nbc_reduce_linear, ALWAYS, in_room, others, others * n, others * n);
    COST(nbc_reduce_chain, ALWAYS, known_if(asked, P > 1 ? P - 2 + pieces : 0),
         known_if(asked, others * pieces), others * n, P > 1 ? n : 0);
    COST(nbc_reduce_two_tree, BOUND, known_if(asked && P > 1, 2 * log2P + pieces),
         known_if(asked, others * pieces), others * n,
         cut ? n + a->segment : (P > 2 ? 2 : others) * n);
    COST(nbc_reduce_rabenseifner, POWERS_OF_2, 2 * logp2 + (rest > 0), halving_messages,
         halving_bytes, halving_most);
    COST(nbc_reduce_bine_halving, POWERS_OF_2, 2 * logp2 + (rest > 0), halving_messages,
         halving_bytes, halving_most);
    /* The parts of a piece, and in the second round its results to the root. */
    COST(nbc_reduce_two_rounds, ALWAYS, P > 1 ? 2 * pieces_of_part : 0,
         (P + 1) * others * pieces_of_part, others * (n + part), 2 * others * n / P);

    COST(nbc_allreduce_recursive_doubling, POWERS_OF_2, logp2 + (rest ? 2 : 0), folded, folded * n,
         (logp2 + (rest > 0)) * n);
    const int64_t sent = groups(P, true); /* by each */
    COST(nbc_allreduce_recursive_multiplying, ALWAYS, groups(P, false),
         known_if(sent != UNKNOWN, P * sent), known_if(sent != UNKNOWN, P * sent * n),
         known_if(sent != UNKNOWN, sent * n));
    COST(nbc_allreduce_one_round, ALWAYS, P > 1, P * others, P * others * n, others * n);
    COST(nbc_allreduce_rabenseifner, POWERS_OF_2, 2 * logp2 + (rest ? 2 : 0),
         2 * p2 * logp2 + 2 * rest, 2 * (p2 - 1) * n + 2 * rest * n, halving_most);
    COST(nbc_allreduce_bine, POWERS_OF_2, 2 * logp2 + (rest ? 2 : 0), 2 * p2 * logp2 + 2 * rest,
         2 * (p2 - 1) * n + 2 * rest * n, halving_most);
    COST(nbc_allreduce_two_rounds, ALWAYS, P > 1 ? 2 * pieces_of_part : 0,
         2 * P * others * pieces_of_part, 2 * others * n, 2 * others * n / P);
    /* The two pieces of a message over the last part are posted one after the other. */
    COST(nbc_allreduce_circulant, BOUND, 4 * log2P, 2 * circulant, 2 * others * n,
         2 * others * n / P);
    /* The next piece sets out when the one before has been passed on. */
    COST(nbc_allreduce_ring, BOUND, 2 * others * pieces_of_part, 2 * P * others * pieces_of_part,
         2 * others * n, 2 * others * n / P);
    COST(nbc_allreduce_reduce_bcast_linear, ALWAYS, in_room + 1, 2 * others, 2 * others * n,
         others * n);

    COST(nbc_reduce_scatter_reduce_scatter_linear, ALWAYS, in_room + 1, 2 * others,
         others * n + others * part, others * n);
    COST(nbc_reduce_scatter_pairwise, ALWAYS, windows, P * others, others * n, others * part);
    COST(nbc_reduce_scatter_recursive_halving, POWERS_OF_2, logp2 + (rest ? 2 : 0), folded,
         (p2 - 1) * n + rest * (n + part), (rest ? n : 0) + halved_blocks(p2, rest) * part);
    COST(nbc_reduce_scatter_circulant, BOUND, 2 * log2P, circulant, others * n, others * part);
    COST(nbc_reduce_scatter_recursive_doubling, POWERS_OF_2, logp2 + (rest ? 2 : 0), folded,
         (p2 * logp2 + rest) * n + rest * part, logp2 * n + (rest ? n + part : 0));
    COST(nbc_reduce_scatter_butterfly, POWERS_OF_2, logp2 + (rest > 0) + (P > 2),
         known_if(!rest, P * log2P + moves), known_if(!rest, others * n + moves * part),
         others * part + (P > 2 ? part : 0) + (rest ? 2 * n : 0));
    COST(nbc_reduce_scatter_bine, POWERS_OF_2, logp2 + (rest > 0) + (P > 2),
         known_if(!rest, P * log2P + bine_moves(p2)),
         known_if(!rest, others * n + bine_moves(p2) * part),
         others * part + (P > 2 ? part : 0) + (rest ? 2 * n : 0));
    COST(nbc_reduce_scatter_ring, BOUND, others * pieces_of_part, P * others * pieces_of_part,
         others * n, others * part);

    COST(nbc_scan_recursive_doubling, POWERS_OF_2, log2P, scan_doubling_messages(P),
         scan_doubling_messages(P) * n, log2P * n);
    COST(nbc_scan_one_round, ALWAYS, in_room, P * others / 2, P * others / 2 * n, others * n);
    COST(nbc_scan_chain, ALWAYS, known_if(asked, P > 1 ? P - 2 + pieces : 0),
         known_if(asked, others * pieces), others * n, P > 1 ? n : 0);
    /* Half of the pieces thrice, the others once; what is not cut goes along one tree alone. */
    COST(nbc_scan_two_tree, BOUND, known_if(asked && P > 1, 4 * log2P + 2 * pieces),
         known_if(asked, tree_pieces), known_if(asked, tree_pieces * (n / pieces)),
         cut ? 2 * n + a->segment : 3 * n);
    return false;
}

/* --- nodes, and by way of rank 0 -------------------------------------------------------------- */

/* The gathers of blocks of two nodes, the exchange of what they have, the broadcasts of everything:
 * blocks that move. */
static int64_t blocks_over_nodes(const struct at *a)
{
    int64_t blocks = a->P + (a->P - 2) * a->P;
    for (int node = 0; node < 2; node++)
        blocks += subtrees(nbc_node_size(&a->w->nodes, node), 2);
    return blocks;
}

/* Two nodes: what goes within them, and one exchange or message between them. The parts are trees
 * as long as there are few ranks, then what the rules say, which is not for the heads to tell. */
static bool on_nodes(nbc_builder *build, const struct at *a, struct formula *f)
{
    const int64_t P = a->P, n = a->n, others = P - 1, log2P = log_ceil(P, 2);
    const int64_t within = P - 2; /* messages within the nodes */
    const bool few = P <= 16;
    /* Nodes, ranks of each. */
    const int64_t N = a->w->nodes.nnodes, p = N ? nbc_node_size(&a->w->nodes, 0) : 0;
    const bool equal = N && p * N == P;
    const bool linear = equal && N < 16 && P < 16 * N;
    const bool halves = equal && N == 2 && !(p & (p - 1));

    COST(nbc_barrier_hierarchical, BOUND, known_if(few, 1 + 2 * log2P),
         known_if(few, 2 * within + 2), 0, 0);
    COST(nbc_bcast_hierarchical, BOUND, known_if(few, 1 + log2P), known_if(few, others), others * n,
         others * n);
    COST(nbc_allgather_hierarchical, BOUND, known_if(few, 1 + 2 * log2P),
         known_if(few, 2 * within + 2), few ? blocks_over_nodes(a) * n : UNKNOWN,
         known_if(few, (log2P + 2) * P * n));
    /* What it sends test_cost counts by itself. */
    COST(nbc_neighbor_locality, BOUND, 3, UNKNOWN, UNKNOWN, 3 * P * P * n);
    /* Both steps move every block. */
    COST(nbc_alltoall_hierarchical, BOUND, known_if(few, 1 + 2 * log2P + !equal),
         known_if(linear, P * (P / N - 1 + N - 1)),
         known_if(linear, P * ((P / N - 1) * N + (N - 1) * (P / N)) * n), 4 * P * log2P * n);
    COST(nbc_reduce_hierarchical, BOUND, known_if(few, 1 + log2P), known_if(few, others),
         known_if(few, others * n), 2 * others * n);
    COST(nbc_allreduce_reduce_bcast, BOUND, known_if(few, 2 * log2P), known_if(few, 2 * others),
         known_if(few, 2 * others * n), known_if(few, others * n));
    COST(nbc_allreduce_hierarchical, BOUND, known_if(few, 1 + 2 * log2P),
         known_if(few, 2 * within + 2), known_if(few, (2 * within + 2) * n), 2 * others * n);
    /* reduce_scatter, one exchange, allgather: of parts of a node's ranks. */
    COST(nbc_allreduce_hierarchical_split, BOUND, 2 + 4 * log2P + P, UNKNOWN,
         known_if(halves, P * (2 * (p - 1) * n / p + n / p)), 2 * others * n);
    return false;
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

static int64_t most_edges(const struct at *a)
{
    int64_t most = 0;
    for (int id = 0; id < a->P; id++) {
        const struct nbc_neighbors *l = &a->w->party[id].neighbors;
        most = l->outdegree > most ? l->outdegree : most;
        most = l->indegree > most ? l->indegree : most;
    }
    return most;
}

static bool neighborhoods(nbc_builder *build, const struct at *a, struct formula *f)
{
    const int64_t n = a->n, degree = most_edges(a), edges = count_edges(a, false);
    const int64_t messages = count_edges(a, true);
    const bool shared = is_allgather(a) || 2 * n <= 4096; /* two edges have one message */
    COST(nbc_neighbor_linear, BOUND, degree, edges, edges * n, degree * n);
    /* Of an allgather the one block travels once. */
    COST(nbc_neighbor_combined, BOUND, shared ? edges > 0 : degree, messages,
         (is_allgather(a) ? messages : edges) * n, degree * n);
    /* What it sends test_cost counts by itself. */
    COST(nbc_neighbor_locality, BOUND, 3, UNKNOWN, UNKNOWN, 3 * edges * n);
    return false;
}

/* --- two groups ------------------------------------------------------------------------------- */

/* Vectors that are received into WINDOW places, each free when the next one has been reduced. */
static int64_t fold_rounds(int64_t vectors)
{
    return vectors > WINDOW ? 1 + up(vectors - WINDOW, WINDOW - 1) : 1;
}

static bool between_groups(const struct nbc_alg *alg, const struct at *a, struct formula *f)
{
    nbc_builder *build = alg->build;
    const int64_t P = a->P, R = a->R, n = a->n, log2P = log_ceil(P, 2);
    const int64_t smaller = P < R ? P : R, larger = P > R ? P : R;
    const int64_t T = pow2_floor(smaller), logT = log_ceil(T, 2); /* teams */
    const bool teams_of_two = P == R && P == T;
    /* Two vectors a round but for the last, where nobody asks for the other. */
    const int64_t doubling = 2 * P * (1 + 2 * log2P - (P > 1));
    /* To each group come the parts of the other's vectors; the results go back, and to all but one.
     * Where all goes through one rank, there is nothing to be cut. A rank of the smaller group has
     * its vector, and a part to the other one and for all of that. */
    const bool cut = smaller > 1;
    const int64_t bounce_rounds = fold_rounds(larger - 1) + (cut ? 2 : 0),
                  bounce_messages = cut ? 2 * smaller * (P + R) : 2 * P * R,
                  bounce_bytes = cut ? 2 * (P + R) * n : 2 * P * R * n,
                  part = up(n / ATOM, smaller) * ATOM,
                  bounce_most = cut ? n + larger * part : larger * n;

    COST(nbc_barrier_inter_linear, ALWAYS, 1, 2 * P * R, 0, 0);
    COST(nbc_barrier_inter_dissemination, BOUND, 1 + log_ceil(smaller, 2) + (P == R ? 0 : 2),
         known_if(P == R, 2 * P * (1 + log2P)), 0, 0);
    COST(nbc_one_root_inter_linear, ALWAYS, 1, R, R * n, R * n);
    COST(nbc_reduce_inter_linear, ALWAYS, fold_rounds(R - 1), R, R * n, R * n);
    /* The last one is received in the place of the result of an allreduce. */
    COST(nbc_all_inter_linear, BOUND, fold_rounds(larger - (alg->coll == NBC_ALLREDUCE)), 2 * P * R,
         2 * P * R * n, larger * n);
    COST(nbc_allreduce_inter_recursive_doubling, BOUND, 1 + 2 * logT + (teams_of_two ? 0 : 2),
         known_if(teams_of_two, doubling), known_if(teams_of_two, doubling * n),
         (1 + 2 * logT + 2 + up(larger, T)) * n);
    COST(nbc_all_inter_bounce, BOUND, bounce_rounds, bounce_messages, bounce_bytes, bounce_most);
    COST(nbc_reduce_scatter_block_inter_linear, BOUND, fold_rounds(larger - 1), 2 * P * R,
         (P + R) * n, larger * up(n, smaller));
    COST(nbc_alltoall_linear, ALWAYS, 1, 2 * P * R, 2 * P * R * n, larger * n);
    COST(nbc_alltoall_throttled, BOUND, up(larger, WINDOW), 2 * P * R, 2 * P * R * n, larger * n);
    return false;
}

bool formula_of(const struct nbc_alg *alg, const struct at *a, struct formula *f)
{
    nbc_builder *build = alg->build;
    if (alg->needs & NBC_INTER)
        return between_groups(alg, a, f);
    if (nbc_coll_is_neighborhood(alg->coll))
        return neighborhoods(build, a, f);
    return barrier_or_bcast(build, a, f) || of_blocks(build, a, f) || reductions(build, a, f) ||
           on_nodes(build, a, f);
}
