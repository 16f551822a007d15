/* SPDX-License-Identifier: MIT */
/* Reductions in a required order: every digit is that of the definition in doc/reductions.md, with
 * every collective, form, root, length and number of ranks per node. NBCSHIM_REDUCTION_ORDER says
 * the order, else an info key of the communicator or of the call does. */
#include "config.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16 };

enum order { RANKS, TREE, NORDERS };
static const char *const order_names[NORDERS] = {"ranks", "tree"};

static enum order order;
static MPI_Info info; /* of calls */
static bool blocking; /* blocking calls obey the order, too */

/* --- the definition --------------------------------------------------------------------------- */

/* Numbers of very different sizes, so that any other order gives other digits somewhere. */
static double element(int rank, int i)
{
    uint64_t bits = mix64((uint64_t)rank << 32 | (uint64_t)i);
    double x = (double)(bits >> 12) * 0x1p-52;
    int shift = (int)(bits & 31);
    return (bits & 32 ? -x : x) * (double)(UINT64_C(1) << shift);
}

static double by_ranks(int n, int i)
{
    double sum = element(0, i);
    for (int r = 1; r < n; r++)
        sum += element(r, i);
    return sum;
}

/* With 2^k ≤ P < 2^(k+1) the ranks below 2 (P − 2^k) make pairs. */
static double leaf(int at, int rest, int i)
{
    return at < rest ? element(2 * at, i) + element(2 * at + 1, i) : element(at + rest, i);
}

static double subtree(int first, int n, int rest, int i)
{
    if (n == 1)
        return leaf(first, rest, i);
    return subtree(first, n / 2, rest, i) + subtree(first + n / 2, n / 2, rest, i);
}

static double by_tree(int size, int i)
{
    int power = 1;
    while (2 * power <= size)
        power *= 2;
    return subtree(0, power, size - power, i);
}

/* The n ranks up to this one, or all of them. */
static double window(int rank, int n, int i)
{
    if (n == 1)
        return element(rank, i);
    double upper = window(rank, n / 2, i);
    return rank < n / 2 ? upper : window(rank - n / 2, n / 2, i) + upper;
}

static double windows_below(int rank, int i)
{
    double sum = element(rank - 1, i);
    for (int n = 2; n <= rank; n *= 2)
        sum = window(rank - n, n, i) + sum;
    return sum;
}

static double wanted_all(int i)
{
    return order == RANKS ? by_ranks(test_size, i) : by_tree(test_size, i);
}

static double wanted_scan(int i)
{
    int n = 1;
    while (n < test_size)
        n *= 2;
    return order == RANKS ? by_ranks(test_rank + 1, i) : window(test_rank, n, i);
}

static double wanted_exscan(int i)
{
    return order == RANKS ? by_ranks(test_rank, i) : windows_below(test_rank, i);
}

/* --- the calls -------------------------------------------------------------------------------- */

enum form { NONBLOCKING, PERSISTENT, BLOCKING, NFORMS };
static const char *const form_names[NFORMS] = {"nonblocking", "persistent", "blocking"};

struct call {
    enum form form;
    int count, root;
    bool in_place;
    MPI_Op op;
    MPI_Comm comm;
    double *in, *out;
};

static MPI_Request request;

/* One collective: its function in the three forms. */
#define CALLS(name, lower, arguments)                                \
    static int name(const struct call *c)                            \
    {                                                                \
        const void *in = c->in_place ? MPI_IN_PLACE : c->in;         \
        (void)in;                                                    \
        if (c->form == BLOCKING)                                     \
            return MPI_##name arguments(c->comm);                    \
        if (c->form == NONBLOCKING)                                  \
            return MPI_I##lower arguments(c->comm, &request);        \
        return MPI_##name##_init arguments(c->comm, info, &request); \
    }

static int counts[MOST_RANKS]; /* of MPI_Reduce_scatter: count, 0, 2 count, count, 0, … */

static int is_root(const struct call *c)
{
    return test_rank == c->root;
}

#define VECTOR(...) (in, c->out, c->count, MPI_DOUBLE, c->op, __VA_ARGS__)
#define ROOTED(...)                                                                         \
    (c->in_place && !is_root(c) ? c->in : in, c->out, c->count, MPI_DOUBLE, c->op, c->root, \
     __VA_ARGS__)
#define SCATTERED(...) (in, c->out, counts, MPI_DOUBLE, c->op, __VA_ARGS__)

CALLS(Reduce, reduce, ROOTED)
CALLS(Allreduce, allreduce, VECTOR)
CALLS(Reduce_scatter_block, reduce_scatter_block, VECTOR)
CALLS(Reduce_scatter, reduce_scatter, SCATTERED)
CALLS(Scan, scan, VECTOR)
CALLS(Exscan, exscan, VECTOR)

static int first_count(int rank)
{
    int sum = 0;
    for (int r = 0; r < rank; r++)
        sum += counts[r];
    return sum;
}

/* What the call reads, which elements this rank gets, and what they are. */
static const struct collective {
    const char *name;
    int (*call)(const struct call *c);
    double (*wanted)(int i);
    bool scatters, rooted;
} collectives[] = {
    {"reduce", Reduce, wanted_all, false, true},
    {"allreduce", Allreduce, wanted_all, false, false},
    {"reduce_scatter_block", Reduce_scatter_block, wanted_all, true, false},
    {"reduce_scatter", Reduce_scatter, wanted_all, true, false},
    {"scan", Scan, wanted_scan, false, false},
    {"exscan", Exscan, wanted_exscan, false, false},
};

static int differing; /* results that another order would have given */

static void check_results(const struct collective *coll, const struct call *c, int first, int n)
{
    for (int i = 0; i < n; i++) {
        double wanted = coll->wanted(first + i);
        if (memcmp(&wanted, &c->out[i], sizeof wanted) != 0) {
            test_fail("%s, %s, order %s, root %d, element %d of %d: %.17g, not %.17g", coll->name,
                      form_names[c->form], order_names[order], c->root, i, n, c->out[i], wanted);
            return;
        }
        order = !order;
        differing += coll->wanted(first + i) != wanted;
        order = !order;
    }
}

static void run(const struct collective *coll, const struct call *c)
{
    bool uneven = coll->call == Reduce_scatter;
    for (int r = 0; r < test_size; r++)
        counts[r] = uneven ? r % 3 ? (r % 3 == 1 ? 0 : 2 * c->count) : c->count : c->count;
    int all = coll->scatters ? first_count(test_size) : c->count;
    int first = coll->scatters ? first_count(test_rank) : 0;
    int mine = coll->scatters ? counts[test_rank] : c->count;
    int starts = c->form == PERSISTENT ? 2 : 1;
    if (c->form == PERSISTENT)
        coll->call(c);
    for (int k = 0; k < starts; k++) {
        for (int i = 0; i < all; i++)
            c->in[i] = c->out[i] = element(test_rank, i);
        if (c->form == PERSISTENT)
            MPI_Start(&request);
        else
            coll->call(c);
        if (c->form != BLOCKING)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        bool none = (coll->rooted && !is_root(c)) || (coll->call == Exscan && test_rank == 0);
        check_results(coll, c, first, none ? 0 : mine);
    }
    if (c->form == PERSISTENT)
        MPI_Request_free(&request);
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((double *)inout)[i] += ((double *)in)[i];
}

static const int lengths[] = {1, 7, 200, 3000, 15000};
enum {
    NLENGTHS = sizeof lengths / sizeof *lengths,
    NCOLLECTIVES = sizeof collectives / sizeof *collectives
};

static void run_all(MPI_Comm comm)
{
    MPI_Op user;
    MPI_Op_create(add, 1, &user);
    size_t room = sizeof(double) * 2 * (size_t)lengths[NLENGTHS - 1] * (size_t)test_size;
    struct call c = {.comm = comm, .in = test_alloc(room), .out = test_alloc(room)};
    int turn = 0;
    for (int l = 0; l < NLENGTHS; l++)
        for (int k = 0; k < NCOLLECTIVES; k++)
            for (int f = 0; f < (blocking ? NFORMS : BLOCKING); f++, turn++) {
                if (f == PERSISTENT && !test_calls_persistent())
                    continue;
                c.form = f;
                c.count = lengths[l];
                c.op = turn % 3 == 1 ? user : MPI_SUM;
                for (int p = 0; p < 2; p++) {
                    c.in_place = p;
                    c.root = turn++ % test_size;
                    test_place("%s, %s, %d elements", collectives[k].name, form_names[f], c.count);
                    run(&collectives[k], &c);
                }
            }
    free(c.in);
    free(c.out);
    MPI_Op_free(&user);
}

/* Where the hint is. The communicators of an MPI-2.2 have none. */
enum { IN_COMM, IN_CALL, NPLACES };

#ifdef HAVE_MPI_COMM_DUP_WITH_INFO
enum { HAS_HINTS = 1 };
#else
enum { HAS_HINTS = 0 };
#define MPI_Comm_dup_with_info(comm, hint, result) MPI_Comm_dup(comm, result)
#endif

/* The order comes with the communicator, and in turn with the persistent call. */
static void by_info(void)
{
    for (order = 0; order < NORDERS; order++)
        for (int place = HAS_HINTS ? IN_COMM : IN_CALL; place < NPLACES; place++) {
            MPI_Comm comm;
            MPI_Info hint = test_info("nbcshim_reduction_order",
                                      order_names[place == IN_CALL ? !order : order]);
            MPI_Comm_dup_with_info(MPI_COMM_WORLD, hint, &comm);
            info = MPI_INFO_NULL;
            if (place == IN_CALL) { /* the key of a call precedes the other */
                MPI_Info_set(hint, "nbcshim_reduction_order", order_names[order]);
                info = hint;
                struct call c = {.form = PERSISTENT, .count = 20, .op = MPI_SUM, .comm = comm};
                c.in = test_alloc(sizeof(double) * 40 * MOST_RANKS);
                c.out = test_alloc(sizeof(double) * 40 * MOST_RANKS);
                for (int i = 0; i < NCOLLECTIVES; i++)
                    run(&collectives[i], &c);
                free(c.in);
                free(c.out);
            } else {
                run_all(comm);
            }
            MPI_Info_free(&hint);
            MPI_Comm_free(&comm);
        }
}

TEST(digits)
{
    const char *variable = getenv("NBCSHIM_REDUCTION_ORDER");
    info = MPI_INFO_NULL;
    if (variable) {
        order = strcmp(variable, "tree") == 0 ? TREE : RANKS;
        blocking = true;
        run_all(MPI_COMM_WORLD);
    } else {
        by_info();
    }
    EXPECT(test_size < 4 || differing > 0, "every order gives the same digits");
}
