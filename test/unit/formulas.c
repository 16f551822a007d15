/* SPDX-License-Identifier: MIT */
/* One group of ranks that are all as far from one another. */
#include "formulas.h"
#include "topo.h"

/* --- words ------------------------------------------------------------------------------------ */

int64_t log_ceil(int64_t n, int64_t k)
{
    int64_t l = 0;
    for (int64_t reach = 1; reach < n; reach *= k)
        l++;
    return l;
}

int64_t zero(const struct at *a)
{
    (void)a;
    return 0;
}

int64_t one(const struct at *a)
{
    return a->P > 1 || a->R;
}

int64_t up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

int64_t log2P(const struct at *a)
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
int64_t rest(const struct at *a)
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
int64_t subtrees(int64_t P, int64_t k)
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

/* --- the formulas ----------------------------------------------------------------------------- */

/* P − 1 messages in all, and what they hold */
static int64_t P_1(const struct at *a)
{
    return a->P - 1;
}

int64_t P_1_n(const struct at *a)
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

static int64_t in_room_and_back(const struct at *a)
{
    return in_room(a) + 1;
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

static int64_t two(const struct at *a)
{
    return a->P > 1 ? 2 : 0;
}

static int64_t all_back(const struct at *a)
{
    return a->P * P_1_n(a);
}

static int64_t there_and_all_back(const struct at *a)
{
    return P_1_n(a) + all_back(a);
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

/* A Bine tree on a power of two has the subtrees of a binomial one; one that others fold onto has
 * them too, and each of these is in all subtrees above it. */
static int64_t bine_subtrees_n(const struct at *a)
{
    int64_t sum = 0;
    for (int rank = 1; rank < a->P; rank++)
        sum += nbc_knomial_subtree(rank, (int)a->P, NBC_BINE).n;
    return sum * a->n;
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

/* The pieces of each chunk of a broadcast in two rounds. */
static int64_t direct_pieces(const struct at *a)
{
    if (a->P < 2)
        return 0;
    if (!a->segment)
        return a->n <= UNCUT ? 1 : UNKNOWN;
    return up(up(a->n, a->P - 1), a->segment);
}

static int64_t direct_rounds(const struct at *a)
{
    return direct_pieces(a) > 0 ? 1 + direct_pieces(a) : direct_pieces(a);
}

static int64_t direct_messages(const struct at *a)
{
    int64_t pieces = direct_pieces(a);
    return pieces == UNKNOWN ? UNKNOWN : (a->P - 1) * (a->P - 1) * pieces;
}

static int64_t direct_most(const struct at *a)
{
    return a->P > 1 ? a->n + a->P : 0;
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

int64_t twice_P_1_n(const struct at *a)
{
    return 2 * (a->P - 1) * a->n;
}

static int64_t two_rounds(const struct at *a)
{
    return a->P > 1 ? 2 * part_pieces(a) : 0;
}

/* The parts of a piece, and in the second round its results to the root. */
static int64_t reduce_two_rounds_messages(const struct at *a)
{
    return (a->P + 1) * (a->P - 1) * part_pieces(a);
}

static int64_t reduce_two_rounds_bytes(const struct at *a)
{
    return (a->P - 1) * (a->n + a->n / a->P);
}

/* The next piece sets out when the one before has been passed on. */
static int64_t ring_rounds(const struct at *a)
{
    return a->P > 1 ? 2 * (a->P - 1) * part_pieces(a) : 0;
}

/* One a rank and round, and one more where what it sends goes over the last part: in a round that
 * sends m parts that is so for m − 1 ranks. */
static int64_t circulant_messages(const struct at *a)
{
    return a->P * log2P(a) + a->P - 1 - log2P(a);
}

/* … and the two pieces of such a message are posted one after the other. */
static int64_t twice_circulant_rounds(const struct at *a)
{
    return 4 * log2P(a);
}

static int64_t twice_circulant_messages(const struct at *a)
{
    return 2 * circulant_messages(a);
}

/* reduce_scatter; n: the whole vector */
static int64_t P_1_by_P_n(const struct at *a)
{
    return (a->P - 1) * (a->n / a->P);
}

static int64_t there_and_part_back(const struct at *a)
{
    return P_1_n(a) + P_1_by_P_n(a);
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

/* The same for the parts of Bine butterflies. */
static int64_t bine_moves(const struct at *a)
{
    int64_t moves = 0;
    for (int rank = 0; rank < pow2(a); rank++) {
        struct nbc_fold fold = nbc_fold_onto(rank, (int)pow2(a), (int)pow2(a), -1);
        fold.bine = true;
        moves += nbc_butterfly_part(&fold) != rank;
    }
    return rest(a) ? UNKNOWN : moves;
}

static int64_t bine_messages(const struct at *a)
{
    int64_t moves = bine_moves(a);
    return moves == UNKNOWN ? UNKNOWN : P_log2P(a) + moves;
}

static int64_t bine_bytes(const struct at *a)
{
    int64_t moves = bine_moves(a);
    return moves == UNKNOWN ? UNKNOWN : (a->P - 1) * a->n + moves * (a->n / a->P);
}

static int64_t bine_allgather_bytes(const struct at *a)
{
    return PP_1_n(a) + bine_moves(a) * a->n;
}

static int64_t bine_allgather_most(const struct at *a)
{
    return P_1_n(a) + (a->P > 2 ? a->n : 0);
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

/* --- the table -------------------------------------------------------------------------------- */

static const struct row table[] = {
    {nbc_barrier_dissemination, ALWAYS, log2P, P_log2P, zero, zero},
    {nbc_barrier_dissemination4, ALWAYS, log4P, dissemination4_messages, zero, zero},
    {nbc_barrier_one_round, ALWAYS, one, PP_1, zero, zero},
    {nbc_barrier_linear, ALWAYS, two, twice_P_1, zero, zero},
    {nbc_barrier_tree, POWERS_OF_4, twice_log4P, twice_P_1, zero, zero},

    {nbc_bcast_binomial, POWERS_OF_2, log2P, P_1, P_1_n, log2P_n},
    {nbc_bcast_knomial4, POWERS_OF_4, log4P, P_1, P_1_n, children4_n},
    {nbc_bcast_bine, POWERS_OF_2, log2P, P_1, P_1_n, log2P_n},
    {nbc_bcast_linear, ALWAYS, one, P_1, P_1_n, P_1_n},
    {nbc_bcast_two_rounds, BOUND, direct_rounds, direct_messages, P_1_n, direct_most},
    {nbc_bcast_chain, ALWAYS, bcast_chain_rounds, bcast_chain_messages, P_1_n, once_n},
    {nbc_bcast_binary_tree, BOUND, binary_tree_rounds, bcast_chain_messages, P_1_n,
     binary_tree_most},
    {nbc_bcast_two_tree, BOUND, two_tree_rounds, bcast_chain_messages, P_1_n, two_tree_most},
    {nbc_bcast_scatter_allgather, BOUND, log2P_and_P_1, scatter_allgather_messages, P_1_n,
     twice_P_1_by_P_n},
    {nbc_bcast_scatter_doubling, BOUND, twice_log2P, P_log2P, P_1_n, twice_P_1_by_P_n},

    {nbc_gather_binomial, POWERS_OF_2, log2P, P_1, subtrees2_n, P_1_n},
    {nbc_gather_knomial4, POWERS_OF_4, log4P, P_1, subtrees4_n, P_1_n},
    {nbc_gather_bine, POWERS_OF_2, log2P, P_1, bine_subtrees_n, P_1_n},
    {nbc_gather_linear, ALWAYS, one, P_1, P_1_n, P_1_n},
    {nbc_gather_windowed, ALWAYS, in_windows, P_1, P_1_n, P_1_n},

    {nbc_scatter_binomial, POWERS_OF_2, log2P, P_1, subtrees2_n, P_1_n},
    {nbc_scatter_knomial4, POWERS_OF_4, log4P, P_1, subtrees4_n, P_1_n},
    {nbc_scatter_bine, POWERS_OF_2, log2P, P_1, bine_subtrees_n, P_1_n},
    {nbc_scatter_linear, ALWAYS, one, P_1, P_1_n, P_1_n},
    {nbc_scatter_windowed, ALWAYS, in_windows, P_1, P_1_n, P_1_n},

    {nbc_allgather_recursive_doubling, POWERS_OF_2, folded_rounds, folded_messages,
     allgather_doubling_bytes, allgather_doubling_most},
    {nbc_allgather_bruck, ALWAYS, log2P, P_log2P, PP_1_n, P_1_n},
    {nbc_allgather_ring, ALWAYS, P_1, PP_1, PP_1_n, P_1_n},
    {nbc_allgather_linear, ALWAYS, one, PP_1, PP_1_n, P_1_n},
    {nbc_allgather_sparbit, ALWAYS, half_P, PP_1, PP_1_n, P_1_n},
    {nbc_allgather_bine, POWERS_OF_2, butterfly_rounds, bine_messages, bine_allgather_bytes,
     bine_allgather_most},
    {nbc_allgather_neighbor_exchange, ALWAYS, half_P, P_half_P, PP_1_n, P_1_n},

    {nbc_alltoall_linear, ALWAYS, one, PP_1, PP_1_n, P_1_n},
    {nbc_alltoall_throttled, BOUND, in_windows, PP_1, PP_1_n, P_1_n},
    {nbc_alltoall_pairwise, BOUND, P_1, PP_1, PP_1_n, P_1_n},
    {nbc_alltoall_bruck, POWERS_OF_2, log2P, P_log2P, bruck_bytes, bruck_most},
    {nbc_alltoall_bine, ALWAYS, log2P, P_log2P, bruck_bytes, bruck_most},
    {nbc_alltoall_bruck4, POWERS_OF_4, log4P, bruck4_messages, bruck4_bytes, bruck4_most},

    {nbc_reduce_binomial, POWERS_OF_2, log2P, P_1, P_1_n, log2P_n},
    {nbc_reduce_knomial4, POWERS_OF_4, log4P, P_1, P_1_n, children4_n},
    {nbc_reduce_bine, POWERS_OF_2, log2P, P_1, P_1_n, log2P_n},
    {nbc_reduce_linear, ALWAYS, in_room, P_1, P_1_n, P_1_n},
    {nbc_reduce_chain, ALWAYS, own_chain_rounds, own_chain_messages, P_1_n, once_n},
    {nbc_reduce_two_tree, BOUND, two_tree_rounds, own_chain_messages, P_1_n, two_tree_most},
    {nbc_reduce_rabenseifner, POWERS_OF_2, reduce_rabenseifner_rounds, reduce_rabenseifner_messages,
     reduce_rabenseifner_bytes, reduce_rabenseifner_most},

    {nbc_reduce_bine_halving, POWERS_OF_2, reduce_rabenseifner_rounds, reduce_rabenseifner_messages,
     reduce_rabenseifner_bytes, reduce_rabenseifner_most},

    {nbc_allreduce_recursive_doubling, POWERS_OF_2, folded_rounds, folded_messages,
     folded_messages_n, folded_log2P_n},
    {nbc_allreduce_recursive_multiplying, ALWAYS, multiplying_rounds, multiplying_messages,
     multiplying_bytes, multiplying_most},
    {nbc_allreduce_one_round, ALWAYS, one, PP_1, PP_1_n, P_1_n},
    {nbc_allreduce_rabenseifner, POWERS_OF_2, allreduce_rabenseifner_rounds,
     allreduce_rabenseifner_messages, allreduce_rabenseifner_bytes, reduce_rabenseifner_most},
    {nbc_allreduce_bine, POWERS_OF_2, allreduce_rabenseifner_rounds,
     allreduce_rabenseifner_messages, allreduce_rabenseifner_bytes, reduce_rabenseifner_most},
    {nbc_allreduce_two_rounds, ALWAYS, two_rounds, twice_PP_1_pieces, twice_P_1_n,
     twice_P_1_by_P_n},
    {nbc_reduce_two_rounds, ALWAYS, two_rounds, reduce_two_rounds_messages, reduce_two_rounds_bytes,
     twice_P_1_by_P_n},
    {nbc_allreduce_circulant, BOUND, twice_circulant_rounds, twice_circulant_messages, twice_P_1_n,
     twice_P_1_by_P_n},
    {nbc_allreduce_ring, BOUND, ring_rounds, twice_PP_1_pieces, twice_P_1_n, twice_P_1_by_P_n},

    {nbc_allreduce_reduce_bcast_linear, ALWAYS, in_room_and_back, twice_P_1, twice_P_1_n, P_1_n},
    {nbc_allgather_gather_bcast_linear, ALWAYS, two, twice_P_1, there_and_all_back, all_back},
    {nbc_reduce_scatter_reduce_scatter_linear, ALWAYS, in_room_and_back, twice_P_1,
     there_and_part_back, P_1_n},
    {nbc_reduce_scatter_pairwise, ALWAYS, in_windows, PP_1, P_1_n, P_1_by_P_n},
    {nbc_reduce_scatter_recursive_halving, POWERS_OF_2, folded_rounds, folded_messages,
     halving_bytes, halving_most},
    {nbc_reduce_scatter_circulant, BOUND, twice_log2P, circulant_messages, P_1_n, P_1_by_P_n},
    {nbc_reduce_scatter_recursive_doubling, POWERS_OF_2, folded_rounds, folded_messages,
     scatter_doubling_bytes, scatter_doubling_most},
    {nbc_reduce_scatter_butterfly, POWERS_OF_2, butterfly_rounds, butterfly_messages,
     butterfly_bytes, butterfly_most},
    {nbc_reduce_scatter_bine, POWERS_OF_2, butterfly_rounds, bine_messages, bine_bytes,
     butterfly_most},
    {nbc_reduce_scatter_ring, BOUND, ring_once_rounds, PP_1_pieces, P_1_n, P_1_by_P_n},

    {nbc_scan_recursive_doubling, POWERS_OF_2, log2P, scan_doubling_messages, scan_doubling_bytes,
     log2P_n},
    {nbc_scan_one_round, ALWAYS, in_room, pairs, pairs_n, P_1_n},
    {nbc_scan_chain, ALWAYS, own_chain_rounds, own_chain_messages, P_1_n, once_n},
    {nbc_scan_two_tree, BOUND, scan_trees_rounds, own_scan_trees_messages, own_scan_trees_bytes,
     scan_trees_most},
};

/* Builders that serve one group and two have a row in both tables. */
const struct row *formulas_of(const struct nbc_alg *alg)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].build == alg->build && !(alg->needs & NBC_INTER))
            return &table[i];
    return formulas_of_groups(alg->build);
}
