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

static bool is_at(const struct row *r, const struct row *key)
{
    return r->address == key->address && r->kind == key->kind && r->size == key->size &&
           strcmp(r->coll, key->coll) == 0 && strcmp(r->file, key->file) == 0;
}

/* The sum of the rows of a run at a site; of all sites if key is NULL. */
static struct row sum_of(const struct run *run, const struct row *key)
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
        if (r->kind == NONBLOCKING || r->kind == PERSISTENT)
            sum.arrival += r->inside + r->waiting; /* here: the time that is not hidden */
    }
    return sum;
}

/* The figures of one site, or of all. */
static bool figures_at(const struct comparison *c, const struct row *key, struct figure *seconds,
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
            shown += sum.arrival;
        }
        seconds[v] = figure_of(values, n);
        hidden[v] = flight > 0 ? fmax(0, 1 - shown / flight) : -1;
    }
    free(values);
    return true;
}

/* --- sites --- */

/* The source line, where addr2line and debugging symbols tell it. */
static bool ask_addr2line(const struct row *key, char *where, size_t size)
{
    char command[4400], function[128] = "", line[512] = "";
    if (strchr(key->file, '\'') || strlen(key->file) > 4000)
        return false;
    snprintf(command, sizeof command, "addr2line -f -C -e '%s' %lx 2>/dev/null", key->file,
             key->address - 1);
    FILE *in = popen(command, "r");
    bool good = in && fgets(function, sizeof function, in) && fgets(line, sizeof line, in);
    if (in)
        pclose(in);
    function[strcspn(function, "\n")] = '\0';
    line[strcspn(line, "\n ")] = '\0';
    if (!good || *function == '?')
        return false;
    const char *base = strrchr(line, '/') ? strrchr(line, '/') + 1 : line;
    if (*base == '?' || !*base)
        snprintf(where, size, "%s", function);
    else
        snprintf(where, size, "%s %s", base, function);
    return true;
}

static void name_site(struct site *s)
{
    const struct row *key = s->key;
    const char *base = strrchr(key->file, '/') ? strrchr(key->file, '/') + 1 : key->file;
    if (ask_addr2line(key, s->where, sizeof s->where))
        return;
    if (*key->symbol != '?')
        snprintf(s->where, sizeof s->where, "%s %s", base, key->symbol);
    else
        snprintf(s->where, sizeof s->where, "%s+0x%lx", base, key->address);
}

static bool find_sites(struct comparison *c)
{
    for (int i = 0; i < c->nruns; i++)
        for (int k = 0; k < c->runs[i].nrows; k++) {
            const struct row *r = &c->runs[i].rows[k];
            int n = 0;
            while (n < c->nsites && !is_at(r, c->sites[n].key))
                n++;
            if (n < c->nsites)
                continue;
            struct site *more = realloc(c->sites, (c->nsites + 1) * sizeof *more);
            if (!more)
                return false;
            c->sites = more;
            c->sites[c->nsites++] = (struct site){.key = r};
        }
    return true;
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
            struct row sum = sum_of(&c->runs[i], s->key);
            calls += sum.calls;
            bytes += sum.bytes;
        }
        s->calls = calls / c->nruns / c->nranks;
        s->bytes = s->key->size < 0 || calls == 0 ? -1 : bytes / calls;
        if (!figures_at(c, s->key, s->seconds, s->hidden))
            return false;
        name_site(s);
    }
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
 * be compared then, without a record of each call. */
static double add_arrivals(const struct run *run, const struct row *key, double *late, double *at)
{
    int seen = 0;
    double mean = 0;
    for (int i = 0; i < run->nrows; i++) {
        const struct row *r = &run->rows[i];
        if (!is_at(r, key))
            continue;
        if (r->calls != key->calls || r->calls == 0)
            return 0;
        at[r->rank] = r->arrival;
        mean += r->arrival / run->nranks;
        seen++;
    }
    if (seen != run->nranks)
        return 0;
    for (int i = 0; i < run->nranks; i++)
        late[i] += at[i] - mean;
    return key->calls;
}

/* For each rank, how long after the mean of all ranks it comes to a collective. */
static bool lateness_in(const struct run *run, double *late)
{
    double calls = 0, *at = calloc(run->nranks, sizeof *at);
    if (!at)
        return false;
    memset(late, 0, run->nranks * sizeof *late);
    for (int i = 0; i < run->nrows; i++)
        if (run->rows[i].rank == 0)
            calls += add_arrivals(run, &run->rows[i], late, at);
    for (int i = 0; i < run->nranks; i++)
        late[i] = calls > 0 ? late[i] / calls : 0;
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
            good = lateness_in(&c->runs[i], values + (size_t)n++ * c->nranks);
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

/* Whether the medians differ by more than the noise, and nearly all turns the same way. */
static bool differs(const struct comparison *c, int v)
{
    double change = c->wall[v].median - c->wall[NATIVE].median;
    int same = 0;
    for (int i = 0; i < c->turns; i++) {
        const struct run *a = run_at(c, NATIVE, i), *b = run_at(c, v, i);
        same += a && b && (wall_of(b) - wall_of(a) > 0) == (change > 0);
    }
    return c->turns >= 3 && fabs(change) > noise_of(c, v) && same >= c->turns - c->turns / 5;
}

static int put_verdict(const struct comparison *c, int v, char *text, size_t size)
{
    double before = c->wall[NATIVE].median, after = c->wall[v].median;
    const char *with = v == THREAD ? "nbcshim and its progress thread" : "nbcshim";
    if (c->turns < 3)
        return snprintf(text, size,
                        "too few runs to tell (three of each at least): %.3f s with %s, %.3f s "
                        "without",
                        after, with, before);
    if (!differs(c, v))
        return snprintf(text, size,
                        "no difference: %.3f s with %s, %.3f s without, and runs of the same kind "
                        "vary by %.3f s",
                        after, with, before, noise_of(c, v));
    return snprintf(text, size,
                    "with %s the program is %s: %.3f s instead of %.3f s, %.0f%% %s (runs of the "
                    "same kind vary by %.3f s)",
                    with, after < before ? "faster" : "slower", after, before,
                    100 * fabs(1 - after / before), after < before ? "less" : "more",
                    noise_of(c, v));
}

static void judge(struct comparison *c)
{
    size_t n = 0;
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
