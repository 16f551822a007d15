/* SPDX-License-Identifier: MIT */
#include "base/stats.h"

#include <stdlib.h>

#include "base/settings.h"

static struct nbc_stats *all; /* indexed by row of nbc_algs; under the lock */

static struct nbc_stats *stats_for(const struct nbc_alg *alg)
{
    if (!nbc_settings.stats)
        return NULL;
    if (!all)
        all = calloc(nbc_nalgs, sizeof *all);
    return all ? &all[alg - nbc_algs] : NULL;
}

void nbc_stats_count(const struct nbc_alg *alg, int64_t bytes)
{
    struct nbc_stats *s = stats_for(alg);
    if (!s)
        return;
    s->started++;
    if (bytes >= 0)
        s->bytes += bytes;
    else
        s->unknown = true;
}

static int class_of(int64_t ns)
{
    int class = ns < 1 ? 0 : 63 - __builtin_clzll((unsigned long long)ns);
    return class < NBC_STATS_CLASSES ? class : NBC_STATS_CLASSES - 1;
}

void nbc_stats_complete(const struct nbc_alg *alg, int64_t took, int64_t waited)
{
    struct nbc_stats *s = stats_for(alg);
    if (!s)
        return;
    s->completed++;
    s->took += took;
    s->waited += waited < took ? waited : took;
    s->histogram[class_of(took)]++;
}

struct nbc_stats nbc_stats_of(int alg)
{
    return all ? all[alg] : (struct nbc_stats){0};
}
