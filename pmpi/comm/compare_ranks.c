/* SPDX-License-Identifier: MIT */
#include "comm/compare_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"

#include "base/settings.h"
#include "base/state.h"
#include "base/tag_space.h"
#include "base/tuning.h"
#include "comm/rank_lines.h"

#include "fingerprint.h"
#include "hash.h"
#include "ranges.h"
#include "rules.h"

/* --- what ranks have -------------------------------------------------------------------------- */

/* The checksum is one of the sources and of the functions that the MPI has, not of the binary:
 * builds for different processors, and the static and the shared library, are alike. */
static const char build[] = PACKAGE_VERSION ", sources " NBC_FINGERPRINT;

/* The settings, each a number: X(NAME, variable, outcome, mine, take). outcome: what the line says
 * that reports a difference. All ranks take 0 then, with which the variable is as if it were not
 * set. NULL: "all ranks take" the largest value. mine: the number of this rank, after the tuning
 * file has been read. take: makes its setting that of the number v. Those before CHECK do not
 * concern two jobs. "auto" and "on" of NBCSHIM differ only in a program that does not refer to a
 * collective, and there they go together; and of NBCSHIM the program has it decided. */
/* clang-format off */
#define SETTINGS(X) \
    X(MODE, "NBCSHIM", "nbcshim is active on all ranks", s->mode == NBC_MODE_OFF, (void)v) \
    X(BLOCKING, "NBCSHIM_BLOCKING", NULL, s->blocking, s->blocking = (enum nbc_blocking)v) \
    X(DYNAMIC, "NBCSHIM_DYNAMIC", NULL, !s->dynamic, s->dynamic = !v) \
    X(HOOK, "NBCSHIM_HOOK", NULL, s->hook, s->hook = (enum nbc_hook)v) \
    X(TRACE, "NBCSHIM_TRACE", ignored, s->trace != NULL, s->trace = v ? s->trace : NULL) \
    X(TEST, "NBCSHIM_TEST", ignored, nbc_hash_bytes(&s->test, sizeof s->test), \
      s->test = v ? s->test : nbc_test_defaults) \
    X(CHECK, "NBCSHIM_CHECK", NULL, s->check, s->check = v) \
    X(ORDER, "NBCSHIM_REDUCTION_ORDER", NULL, s->order, s->order = (enum nbc_order)v) \
    X(SEGMENT_SIZE, "NBCSHIM_SEGMENT_SIZE", ignored, s->segment_size, s->segment_size = v) \
    X(TUNING, "NBCSHIM_TUNING", "all ranks ignore it, since they have read different rules", \
      nbc_rules_hash(nbc_tuning), v ? (void)0 : nbc_tuning_drop())
/* clang-format on */

/* Those from ALGORITHM on are NBCSHIM_ALGORITHM_…, by collective. */
#define NAME(name, variable, outcome, mine, take) name,
enum { SETTINGS(NAME) ALGORITHM, NSETTINGS = ALGORITHM + NBC_NCOLLS };

static const char ignored[] = "all ranks ignore it";

#define VARIABLE(name, variable, outcome, mine, take) {variable, outcome},
static const struct variable {
    const char *name, *outcome;
} variables[ALGORITHM + 1] = {SETTINGS(VARIABLE){NULL, ignored}};

static void describe(int64_t value[NSETTINGS])
{
    const struct nbc_settings *s = &nbc_settings;
#define MINE(name, variable, outcome, mine, take) value[name] = (int64_t)(mine);
    SETTINGS(MINE)
    for (int i = 0; i < NBC_NCOLLS; i++)
        value[ALGORITHM + i] = s->algorithm[i] ? s->algorithm[i] - nbc_algs + 1 : 0;
}

/* Makes the settings of this rank those. */
static void adopt(const int64_t value[NSETTINGS])
{
    struct nbc_settings *s = &nbc_settings;
    int64_t v;
#define TAKE(name, variable, outcome, mine, take) v = value[name], take;
    SETTINGS(TAKE)
    for (int i = 0; i < NBC_NCOLLS; i++)
        if (!value[ALGORITHM + i])
            s->algorithm[i] = NULL;
}

/* Two jobs also compare what has become of the settings that do not concern them. */
static uint64_t settings_digest(bool of_two_jobs)
{
    int64_t value[NSETTINGS];
    describe(value);
    if (!of_two_jobs)
        return nbc_hash_bytes(value, sizeof value);
    const uint64_t settled[] = {nbc_native_blocking,  nbc_referenced_large,
                                nbc_offloaded,        nbc_hooked,
                                (uint64_t)nbc_tag_ub, (uint64_t)nbc_settings.test.nodes};
    return nbc_hash_bytes(value + CHECK, sizeof value - CHECK * sizeof *value) ^
           nbc_hash_bytes(settled, sizeof settled);
}

/* --- the exchange ----------------------------------------------------------------------------- */

/* On an intercommunicator a reduction returns the result of the remote group. A second reduction
 * returns that of this group. */
int nbc_agree_and(MPI_Comm comm, const uint64_t *mine, uint64_t *all, int words)
{
    int inter;
    uint64_t local[NBC_RANGE_WORDS];
    void *in = (void *)(uintptr_t)mine;
    NEXT(Comm_test_inter)(comm, &inter);
    int error = NEXT(Allreduce)(in, all, words, MPI_UNSIGNED_LONG_LONG, MPI_BAND, comm);
    if (error || !inter)
        return error;
    error = NEXT(Allreduce)(all, local, words, MPI_UNSIGNED_LONG_LONG, MPI_BAND, comm);
    for (int i = 0; i < words && !error; i++)
        all[i] &= local[i];
    return error;
}

/* The words of all ranks are combined by AND. Two words tell whether a digest is the same on all:
 * the AND of the digests and that of their complements are then each other's complement. */
enum { BUILD, NO_BUILD, SETTINGS, NO_SETTINGS, SAYS_NOT, NO_LARGE, OFFLOADED, NWORDS = 8 };

int nbc_compare_ranks(MPI_Comm comm, uint32_t says, uint32_t large, uint32_t offloaded,
                      struct nbc_comparison *all)
{
    uint64_t mine[NWORDS] = {0}, word[NWORDS];
    mine[BUILD] = nbc_hash_bytes(build, sizeof build - 1);
    mine[NO_BUILD] = ~mine[BUILD];
    mine[SETTINGS] = settings_digest(says & NBC_OF_TWO_JOBS);
    mine[NO_SETTINGS] = ~mine[SETTINGS];
    mine[SAYS_NOT] = ~says;
    mine[NO_LARGE] = ~large;
    mine[OFFLOADED] = offloaded;
    int error = nbc_agree_and(comm, mine, word, NWORDS);
    *all = (struct nbc_comparison){
        .said = ~(uint32_t)word[SAYS_NOT],
        .large = ~(uint32_t)word[NO_LARGE],
        .offloaded = (uint32_t)word[OFFLOADED],
        .same_build = word[BUILD] == ~word[NO_BUILD],
        .same_settings = word[SETTINGS] == ~word[NO_SETTINGS],
    };
    return error;
}

/* --- who differs ------------------------------------------------------------------------------ */

/* The ranks of a communicator, with what they state. */
struct assembly {
    MPI_Comm comm;
    int rank, size;
    struct nbc_rank *ranks;
};

/* Each rank states a text, which is cut off at its beginning, and a value. */
static int hear(struct assembly *a, const char *text, int64_t value)
{
    struct nbc_rank mine = {.value = value};
    size_t n = strlen(text), most = sizeof mine.text - 1;
    nbc_host_own(mine.host);
    strncpy(mine.text, text + (n > most ? n - most : 0), most);
    return NEXT(Allgather)(&mine, sizeof mine, MPI_BYTE, a->ranks, sizeof mine, MPI_BYTE, a->comm);
}

/* The first rank that has the value. */
static int first_with(const struct assembly *a, int64_t value)
{
    int rank = 0;
    while (a->ranks[rank].value != value)
        rank++;
    return rank;
}

/* Appends "TEXT on ranks 0-2 (node1), TEXT on rank 3 (node2)", for at most MOST values. */
static void put_groups(struct nbc_line *l, const struct assembly *a)
{
    enum { MOST = 4 };
    int n = 0;
    for (int rank = 0; rank < a->size; rank++) {
        const struct nbc_rank *r = &a->ranks[rank];
        if (first_with(a, r->value) != rank)
            continue;
        if (n == MOST) {
            /* unreached below: more ranks or hosts than tests have */
            nbc_line_put(l, ", others on other ranks");
            return;
        }
        nbc_line_put(l, "%s%s on ", n++ ? ", " : "", r->text);
        nbc_line_put_ranks(l, a->size, a->ranks, r->value, true);
    }
}

/* Ends the job. The others wait in a call in which rank 0 does not take part. */
static int end_job(const struct assembly *a)
{
    int nothing = 0;
    if (a->rank == 0)
        nbc_line_abort(a->comm);
    return NEXT(Bcast)(&nothing, 1, MPI_INT, 0, a->comm);
} /* unreached: in a process that writes no counts */

/* Rank 0 writes a line, after each rank has stated a text and a value. outcome: the end of the
 * line; NULL: "all ranks take" the text of those with the value `taken`. */
static int report(struct assembly *a, const char *what, const char *text, int64_t value,
                  const char *outcome, int64_t taken)
{
    struct nbc_line l = {.n = 0};
    int error = hear(a, text, value);
    if (error || a->rank != 0)
        return error;
    nbc_line_put(&l, "nbcshim: %s: ", what);
    put_groups(&l, a);
    if (outcome)
        nbc_line_put(&l, "%s", outcome);
    else
        nbc_line_put(&l, "; all ranks take %s", a->ranks[first_with(a, taken)].text);
    nbc_line_print(&l);
    return MPI_SUCCESS;
}

static int report_setting(struct assembly *a, int setting, int64_t value, const char *outcome,
                          int64_t taken)
{
    char room[NBC_VARIABLE_LENGTH], what[NBC_VARIABLE_LENGTH + 16], end[96];
    const char *name = setting < ALGORITHM ? variables[setting].name
                                           : nbc_algorithm_variable(setting - ALGORITHM, room);
    const char *given = getenv(name);
    snprintf(what, sizeof what, "%s differs", name);
    snprintf(end, sizeof end, "; %s", outcome ? outcome : "");
    return report(a, what, given && *given ? given : "not set", value, outcome ? end : NULL, taken);
}

/* outcome: of all settings that differ; NULL: all ranks take the same. */
static int report_settings(struct assembly *a, const char *outcome)
{
    int64_t mine[NSETTINGS], taken[NSETTINGS];
    /* The smallest values, and the complements of the largest. */
    int64_t bounds[2 * NSETTINGS];
    describe(mine);
    for (int i = 0; i < NSETTINGS; i++) {
        bounds[i] = mine[i];
        bounds[NSETTINGS + i] = ~mine[i];
    }
    int error = NEXT(Allreduce)(MPI_IN_PLACE, bounds, 2 * NSETTINGS, MPI_INT64_T, MPI_MIN, a->comm);
    for (int i = 0; i < NSETTINGS && !error; i++) {
        const struct variable *v = &variables[i < ALGORITHM ? i : ALGORITHM];
        int64_t least = bounds[i], most = ~bounds[NSETTINGS + i];
        taken[i] = v->outcome && least != most ? 0 : most;
        if (least != most)
            error = report_setting(a, i, mine[i], outcome ? outcome : v->outcome, taken[i]);
    }
    if (!error && !outcome)
        adopt(taken);
    return error;
}

static int report_difference(struct assembly *a, const struct nbc_comparison *all, bool settle)
{
    int error;
    if (!all->same_build)
        error = report(a, "ranks have different builds of nbcshim", build,
                       (int64_t)nbc_hash_bytes(build, sizeof build - 1),
                       ". The job ends: all its ranks need the same", 0);
    else if (!settle)
        return report_settings(a, "the MPI itself runs the collectives on their communicator");
    else if (!(all->said & NBC_IN_USE))
        return report_settings(a, NULL);
    else
        error =
            report_settings(a, "the job ends, since a session has created communicators already");
    return error ? error : end_job(a);
}

int nbc_compare_ranks_report(MPI_Comm comm, const struct nbc_comparison *all, bool settle)
{
    struct assembly a = {.comm = comm};
    int inter;
    if (all->same_build && all->same_settings)
        return MPI_SUCCESS;
    NEXT(Comm_test_inter)(comm, &inter);
    int error = inter ? NEXT(Intercomm_merge)(comm, false, &a.comm) : MPI_SUCCESS;
    if (error)
        return error; /* unreached: the MPI fails */
    NEXT(Comm_rank)(a.comm, &a.rank);
    NEXT(Comm_size)(a.comm, &a.size);
    a.ranks = calloc((size_t)a.size, sizeof *a.ranks);
    error = a.ranks ? report_difference(&a, all, settle) : MPI_ERR_NO_MEM;
    free(a.ranks);
    if (inter)
        NEXT(Comm_free)(&a.comm);
    return error;
}
