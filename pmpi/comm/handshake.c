/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "comm/handshake.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "config.h"

#include "base/in_mpi.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/tag_space.h"
#include "below/quirks.h"
#include "comm/rank_lines.h"

#include "fingerprint.h"
#include "hash.h"
#include "ranges.h"
#include "rules.h"
#include "topo.h"

#define WORLD MPI_COMM_WORLD

/* The tags, counted down from the largest one. */
enum { ARRIVED, CALL, ANSWER, NTAGS };

#define SECOND INT64_C(1000000000)

/* The silent ranks are named within so many seconds. */
enum { PATIENCE = 10 };

static struct {
    int rank, size, tag_ub;
    int64_t seen, waited;                   /* see count_time */
    int64_t unit, ends_at;                  /* of `waited`; the line is printed after ten units */
    bool heard, called, told, told_of_stop; /* heard: from the rank before this one */
    int64_t called_at;                      /* of `waited` */
    int ncalls, nanswers;                   /* received */
    struct nbc_rank *ranks; /* on the caller; those that have answered have the value 1 */
} here;

/* --- calls and answers ------------------------------------------------------------------------ */

/* Sends a message that this rank need not wait for. `data` remains unchanged. */
static int send_off(const void *data, int bytes, int rank, int kind)
{
    MPI_Request request;
    int error = NEXT(Isend)((void *)(uintptr_t)data, bytes, MPI_BYTE, rank, here.tag_ub - kind,
                            WORLD, &request);
    return error ? error : NEXT(Request_free)(&request);
}

static int answer_call(int caller)
{
    static char host[NBC_HOST_LENGTH];
    nbc_host_own(host);
    int error = NEXT(Recv)(NULL, 0, MPI_BYTE, caller, here.tag_ub - CALL, WORLD, MPI_STATUS_IGNORE);
    here.ncalls++;
    return error ? error : send_off(host, sizeof host, caller, ANSWER);
}

static int take_answer(int rank)
{
    struct nbc_rank *r = &here.ranks[rank];
    here.nanswers++;
    r->value = 1;
    return NEXT(Recv)(r->host, sizeof r->host, MPI_BYTE, rank, here.tag_ub - ANSWER, WORLD,
                      MPI_STATUS_IGNORE);
}

/* Handles the messages of one kind that have come. */
static int take_all(int kind, int (*take)(int rank))
{
    int error, is_there = true;
    do {
        MPI_Status status;
        error = NEXT(Iprobe)(MPI_ANY_SOURCE, here.tag_ub - kind, WORLD, &is_there, &status);
        if (!error && is_there)
            error = take(status.MPI_SOURCE);
    } while (!error && is_there);
    return error;
}

/* Without memory this rank calls nobody. */
static int call_all(void)
{
    int error = MPI_SUCCESS;
    here.ranks = calloc((size_t)here.size, sizeof *here.ranks);
    if (!here.ranks)
        return MPI_SUCCESS; /* unreached: no memory */
    here.called = true;
    here.called_at = here.waited;
    here.ranks[here.rank].value = 1;
    nbc_host_own(here.ranks[here.rank].host);
    for (int rank = 0; rank < here.size && !error; rank++)
        if (rank != here.rank)
            error = send_off(NULL, 0, rank, CALL);
    return error;
}

/* --- processes that are stopped --------------------------------------------------------------- */

/* Whether a process runs the same program as this one; false for processes of other users. */
static bool is_of_program(const char *process)
{
    struct stat own, other;
    char link[64];
    snprintf(link, sizeof link, "/proc/%.20s/exe", process);
    return !stat("/proc/self/exe", &own) && !stat(link, &other) && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

static bool is_stopped(const char *process)
{
    char path[64], line[128], state = '\0';
    int tracer = 0;
    snprintf(path, sizeof path, "/proc/%.20s/status", process);
    FILE *file = fopen(path, "re");
    if (!file)
        return false; /* unreached: a moment between two threads */
    while (fgets(line, sizeof line, file))
        if (!sscanf(line, "State: %c", &state))
            sscanf(line, "TracerPid: %d", &tracer);
    fclose(file);
    return state == 'T' || state == 't' || tracer;
}

/* Whether a process on this host that runs the same program as this one, this one included, is
 * stopped by a signal or traced by a debugger. False where there is no /proc. */
static bool any_is_stopped(void)
{
    bool found = false;
    DIR *processes = opendir("/proc");
    if (!processes)
        return false; /* unreached: a moment between two threads */
    for (struct dirent *d; !found && (d = readdir(processes)) != NULL;)
        found = *d->d_name >= '1' && *d->d_name <= '9' && is_of_program(d->d_name) &&
                is_stopped(d->d_name);
    closedir(processes);
    return found;
}

/* --- what the caller says --------------------------------------------------------------------- */

static void put_silence(struct nbc_line *l)
{
    nbc_line_put(l, "nbcshim: no answer from ");
    nbc_line_put_ranks(l, here.size, here.ranks, 0, false);
    nbc_line_put(l, " of %d at MPI_Init for %d s", here.size,
                 (int)((here.waited + SECOND / 2) / SECOND));
}

static void put_presence(struct nbc_line *l)
{
    nbc_line_put(l, "nbcshim runs on ");
    nbc_line_put_ranks(l, here.size, here.ranks, 1, true);
}

static bool all_have_answered(void)
{
    return here.nanswers == here.size - 1;
}

static void tell(void)
{
    struct nbc_line l = {.n = 0};
    here.told = true;
    if (all_have_answered() || here.ends_at <= PATIENCE * SECOND) /* it ends now */
        return;
    put_silence(&l);
    nbc_line_put(&l, ": without libnbcshim.so, or late? ");
    put_presence(&l);
    nbc_line_put(&l,
                 nbc_settings.init_timeout ? "; they wait for %d s (NBCSHIM_INIT_TIMEOUT)"
                                           : "; they wait, since NBCSHIM_INIT_TIMEOUT=%d",
                 (int)nbc_settings.init_timeout);
    nbc_line_print(&l);
}

static void end_without(struct nbc_line *l)
{
    nbc_line_put(l, "; ");
    put_presence(l);
    nbc_line_put(l, ". The job ends: all its ranks need the library");
    nbc_line_print(l);
    nbc_line_abort(WORLD);
} /* unreached: in a process that writes no counts */

/* Not while a debugger keeps a rank from arriving, as far as it can be seen from here. */
static void end_after_silence(void)
{
    struct nbc_line l = {.n = 0};
    put_silence(&l);
    if (!any_is_stopped())
        end_without(&l);
    here.ends_at = here.waited + PATIENCE * SECOND;
    nbc_line_put(&l, "; the others wait, since a process of the program is stopped or traced");
    if (!here.told_of_stop)
        nbc_line_print(&l);
    here.told_of_stop = true;
}

/* Ends the job if a silent rank has sent a message of the program. */
static int look_for_the_program(void)
{
    struct nbc_line l = {.n = 0};
    for (int rank = 0; rank < here.size; rank++) {
        MPI_Status status;
        int is_there = false;
        if (here.ranks[rank].value)
            continue;
        int error = NEXT(Iprobe)(rank, MPI_ANY_TAG, WORLD, &is_there, &status);
        if (error)
            return error; /* unreached: the MPI fails */
        if (!is_there || status.MPI_TAG > here.tag_ub - NTAGS)
            continue;
        nbc_line_put(&l, "nbcshim: rank %d of %d runs without nbcshim: it has sent a message", rank,
                     here.size);
        end_without(&l);
    }
    return MPI_SUCCESS;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Counts the time that this process has waited. When it has been stopped, by a debugger or a
 * scheduler that suspends jobs, that time is left out: the other ranks may have been stopped too.
 */
static void count_time(void)
{
    int64_t now = nbc_now(), step = now - here.seen;
    here.waited += step < SECOND ? step : SECOND;
    here.seen = now;
}

/* When this rank calls the others, unless it has heard a call; INT64_MAX: never. */
static int64_t turn(void)
{
    if (here.rank == 0)
        return 8 * here.unit;
    return here.heard ? INT64_MAX
                      : 9 * here.unit - here.unit / 2 * (here.size - here.rank) / here.size;
}

static int attend_as_caller(void)
{
    int error = take_all(ANSWER, take_answer);
    if (error || here.waited < here.called_at + here.unit)
        return error;
    if (here.waited >= here.ends_at && !all_have_answered())
        end_after_silence();
    if (!here.told)
        tell();
    return look_for_the_program();
}

static int attend(void)
{
    int error = take_all(CALL, answer_call);
    if (error)
        return error; /* unreached: the MPI fails */
    if (here.called)
        return attend_as_caller();
    return here.ncalls || here.waited < turn() ? MPI_SUCCESS : call_all();
}

/* Tells one rank that this one has arrived, and waits until another one tells the same. After some
 * time it leaves the processor to ranks that are starting. */
static int exchange(int to, int from, void *unused)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    const int tag = here.tag_ub - ARRIVED;
    int error = send_off(NULL, 0, to, ARRIVED), is_there = false;
    (void)unused;
    while (!error && !(error = NEXT(Iprobe)(from, tag, WORLD, &is_there, MPI_STATUS_IGNORE)) &&
           !is_there) {
        count_time();
        if (here.waited < SECOND / 10)
            sched_yield();
        else if (!(error = attend()))
            nanosleep(&millisecond, NULL);
    }
    here.heard = true;
    return error ? error : NEXT(Recv)(NULL, 0, MPI_BYTE, from, tag, WORLD, MPI_STATUS_IGNORE);
}

/* --- arriving --------------------------------------------------------------------------------- */

static void begin(void)
{
    int *attribute, flag;
    here.seen = nbc_now();
    here.ends_at = nbc_settings.init_timeout ? nbc_settings.init_timeout * SECOND : INT64_MAX;
    here.unit = (here.ends_at < PATIENCE * SECOND ? here.ends_at : PATIENCE * SECOND) / 10;
    here.tag_ub = 32767; /* the least that the standard allows */
    NEXT(Comm_get_attr)(WORLD, MPI_TAG_UB, &attribute, &flag);
    if (flag)
        here.tag_ub = *attribute;
}

int nbc_handshake(void)
{
    NEXT(Comm_rank)(WORLD, &here.rank);
    NEXT(Comm_size)(WORLD, &here.size);
    if (here.size == 1 || NBC_RANKS_ARE_ALIKE)
        return MPI_SUCCESS;
    begin();
    return nbc_disseminate(here.rank, here.size, exchange, NULL);
}

/* Receives the calls and answers that are left over, so that the program never sees one. Called by
 * all ranks if one of them has called. Collective over MPI_COMM_WORLD. */
static int clear(void)
{
    int mine = here.called, callers = 0;
    int error = NEXT(Allreduce)(&mine, &callers, 1, MPI_INT, MPI_SUM, WORLD);
    while (!error && here.ncalls < callers - mine)
        error = take_all(CALL, answer_call);
    while (!error && here.called && !all_have_answered())
        error = take_all(ANSWER, take_answer);
    free(here.ranks);
    here.ranks = NULL;
    here.called = false;
    return error;
}

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
    X(MODE, "NBCSHIM", "; nbcshim is active on all ranks", s->mode == NBC_MODE_OFF, (void)v) \
    X(BLOCKING, "NBCSHIM_BLOCKING", NULL, s->blocking, s->blocking = (enum nbc_blocking)v) \
    X(DYNAMIC, "NBCSHIM_DYNAMIC", NULL, !s->dynamic, s->dynamic = !v) \
    X(HOOK, "NBCSHIM_HOOK", NULL, s->hook, s->hook = (enum nbc_hook)v) \
    X(SHARED_MEMORY, "NBCSHIM_SHARED_MEMORY", NULL, !s->shared_memory, s->shared_memory = !v) \
    X(TRACE, "NBCSHIM_TRACE", ignored, s->trace != NULL, s->trace = v ? s->trace : NULL) \
    X(TEST, "NBCSHIM_TEST", ignored, nbc_hash_bytes(&s->test, sizeof s->test), \
      s->test = v ? s->test : nbc_test_defaults) \
    X(CHECK, "NBCSHIM_CHECK", NULL, s->check, s->check = v) \
    X(ORDER, "NBCSHIM_REDUCTION_ORDER", NULL, s->order, s->order = (enum nbc_order)v) \
    X(SEGMENT_SIZE, "NBCSHIM_SEGMENT_SIZE", ignored, s->segment_size, s->segment_size = v) \
    X(TUNING, "NBCSHIM_TUNING", "; all ranks ignore it, since they have read different rules", \
      nbc_rules_hash(nbc_tuning), v ? (void)0 : nbc_tuning_drop())
/* clang-format on */

/* Those from ALGORITHM on are NBCSHIM_ALGORITHM_…, by collective. */
#define NAME(name, variable, outcome, mine, take) name,
enum { SETTINGS(NAME) ALGORITHM, NSETTINGS = ALGORITHM + NBC_NCOLLS };

static const char ignored[] = "; all ranks ignore it";

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

/* Beside what the caller says of this rank. */
enum { HAS_CALLED = 2 };

int nbc_compare_ranks(MPI_Comm comm, uint32_t says, uint32_t large, uint32_t offloaded,
                      struct nbc_comparison *all)
{
    uint64_t mine[NWORDS] = {0}, word[NWORDS];
    mine[BUILD] = nbc_hash_bytes(build, sizeof build - 1);
    mine[NO_BUILD] = ~mine[BUILD];
    mine[SETTINGS] = settings_digest(says & NBC_OF_TWO_JOBS);
    mine[NO_SETTINGS] = ~mine[SETTINGS];
    mine[SAYS_NOT] = ~(says | (here.called ? HAS_CALLED : 0));
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
    return error || !(all->said & HAS_CALLED) ? error : clear();
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
    nbc_line_put(&l, "%s%s", outcome ? outcome : "; all ranks take ",
                 outcome ? "" : a->ranks[first_with(a, taken)].text);
    nbc_line_print(&l);
    return MPI_SUCCESS;
}

static int report_setting(struct assembly *a, int setting, int64_t value, const char *outcome,
                          int64_t taken)
{
    char room[NBC_VARIABLE_LENGTH], what[NBC_VARIABLE_LENGTH + 16];
    const char *name = setting < ALGORITHM ? variables[setting].name
                                           : nbc_algorithm_variable(setting - ALGORITHM, room);
    const char *given = getenv(name);
    snprintf(what, sizeof what, "%s differs", name);
    return report(a, what, given && *given ? given : "not set", value, outcome, taken);
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
        return report_settings(a, "; the MPI itself runs the collectives on their communicator");
    else if (!(all->said & NBC_IN_USE))
        return report_settings(a, NULL);
    else
        error =
            report_settings(a, "; the job ends, since a session has created communicators already");
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
