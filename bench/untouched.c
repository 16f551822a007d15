/* SPDX-License-Identifier: MIT */
/* Measures what nbcshim costs the calls that are not nonblocking or persistent collectives: by the
 * MPI, by the shim while nothing is pending, and by the shim while one operation is.
 *
 * The MPI is measured only while nothing is pending, since a call of the MPI may progress our
 * operations (a callback in its progress loop). It is measured twice: the ratio of the two says how
 * far the others can be trusted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "meter.h"
#include "routines.h"

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 31

enum kind { BY_MPI, BY_SHIM, PENDING, AGAIN, NKINDS };

static const char *const kind_names[NKINDS] = {"native", "shim", "pending", "again"};

static const char *const mpi_names[] = {
#define COLL(NAME, name, Name) #Name,
#include "colls.def"
#undef COLL
};

enum { MOST_CALLS = 2000 };

/* Of the limits, the second is for a call with an operation pending. */
static const double limits[] = {1.03, 1.10};

/* Ratios to the MPI of a kind, over all cells. */
static struct tally {
    double logarithms;
    int n, above[2];
} tallies[NKINDS];

static MPI_Comm native_comm; /* a communicator that the shim does not know */
static char path[2][4096];   /* of the file of each side */

/* --- one pending operation ---------------------------------------------------------------------*/

/* An operation is pending on every rank: rank 0 waits for rank 1 in the second one, the others wait
 * for rank 0 in the first one. */
static struct {
    MPI_Comm comm[2];
    MPI_Request request[2];
    double in, out[2];
} pending = {.comm = {MPI_COMM_NULL, MPI_COMM_NULL},
             .request = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};

static void pending_make(const struct bench *b)
{
    if (b->size < 2)
        return;
    MPI_Comm_dup(b->comm, &pending.comm[0]);
    MPI_Comm_split(b->comm, b->rank < 2 ? 0 : MPI_UNDEFINED, b->rank, &pending.comm[1]);
}

static void pending_free(void)
{
    for (int i = 0; i < 2; i++)
        if (pending.comm[i] != MPI_COMM_NULL)
            MPI_Comm_free(&pending.comm[i]);
}

static void pending_start(int i)
{
    if (pending.comm[i] != MPI_COMM_NULL)
        shim.Iallreduce(&pending.in, &pending.out[i], 1, MPI_DOUBLE, MPI_SUM, pending.comm[i],
                        &pending.request[i]);
}

static void pending_begin(const struct bench *b)
{
    enum { POLLS = 10 };
    int mine = b->rank == 0, flag;
    pending_start(mine);
    for (int i = 0; i < POLLS; i++)
        shim.Request_get_status(pending.request[mine], &flag, MPI_STATUS_IGNORE);
}

/* Returns whether the operation was pending until now. */
static bool pending_end(const struct bench *b)
{
    int mine = b->rank == 0, flag;
    shim.Request_get_status(pending.request[mine], &flag, MPI_STATUS_IGNORE);
    native.Barrier(native_comm);
    if (b->rank < 2)
        pending_start(!mine);
    shim.Waitall(2, pending.request, (MPI_Status[2]){0});
    return !flag;
}

/* --- a cell ------------------------------------------------------------------------------------*/

struct cell {
    const char *group;
    const struct routine *routine;
    int64_t bytes;
    struct side sides[2]; /* of the MPI and of the shim */
    bool have[NKINDS];
    double sample[NKINDS][MAX_SAMPLES];
    struct quartiles took[NKINDS];
};

static struct side *side_of(struct cell *c, enum kind k)
{
    return &c->sides[k == BY_SHIM || k == PENDING];
}

/* Returns the seconds per call, of the slowest rank. */
static double time_calls(struct side *s, const struct routine *r, int calls)
{
    native.Barrier(native_comm);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        r->run(s);
    double each = (MPI_Wtime() - start) / calls;
    of_slowest(native_comm, &each, 1);
    return each;
}

static void take_sample(struct bench *b, struct cell *c, enum kind k, int i, int calls)
{
    if (k == PENDING)
        pending_begin(b);
    double seconds = time_calls(side_of(c, k), c->routine, calls);
    if (k == PENDING && !pending_end(b)) {
        fprintf(stderr, "nbcbench: %s: nothing was pending on rank %d\n", c->routine->name,
                b->rank);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    c->sample[k][i] = seconds;
}

static int calibrate(struct cell *c, double seconds)
{
    enum { TURNS = 5, FEW = 3 };
    double once = HUGE_VAL;
    for (int i = 0; i < TURNS; i++)
        once = fmin(once, time_calls(&c->sides[0], c->routine, FEW));
    double calls = once > 0 ? seconds / once : MOST_CALLS;
    return calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

/* The kinds take turns, and each is the first in turn. */
static void sample_all(struct bench *b, struct cell *c)
{
    int calls = calibrate(c, 1e-3);
    for (int i = 0; i < b->samples; i++)
        for (int turn = 0; turn < NKINDS; turn++) {
            enum kind k = (i + turn) % NKINDS;
            if (c->have[k])
                take_sample(b, c, k, i, calls);
        }
    for (int k = 0; k < NKINDS; k++)
        if (c->have[k])
            c->took[k] = quartiles_of(c->sample[k], b->samples);
}

static double ratio(const struct cell *c, enum kind k)
{
    return c->took[k].median / c->took[BY_MPI].median;
}

/* --- telling -----------------------------------------------------------------------------------*/

static void count_cell(const struct cell *c)
{
    for (int k = BY_SHIM; k < NKINDS; k++) {
        if (!c->have[k])
            continue;
        tallies[k].n++;
        tallies[k].logarithms += log(ratio(c, k));
        for (int l = 0; l < 2; l++)
            tallies[k].above[l] += ratio(c, k) > limits[l];
    }
}

static void print_cell(const struct cell *c)
{
    struct quartiles q = c->took[BY_MPI];
    meter_clear();
    printf("%-13s %-55s %8lld", c->group, c->routine->name, (long long)c->bytes);
    print_time(true, q.median);
    printf(" %6.1f", 50 * (q.high - q.low) / q.median);
    for (int k = BY_SHIM; k < NKINDS; k++)
        print_ratio(c->have[k], c->took[k].median, ratio(c, k));
    printf("\n");
    fflush(stdout);
}

static void json_cell(struct bench *b, const struct cell *c)
{
    static const char *const ratios[NKINDS] = {NULL, "ratio", "ratio_pending", "ratio_again"};
    struct emit *e = &b->json;
    if (!e->writer.out)
        return;
    emit_row(e, NULL);
    emit_string(e, "measure", 0, "untouched");
    emit_string(e, "group", 0, c->group);
    emit_string(e, "calls", 0, c->routine->name);
    emit_number(e, "ranks", 0, b->size);
    emit_number(e, "bytes", 0, c->bytes);
    emit_string(e, "progress", 0, b->progress);
    emit_string(e, "blocking", 0, setting_in_force("NBCSHIM_BLOCKING"));
    int hooked;
    emit_string(e, "hook", 0, nbcshim_hook(&hooked));
    emit_bool(e, "hooked", 0, hooked);
    for (int k = 0; k < NKINDS; k++)
        if (c->have[k])
            json_quartiles(b, kind_names[k], c->took[k]);
    for (int k = BY_SHIM; k < NKINDS; k++)
        if (c->have[k])
            emit_real(e, ratios[k], 4, ratio(c, k));
    json_end(b);
}

static void print_heading(void)
{
    printf("%-13s %-55s %8s %9s %6s", "group", "calls", "bytes", kind_names[BY_MPI], "+-%");
    for (int k = BY_SHIM; k < NKINDS; k++)
        printf(" %9s %6s", kind_names[k], "ratio");
    printf("\n");
}

static void print_tally(enum kind k)
{
    const struct tally *t = &tallies[k];
    if (t->n)
        printf("# %s / native over %d cells: geometric mean %.3f; above %.2f: %d, above %.2f: %d\n",
               kind_names[k], t->n, exp(t->logarithms / t->n), limits[0], t->above[0], limits[1],
               t->above[1]);
}

/* --- all cells ---------------------------------------------------------------------------------*/

static void prepare(struct side *s, const struct calls *calls, const struct operands *o,
                    const char *name)
{
    int peer = o->rank ^ 1;
    *s = (struct side){.calls = calls, .o = o, .peer = peer < o->size ? peer : -1, .path = name};
}

/* Whether the calls succeed on all ranks and both sides. */
static bool set_up(struct cell *c)
{
    int error = 0;
    for (int i = 0; i < 2; i++) {
        struct side *s = &c->sides[i];
        error |= routine_set_up(c->routine, s);
        error |= error ? 0 : c->routine->run(s);
    }
    return on_all_ranks(native_comm, !error);
}

static void tear_down(struct cell *c)
{
    for (int i = 0; i < 2; i++)
        routine_tear_down(c->routine, &c->sides[i]);
}

static void measure_cell(struct bench *b, struct cell *c)
{
    if (!set_up(c)) {
        if (b->rank == 0)
            printf("# %s fails\n", c->routine->name);
        return;
    }
    if (b->rank == 0)
        meter_step("%s: %s, %lld bytes", c->group, c->routine->name, (long long)c->bytes);
    sample_all(b, c);
    tear_down(c);
    if (b->rank != 0)
        return;
    count_cell(c);
    print_cell(c);
    json_cell(b, c);
}

static void try_cell(struct bench *b, const char *group, const struct routine *r,
                     enum nbc_coll coll, int64_t bytes)
{
    static struct cell c;
    struct operands own, theirs;
    if (on_all_ranks(native_comm, operands_make(&own, coll, b->comm, (int)(bytes / 8)))) {
        theirs = own;
        theirs.comm = native_comm;
        c = (struct cell){.group = group, .routine = r, .bytes = bytes};
        for (int k = 0; k < NKINDS; k++)
            c.have[k] = k != PENDING || b->size > 1;
        prepare(&c.sides[0], &native, &theirs, path[0]);
        prepare(&c.sides[1], &shim, &own, path[1]);
        measure_cell(b, &c);
    }
    operands_free(&own);
}

static void measure_collectives(struct bench *b, const char *group)
{
    for (int coll = 0; coll < NBC_NCOLLS; coll++) {
        struct routine r = {.name = mpi_names[coll], .run = run_collective};
        int nsizes = coll == NBC_BARRIER ? 1 : b->nsizes;
        for (int i = 0; b->coll[coll] && i < nsizes; i++)
            try_cell(b, group, &r, coll, coll == NBC_BARRIER ? 0 : b->sizes[i]);
    }
}

static void measure_routines(struct bench *b, const char *group)
{
    enum { FEW = 8 }; /* bytes of the calls that are measured for one size */
    for (const struct routine *r = routines; r->name; r++)
        for (int i = 0;
             strcmp(r->group, group) == 0 && r->ranks <= b->size && i < (r->sized ? b->nsizes : 1);
             i++)
            try_cell(b, group, r, NBC_ALLREDUCE, r->sized ? b->sizes[i] : FEW);
}

/* The first one is that of the blocking collectives, the others are those of routines.def. */
static const char *const groups[] = {"collectives", "communicators", "messages", "requests",
                                     "local",       "windows",       "files"};

enum { NGROUPS = sizeof groups / sizeof *groups };

static bool chosen[NGROUPS], all_are_chosen = true;

/* Makes the files, which all ranks find under the same names. */
static void make_files(const struct bench *b)
{
    const char *directory = getenv("TMPDIR");
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/nbcbench.XXXXXX", directory ? directory : "/tmp");
        int file = b->rank == 0 ? mkstemp(path[i]) : -1;
        if (file >= 0)
            close(file);
        native.Bcast(path[i], sizeof path[i], MPI_CHAR, 0, native_comm);
    }
}

static void remove_files(const struct bench *b)
{
    native.Barrier(native_comm);
    for (int i = 0; i < 2; i++)
        if (b->rank == 0 || access(path[i], F_OK) == 0)
            unlink(path[i]);
}

bool untouched_choose(const char *group)
{
    for (int i = 0; i < NGROUPS; i++)
        if (strcmp(groups[i], group) == 0) {
            all_are_chosen = false;
            return chosen[i] = true;
        }
    return false;
}

void measure_untouched(struct bench *b)
{
    int ring = 1;
    memset(tallies, 0, sizeof tallies);
    native.Cart_create(MPI_COMM_WORLD, 1, &b->size, &ring, 0, &native_comm);
    pending_make(b);
    make_files(b);
    if (b->rank == 0) {
        int hooked;
        const char *by = nbcshim_hook(&hooked);
        printf("# NBCSHIM_BLOCKING=%s; progress in waits of the MPI: %s (%s)\n",
               setting_in_force("NBCSHIM_BLOCKING"), hooked ? "yes" : "no", by);
        print_heading();
        meter_begin(0, true);
    }
    for (int i = 0; i < NGROUPS; i++) {
        if (!all_are_chosen && !chosen[i])
            continue;
        if (i == 0)
            measure_collectives(b, groups[i]);
        else
            measure_routines(b, groups[i]);
    }
    meter_end();
    remove_files(b);
    pending_free();
    native.Comm_free(&native_comm);
    for (int k = BY_SHIM; b->rank == 0 && k < NKINDS; k++)
        print_tally(k);
}

#else

bool untouched_choose(const char *group)
{
    (void)group;
    return true;
}

void measure_untouched(struct bench *b)
{
    if (b->rank == 0)
        printf("# -m untouched needs an MPI-3.1\n");
}

#endif
