/* SPDX-License-Identifier: MIT */
#include "base/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "base/state.h"

#include "json.h"

#include "coll.h"

/* The histogram has one class per power of two: class i counts times from 2^i to 2^(i + 1) − 1 ns.
 * The first and the last class also count shorter and longer times. */
enum { CLASSES = 40 };

struct count {
    int64_t calls, bytes;
    bool unknown; /* the bytes of some calls are unknown */
    int64_t completed, took, waited;
    int64_t histogram[CLASSES];
};

static struct count *counts; /* indexed by row of nbc_algs; under the lock */

static struct count *count_of(const struct nbc_alg *alg)
{
    if (!nbc_settings.stats)
        return NULL;
    if (!counts)
        counts = calloc(nbc_nalgs, sizeof *counts);
    return counts ? &counts[alg - nbc_algs] : NULL;
}

void nbc_stats_count(const struct nbc_alg *alg, int64_t bytes)
{
    struct count *c = count_of(alg);
    if (!c)
        return;
    c->calls++;
    if (bytes >= 0)
        c->bytes += bytes;
    else
        c->unknown = true;
}

static int class_of(int64_t ns)
{
    int class = ns < 1 ? 0 : 63 - __builtin_clzll((unsigned long long)ns);
    return class < CLASSES ? class : CLASSES - 1;
}

void nbc_stats_complete(const struct nbc_alg *alg, int64_t took, int64_t waited)
{
    struct count *c = count_of(alg);
    if (!c)
        return;
    c->completed++;
    c->took += took;
    c->waited += waited < took ? waited : took;
    c->histogram[class_of(took)]++;
}

/* The fraction of the operations' time in which the program did not wait. */
static double overlap(const struct count *c)
{
    return c->took > 0 ? 1 - (double)c->waited / (double)c->took : 0;
}

static void print_row(const struct nbc_alg *alg, const struct count *c)
{
    char bytes[32] = "-", mean[32] = "-", share[32] = "-";
    if (!c->unknown) /* no rank knows all data of a vector collective */
        snprintf(bytes, sizeof bytes, "%" PRId64, c->bytes);
    if (c->completed) {
        snprintf(mean, sizeof mean, "%.2f", (double)c->took / 1000 / (double)c->completed);
        snprintf(share, sizeof share, "%.0f%%", 100 * overlap(c));
    }
    fprintf(stderr, "nbcshim: %-22s %-22s %12" PRId64 " %16s %12s %8s\n", nbc_coll_name(alg->coll),
            alg->name, c->calls, bytes, mean, share);
}

static void print_table(void)
{
    fprintf(stderr, "nbcshim: blocking collectives: %s; progress in the MPI's own waits: %s%s%s\n",
            nbc_settings.blocking == NBC_BLOCKING_NATIVE ? "the MPI's" : "nbcshim's",
            nbc_was_hooked ? "by " : "no (", nbc_hook_state(), nbc_was_hooked ? "" : ")");
    fprintf(stderr, "nbcshim: %-22s %-22s %12s %16s %12s %8s\n", "collective", "algorithm", "calls",
            "bytes", "mean us", "overlap");
    for (int i = 0; i < nbc_nalgs; i++)
        if (counts && counts[i].calls)
            print_row(&nbc_algs[i], &counts[i]);
}

/* The name of a class is its lower bound. */
static void write_histogram(struct nbc_json *j, const struct count *c)
{
    nbc_json_open(j, "histogram_ns", "{");
    for (int i = 0; i < CLASSES; i++) {
        char bound[24];
        snprintf(bound, sizeof bound, "%" PRId64, INT64_C(1) << i);
        if (c->histogram[i])
            nbc_json_int(j, bound, c->histogram[i]);
    }
    nbc_json_close(j, "}");
}

static void write_row(struct nbc_json *j, const struct nbc_alg *alg, const struct count *c)
{
    nbc_json_line(j, NULL, "{");
    nbc_json_string(j, "collective", nbc_coll_name(alg->coll));
    nbc_json_string(j, "algorithm", alg->name);
    nbc_json_int(j, "calls", c->calls);
    if (c->unknown)
        nbc_json_string(j, "bytes", NULL);
    else
        nbc_json_int(j, "bytes", c->bytes);
    nbc_json_int(j, "completed", c->completed);
    nbc_json_fixed(j, "seconds", c->took, 9);
    nbc_json_fixed(j, "overlap", (int64_t)(overlap(c) * 10000 + 0.5), 4);
    write_histogram(j, c);
    nbc_json_close(j, "}");
}

static void write_rows(FILE *out)
{
    struct nbc_json j = {.out = out};
    nbc_json_open(&j, NULL, "[");
    for (int i = 0; i < nbc_nalgs; i++)
        if (counts && counts[i].calls)
            write_row(&j, &nbc_algs[i], &counts[i]);
    nbc_json_close(&j, "\n]\n");
}

static void write_file(void)
{
    FILE *out = nbc_settings_open_file("NBCSHIM_STATS", nbc_settings.stats);
    if (!out)
        return;
    write_rows(out);
    nbc_settings_close_file(out, "NBCSHIM_STATS", nbc_settings.stats);
}

static bool is_table(void)
{
    return strcmp(nbc_settings.stats, "1") == 0;
}

void nbc_stats_setup(void)
{
    if (nbc_settings.stats && !is_table() &&
        !nbc_settings_try_file("NBCSHIM_STATS", nbc_settings.stats))
        nbc_settings.stats = NULL;
}

void nbc_stats_print(void)
{
    if (is_table())
        print_table();
    else
        write_file();
}
