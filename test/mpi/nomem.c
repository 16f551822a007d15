/* SPDX-License-Identifier: MIT */
/* Memory runs out in nbcshim, and in nothing else: this program's malloc refuses the n-th piece
 * that the library asks for, for all n that there are. The call returns MPI_ERR_NO_MEM or does
 * without; its request is as it was; what comes after works; and nothing stays behind. Of several
 * ranks it is the root of a gather that fails, and the others know nothing of it. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

/* --- memory ----------------------------------------------------------------------------------- */

static int countdown; /* pieces until one is refused; 0: none is */
static bool no_block; /* each piece of as many bytes as BLOCK is refused */
static bool refused;

enum { BLOCK = 16384 }; /* bytes: requests are allocated in blocks of at least this size */

static bool refuse(size_t size)
{
    bool too_large = no_block && size >= BLOCK;
    if (!too_large && (countdown == 0 || --countdown > 0))
        return false;
    refused = true;
    return true;
}

#define pieces_refuse refuse
#include "pieces.h"

/* --- scenes ----------------------------------------------------------------------------------- */

enum { N = 4, MANY = 40 };

static int in[MANY], out[MANY], one = 1, zero;
static MPI_Comm comm; /* of the scene's own */
static MPI_Comm side; /* on which nothing fails */

/* Does what comes next while all has gone well. */
#define TRY(call)                   \
    do {                            \
        if (!error)                 \
            error = returned(call); \
    } while (0)

static int returned(int code)
{
    if (code && class_of(code) != MPI_ERR_IN_STATUS)
        EXPECT_INT(class_of(code), MPI_ERR_NO_MEM);
    return code;
}

/* Starts one operation and waits for it. */
#define ONE(call)                                                          \
    do {                                                                   \
        MPI_Request one_r = MPI_REQUEST_NULL, *r = &one_r;                 \
        TRY(call);                                                         \
        EXPECT(!error || one_r == MPI_REQUEST_NULL, "the request is set"); \
        TRY(MPI_Wait(r, MPI_STATUS_IGNORE));                               \
    } while (0)

#define I MPI_INT

static int outcome;           /* of a scene */
static bool may_ask_for_none; /* it may do without memory */

static bool plays(void)
{
    return OWN_MALLOC && !test_native;
}

static bool is_alone(void)
{
    return plays() && test_size == 1;
}

static int good(MPI_Comm c)
{
    int x = 5, sum = 0, error;
    MPI_Request r = MPI_REQUEST_NULL;
    error = MPI_Iallreduce(&x, &sum, 1, I, MPI_SUM, c, &r);
    if (!error)
        error = MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(error || sum == x, "sum %d", sum);
    return error;
}

/* The n-th piece is refused; 0: none is. Returns whether there was an n-th. */
static bool play(const struct test *scene, int n)
{
    test_place("%s, piece %d", scene->name, n);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    refused = false;
    countdown = n;
    may_ask_for_none = false;
    scene->run();
    countdown = 0;
    EXPECT(!outcome || refused, "%s, piece %d: fails for nothing", scene->name, n);
    EXPECT_INT(good(comm), MPI_SUCCESS, "%s, piece %d", scene->name, n);
    MPI_Comm_free(&comm);
    return refused;
}

/* First with nothing at hand, then again: now all that is taken is given back. */
static void run_scene(const struct test *scene, bool keeps)
{
    int pieces = 0;
    while (play(scene, pieces + 1))
        pieces++;
    EXPECT(pieces > 0 || may_ask_for_none, "%s asks for no memory", scene->name);
    for (int n = 1;; n++) {
        int held = pieces_live;
        bool any = play(scene, n);
        EXPECT(keeps || pieces_live <= held, "%s, piece %d: %d pieces are left", scene->name, n,
               pieces_live - held);
        if (!any)
            break;
    }
}

static void in_scene(const struct test *scene)
{
    run_scene(scene, false);
}

/* Each call keeps more memory for later. */
static void in_growing_scene(const struct test *scene)
{
    run_scene(scene, true);
}

/* The body returns an error code. */
#define SCENE_IF(name, is_wanted, runs)             \
    static int name##_scene(void);                  \
    TEST(name, .wanted = is_wanted, .runner = runs) \
    {                                               \
        outcome = name##_scene();                   \
    }                                               \
    static int name##_scene(void)
#define SCENE(name) SCENE_IF(name, is_alone, in_scene)

/* --- the first calls of all ------------------------------------------------------------------- */

/* Whenever a refused call has learned something that stays, it is made again from the first piece
 * on: so each is refused that it asks for. It does not learn without end. */
TEST(first_calls, .wanted = is_alone)
{
    enum { CALLS_MOST = 200 };
    int calls = 0;
    comm = MPI_COMM_WORLD;
    refused = true;
    for (int n = 1; refused && calls < CALLS_MOST; calls++) {
        int error = MPI_SUCCESS, held = pieces_live;
        test_place("first call, piece %d", n);
        refused = false;
        countdown = n;
        ONE(MPI_Iallreduce(in, out, N, I, MPI_SUM, comm, r));
        countdown = 0;
        n = pieces_live > held ? 1 : n + 1;
    }
    EXPECT(calls < CALLS_MOST, "%d pieces, and ever more", pieces_live);
}

/* --- and others ------------------------------------------------------------------------------- */

SCENE(moves)
{
    int error = MPI_SUCCESS;
    ONE(MPI_Ibarrier(comm, r));
    ONE(MPI_Ibcast(out, N, I, 0, comm, r));
    ONE(MPI_Igather(in, N, I, out, N, I, 0, comm, r));
    ONE(MPI_Igatherv(in, 1, I, out, &one, &zero, I, 0, comm, r));
    ONE(MPI_Iscatter(in, N, I, out, N, I, 0, comm, r));
    ONE(MPI_Iscatterv(in, &one, &zero, I, out, 1, I, 0, comm, r));
    ONE(MPI_Iallgather(in, N, I, out, N, I, comm, r));
    ONE(MPI_Iallgatherv(in, 1, I, out, &one, &zero, I, comm, r));
    ONE(MPI_Ialltoall(in, N, I, out, N, I, comm, r));
    EXPECT(error || (out[0] == in[0] && out[N - 1] == in[N - 1]), "wrong result");
    /* The arrays of the first call may not have been kept. */
    for (int to = 0; to < N; to++) {
        ONE(MPI_Ialltoallv(in, &one, &zero, I, out, &one, &to, I, comm, r));
        EXPECT(error || out[to] == in[0], "wrong result");
    }
    return error;
}

SCENE(reductions)
{
    int error = MPI_SUCCESS;
    ONE(MPI_Ireduce(in, out, N, I, MPI_SUM, 0, comm, r));
    ONE(MPI_Iallreduce(in, out, N, I, MPI_MAX, comm, r));
    ONE(MPI_Ireduce_scatter(in, out, &one, I, MPI_SUM, comm, r));
    ONE(MPI_Ireduce_scatter_block(in, out, N, I, MPI_BXOR, comm, r));
    ONE(MPI_Iscan(in, out, N, I, MPI_SUM, comm, r));
    ONE(MPI_Iexscan(in, out, N, I, MPI_SUM, comm, r));
    ONE(MPI_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, comm, r)); /* which is looked into anew */
    TRY(MPI_Allreduce(in, out, N, I, MPI_SUM, comm));
    EXPECT(error || (out[0] == in[0] && out[N - 1] == in[N - 1]), "wrong result");
    return error;
}

/* Types of this scene alone, with holes: contiguous ones would be copied without more memory. */
SCENE(types)
{
    MPI_Datatype sparse, wide;
    int error = MPI_SUCCESS;
    MPI_Type_vector(N, 1, 2, I, &sparse);
    MPI_Type_vector(N / 2, 2, 3, I, &wide);
    MPI_Type_commit(&sparse);
    MPI_Type_commit(&wide);
    memset(out, 0, sizeof out);
    ONE(MPI_Iallgather(in, 1, sparse, out, 1, wide, comm, r));
    EXPECT(error || (out[0] == in[0] && out[1] == in[2] && out[3] == in[4]), "wrong result");
    ONE(MPI_Ialltoallw(in, &one, &zero, &sparse, out, &one, &zero, &wide, comm, r));
    TRY(MPI_Bcast(out, 1, sparse, 0, comm));
    MPI_Request pending = MPI_REQUEST_NULL;
    TRY(MPI_Igather(in, 1, wide, out, 1, sparse, 0, comm, &pending));
    MPI_Type_free(&sparse);
    MPI_Type_free(&wide);
    TRY(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    return error;
}

SCENE(operators)
{
    MPI_Op op;
    int error = MPI_SUCCESS;
    MPI_Op_create(add_ints, 0, &op);
    ONE(MPI_Iallreduce(in, out, N, I, op, comm, r));
    ONE(MPI_Iscan(MPI_IN_PLACE, out, N, I, op, comm, r));
    MPI_Request pending = MPI_REQUEST_NULL;
    TRY(MPI_Iallreduce(in, out, N, I, op, comm, &pending));
    MPI_Op_free(&op);
    TRY(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    return error;
}

/* Long arrays, with requests of the program's own among ours. */
SCENE(persistent)
{
    MPI_Request list[2 * MANY];
    int error = MPI_SUCCESS, flag, n = 0;
    for (int i = 0; i < MANY; i++)
        MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &list[n++]);
    for (int i = 0; test_has_persistent() && i < MANY && !error; i++) {
        list[n] = MPI_REQUEST_NULL;
        TRY(MPI_Allreduce_init(&in[i], &out[i], 1, I, MPI_SUM, comm, MPI_INFO_NULL, &list[n]));
        EXPECT_INT(!error, list[n] != MPI_REQUEST_NULL);
        n += !error;
    }
    memset(out, 0, sizeof out);
    bool started = false;
    if (!error) {
        TRY(MPI_Startall(n, list));
        started = !error;
    }
    TRY(MPI_Testall(n, list, &flag, MPI_STATUSES_IGNORE));
    /* Whatever has failed has left the list as it was. */
    if (started) {
        OK(MPI_Waitall(n, list, MPI_STATUSES_IGNORE));
        for (int i = 0; i < MANY && test_has_persistent(); i++)
            EXPECT_INT(out[i], in[i]);
    }
    for (int i = 0; i < n; i++)
        MPI_Request_free(&list[i]);
    return error;
}

SCENE(arrays)
{
    MPI_Request list[MANY];
    MPI_Status statuses[MANY];
    int error = MPI_SUCCESS, n = 0, index, count, indices[MANY], flag, lacking = 0;
    memset(out, 0, sizeof out);
    for (; n < MANY && !error; n++) {
        list[n] = MPI_REQUEST_NULL;
        TRY(MPI_Iallreduce(&in[n], &out[n], 1, I, MPI_SUM, comm, &list[n]));
    }
    const bool all_called = !error;
    TRY(MPI_Testany(n, list, &index, &flag, MPI_STATUS_IGNORE));
    TRY(MPI_Waitany(n, list, &index, MPI_STATUS_IGNORE));
    TRY(MPI_Testsome(n, list, &count, indices, MPI_STATUSES_IGNORE));
    TRY(MPI_Waitsome(n, list, &count, indices, statuses));
    TRY(MPI_Waitall(n, list, statuses));
    OK(MPI_Waitall(n, list, MPI_STATUSES_IGNORE));
    /* One without memory when its turn comes fails in its completion. */
    for (int i = 0; i < n - 1; i++)
        lacking += out[i] != in[i];
    EXPECT(lacking <= (all_called && error), "%d have no result", lacking);
    return error;
}

/* More at once on each call: what holds requests grows, and what nbcshim knows of an array that
 * becomes longer. */
SCENE_IF(more, is_alone, in_growing_scene)
{
    static int most = 100;
    MPI_Request *list = test_alloc((most *= 1.2) * sizeof *list);
    int error = MPI_SUCCESS, n = 0, index, flag;
    for (; n < most && !error; n++) {
        list[n] = MPI_REQUEST_NULL;
        TRY(MPI_Ibarrier(comm, &list[n]));
    }
    TRY(MPI_Testany(n / 2, list, &index, &flag, MPI_STATUS_IGNORE));
    TRY(MPI_Testany(n, list, &index, &flag, MPI_STATUS_IGNORE));
    EXPECT(pieces_in_live < (long long)most * BLOCK, "%lld bytes for %d requests", pieces_in_live,
           most);
    for (int i = 0; i < n; i++)
        OK(MPI_Wait(&list[i], MPI_STATUS_IGNORE));
    free(list);
    return error;
}

/* Where the call that made it has not failed. */
static void drop(MPI_Comm *c)
{
    if (*c != MPI_COMM_NULL)
        MPI_Comm_free(c);
}

SCENE(communicators)
{
    MPI_Comm copy = MPI_COMM_NULL;
    int error = MPI_SUCCESS;
    MPI_Info info = test_info("nbcshim_algorithm", "allreduce:ring");
    TRY(MPI_Comm_dup(comm, &copy));
    TRY(good(copy));
#if MPI_VERSION >= 3
    TRY(MPI_Comm_set_info(copy, info));
    TRY(good(copy));
#endif
    MPI_Info_free(&info);
    drop(&copy);
    return error;
}

/* Else ranks might use the form with MPI_Count, which not all MPIs have. */
static bool has_same_form(void)
{
    const char *set = getenv("NBCSHIM_TEST");
    return is_alone() && set && strcmp(set, "same_form=1") == 0;
}

/* The MPI carries them out; one more each time, since what they take is kept for the next. */
SCENE_IF(by_mpi, has_same_form, in_growing_scene)
{
    enum { MOST = 100 };
    static int most, results[MOST];
    MPI_Request list[MOST];
    MPI_Comm copy = MPI_COMM_NULL;
    int error = MPI_SUCCESS, n = 0;
    most += most < MOST;
    MPI_Info info = test_info("nbcshim_algorithm", "mpi");
    TRY(MPI_Comm_dup(comm, &copy));
    TRY(MPI_Comm_set_info(copy, info));
    MPI_Info_free(&info);
    for (; n < most && !error; n += !error) {
        results[n] = 0;
        TRY(MPI_Iallreduce(in, &results[n], 1, I, MPI_SUM, copy, &list[n]));
        const char *name = error ? "mpi" : nbcshim_algorithm(list[n], NULL);
        EXPECT(name && strcmp(name, "mpi") == 0, "%s", name ? name : "none");
    }
    OK(MPI_Waitall(n, list, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++)
        EXPECT_INT(results[i], in[0]);
    drop(&copy);
    return error;
}

#if MPI_VERSION >= 3
SCENE(duplicates)
{
    int error = MPI_SUCCESS;
    MPI_Comm copy = MPI_COMM_NULL;
    ONE(MPI_Comm_idup(comm, &copy, r));
    if (error)
        copy = MPI_COMM_NULL; /* freed, but nobody could write that there */
    TRY(good(copy));
    drop(&copy);
    return error;
}
#endif

SCENE(neighbors)
{
    MPI_Comm ring = MPI_COMM_NULL, graph = MPI_COMM_NULL;
    int error = MPI_SUCCESS, counts[2] = {1, 1}, places[2] = {0, 1};
    MPI_Datatype both[2] = {I, I};
    MPI_Aint bytes[2] = {0, sizeof(int)};
    TRY(MPI_Cart_create(comm, 1, &one, &one, 0, &ring));
    ONE(MPI_Ineighbor_allgather(in, 1, I, out, 1, I, ring, r));
    ONE(MPI_Ineighbor_alltoallv(in, counts, places, I, out, counts, places, I, ring, r));
    ONE(MPI_Ineighbor_alltoallw(in, counts, bytes, both, out, counts, bytes, both, ring, r));
    TRY(MPI_Dist_graph_create_adjacent(comm, 1, &zero, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &graph));
    ONE(MPI_Ineighbor_alltoall(in, 1, I, out, 1, I, graph, r));
    EXPECT(error || out[0] == in[0], "wrong result");
    drop(&ring);
    drop(&graph);
    return error;
}

/* Open MPI 4.1 may have no windows for one process. */
static bool has_windows(void)
{
    MPI_Win window;
    if (!is_alone() ||
        MPI_Win_create(in, sizeof in, sizeof in[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window))
        return false;
    MPI_Win_free(&window);
    return true;
}

static bool is_hooked(void)
{
    int hooked;
    nbcshim_hook(&hooked);
    return hooked;
}

SCENE_IF(windows, has_windows, in_scene)
{
    MPI_Win window = MPI_WIN_NULL;
    int error = MPI_SUCCESS;
    TRY(MPI_Win_create(in, sizeof in, sizeof in[0], MPI_INFO_NULL, comm, &window));
    if (error) { /* UCX 1.18 ends a process in MPI_Finalize that has the MPI's window */
        if (window != MPI_WIN_NULL)
            MPI_Win_free(&window);
        return error;
    }
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    TRY(MPI_Win_fence(0, window));
    TRY(MPI_Win_fence(0, window));
    MPI_Win_free(&window);
    /* With a hook the calls of windows have no barrier of nbcshim before them. */
    may_ask_for_none = is_hooked();
    return error;
}

/* --- one rank among others -------------------------------------------------------------------- */

static MPI_Datatype narrow, wide;

/* The root gathers from one type with holes into another: its own part wants a piece of memory when
 * all is under way. */
static int gather_start(bool as_persistent, MPI_Request *r)
{
    memset(out, 0, sizeof out);
    in[0] += 100;
    if (*r != MPI_REQUEST_NULL)
        return MPI_Start(r);
    if (!as_persistent)
        return MPI_Igather(in, 1, narrow, out, 1, wide, 0, comm, r);
    int error = MPI_Gather_init(in, 1, narrow, out, 1, wide, 0, comm, MPI_INFO_NULL, r);
    return error ? error : MPI_Start(r);
}

/* Right, or refused at the root. */
static int gather(bool as_persistent, MPI_Request *r)
{
    int error = gather_start(as_persistent, r);
    if (!error)
        error = MPI_Wait(r, MPI_STATUS_IGNORE);
    for (int i = 0; i < test_size && !error && test_rank == 0; i++)
        EXPECT(out[8 * i] == in[0] && out[8 * i + 3] == in[2], "%sfrom rank %d: %d, %d, not %d",
               as_persistent ? "persistent, " : "", i, out[8 * i], out[8 * i + 3], in[0]);
    EXPECT(!error || test_rank == 0, "fails where it should not: class %d", class_of(error));
    return error;
}

/* With few tags (NBCSHIM_TEST=tag_ub=30) the tag of the failed one comes again and again. */
static bool fail_among_others(bool as_persistent, int n)
{
    enum { MORE = 40 };
    MPI_Request r = MPI_REQUEST_NULL;
    test_place("%s gather, piece %d", as_persistent ? "persistent" : "nonblocking", n);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    refused = false;
    if (test_rank == 0)
        countdown = n;
    int error = gather(as_persistent, &r), any = refused;
    countdown = 0;
    EXPECT(!error || any, "piece %d: fails for nothing: class %d", n, class_of(error));
    EXPECT(!error || class_of(error) == MPI_ERR_NO_MEM, "piece %d: class %d", n, class_of(error));
    /* Where the root has no request the others have one in vain. */
    MPI_Request vain = MPI_REQUEST_NULL;
    int none = r == MPI_REQUEST_NULL;
    MPI_Bcast(&none, 1, I, 0, MPI_COMM_WORLD);
    if (none) {
        vain = r;
        r = MPI_REQUEST_NULL;
    }
    for (int i = 0; i < MORE; i++) {
        error = gather(as_persistent, &r);
        EXPECT(!error || class_of(error) == MPI_ERR_OTHER, "piece %d, then class %d", n,
               class_of(error));
    }
    if (r != MPI_REQUEST_NULL)
        MPI_Request_free(&r);
    if (vain != MPI_REQUEST_NULL)
        MPI_Request_free(&vain);
    MPI_Comm_free(&comm);
    MPI_Bcast(&any, 1, I, 0, MPI_COMM_WORLD);
    return any;
}

static void run_among_others(bool as_persistent)
{
    int pieces = 0;
    while (fail_among_others(as_persistent, pieces + 1))
        pieces++;
    EXPECT(pieces > 0, "a gather asks for no memory");
}

static bool is_among_others(void)
{
    return plays() && test_size > 1;
}

TEST(among_others, .wanted = is_among_others)
{
    for (int i = 0; i < 1 + test_has_persistent(); i++)
        run_among_others(i > 0);
}

/* The last rank fails while the ranks agree on an algorithm (NBCSHIM_TEST=nodes=2), once nothing is
 * new to them but the pattern: the others have a request in vain, and the next call is right. */
static MPI_Request pattern_init(MPI_Info info, int *error)
{
    MPI_Request r = MPI_REQUEST_NULL;
    *error = MPI_Neighbor_alltoall_init(in, 1, I, out, 1, I, comm, info, &r);
    EXPECT_INT(*error == MPI_SUCCESS, r != MPI_REQUEST_NULL);
    return r;
}

static bool fail_pattern(int n, MPI_Info info)
{
    int peers[MANY], error, any = 0, last = test_size - 1, held = pieces_live;
    MPI_Request r;
    test_place("pattern, piece %d", n);
    for (int i = 0; i < test_size; i++)
        peers[i] = i;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, test_size, peers, MPI_UNWEIGHTED, test_size,
                                   peers, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++) {
        refused = false;
        countdown = i == 1 && test_rank == last ? n : 0;
        r = pattern_init(info, &error);
        countdown = 0;
        any |= refused;
        EXPECT(!error || (refused && class_of(error) == MPI_ERR_NO_MEM), "call %d: class %d", i,
               class_of(error));
        if (i != 1) {
            const char *name = nbcshim_algorithm(r, NULL);
            EXPECT(name && strcmp(name, "locality") == 0, "%s", name ? name : "none");
            MPI_Start(&r);
            OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
            for (int from = 0; from < test_size; from++)
                EXPECT_INT(out[from], 1 + test_rank + 100 * from);
        }
        if (r != MPI_REQUEST_NULL)
            MPI_Request_free(&r);
    }
    MPI_Comm_free(&comm);
    EXPECT(n < 3 || pieces_live <= held, "piece %d: %d are left", n, pieces_live - held);
    MPI_Bcast(&any, 1, I, last, MPI_COMM_WORLD);
    return any;
}

static bool plays_patterns(void)
{
    return plays() && test_has_persistent() && test_size > 2;
}

TEST(pattern, .if_named = true, .wanted = plays_patterns)
{
    int n = 1;
    MPI_Info info = test_info("nbcshim_algorithm", "locality");
    for (int i = 0; i < MANY; i++)
        in[i] = 1 + i + 100 * test_rank;
    while (fail_pattern(n, info))
        n++;
    EXPECT(n > 1, "an agreement asks for no memory");
    MPI_Info_free(&info);
}

/* With NBCSHIM_CHECK=1 the operations of a communicator begin in order, each when its check is
 * over. The last rank fails one of several; the others wait for it in vain, and the last rank does
 * not wait for them. */
static bool fail_checked(int n)
{
    enum { SEVERAL = 80 }; /* more than begin at once */
    static int sums[SEVERAL];
    MPI_Request list[SEVERAL];
    MPI_Status statuses[SEVERAL];
    int last = test_size - 1, error = MPI_SUCCESS, failed = 0, any;
    test_place("checked, piece %d", n);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    refused = false;
    countdown = test_rank == last ? n : 0;
    for (int i = 0; i < SEVERAL; i++) {
        list[i] = MPI_REQUEST_NULL;
        error = MPI_Iallreduce(in, &sums[i], 1, I, MPI_SUM, comm, &list[i]);
        failed |= error != MPI_SUCCESS;
    }
    if (test_rank == last)
        failed |= MPI_Waitall(SEVERAL, list, statuses) != MPI_SUCCESS;
    countdown = 0;
    any = refused;
    EXPECT(!failed || any, "piece %d: fails for nothing", n);
    MPI_Bcast(&failed, 1, I, last, side);
    MPI_Bcast(&any, 1, I, last, side);
    for (int i = 0; i < SEVERAL && test_rank != last; i++)
        if (!failed)
            MPI_Wait(&list[i], MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    return any;
}

TEST(checked, .if_named = true, .wanted = plays)
{
    int n = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &side);
    while (fail_checked(n))
        n += 1 + n / test_scale(12, 100000);
    EXPECT(n > 1, "checked operations ask for no memory");
    MPI_Comm_free(&side);
}

/* Blocking calls of which the plan is at hand. Rank 0 is late, so that the others make a request
 * for the rest of their wait. */
static void call_late(int i, MPI_Op op, long ms)
{
    const struct timespec late = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    int value = test_rank == 0 ? i : 1;
    test_place("late call %d", i);
    if (test_rank == 0)
        nanosleep(&late, NULL);
    int error = i % 2 ? MPI_Allreduce(MPI_IN_PLACE, &value, 1, I, op, comm)
                      : MPI_Bcast(&value, 1, I, 0, comm);
    EXPECT_INT(class_of(error), MPI_SUCCESS);
    EXPECT_INT(value, i % 2 ? i + test_size - 1 : i);
}

/* They give back what they take: a communicator finds as much in use as the one before. */
static void wait_with_request(MPI_Op op)
{
    enum { ROUNDS = 3, LATE_CALLS = 60 };
    int at_begin[ROUNDS], had = 0;
    MPI_Request first; /* or the first call that waits long asks for a block of requests */
    MPI_Barrier_init(MPI_COMM_SELF, MPI_INFO_NULL, &first);
    MPI_Request_free(&first);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        at_begin[round] = pieces_live;
        for (int i = 0; i < LATE_CALLS; i++) {
            call_late(i, op, 2);
            if (i == 1)
                had = pieces_asked;
        }
        EXPECT(round == 0 || pieces_asked == had, "%d pieces more", pieces_asked - had);
        MPI_Comm_free(&comm);
    }
    EXPECT(at_begin[2] <= at_begin[1], "%d pieces are left", at_begin[2] - at_begin[1]);
}

/* Starts no operation: takes requests until there is none left, nor memory for more of them. */
static int take_requests(MPI_Request *held, int room)
{
    int n = 0, error = MPI_SUCCESS;
    no_block = true;
    while (n < room && !(error = MPI_Barrier_init(MPI_COMM_SELF, MPI_INFO_NULL, &held[n])))
        n++;
    EXPECT_INT(class_of(error), MPI_ERR_NO_MEM, "%d requests", n);
    return n;
}

/* They do without. Beside other programs a rank that waits may not run for seconds, and makes no
 * request if rank 0 is there when it does: rank 0 is later with each pair of calls, until both of a
 * pair have found no request on all others. */
static void wait_without_request(MPI_Op op)
{
    enum { HELD = 1000, LONGEST = 4000 }; /* requests, ms */
    static MPI_Request held[HELD];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 2; i++)
        call_late(i, op, 0);
    int nheld = take_requests(held, HELD), done = 0;
    for (int ms = 2; !done && ms < LONGEST; ms *= 2) {
        done = 1;
        for (int i = 0; i < 2; i++) {
            refused = false;
            call_late(i, op, ms);
            done &= refused || test_rank == 0;
        }
        MPI_Allreduce(MPI_IN_PLACE, &done, 1, I, op, comm);
        done = done == test_size;
    }
    no_block = false;
    EXPECT(done, "no pair of calls asks for memory on all ranks");
    for (int i = 0; i < nheld; i++)
        MPI_Request_free(&held[i]);
    MPI_Comm_free(&comm);
}

static bool plays_persistent(void)
{
    return plays() && test_has_persistent();
}

TEST(late, .if_named = true, .wanted = plays_persistent)
{
    MPI_Op op;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Op_create(add_ints, 1, &op);
    wait_with_request(op);
    wait_without_request(op);
    MPI_Op_free(&op);
}

/* All ranks alike, so none knows of the others, until nothing more can be called on MPI_COMM_WORLD:
 * MPI_Finalize ends well all the same. */
TEST(finalize, .if_named = true, .wanted = plays)
{
    enum { TAGS = 40 };
    int error = MPI_SUCCESS;
    comm = MPI_COMM_WORLD;
    countdown = 1;
    ONE(MPI_Iallreduce(in, out, N, I, MPI_SUM, comm, r));
    countdown = 0;
    EXPECT(error, "an allreduce asks for no memory");
    for (int i = 0; i < TAGS && class_of(error) != MPI_ERR_OTHER; i++)
        error = MPI_Barrier(comm);
    EXPECT_INT(class_of(error), MPI_ERR_OTHER);
}

/* --- what needs none -------------------------------------------------------------------------- */

enum { CALLS = 8 }; /* different ones */

static void make_calls(int group)
{
    static int counts[CALLS][8], places[8];
    int error = MPI_SUCCESS;
    for (int i = 0; i < CALLS; i++) {
        int n = group + i + 1;
        if (i % 4 == 0)
            ONE(MPI_Iallreduce(in, out, n, I, MPI_SUM, comm, r));
        if (i % 4 == 1)
            ONE(MPI_Ibcast(out, n, I, 0, comm, r));
        if (i % 4 == 2)
            ONE(MPI_Iscan(in, out, n, I, MPI_MAX, comm, r));
        for (int to = 0; to < test_size; to++)
            counts[i][to] = i;
        if (i % 4 == 3)
            ONE(MPI_Ialltoallv(in, counts[i], places, I, in + MANY / 2, counts[i], places, I, comm,
                               r));
    }
}

/* A type that dies between them takes nothing from calls that do without it. */
static void use_type(void)
{
    MPI_Datatype pair;
    int error = MPI_SUCCESS;
    MPI_Type_contiguous(2, I, &pair);
    MPI_Type_commit(&pair);
    ONE(MPI_Ibcast(out, 1, pair, 0, comm, r));
    MPI_Type_free(&pair);
}

/* What was worked out for a few calls stays at hand, whichever they are. */
TEST(call_again, .wanted = plays)
{
    enum { GROUPS = 20 };
    for (int group = 0; group < GROUPS; group++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        make_calls(group);
        use_type();
        int before = pieces_asked;
        make_calls(group);
        EXPECT_INT(pieces_asked, before, "pieces for calls %d to %d when made again", group,
                   group + CALLS);
        MPI_Comm_free(&comm);
    }
}

/* Plans make room for others while there are requests made by them: more than any communicator has
 * plans. */
static bool is_alone_persistent(void)
{
    return is_alone() && test_has_persistent();
}

TEST(make_room, .wanted = is_alone_persistent)
{
    enum { PLANS = 2 * MANY };
    MPI_Request list[PLANS];
    int held = 0;
    for (int round = 0; round < 2; round++) {
        int error = MPI_SUCCESS;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        held = pieces_live;
        for (int i = 0; i < PLANS; i++)
            TRY(MPI_Bcast_init(out, i / 2, i % 2 ? I : MPI_CHAR, 0, comm, MPI_INFO_NULL, &list[i]));
        for (int i = 0; i < PLANS; i++)
            MPI_Request_free(&list[i]);
        MPI_Comm_free(&comm);
    }
    EXPECT(pieces_live <= held, "%d pieces are left of plans", pieces_live - held);
}

static void begin(void)
{
    MPI_Datatype loose;
    for (int i = 0; i < MANY; i++)
        in[i] = i + 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!test_native)
        library_find();
    MPI_Type_vector(2, 1, 2, I, &narrow);
    MPI_Type_vector(2, 1, 3, I, &loose);
    MPI_Type_create_resized(loose, 0, 8 * sizeof(int), &wide);
    MPI_Type_commit(&narrow);
    MPI_Type_commit(&wide);
    MPI_Type_free(&loose);
}

static void end(void)
{
    MPI_Type_free(&narrow);
    MPI_Type_free(&wide);
}

AROUND_TESTS(begin, end)
