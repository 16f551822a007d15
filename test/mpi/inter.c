/* SPDX-License-Identifier: MIT */
/* Collectives between the two groups of an intercommunicator: all 15, nonblocking and persistent,
 * groups of different sizes, every rank of either group as root, every algorithm, sizes from
 * nothing to large. Compared with the definition, byte by byte. */
#include "batch.h"
#include "library.h"

/* Hints; a name that a collective doesn't have is as good as none. */
static const char *const algorithms[] = {NULL,
                                         "inter_linear",
                                         "inter_throttled",
                                         "inter_dissemination",
                                         "inter_recursive_doubling",
                                         "inter_bounce"};
enum { NALGORITHMS = sizeof algorithms / sizeof *algorithms };

static const int sizes[] = {0, 1, 5, 300, 3000};
enum { NSIZES = sizeof sizes / sizeof *sizes };

/* Ranks of the world below `split` are the first group. Processes have the numbers of the world. */
static struct group *make_groups(int split)
{
    bool second = test_rank >= split;
    MPI_Comm local, comm;
    MPI_Comm_split(MPI_COMM_WORLD, second, test_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, second ? 0 : split, 7, &comm);
    MPI_Comm_free(&local);
    return group_new(comm);
}

/* Most operators are such that only the order of ranks is right. */
static struct spec make_spec(enum coll coll, const struct group *g, int root, int size, int serial)
{
    struct spec s = spec_random(coll, g, mix_in(mix_in(test_seed, coll), serial), 1);
    const struct opdef *op = &opdefs[NOPS - 1 - serial % 3];
    s.root = root;
    if (coll_reduces(coll) && serial % 4) {
        s.op = op;
        s.style.kind = &kinds[op->kind];
    }
    s.count = s.style.fine ? size : (size + SEXTET - 1) / SEXTET;
    return s;
}

static void try_collective(const struct group *g, enum coll coll, enum mode mode)
{
    struct batch b = {.mode = mode, .shuffled = true};
    int nroots = coll_rooted(coll) ? test_size : 1, serial = 0;
    for (int root = 0; root < nroots; root++)
        for (int i = 0; i < (coll == BARRIER ? 1 : NSIZES); i++)
            for (int a = 0; a < (mode == PERSISTENT ? NALGORITHMS : 1); a++) {
                struct spec s = make_spec(coll, g, root, sizes[i], serial++);
                s.algorithm = algorithms[a];
                batch_add(&b, &s);
            }
    batch_run(&b);
}

/* A rank leaves a barrier when all of the other group have entered: not while `late` stays away,
 * which it does until all of the other group have looked. */
static void try_late(const struct group *g, int late, const char *algorithm, bool persistent)
{
    enum { LOOKS = 50, LOOKED = 9 };
    bool with_late = late >= g->first && late < g->first + g->size;
    int done = 0;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Request request;
    if (algorithm) {
        info = test_info("nbcshim_algorithm", algorithm);
    }
    if (persistent)
        MPI_Barrier_init(g->comm, info, &request);
    for (int i = 0; test_rank == late && i < g->remote; i++)
        MPI_Recv(NULL, 0, MPI_INT, g->first_peer + i, LOOKED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (persistent)
        MPI_Start(&request);
    else
        MPI_Ibarrier(g->comm, &request);
    if (!with_late) {
        for (int i = 0; i < LOOKS && !done; i++)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        EXPECT(!done, "barrier %s, groups of %d and %d: left before world rank %d entered",
               algorithm ? algorithm : "", g->size, g->remote, late);
        MPI_Send(NULL, 0, MPI_INT, late, LOOKED, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent)
        MPI_Request_free(&request);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
}

/* nbcshim has no record of a communicator that is made without it. The leaders of the two groups
 * must tell each other so. unknown: 1 for the first group, 2 for the second, 3 for both. */
static void try_unknown(int unknown)
{
    int (*dup)(MPI_Comm, MPI_Comm *) =
        (int (*)(MPI_Comm, MPI_Comm *))library_below("PMPI_Comm_dup");
    MPI_Comm half, local, inter;
    int side = test_rank > 0, remote, one = 1, sum = 0;
    EXPECT(dup, "there is no PMPI_Comm_dup");
    MPI_Comm_split(MPI_COMM_WORLD, side, test_rank, &half);
    (unknown >> side & 1 ? dup : MPI_Comm_dup)(half, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, !side, 7, &inter);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    EXPECT_INT(sum, remote, "unknown %d", unknown);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    MPI_Comm_free(&half);
}

static void try_groups(struct group *g)
{
    for (int c = 0; c < NINTRA; c++) {
        if (c == SCAN || c == EXSCAN)
            continue;
        try_collective(g, (enum coll)c, NONBLOCKING);
        if (test_has_persistent())
            try_collective(g, (enum coll)c, PERSISTENT);
    }
    for (int late = 0; late < test_size; late++) {
        try_late(g, late, NULL, false);
        for (int a = 0; a < NALGORITHMS && test_has_persistent(); a++)
            try_late(g, late, algorithms[a], true);
    }
    group_delete(g);
}

TEST(groups)
{
    for (int split = 1; split < test_size; split++)
        if (test_size <= 5 || split == 1 || split == test_size / 2 || split == test_size - 1 ||
            test_soak)
            try_groups(make_groups(split));
}

TEST(unknown, .wanted = test_has_peers)
{
    for (int unknown = 0; unknown < 4; unknown++)
        try_unknown(unknown);
}

AROUND_TESTS(kinds_init, kinds_finish)
