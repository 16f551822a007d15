/* SPDX-License-Identifier: MIT */
#include "tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meter.h"
#include "rules.h"
#include "runner.h"
#include "sweep.h"

/* Another algorithm is selected only if it is better by this factor: otherwise noise would yield a
 * rule for every size. */
static const double gain = 0.95;

enum { SAMPLES = 15, NSIZES = 9 };

static const int64_t sizes[NSIZES] = {8, 64, 512, 4096, 16384, 65536, 262144, 1048576, 4194304};

/* The measurements of a collective at each size. The contenders are the same at all sizes. */
struct course {
    enum nbc_coll coll;
    int nsizes, n;
    int64_t bytes[NSIZES];
    struct contender at[NSIZES][SWEEP_MOST];
};

static bool measure(struct course *c, MPI_Comm comm, int rank)
{
    c->nsizes = 0;
    for (int i = 0; i < NSIZES; i++) {
        if (rank == 0)
            meter_step("%s, %lld bytes", nbc_coll_name(c->coll), (long long)sizes[i]);
        struct operands o;
        bool all = on_all_ranks(comm, operands_make(&o, c->coll, comm, (int)(sizes[i] / 8)));
        if (all) {
            c->n = sweep(&o, SAMPLES, SHIM, false, c->at[i]);
            c->bytes[i] = sweep_bytes(&o);
            c->nsizes = i + 1;
        }
        operands_free(&o);
        if (!all || c->coll == NBC_BARRIER)
            break;
    }
    return c->nsizes > 0 && c->n > 0;
}

static int best(const struct contender *at, int n, int favorite)
{
    for (int i = 0; i < n; i++)
        if (at[i].median < at[favorite].median * gain)
            favorite = i;
    return favorite;
}

/* Returns the algorithm with the least worst excess over the best, over all sizes: for calls whose
 * bytes ranks do not know of each other. */
static int safest(const struct course *c)
{
    double least = 0;
    int which = 0;
    for (int i = 0; i < c->n; i++) {
        double worst = 0;
        for (int s = 0; s < c->nsizes; s++) {
            double loss = c->at[s][i].median / c->at[s][best(c->at[s], c->n, i)].median;
            worst = loss > worst ? loss : worst;
        }
        if (i > 0 && worst >= least * gain)
            continue;
        least = worst;
        which = i;
    }
    return which;
}

static int64_t between(int64_t a, int64_t b)
{
    int64_t mean = a + 1; /* geometric mean, for sizes such as powers of two */
    while (mean * mean < a * b)
        mean += mean / 8 + 1;
    return mean < b ? mean : b;
}

static void print_rules(const struct course *c, int size, unsigned needs)
{
    struct nbc_rule rule = {.coll = c->coll,
                            .min_size = size,
                            .max_size = size,
                            .max_bytes = INT64_MAX,
                            .needs = needs};
    if (c->bytes[0] < 0 || c->nsizes == 1) {
        rule.alg = c->at[0][safest(c)].alg;
        nbc_rule_print(stdout, &rule);
        return;
    }
    int now = best(c->at[0], c->n, 0);
    for (int s = 1; s < c->nsizes; s++) {
        int next = best(c->at[s], c->n, now);
        if (next == now)
            continue;
        rule.alg = c->at[0][now].alg;
        rule.max_bytes = between(c->bytes[s - 1], c->bytes[s]) - 1;
        nbc_rule_print(stdout, &rule);
        rule.min_bytes = rule.max_bytes + 1;
        now = next;
    }
    rule.alg = c->at[0][now].alg;
    rule.max_bytes = INT64_MAX;
    nbc_rule_print(stdout, &rule);
}

static void print_figures(const struct course *c)
{
    for (int s = 0; s < c->nsizes; s++) {
        printf("# %s %lld bytes, us:", nbc_coll_name(c->coll), (long long)c->bytes[s]);
        for (int i = 0; i < c->n; i++)
            printf(" %s %.2f", c->at[s][i].alg->name, c->at[s][i].median * 1e6);
        printf("\n");
    }
}

/* Sets which collectives are measured, and returns the number of measurements. */
static int choose(bool *chosen, char **names)
{
    int steps = 0;
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++)
        chosen[coll] = !*names;
    for (; *names; names++)
        chosen[nbc_coll_by_name(*names)] = true;
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++)
        if (chosen[coll])
            steps += coll == NBC_BARRIER ? 1 : NSIZES; /* a barrier has no size */
    return steps;
}

int tune_rules(int rank, int size, char **names)
{
    bool chosen[NBC_NCOLLS];
    int steps = choose(chosen, names);
    int ring = 1;
    MPI_Comm comm;
    if (!calls_load()) {
        if (rank == 0)
            fprintf(stderr, "nbctune: cannot find the MPI library in this process\n");
        return 1;
    }
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
    runner_warm_up(comm, SAMPLES);
    unsigned needs = all_on_one_node(comm) ? NBC_LOCAL : NBC_SPREAD;
    if (rank == 0)
        printf("# Tuning rules for NBCSHIM_TUNING, measured by nbctune --rules on %d ranks.\n",
               size);
    if (rank == 0)
        meter_begin(steps, true);
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++) {
        static struct course course;
        course.coll = coll;
        if (!chosen[coll] || !measure(&course, comm, rank) || rank != 0)
            continue;
        meter_clear();
        print_figures(&course);
        print_rules(&course, size, needs);
        fflush(stdout);
    }
    meter_end();
    MPI_Comm_free(&comm);
    return 0;
}
