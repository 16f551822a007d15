/* SPDX-License-Identifier: MIT */
#include "base/stats.h"

#include <stdlib.h>

#include "base/settings.h"

#include "select.h"

struct nbc_stats *nbc_stats_of(int alg)
{
    static struct nbc_stats *all, nobody_reads; /* indexed by row of nbc_algs */
    if (!all && nbc_settings.stats)
        all = calloc(nbc_nalgs, sizeof *all);
    return all ? &all[alg] : &nobody_reads;
}
