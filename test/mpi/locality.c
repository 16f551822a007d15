/* SPDX-License-Identifier: MIT */
/* Persistent neighborhood collectives, and alltoall, alltoallv and alltoallw, on several nodes: all
 * ranks choose the same algorithm in the init call, for the pattern that all have together, and the
 * data are right at each start. For NBCSHIM_TEST=nodes=2 and four ranks or more. That the algorithm
 * is right is tested in test_algs and, where it is forced, by neighbors and persistent. */
#include "util.h"

#include <nbcshim.h>

#include <stdlib.h>
#include <string.h>

/* Blocks of UNIT ints: the EACH between two ranks are together too long for one message without
 * other ranks' (see combined), and each is short. */
enum { EACH = 60, UNIT = 24, MOST_RANKS = 16, MOST = EACH * MOST_RANKS, STARTS = 20, LONG = 3000 };

static int peers[MOST], npeers;
static int turns[MOST]; /* how many edges to the same rank come before this one */
static MPI_Comm comm;

static bool is_mate(int rank)
{
    return rank / 2 == test_rank / 2;
}

/* A graph in which each rank has so many edges to each rank of other nodes, and one to its own. */
static void connect(int each)
{
    npeers = 0;
    for (int i = 0; i < each; i++)
        for (int to = 0; to < test_size && to < MOST_RANKS; to++)
            if (!is_mate(to) || (i == 0 && to != test_rank))
                turns[npeers] = i, peers[npeers++] = to;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, npeers, peers, MPI_UNWEIGHTED, npeers, peers,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
}

static void expect_algorithm(MPI_Request request, const char *name)
{
    const char *is = test_native ? name : nbcshim_algorithm(request, NULL);
    EXPECT(is && strcmp(is, name) == 0, "%s and not %s", is ? is : "nothing", name);
}

static int word(int from, int to, int turn, int start, int i)
{
    return from + 17 * (to + 17 * (turn + 13 * (start + 23 * i)));
}

/* The ints of a block, the same from a rank to another as back; `most`: for every second one. */
static int length(int to, int turn, int most)
{
    int a = test_rank < to ? test_rank : to, b = test_rank < to ? to : test_rank;
    return most && (a + b + turn) % 2 == 0 ? most : (3 * a + b + turn) % UNIT + UNIT / 2;
}

/* The receiver has gaps between the ints: MPI_INT, and a type of its own. */
struct call {
    int counts[MOST], from[MOST], into[MOST];
    MPI_Aint sent[MOST], received[MOST];
    MPI_Datatype ints[MOST], gaps[MOST];
    int *in, *out;
    int total;
};

static void prepare(struct call *c, int most, MPI_Datatype gap)
{
    c->total = 0;
    for (int i = 0; i < npeers; i++) {
        c->counts[i] = length(peers[i], turns[i], most);
        c->from[i] = c->into[i] = c->total;
        c->sent[i] = c->total * (MPI_Aint)sizeof(int);
        c->received[i] = 2 * c->sent[i];
        c->ints[i] = MPI_INT;
        c->gaps[i] = gap;
        c->total += c->counts[i];
    }
    c->in = test_alloc((size_t)(c->total + 1) * sizeof(int));
    c->out = test_alloc((size_t)(2 * c->total + 1) * sizeof(int));
}

static void fill(struct call *c, int start)
{
    for (int i = 0; i < npeers; i++)
        for (int k = 0; k < c->counts[i]; k++)
            c->in[c->from[i] + k] = word(test_rank, peers[i], turns[i], start, k);
    for (int i = 0; i <= 2 * c->total; i++)
        c->out[i] = -1;
}

static void check(const struct call *c, int start, int step)
{
    int wrong = 0;
    for (int i = 0; i < npeers; i++)
        for (int k = 0; k < c->counts[i]; k++)
            wrong +=
                c->out[step * (c->into[i] + k)] != word(peers[i], test_rank, turns[i], start, k);
    for (int i = 0; i < c->total && step == 2; i++)
        wrong += c->out[2 * i + 1] != -1;
    EXPECT_INT(wrong, 0, "start %d", start);
}

/* Two operations at once, started in different orders. */
static void starts(int most, const char *algorithm)
{
    static struct call v, w;
    MPI_Request request[2];
    MPI_Datatype gap;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gap);
    MPI_Type_commit(&gap);
    prepare(&v, most, gap);
    prepare(&w, most, gap);
    OK(MPI_Neighbor_alltoallv_init(v.in, v.counts, v.from, MPI_INT, v.out, v.counts, v.into,
                                   MPI_INT, comm, MPI_INFO_NULL, &request[0]));
    OK(MPI_Neighbor_alltoallw_init(w.in, w.counts, w.sent, w.ints, w.out, w.counts, w.received,
                                   w.gaps, comm, MPI_INFO_NULL, &request[1]));
    MPI_Type_free(&gap);
    for (int i = 0; i < 2; i++)
        expect_algorithm(request[i], algorithm);
    for (int start = 0; start < STARTS; start++) {
        fill(&v, start);
        fill(&w, start + 1);
        OK(MPI_Start(&request[(start + test_rank) % 2]));
        OK(MPI_Start(&request[(start + test_rank + 1) % 2]));
        OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        check(&v, start, 1);
        check(&w, start + 1, 2);
    }
    for (int i = 0; i < 2; i++)
        OK(MPI_Request_free(&request[i]));
    free(v.in);
    free(v.out);
    free(w.in);
    free(w.out);
}

static bool nodes(void)
{
    return test_has_persistent() && test_size >= 4 && test_size <= MOST_RANKS;
}

TEST(many_short_blocks, .wanted = nodes)
{
    connect(EACH);
    starts(0, "locality");
    OK(MPI_Comm_free(&comm));
}

/* Those that are long go straight. */
TEST(some_long_blocks, .wanted = nodes)
{
    connect(EACH);
    starts(LONG, "combined");
    OK(MPI_Comm_free(&comm));
}

TEST(few_blocks, .wanted = nodes)
{
    connect(1);
    starts(0, "combined");
    OK(MPI_Comm_free(&comm));
}

/* The buffers of an alltoall of blocks of UNIT ints. */
static int in[MOST * UNIT], all[MOST * UNIT];

static void alltoall_init(MPI_Info info, MPI_Request *request)
{
    OK(MPI_Neighbor_alltoall_init(in, UNIT, MPI_INT, all, UNIT, MPI_INT, comm, info, request));
}

static MPI_Info info_of(const char *algorithm)
{
    MPI_Info info = test_info("nbcshim_algorithm", algorithm);
    return info;
}

/* An allgather, in which all blocks between two ranks are one, and an alltoall of blocks of one
 * size.
 */
TEST(same_blocks, .wanted = nodes)
{
    int own = 0, got[MOST], wrong = 0;
    MPI_Request request[2];
    MPI_Info info = info_of("locality");
    connect(EACH);
    OK(MPI_Neighbor_allgather_init(&own, 1, MPI_INT, got, 1, MPI_INT, comm, info, &request[0]));
    OK(MPI_Info_free(&info));
    alltoall_init(MPI_INFO_NULL, &request[1]);
    for (int i = 0; i < 2; i++)
        expect_algorithm(request[i], "locality");
    for (int start = 0; start < STARTS; start++) {
        own = 100 * start + test_rank;
        for (int i = 0; i < npeers; i++)
            for (int k = 0; k < UNIT; k++)
                in[i * UNIT + k] = word(test_rank, peers[i], turns[i], start, k);
        OK(MPI_Startall(2, request));
        OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < npeers; i++)
            for (int k = 0; k < UNIT; k++)
                wrong += got[i] != 100 * start + peers[i] ||
                         all[i * UNIT + k] != word(peers[i], test_rank, turns[i], start, k);
    }
    EXPECT_INT(wrong, 0);
    for (int i = 0; i < 2; i++)
        OK(MPI_Request_free(&request[i]));
    OK(MPI_Comm_free(&comm));
}

/* The ints that a rank sends to another: none to the one before it. */
static int dense_length(int from, int to)
{
    return (from - to + test_size) % test_size == 1 ? 0 : 1 + (3 * from + 5 * to) % UNIT;
}

static struct {
    int sent[MOST_RANKS], sent_at[MOST_RANKS], got[MOST_RANKS], got_at[MOST_RANKS];
    int bytes_sent_at[MOST_RANKS], bytes_got_at[MOST_RANKS];
    MPI_Datatype ints[MOST_RANKS];
    int out[MOST_RANKS * UNIT], into[3][MOST_RANKS * UNIT];
} dense;

static void dense_prepare(void)
{
    for (int i = 0; i < test_size; i++) {
        dense.sent[i] = dense_length(test_rank, i);
        dense.got[i] = dense_length(i, test_rank);
        dense.sent_at[i] = dense.got_at[i] = i * UNIT;
        dense.bytes_sent_at[i] = dense.bytes_got_at[i] = i * UNIT * (int)sizeof(int);
        dense.ints[i] = MPI_INT;
    }
}

static void dense_fill(int start)
{
    for (int i = 0; i < test_size; i++)
        for (int k = 0; k < UNIT; k++) {
            dense.out[i * UNIT + k] = word(test_rank, i, 0, start, k);
            for (int which = 0; which < 3; which++)
                dense.into[which][i * UNIT + k] = -1;
        }
}

/* Of alltoall, alltoallv and alltoallw. */
static int dense_wrong(int which, int start)
{
    int wrong = 0;
    for (int i = 0; i < test_size; i++)
        for (int k = 0; k < UNIT; k++) {
            bool sent = which == 0 || k < dense.got[i];
            int right = sent ? word(i, test_rank, 0, start, k) : -1;
            wrong += dense.into[which][i * UNIT + k] != right;
        }
    return wrong;
}

/* Each rank is the neighbor of all. MPI_IN_PLACE has other algorithms. */
TEST(all_to_all, .wanted = nodes)
{
    MPI_Request request[4];
    MPI_Info info = info_of("locality");
    static int here[MOST_RANKS];
    dense_prepare();
    OK(MPI_Alltoall_init(dense.out, UNIT, MPI_INT, dense.into[0], UNIT, MPI_INT, MPI_COMM_WORLD,
                         info, &request[0]));
    OK(MPI_Alltoallv_init(dense.out, dense.sent, dense.sent_at, MPI_INT, dense.into[1], dense.got,
                          dense.got_at, MPI_INT, MPI_COMM_WORLD, info, &request[1]));
    OK(MPI_Alltoallw_init(dense.out, dense.sent, dense.bytes_sent_at, dense.ints, dense.into[2],
                          dense.got, dense.bytes_got_at, dense.ints, MPI_COMM_WORLD, info,
                          &request[2]));
    OK(MPI_Alltoall_init(MPI_IN_PLACE, 1, MPI_INT, here, 1, MPI_INT, MPI_COMM_WORLD, info,
                         &request[3]));
    OK(MPI_Info_free(&info));
    for (int i = 0; i < 3; i++)
        expect_algorithm(request[i], "locality");
    EXPECT(test_native || strcmp(nbcshim_algorithm(request[3], NULL), "locality") != 0, "in place");
    for (int start = 0; start < STARTS; start++) {
        dense_fill(start);
        for (int i = 0; i < test_size; i++)
            here[i] = word(test_rank, i, 1, start, 0);
        for (int i = 0; i < 4; i++)
            OK(MPI_Start(&request[(i + test_rank + start) % 4]));
        OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
        for (int which = 0; which < 3; which++)
            EXPECT_INT(dense_wrong(which, start), 0, "%d, start %d", which, start);
        for (int i = 0; i < test_size; i++)
            EXPECT_INT(here[i], word(i, test_rank, 1, start, 0), "in place, from %d", i);
    }
    for (int i = 0; i < 4; i++)
        OK(MPI_Request_free(&request[i]));
}

/* More than a rank has memory for. */
TEST(too_many_edges, .wanted = nodes)
{
    enum { N = 33000 };
    static int many[N], from[N], into[N];
    MPI_Request request;
    MPI_Comm wide;
    for (int i = 0; i < N; i++)
        many[i] = test_rank < 4 ? (test_rank + 2) % 4 : test_rank;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, N, many, MPI_UNWEIGHTED, N, many,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &wide));
    OK(MPI_Neighbor_alltoall_init(from, 1, MPI_INT, into, 1, MPI_INT, wide, MPI_INFO_NULL,
                                  &request));
    expect_algorithm(request, "combined");
    OK(MPI_Request_free(&request));
    OK(MPI_Comm_free(&wide));
}

/* A rank that waits in an init call progresses what the others wait for before theirs. */
TEST(others_are_late, .wanted = nodes)
{
    int one = 1, sum = 0;
    MPI_Request pending, request;
    connect(EACH);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &pending));
    if (test_rank % 2)
        OK(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    alltoall_init(MPI_INFO_NULL, &request);
    expect_algorithm(request, "locality");
    if (test_rank % 2 == 0)
        OK(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, test_size);
    OK(MPI_Request_free(&request));
    OK(MPI_Comm_free(&comm));
}

/* The user's choice. */
TEST(hinted, .wanted = nodes)
{
    MPI_Request request;
    MPI_Info info = info_of("neighbor_alltoall:linear");
    connect(EACH);
    alltoall_init(info, &request);
    expect_algorithm(request, "linear");
    OK(MPI_Request_free(&request));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&comm));
    connect(1);
    info = info_of("locality");
    alltoall_init(info, &request);
    expect_algorithm(request, "locality");
    OK(MPI_Request_free(&request));
    OK(MPI_Ineighbor_alltoall(in, 1, MPI_INT, all, 1, MPI_INT, comm, &request));
    expect_algorithm(request, "combined");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
}

/* A refused call communicates nothing; the next one is right. */
TEST(refused, .wanted = nodes)
{
    MPI_Request request = MPI_REQUEST_NULL;
    connect(EACH);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int code =
        MPI_Neighbor_alltoall_init(in, -1, MPI_INT, all, 1, MPI_INT, comm, MPI_INFO_NULL, &request);
    EXPECT_INT(class_of(code), MPI_ERR_COUNT);
    EXPECT(request == MPI_REQUEST_NULL, "the request is set");
    starts(0, "locality");
    OK(MPI_Comm_free(&comm));
}

/* Requests outlive their communicator, and any number comes and goes. */
TEST(again_and_again, .wanted = nodes)
{
    for (int i = 0; i < test_scale(40, 2000); i++) {
        MPI_Request request;
        connect(EACH);
        in[0] = i;
        alltoall_init(MPI_INFO_NULL, &request);
        OK(MPI_Start(&request));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }
}

/* A rank alone that names the algorithm does not go on alone. */
TEST(hinted_on_one_rank, .wanted = nodes)
{
    int given[MOST] = {0}, taken[MOST];
    MPI_Request request;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    if (test_rank == 1)
        OK(MPI_Info_set(info, "nbcshim_algorithm", "locality"));
    connect(1);
    OK(MPI_Neighbor_alltoall_init(given, 1, MPI_INT, taken, 1, MPI_INT, comm, info, &request));
    expect_algorithm(request, "locality");
    OK(MPI_Request_free(&request));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
}
