/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "figures.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "gnuplot.h"
#include "names.h"

const char *const variant_names[NVARIANTS] = {"without", "nbcshim", "thread"};
const char *const variant_labels[NVARIANTS] = {"without nbcshim", "nbcshim", "nbcshim, thread"};

enum { BLOCKING, NONBLOCKING, PERSISTENT }; /* enum nbc_kind of pmpi/op/call.h */

/* --- figures --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q)
{
    double place = q * (n - 1);
    int low = (int)place;
    return low + 1 < n ? sorted[low] + (place - low) * (sorted[low + 1] - sorted[low])
                       : sorted[n - 1];
}

/* Sorts the values. */
static struct figure figure_of(double *values, int n)
{
    if (n == 0)
        return (struct figure){0};
    qsort(values, n, sizeof *values, by_value);
    return (struct figure){quantile(values, n, 0.5), quantile(values, n, 0.25),
                           quantile(values, n, 0.75)};
}

static double wall_of(const struct run *r)
{
    double most = 0;
    for (int i = 0; i < r->nranks; i++)
        most = r->wall[i] > most ? r->wall[i] : most;
    return most;
}

static bool same_frame(const struct frame *a, const struct frame *b)
{
    return a->address == b->address && strcmp(a->file, b->file) == 0;
}

/* Whether the n innermost frames are the same. */
static bool same_frames(const struct row *a, const struct row *b, int n)
{
    if (a->nframes < n || b->nframes < n)
        n = a->nframes == b->nframes ? a->nframes : -1;
    for (int i = 0; i < n; i++)
        if (!same_frame(&a->frames[i], &b->frames[i]))
            return false;
    return n > 0;
}

static bool is_at(const struct row *r, const struct site *s)
{
    return r->kind == s->key->kind && r->size == s->key->size &&
           strcmp(r->coll, s->key->coll) == 0 && same_frames(r, s->key, s->nframes);
}

/* The sum of the rows of a run at a site; of all sites if key is NULL. */
static struct row sum_of(const struct run *run, const struct site *key)
{
    struct row sum = {0};
    for (int i = 0; i < run->nrows; i++) {
        const struct row *r = &run->rows[i];
        if (key && !is_at(r, key))
            continue;
        sum.calls += r->calls;
        sum.bytes += r->bytes;
        sum.inside += r->inside;
        sum.waiting += r->waiting;
        sum.flight += r->flight;
        sum.shown += r->shown;
    }
    return sum;
}

/* The figures of one site, or of all. */
static bool figures_at(const struct comparison *c, const struct site *key, struct figure *seconds,
                       double *hidden)
{
    double *values = calloc(c->nruns, sizeof *values);
    if (!values)
        return false;
    for (int v = 0; v < NVARIANTS; v++) {
        double flight = 0, shown = 0;
        int n = 0;
        for (int i = 0; i < c->nruns; i++) {
            if ((int)c->runs[i].variant != v)
                continue;
            struct row sum = sum_of(&c->runs[i], key);
            values[n++] = (sum.inside + sum.waiting) / c->nranks;
            flight += sum.flight;
            shown += sum.shown;
        }
        seconds[v] = figure_of(values, n);
        hidden[v] = flight > 0 ? fmax(0, 1 - shown / flight) : -1;
    }
    free(values);
    return true;
}

/* --- sites --- */

static bool begins_with(const struct frame *f, const char *const *names, size_t n)
{
    const char *base = strrchr(f->file, '/') ? strrchr(f->file, '/') + 1 : f->file;
    for (size_t i = 0; i < n; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Whether a frame is of a binding, which makes all calls of a kind from one place: of the MPI for
 * Fortran, of mpi4py and of ctypes for Python. */
static bool is_binding(const struct frame *f)
{
    static const char *const names[] = {"libmpi_mpifh", "libmpi_usempi", "libmpifort",
                                        "libmpichfort", "libfmpich",     "_ctypes.",
                                        "libffi.so"};
    return begins_with(f, names, sizeof names / sizeof *names) || strstr(f->file, "/mpi4py/MPI.");
}

/* Whether a frame is of the interpreter of Python, whose lines are known. */
static bool is_interpreter(const struct frame *f)
{
    static const char *const names[] = {"python", "libpython"};
    return begins_with(f, names, sizeof names / sizeof *names);
}

/* Nor does what called the C library, which calls main, tell anything, nor does an interpreter. */
static void skip_bindings(struct row *r)
{
    int n = 0, end = 0, lines = r->nframes;
    while (lines > 0 && is_python(&r->frames[lines - 1]))
        lines--;
    bool python = lines < r->nframes;
    while (end < lines && (end == 0 || !strstr(r->frames[end].file, "/libc.so")) &&
           !(python && is_interpreter(&r->frames[end])))
        end++;
    while (n < end - !python && is_binding(&r->frames[n]))
        n++;
    memmove(r->frames, r->frames + n, (end - n) * sizeof *r->frames);
    memmove(r->frames + end - n, r->frames + lines, (r->nframes - lines) * sizeof *r->frames);
    r->nframes -= n + lines - end;
}

/* Adds the site of so many frames of a row, unless it is among those from `first` on. */
static bool add_site(struct comparison *c, int first, const struct row *r, int nframes)
{
    for (int n = first; n < c->nsites; n++)
        if (is_at(r, &c->sites[n]))
            return true;
    struct site *more = realloc(c->sites, (c->nsites + 1) * sizeof *more);
    if (!more)
        return false;
    c->sites = more;
    c->sites[c->nsites++] = (struct site){.key = r, .nframes = nframes};
    return true;
}

/* Adds a site for each call and stack of so many frames, of all rows or those of a site. */
static bool add_sites(struct comparison *c, const struct site *within, int nframes)
{
    int first = c->nsites;
    for (int i = 0; i < c->nruns; i++)
        for (int k = 0; k < c->runs[i].nrows; k++) {
            const struct row *r = &c->runs[i].rows[k];
            if ((!within || is_at(r, within)) && !add_site(c, first, r, nframes))
                return false;
        }
    return true;
}

/* Replaces a site by those of its callers if there are several: by the shortest stacks that differ.
 * A function that very many call is no wrapper. */
static bool split_site(struct comparison *c, int at)
{
    enum { MOST_CALLERS = 16 };
    const struct site site = c->sites[at];
    int before = c->nsites, found = 1, depth = site.nframes;
    while (found == 1 && ++depth <= MOST_FRAMES) {
        c->nsites = before;
        if (!add_sites(c, &site, depth))
            return false;
        found = c->nsites - before;
    }
    if (found == 1 || found > MOST_CALLERS) {
        c->nsites = before;
        return true;
    }
    for (int i = before; i < c->nsites; i++)
        c->sites[i].tells[depth - 1] = true;
    c->sites[at] = c->sites[--c->nsites];
    return true;
}

static bool find_sites(struct comparison *c)
{
    for (int i = 0; i < c->nruns; i++)
        for (int k = 0; k < c->runs[i].nrows; k++)
            skip_bindings(&c->runs[i].rows[k]);
    bool good = add_sites(c, NULL, 1);
    for (int n = c->nsites, i = 0; good && i < n; i++)
        good = split_site(c, i);
    return good;
}

static int first_named(const struct row *r)
{
    bool known = false;
    for (int i = 0; i < r->nframes; i++) {
        frame_name(&r->frames[i], 0, &known);
        if (known)
            return i;
    }
    return 0;
}

/* The innermost frame, that caller which tells it from others, and the first one that has a name:
 * "lib.so+0x12 < other.so caller"; an object is named once. Each with so many callers into which
 * the compiler has put it, and with `addresses` that of the call. */
static bool name_site(struct site *s, int callers, bool addresses)
{
    const struct row *r = s->key;
    const struct frame *last = NULL;
    int named = first_named(r);
    char *text = NULL;
    for (int i = 0; i < r->nframes; i++) {
        if (i > 0 && i != named && !s->tells[i])
            continue;
        char *before = text, address[32] = "";
        const struct frame *f = &r->frames[i];
        bool known;
        const char *name = frame_name(f, callers, &known), *function = name_in_object(f, name);
        if (addresses && known && !is_python(f))
            snprintf(address, sizeof address, " 0x%lx", f->address - 1);
        if (function && last && strcmp(last->file, f->file) == 0)
            name = function;
        if (asprintf(&text, "%s%s%s%s", before ? before : "", before ? " < " : "", name, address) <
            0)
            return false;
        free(before);
        last = f;
    }
    free(s->where);
    s->where = text;
    return true;
}

static bool looks_like_another(const struct comparison *c, const struct site *s)
{
    for (int n = 0; n < c->nsites; n++) {
        const struct site *other = &c->sites[n];
        if (other != s && other->key->kind == s->key->kind && other->key->size == s->key->size &&
            strcmp(other->key->coll, s->key->coll) == 0 && strcmp(other->where, s->where) == 0)
            return true;
    }
    return false;
}

/* As short as sites can be told apart by. */
static bool name_sites(struct comparison *c)
{
    enum { MOST_CALLERS = 3 };
    bool good = true;
    bool *alike = malloc(c->nsites + 1);
    for (int n = 0; alike && n < c->nsites; n++)
        alike[n] = true;
    for (int callers = 0; alike && good && callers <= MOST_CALLERS; callers++) {
        for (int n = 0; good && n < c->nsites; n++)
            good = !alike[n] || name_site(&c->sites[n], callers, callers == MOST_CALLERS);
        for (int n = 0; good && n < c->nsites; n++)
            alike[n] = looks_like_another(c, &c->sites[n]);
    }
    free(alike);
    return alike && good;
}

static double most_seconds(const struct site *s)
{
    double most = 0;
    for (int v = 0; v < NVARIANTS; v++)
        most = fmax(most, s->seconds[v].median);
    return most;
}

static int by_seconds(const void *a, const void *b)
{
    double x = most_seconds(a), y = most_seconds(b);
    return (x < y) - (x > y);
}

static bool measure_sites(struct comparison *c)
{
    for (int n = 0; n < c->nsites; n++) {
        struct site *s = &c->sites[n];
        double calls = 0, bytes = 0;
        for (int i = 0; i < c->nruns; i++) {
            struct row sum = sum_of(&c->runs[i], s);
            calls += sum.calls;
            bytes += sum.bytes;
        }
        s->calls = calls / c->nruns / c->nranks;
        s->bytes = s->key->size < 0 || calls == 0 ? -1 : bytes / calls;
        if (!figures_at(c, s, s->seconds, s->hidden))
            return false;
    }
    if (!name_sites(c))
        return false;
    if (c->nsites)
        qsort(c->sites, c->nsites, sizeof *c->sites, by_seconds);
    return true;
}

const char *function_name(const struct row *key, char *text, size_t size)
{
    nbc_coll_function(key->coll, key->kind == NONBLOCKING, key->kind == PERSISTENT ? "_init" : "",
                      text, size);
    return text;
}

const char *size_name(const struct site *s, char *text, size_t size)
{
    char low[32], high[32];
    int class = s->key->size;
    if (class <= 0)
        snprintf(text, size, "%s", class ? "?" : "0");
    else if (fabs(s->bytes - exp2(class - 1)) < 0.5)
        gnuplot_size(exp2(class - 1), text, size);
    else
        snprintf(text, size, "%s-%s", gnuplot_size(exp2(class - 1), low, sizeof low),
                 gnuplot_size(exp2(class), high, sizeof high));
    return text;
}

/* --- ranks that come late --- */

/* Adds the times at which the ranks came to a site, if each came equally often. The ranks' sums can
 * be compared then, without a record of each call. Returns the number of calls. */
static double add_arrivals(const struct run *run, const struct site *s, double *late, double *at,
                           double *calls)
{
    double mean = 0;
    memset(at, 0, run->nranks * sizeof *at);
    memset(calls, 0, run->nranks * sizeof *calls);
    for (int i = 0; i < run->nrows; i++) {
        const struct row *r = &run->rows[i];
        if (!is_at(r, s))
            continue;
        at[r->rank] += r->arrival;
        calls[r->rank] += r->calls;
        mean += r->arrival / run->nranks;
    }
    for (int i = 0; i < run->nranks; i++)
        if (calls[i] != calls[0])
            return 0;
    for (int i = 0; i < run->nranks && calls[0] > 0; i++)
        late[i] += at[i] - mean;
    return calls[0];
}

/* For each rank, how long after the mean of all ranks it comes to a collective. */
static bool lateness_in(const struct comparison *c, const struct run *run, double *late)
{
    double n = 0, *at = calloc(run->nranks, 2 * sizeof *at);
    if (!at)
        return false;
    memset(late, 0, run->nranks * sizeof *late);
    for (int i = 0; i < c->nsites; i++)
        n += add_arrivals(run, &c->sites[i], late, at, at + run->nranks);
    for (int i = 0; i < run->nranks; i++)
        late[i] = n > 0 ? late[i] / n : 0;
    free(at);
    return true;
}

static bool find_late(struct comparison *c, int v)
{
    double *values = calloc((size_t)c->turns * c->nranks, sizeof *values);
    double *late = calloc(c->nranks, sizeof *late), *row = calloc(c->turns, sizeof *row);
    int n = 0;
    bool good = values && late && row;
    for (int i = 0; good && i < c->nruns; i++)
        if ((int)c->runs[i].variant == v)
            good = lateness_in(c, &c->runs[i], values + (size_t)n++ * c->nranks);
    for (int r = 0; good && r < c->nranks; r++) {
        for (int i = 0; i < n; i++)
            row[i] = values[(size_t)i * c->nranks + r];
        late[r] = figure_of(row, n).median;
    }
    c->late[v] = late;
    free(values);
    free(row);
    return good;
}

bool is_late(const struct comparison *c, enum variant v, int rank)
{
    double latest = 0;
    for (int i = 0; i < c->nranks; i++)
        latest = fmax(latest, c->late[v][i]);
    return c->late[v][rank] > 50e-6 && c->late[v][rank] > latest / 2;
}

/* --- the verdict --- */

/* The runs of the same kind vary by so much. */
static double noise_of(const struct comparison *c, int v)
{
    double noise = c->wall[NATIVE].median / 100;
    noise = fmax(noise, c->wall[NATIVE].high - c->wall[NATIVE].low);
    return fmax(noise, c->wall[v].high - c->wall[v].low);
}

static const struct run *run_at(const struct comparison *c, int v, int turn)
{
    for (int i = 0, n = 0; i < c->nruns; i++)
        if ((int)c->runs[i].variant == v && n++ == turn)
            return &c->runs[i];
    return NULL;
}

/* The differences of the turns, sorted. Returns their number. */
static int differences(const struct comparison *c, int v, double *d)
{
    int n = 0;
    for (int i = 0; i < c->turns; i++) {
        const struct run *a = run_at(c, NATIVE, i), *b = run_at(c, v, i);
        if (a && b)
            d[n++] = wall_of(b) - wall_of(a);
    }
    qsort(d, n, sizeof *d, by_value);
    return n;
}

/* How probable it is that at least k of n coins show the same side (the sign test). */
static double chance_of(int k, int n)
{
    double sum = 0, ways = 1; /* n over i */
    for (int i = 0; i <= n - k; i++) {
        sum += ways;
        ways = ways * (n - i) / (i + 1);
    }
    return fmin(1, 2 * sum / exp2(n));
}

/* What the runs tell of a variant. */
struct finding {
    enum { SAME, DIFFERENT, UNKNOWN } what;
    int same, turns; /* of so many turns, so many in the direction of the medians */
    double more;     /* turns that would tell, as far as these let expect */
};

/* The medians differ by more than the noise and nearly all turns the same way, or so many turns do
 * that it is no chance. What is less than the hundredth part does not matter. If neither is so, and
 * runs vary little, and the medians no more, there is no difference; else nobody knows. */
static struct finding find_out(const struct comparison *c, int v)
{
    double before = c->wall[NATIVE].median, change = c->wall[v].median - before;
    double *d = calloc(c->turns, sizeof *d);
    struct finding f = {.turns = d ? differences(c, v, d) : 0};
    for (int i = 0; i < f.turns; i++)
        f.same += d[i] != 0 && (d[i] > 0) == (change > 0);
    double noise = noise_of(c, v);
    bool clear = fabs(change) > noise && f.same >= f.turns - f.turns / 5;
    if (f.turns >= 3 &&
        (clear || (fabs(change) > before / 100 && chance_of(f.same, f.turns) < 0.05)))
        f.what = DIFFERENT;
    else
        f.what = noise <= before / 20 && fabs(change) <= noise ? SAME : UNKNOWN;
    double spread = f.turns ? (quantile(d, f.turns, 0.75) - quantile(d, f.turns, 0.25)) / 1.35 : 0;
    f.more = fmax(6, pow(2.5 * spread / fmax(fabs(change), before / 100), 2)) - f.turns;
    f.more = fmax(1, ceil(f.more));
    free(d);
    return f;
}

/* With so many digits that two that differ look different, in a unit that suits both. */
static const char *digits_of(double seconds, double other, char *text, size_t size)
{
    double s = fmax(fabs(seconds), fabs(other));
    if (s >= 0.1)
        snprintf(text, size, "%.3f s", seconds);
    else if (s >= 1e-4)
        snprintf(text, size, "%.3f ms", seconds * 1e3);
    else
        snprintf(text, size, "%.3f us", seconds * 1e6);
    return text;
}

static int put_verdict(const struct comparison *c, int v, char *text, size_t size)
{
    double before = c->wall[NATIVE].median, after = c->wall[v].median;
    double vary = before > 0 ? 100 * noise_of(c, v) / before : 0;
    const char *with = v == THREAD ? "nbcshim and its progress thread" : "nbcshim";
    char mine[32], native[32];
    struct finding f = find_out(c, v);
    digits_of(after, before, mine, sizeof mine);
    digits_of(before, after, native, sizeof native);
    if (c->turns < 3)
        return snprintf(text, size,
                        "too few runs to tell (three of each at least): %s with %s, %s without",
                        mine, with, native);
    if (f.what == SAME)
        return snprintf(text, size,
                        "no difference: %s with %s, %s without, and runs of the same kind vary by "
                        "%.0f%%",
                        mine, with, native, vary);
    if (f.what == UNKNOWN)
        return snprintf(text, size,
                        "cannot tell: %s with %s, %s without, but runs of the same kind vary by "
                        "%.0f%%; %s%.0f more of each would tell (--runs=N)",
                        mine, with, native, vary, f.more > 100 ? "more than " : "",
                        fmin(f.more, 100));
    return snprintf(text, size,
                    "with %s the program is %s: %s instead of %s, %.0f%% %s (%d of %d pairs of "
                    "runs; those of the same kind vary by %.0f%%)",
                    with, after < before ? "faster" : "slower", mine, native,
                    100 * fabs(1 - after / before), after < before ? "less" : "more", f.same,
                    f.turns, vary);
}

/* Then all runs are alike. */
static bool is_inactive(const struct comparison *c)
{
    for (int i = 0; i < c->nruns; i++)
        if (c->runs[i].variant != NATIVE && c->runs[i].inactive)
            return true;
    return false;
}

static void judge(struct comparison *c)
{
    size_t n = 0;
    if (is_inactive(c)) {
        strcpy(c->verdict, "Nothing to compare: nbcshim was inactive, since the program refers to "
                           "blocking collectives only. It takes part with NBCSHIM=on.");
        return;
    }
    for (int v = NBCSHIM; v < NVARIANTS && n < sizeof c->verdict; v++) {
        if (!c->have[v])
            continue;
        if (n)
            n += snprintf(c->verdict + n, sizeof c->verdict - n, "; ");
        if (n < sizeof c->verdict)
            n += put_verdict(c, v, c->verdict + n, sizeof c->verdict - n);
        c->noise = fmax(c->noise, noise_of(c, v));
    }
    c->verdict[0] = (char)toupper((unsigned char)c->verdict[0]);
    if (n + 1 < sizeof c->verdict)
        strcpy(c->verdict + n, ".");
}

static bool measure_all(struct comparison *c)
{
    double *values = calloc(c->nruns, sizeof *values);
    bool good =
        values && find_sites(c) && measure_sites(c) && figures_at(c, NULL, c->seconds, c->hidden);
    for (int v = 0; good && v < NVARIANTS; v++) {
        int n = 0;
        for (int i = 0; i < c->nruns; i++)
            if ((int)c->runs[i].variant == v)
                values[n++] = wall_of(&c->runs[i]);
        c->wall[v] = figure_of(values, n);
        good = find_late(c, v);
    }
    free(values);
    return good;
}

bool compare_runs(struct comparison *c)
{
    int count[NVARIANTS] = {0};
    for (int i = 0; i < c->nruns; i++)
        count[c->runs[i].variant]++;
    for (int v = 0; v < NVARIANTS; v++)
        c->have[v] = count[v] > 0;
    c->turns = count[NATIVE];
    c->nranks = c->nruns ? c->runs[0].nranks : 0;
    bool good = c->turns > 0 && count[NBCSHIM] == c->turns;
    for (int i = 0; i < c->nruns; i++)
        good = good && c->runs[i].nranks == c->nranks;
    if (!good) {
        fprintf(stderr, "nbcrun: the runs differ in their numbers of ranks\n");
        return false;
    }
    if (!measure_all(c)) {
        fprintf(stderr, "nbcrun: out of memory\n");
        return false;
    }
    judge(c);
    return true;
}
