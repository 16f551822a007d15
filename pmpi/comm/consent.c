/* SPDX-License-Identifier: MIT */
#include "comm/consent.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alike.h"
#include "base/build.h"
#include "base/roster.h"
#include "base/settings.h"
#include "comm/agree.h"

/* --- the digests ------------------------------------------------------------------------------ */

/* The words of all ranks are combined by AND. Two words tell whether a digest is the same on all:
 * the AND of the digests and that of their complements are then each other's complement. */
enum { BUILD, NO_BUILD, SETTINGS, NO_SETTINGS, FLAGS, NWORDS = 8 };

/* A flag of the result is set if it is set on all ranks. */
enum { WANTS_NOTHING = 1, HAS_NOT_CALLED = 2, HAS_STATS = 4 };

int nbc_consent_ask(MPI_Comm comm, bool wants, bool called, struct nbc_consent *all)
{
    struct nbc_alike alike;
    uint64_t mine[NWORDS] = {0}, word[NWORDS];
    nbc_alike_describe(&alike);
    mine[BUILD] = nbc_build_digest();
    mine[NO_BUILD] = ~mine[BUILD];
    mine[SETTINGS] = nbc_alike_digest(&alike);
    mine[NO_SETTINGS] = ~mine[SETTINGS];
    mine[FLAGS] = (wants ? 0 : WANTS_NOTHING) | (called ? 0 : HAS_NOT_CALLED) |
                  (nbc_settings.stats ? HAS_STATS : 0);
    int error = nbc_agree_and(comm, mine, word, NWORDS);
    if (error)
        return error;
    *all = (struct nbc_consent){
        .any_wants = !(word[FLAGS] & WANTS_NOTHING),
        .any_called = !(word[FLAGS] & HAS_NOT_CALLED),
        .all_have_stats = word[FLAGS] & HAS_STATS,
        .same_build = word[BUILD] == ~word[NO_BUILD],
        .same_settings = word[SETTINGS] == ~word[NO_SETTINGS],
    };
    return MPI_SUCCESS;
}

/* --- who differs ------------------------------------------------------------------------------ */

/* What a rank states about itself. */
enum { TEXT_LENGTH = 64 };
struct statement {
    struct nbc_host host;
    char text[TEXT_LENGTH];
};

/* The ranks of a communicator, with their statements. */
struct assembly {
    MPI_Comm comm;
    int rank, size;
    struct statement *says;
    struct nbc_host *hosts;
    int *group; /* of ranks that state the same; numbered by their first rank */
};

static void assembly_end(struct assembly *a)
{
    free(a->says);
    free(a->hosts);
    free(a->group);
}

static int assembly_begin(struct assembly *a, MPI_Comm comm)
{
    *a = (struct assembly){.comm = comm};
    NEXT(Comm_rank)(comm, &a->rank);
    NEXT(Comm_size)(comm, &a->size);
    a->says = calloc((size_t)a->size, sizeof *a->says);
    a->hosts = calloc((size_t)a->size, sizeof *a->hosts);
    a->group = calloc((size_t)a->size, sizeof *a->group);
    if (a->says && a->hosts && a->group)
        return MPI_SUCCESS;
    /* unreached below: no memory */
    assembly_end(a);
    return MPI_ERR_NO_MEM;
}

/* Each rank states a text. */
static int assembly_hear(struct assembly *a, const char *text)
{
    struct statement mine;
    memset(&mine, 0, sizeof mine);
    nbc_host_own(&mine.host);
    strncpy(mine.text, text, sizeof mine.text - 1);
    int error =
        NEXT(Allgather)(&mine, sizeof mine, MPI_BYTE, a->says, sizeof mine, MPI_BYTE, a->comm);
    for (int rank = 0; rank < a->size && !error; rank++)
        a->hosts[rank] = a->says[rank].host;
    return error;
}

/* Appends "TEXT on ranks 0-2 (node1), TEXT on rank 3 (node2)", for at most MOST groups. */
static void put_groups(struct nbc_line *l, const struct assembly *a)
{
    enum { MOST = 4 };
    int n = 0;
    for (int rank = 0; rank < a->size; rank++) {
        if (a->group[rank] != rank)
            continue;
        if (n == MOST) {
            /* unreached below: more ranks or hosts than tests have */
            nbc_line_put(l, ", others on other ranks");
            return;
        }
        nbc_line_put(l, "%s%s on ", n++ ? ", " : "", a->says[rank].text);
        nbc_line_put_ranks(l, a->size, a->group, rank, a->hosts);
    }
}

/* --- builds ----------------------------------------------------------------------------------- */

static void group_by_text(struct assembly *a)
{
    for (int rank = 0; rank < a->size; rank++) {
        int first = 0;
        while (strcmp(a->says[first].text, a->says[rank].text) != 0)
            first++;
        a->group[rank] = first;
    }
}

/* Ends the job. The others wait in a call in which rank 0 does not take part. */
static int end_job(const struct assembly *a)
{
    int nothing = 0;
    return a->rank == 0 ? nbc_line_abort(a->comm) : NEXT(Bcast)(&nothing, 1, MPI_INT, 0, a->comm);
}

static int refuse(MPI_Comm comm)
{
    struct assembly a;
    struct nbc_line l = {.n = 0};
    int error = assembly_begin(&a, comm);
    if (error)
        /* unreached: no memory */
        return error;
    error = assembly_hear(&a, nbc_build());
    if (!error && a.rank == 0) {
        group_by_text(&a);
        nbc_line_put(&l, "nbcshim: ranks have different builds of nbcshim: ");
        put_groups(&l, &a);
        nbc_line_put(&l, ". The job ends: all its ranks need the same");
        nbc_line_print(&l);
    }
    if (!error)
        error = end_job(&a);
    /* unreached below: in a process that writes no counts */
    assembly_end(&a);
    return error;
}

/* --- settings --------------------------------------------------------------------------------- */

/* Groups the ranks by the value of a setting. Returns whether two differ. */
static bool group_by_value(struct assembly *a, const struct nbc_alike *all, int setting)
{
    bool differ = false;
    for (int rank = 0; rank < a->size; rank++) {
        int first = 0;
        while (all[first].value[setting] != all[rank].value[setting])
            first++;
        a->group[rank] = first;
        differ |= first != 0;
    }
    return differ;
}

/* What a rank has set: a file by the end of its name. */
static const char *given(const char *variable)
{
    enum { MOST = TEXT_LENGTH - 1 };
    const char *value = getenv(variable);
    size_t n = value ? strlen(value) : 0;
    if (n == 0)
        return "not set";
    return value + (n > MOST ? n - MOST : 0);
}

/* What is done with the settings that differ. */
enum purpose { SETTLE, END, REPORT };

/* Appends what is done with one of them. */
static void put_outcome(struct nbc_line *l, const struct assembly *a, const struct nbc_alike *all,
                        int setting, enum purpose purpose)
{
    const char *outcome = purpose == END
                              ? "the job ends, since a session has created communicators already"
                              : "the MPI itself runs the collectives on their communicator";
    int rank = 0;
    if (purpose == SETTLE)
        rank = nbc_alike_settle(setting, a->size, all, &outcome);
    if (outcome)
        nbc_line_put(l, "; %s", outcome);
    else
        nbc_line_put(l, "; all ranks take %s", a->says[rank].text);
}

static int settle_one(struct assembly *a, const struct nbc_alike *all, int setting,
                      enum purpose purpose)
{
    struct nbc_alike_name room;
    struct nbc_line l = {.n = 0};
    const char *variable = nbc_alike_variable(setting, &room);
    int error = assembly_hear(a, given(variable));
    if (error)
        /* unreached: the MPI fails */
        return error;
    nbc_line_put(&l, "nbcshim: %s differs: ", variable);
    put_groups(&l, a);
    put_outcome(&l, a, all, setting, purpose);
    if (a->rank == 0)
        nbc_line_print(&l);
    return MPI_SUCCESS;
}

static int settle_all(struct assembly *a, struct nbc_alike *all, enum purpose purpose)
{
    struct nbc_alike mine;
    nbc_alike_describe(&mine);
    int error = NEXT(Allgather)(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, a->comm);
    for (int setting = 0; setting < NBC_ALIKE && !error; setting++)
        if (group_by_value(a, all, setting))
            error = settle_one(a, all, setting, purpose);
    return error;
}

static int settle(MPI_Comm comm, enum purpose purpose)
{
    struct assembly a;
    int error = assembly_begin(&a, comm);
    if (error)
        /* unreached: the MPI fails */
        return error;
    struct nbc_alike *all = calloc((size_t)a.size, sizeof *all);
    error = all ? settle_all(&a, all, purpose) : MPI_ERR_NO_MEM;
    if (!error && purpose == END)
        error = end_job(&a);
    free(all);
    assembly_end(&a);
    /* unreached: the MPI fails */
    return error;
}

int nbc_consent_settle(MPI_Comm comm, bool in_use)
{
    bool any;
    int error = nbc_agree_any(comm, in_use, &any);
    return error ? error : settle(comm, any ? END : SETTLE);
}

static int report(MPI_Comm comm)
{
    return settle(comm, REPORT);
}

/* --- also between two groups ------------------------------------------------------------------ */

/* Calls the function for all ranks of both groups of an intercommunicator. */
static int with_all(MPI_Comm comm, int (*function)(MPI_Comm comm))
{
    int inter;
    MPI_Comm both;
    NEXT(Comm_test_inter)(comm, &inter);
    if (!inter)
        return function(comm);
    /* unreached below: another build, as in MPI_Init */
    int error = NEXT(Intercomm_merge)(comm, false, &both);
    if (error)
        return error;
    error = function(both);
    NEXT(Comm_free)(&both);
    return error;
}

int nbc_consent_refuse(MPI_Comm comm)
{
    return with_all(comm, refuse);
}

int nbc_consent_report(MPI_Comm comm)
{
    return with_all(comm, report);
}
