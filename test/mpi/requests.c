/* SPDX-License-Identifier: MIT */
/* The rules of requests, one by one: null and inactive ones, what is forbidden, and MPI_Startall.
 * MPI-4.1 sections 3.7.3, 3.7.6, 3.9, 6.12, 6.13. Arrays of requests are in requests_arrays.c,
 * random mixes in fuzz.c. */
#include "observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- null and inactive requests ----------------------------------------------------------------*/

TEST(inactive_requests)
{
    MPI_Request ours = sum_init(), native, pending = MPI_REQUEST_NULL;
    int x, late = test_size > 1 && !is_late();
    MPI_Recv_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &native);
    MPI_Request all[4] = {MPI_REQUEST_NULL, ours, native, ours};

    /* At first nothing is under way, then something of ours. */
    for (int i = 0; i < 2; i++) {
        single_inactive(MPI_REQUEST_NULL);
        single_inactive(ours);
        single_inactive(native);
        array_inactive(3, all);
        array_inactive(1, all);
        array_inactive(2, all);
        CHECK(all[0] == MPI_REQUEST_NULL && all[1] == ours && all[2] == native);
        if (i == 0 && late)
            MPI_Ibarrier(comm, &pending);
    }
    if (late)
        gate_open();
    else if (test_size > 1) {
        gate_wait();
        MPI_Ibarrier(comm, &pending);
    }
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    MPI_Request_free(&native);
    CHECK(MPI_Request_free(&ours) == MPI_SUCCESS && ours == MPI_REQUEST_NULL);
    EXPECT_INT(one_out, -1); /* init computes nothing */
    EXPECT_INT(nraised, 0);
}

/* --- one request -------------------------------------------------------------------------------*/

TEST(get_status)
{
    MPI_Request r, p = sum_init();
    int flag = 1;

    gate_wait();
    r = sum_start();
    if (test_size > 1 && !is_late()) {
        CHECK(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
        CHECK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
    }
    gate_open();
    poll_status(r);
    EXPECT_INT(one_out, sum_of_ranks());
    flag = 0;
    CHECK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag && r == MPI_REQUEST_NULL);

    /* Complete but not told: a persistent one cannot be started or freed yet. */
    MPI_Start(&p);
    poll_status(p);
    CHECK(class_of(MPI_Start(&p)) == MPI_ERR_REQUEST && raised(MPI_ERR_REQUEST, comm));
    CHECK(class_of(MPI_Request_free(&p)) == MPI_ERR_REQUEST && raised(MPI_ERR_REQUEST, comm));
    OK(MPI_Wait(&p, MPI_STATUS_IGNORE));
    CHECK(MPI_Request_free(&p) == MPI_SUCCESS && p == MPI_REQUEST_NULL);
}

/* --- what is forbidden -------------------------------------------------------------------------*/

static void refuse_all(MPI_Request *r, MPI_Comm on)
{
    MPI_Request before = *r;
    CHECK(class_of(MPI_Request_free(r)) == MPI_ERR_REQUEST && raised(MPI_ERR_REQUEST, on));
    CHECK(class_of(MPI_Cancel(r)) == MPI_ERR_REQUEST && raised(MPI_ERR_REQUEST, on));
    CHECK(class_of(MPI_Start(r)) == MPI_ERR_REQUEST && raised(MPI_ERR_REQUEST, on));
    CHECK(class_of(MPI_Startall(1, r)) == MPI_ERR_REQUEST && raised(MPI_ERR_REQUEST, on));
    CHECK(*r == before);
}

/* Open MPI ends its own operations before the communicator: doc/mpis.md. */
static bool free_waits(MPI_Request r)
{
#ifdef OPEN_MPI
    const char *algorithm = nbcshim_algorithm(r, NULL);
    return algorithm && strcmp(algorithm, "mpi") == 0;
#else
    (void)r;
    return false;
#endif
}

/* On one rank operations are complete at once: the same must be refused. */
TEST(misuse)
{
    MPI_Request r, p = sum_init(), handle = p;
    MPI_Comm copy, freed;

    CHECK(class_of(MPI_Cancel(&p)) == MPI_ERR_REQUEST && raised(MPI_ERR_REQUEST, comm));
    CHECK(p == handle);
    gate_wait();
    MPI_Start(&p);
    refuse_all(&p, comm);
    gate_open();
    CHECK(MPI_Wait(&p, MPI_STATUS_IGNORE) == MPI_SUCCESS && one_out == sum_of_ranks());
    OK(MPI_Request_free(&p));

    gate_wait();
    r = sum_start();
    refuse_all(&r, comm);
    gate_open();
    CHECK(MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS && one_out == sum_of_ranks());

    /* The communicator's own handler, also when it has been freed. */
    MPI_Comm_dup(comm, &copy);
    note_errors(copy);
    freed = copy;
    gate_wait();
    MPI_Ibarrier(copy, &r);
    refuse_all(&r, copy);
    bool waits = free_waits(r);
    if (waits)
        gate_open();
    MPI_Comm_free(&freed);
    refuse_all(&r, MPI_COMM_NULL);
    if (!waits)
        gate_open();
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

/* --- MPI_Startall ------------------------------------------------------------------------------*/

struct four {
    MPI_Request r[4]; /* sum, receive, send, barrier */
    int from_left, to_right;
};

static void four_init(struct four *f)
{
    f->r[0] = sum_init();
    MPI_Recv_init(&f->from_left, 1, MPI_INT, left(), DATA, MPI_COMM_WORLD, &f->r[1]);
    MPI_Send_init(&f->to_right, 1, MPI_INT, right(), DATA, MPI_COMM_WORLD, &f->r[2]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &f->r[3]);
}

static void four_run(struct four *f, int factor)
{
    MPI_Status s[4];
    f->from_left = one_out = -1;
    f->to_right = one_in = factor * test_rank;
    spoil(s, 4);
    OK(MPI_Startall(4, f->r));
    OK(MPI_Waitall(4, f->r, s));
    CHECK(one_out == factor * sum_of_ranks() && f->from_left == factor * left());
    CHECK(is_empty(&s[0]) && is_message(&s[1], left(), DATA) && is_empty(&s[3]));
    for (int i = 0; i < 4; i++)
        CHECK(f->r[i] != MPI_REQUEST_NULL);
}

static bool names_entry(int error, int at)
{
    char text[MPI_MAX_ERROR_STRING], name[32];
    int length;
    MPI_Error_string(error, text, &length);
    snprintf(name, sizeof name, "array_of_requests[%d] ", at);
    return strstr(text, name) != NULL;
}

/* With a bad entry among them nothing is started: all are as inactive as before. */
static void four_bad(struct four *f, MPI_Request bad, int class, MPI_Comm on)
{
    for (int at = 0; at < 5; at++) {
        MPI_Request r[5], before[5];
        MPI_Status s[4];
        int flag = 0;
        for (int i = 0; i < 5; i++)
            before[i] = r[i] = i == at ? bad : f->r[i - (i > at)];
        int error = MPI_Startall(5, r), named = bad == f->r[3] ? 4 : at; /* the second of two */
        CHECK(class_of(error) == class && (bad == MPI_REQUEST_NULL || names_entry(error, named)));
        CHECK(raised(class, on));
        CHECK(memcmp(r, before, sizeof r) == 0);
        CHECK(MPI_Testall(4, f->r, &flag, s) == MPI_SUCCESS && flag);
        for (int i = 0; flag && i < 4; i++)
            CHECK(is_empty(&s[i]));
    }
}

TEST(startall)
{
    struct four f;
    MPI_Request p, r;
    four_init(&f);
    for (int i = 1; i <= 5; i++)
        four_run(&f, i);

    MPI_Barrier_init(comm, MPI_INFO_NULL, &p);
    gate_wait();
    MPI_Start(&p);
    four_bad(&f, p, MPI_ERR_REQUEST, comm);
    gate_open();
    MPI_Wait(&p, MPI_STATUS_IGNORE);
    gate_wait();
    MPI_Ibarrier(comm, &r);
    four_bad(&f, r, MPI_ERR_REQUEST, comm);
    gate_open();
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    four_bad(&f, f.r[3], MPI_ERR_REQUEST, comm); /* twice the same */
    if (!IS_MPICH_43)
        four_bad(&f, MPI_REQUEST_NULL, MPI_ERR_REQUEST, MPI_COMM_WORLD);

    four_run(&f, 6);
    MPI_Request_free(&p);
    for (int i = 0; i < 4; i++)
        OK(MPI_Request_free(&f.r[i]));
}

/* A buffered send is complete before its message has left. Where the MPI (Open MPI does) gives the
 * next start another handle, the program must see that one: the old one dies with its message.
 * (What such messages of Open MPI 4.1.4 contain is wrong without nbcshim too.) */
TEST(startall_may_change_handles)
{
    enum { STARTS = 2, BIG = 100000 };
    int *big = calloc(BIG, sizeof *big);
    int room = STARTS * (BIG * (int)sizeof *big + MPI_BSEND_OVERHEAD);
    void *buffer = test_alloc(room);
    MPI_Request r[2];
    MPI_Buffer_attach(buffer, room);
    MPI_Bsend_init(big, BIG, MPI_INT, right(), DATA, MPI_COMM_WORLD, &r[0]);
    r[1] = sum_init();
    for (int round = 0; test_size > 1 && round < 3; round++) {
        for (int i = 0; i < STARTS; i++) {
            OK(MPI_Startall(2, r));
            OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
            EXPECT_INT(one_out, sum_of_ranks());
        }
        for (int i = 0; i < STARTS; i++)
            MPI_Recv(big, BIG, MPI_INT, left(), DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < 2; i++)
        OK(MPI_Request_free(&r[i]));
    MPI_Buffer_detach(&buffer, &room);
    free(buffer);
    free(big);
}

/* A message of the program's is cancelled, or freed, while one of ours is pending. */
TEST(cancel_theirs)
{
    MPI_Request ours = sum_start(), theirs;
    MPI_Status status;
    int flag = 0, x;
    MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, DATA, MPI_COMM_SELF, &theirs);
    OK(MPI_Cancel(&theirs));
    CHECK(MPI_Wait(&theirs, &status) == MPI_SUCCESS && theirs == MPI_REQUEST_NULL);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    MPI_Recv_init(&x, 1, MPI_INT, 0, DATA, MPI_COMM_SELF, &theirs);
    CHECK(MPI_Request_free(&theirs) == MPI_SUCCESS && theirs == MPI_REQUEST_NULL);
    CHECK(MPI_Wait(&ours, MPI_STATUS_IGNORE) == MPI_SUCCESS && one_out == sum_of_ranks());
}

static void expect_algorithm(MPI_Request r, const char *name, long long segment, const char *when)
{
    long long told = -1;
    const char *known = nbcshim_algorithm(r, &told);
    EXPECT(known && strcmp(known, name) == 0 && told == segment,
           "%s: the algorithm is %s with %lld, not %s with %lld", when, known ? known : "unknown",
           told, name, segment);
    EXPECT(nbcshim_algorithm(r, NULL) == known, "%s: another without a segment", when);
}

/* A broadcast without hints does not run "chain": no rule names it for so few bytes. */
static void expect_rules(MPI_Comm c)
{
    int data[4] = {0}, flag = 0;
    long long segment = -1;
    MPI_Request r;
    MPI_Ibcast(data, 4, MPI_INT, 0, c, &r);
    const char *name = nbcshim_algorithm(r, &segment);
    EXPECT(name && strcmp(name, "chain") != 0 && segment == 0, "by the rules: %s",
           name ? name : "unknown");
    while (!flag)
        MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

TEST(algorithm_of_a_request)
{
    int data[4] = {0};
    long long segment = -1;
    MPI_Request r, plain;
    if (test_native)
        return;
    MPI_Info info = test_info("nbcshim_algorithm", "chain");
    MPI_Info_set(info, "nbcshim_segment_size", "4");
    MPI_Bcast_init(data, 4, MPI_INT, 0, comm, info, &r);
    MPI_Info_free(&info);
    expect_algorithm(r, "chain", 4, "inactive");
    MPI_Start(&r);
    expect_algorithm(r, "chain", 4, "active");
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Recv_init(data, 1, MPI_INT, 0, 0, comm, &plain);
    EXPECT(!nbcshim_algorithm(plain, &segment) && segment == -1, "that of a receive");
    EXPECT(!nbcshim_algorithm(MPI_REQUEST_NULL, &segment) && segment == -1, "that of none");
    MPI_Request_free(&plain);
    expect_rules(comm);
    MPI_Request_free(&r);
}

#if MPI_VERSION >= 3
static void expect_hinted(MPI_Comm c, const char *name, long long segment, const char *when)
{
    MPI_Request r;
    int x = 0, sum;
    MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c, &r);
    expect_algorithm(r, name, segment, when);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* MPI-4.1 7.4.4: a hint in use. */
static bool shown(MPI_Comm c, const char *key, char value[MPI_MAX_INFO_VAL + 1])
{
    MPI_Info info;
    int found;
    MPI_Comm_get_info(c, &info);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    MPI_Info_free(&info);
    return found;
}

/* wanted: NULL if it is none. */
static void expect_hint(MPI_Comm c, const char *key, const char *wanted)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    bool found = shown(c, key, value);
    EXPECT(found == !!wanted && (!found || strcmp(value, wanted) == 0),
           "MPI_Comm_get_info shows %s %s", key, found ? value : "not at all");
}

static void expect_shown(MPI_Comm c, const char *algorithms, const char *segment)
{
    expect_hint(c, "nbcshim_algorithm", algorithms);
    expect_hint(c, "nbcshim_segment_size", segment);
}

/* A duplicate with a hint. */
static MPI_Comm with_hint(const char *key, const char *value)
{
    MPI_Comm made;
    MPI_Info info = test_info(key, value);
    MPI_Comm_dup_with_info(comm, info, &made);
    MPI_Info_free(&info);
    return made;
}

/* The hint that other tests see at work. */
static void order_of_a_communicator(void)
{
    MPI_Comm ordered = with_hint("nbcshim_reduction_order", "tree");
    expect_hint(ordered, "nbcshim_reduction_order", "tree");
    MPI_Comm_free(&ordered);
}

/* Two hints that are longer together than a value may be on Open MPI: as many whole words are shown
 * as have room, in the order of the collectives. */
static void more_hints_than_are_shown(void)
{
    static const char first[] = "bcast:binomial,scatter:binomial,allgather:recursive_doubling,"
                                "allgatherv:recursive_doubling,allreduce:recursive_doubling";
    static const char last[] =
        "reduce_scatter_block:recursive_halving,scan:recursive_doubling,neighbor_allgather:linear,"
        "neighbor_allgatherv:linear,neighbor_alltoallv:linear,neighbor_alltoallw:linear";
    char all[sizeof first + sizeof last], value[MPI_MAX_INFO_VAL + 1] = "";
    MPI_Comm hinted = with_hint("nbcshim_algorithm", first);
    MPI_Info info = test_info("nbcshim_algorithm", last);
    MPI_Comm_set_info(hinted, info);
    MPI_Info_free(&info);
    snprintf(all, sizeof all, "%s,%s", first, last);
    bool found = shown(hinted, "nbcshim_algorithm", value);
    size_t n = strlen(value);
    EXPECT(found && strncmp(all, value, n) == 0 && (all[n] == ',' || !all[n]) &&
               (sizeof all > MPI_MAX_INFO_VAL ? n > MPI_MAX_INFO_VAL - 40 : !all[n]),
           "of many hints are shown: %s", value);
    MPI_Comm_free(&hinted);
}
#endif

/* The hints of a communicator come with it, or are set later; MPI_Comm_dup copies none. */
TEST(algorithm_of_a_communicator)
{
#if MPI_VERSION >= 3
    MPI_Comm hinted, copy, set;
    if (test_native)
        return;
    MPI_Info info = test_info("nbcshim_algorithm", "allreduce:ring,bcast:chain");
    MPI_Info_set(info, "nbcshim_segment_size", "8");
    MPI_Comm_dup_with_info(comm, info, &hinted);
    MPI_Comm_dup(hinted, &copy);
    MPI_Comm_dup(comm, &set);
    MPI_Comm_set_info(set, info);
    expect_hinted(hinted, "ring", 8, "made with hints");
    expect_hinted(set, "ring", 8, "hints set");
    expect_shown(set, "bcast:chain,allreduce:ring", "8");
    expect_shown(copy, NULL, NULL);
    MPI_Info_set(info, "nbcshim_algorithm", "allreduce:recursive_doubling");
    MPI_Info_delete(info, "nbcshim_segment_size");
    MPI_Comm_set_info(set, info);
    expect_hinted(set, "recursive_doubling", 8, "one hint set again");
    expect_shown(set, "bcast:chain,allreduce:recursive_doubling", "8");
    MPI_Info_set(info, "nbcshim_algorithm", "nothing,ring");
    MPI_Comm_set_info(set, info);
    expect_shown(set, "bcast:chain,ring", "8");
    if (test_size > 1) {
        MPI_Info_set(info, "nbcshim_algorithm", "allreduce:reduce_bcast");
        MPI_Comm_set_info(set, info);
        expect_hinted(set, "reduce_bcast", 8, "after a name for several");
    }
    MPI_Info_free(&info);
    expect_rules(copy);
    order_of_a_communicator();
    more_hints_than_are_shown();
    MPI_Comm_free(&hinted);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&set);
#endif
}

AROUND_TESTS(observe_begin, observe_end)
