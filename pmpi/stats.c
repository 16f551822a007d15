/* SPDX-License-Identifier: MIT */
#include "stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "env.h"

struct count {
    int64_t calls, bytes;
    bool unknown; /* of some calls no bytes are known */
};

static struct count *counts; /* by row of nbc_algs; under the lock */

void nbc_stats_count(const struct nbc_alg *alg, int64_t bytes)
{
    if (!nbc_settings.stats)
        return;
    if (!counts)
        counts = calloc(nbc_nalgs, sizeof *counts);
    if (!counts)
        return;
    struct count *c = &counts[alg - nbc_algs];
    c->calls++;
    if (bytes >= 0)
        c->bytes += bytes;
    else
        c->unknown = true;
}

void nbc_stats_print(void)
{
    fprintf(stderr, "nbcshim: %-22s %-22s %12s %16s\n", "collective", "algorithm", "calls", "bytes");
    for (int i = 0; i < nbc_nalgs; i++) {
        if (!counts || counts[i].calls == 0)
            continue;
        char bytes[32] = "-"; /* the data of vector collectives is known to each rank in part */
        if (!counts[i].unknown)
            snprintf(bytes, sizeof bytes, "%" PRId64, counts[i].bytes);
        fprintf(stderr, "nbcshim: %-22s %-22s %12" PRId64 " %16s\n", nbc_coll_name(nbc_algs[i].coll),
                nbc_algs[i].name, counts[i].calls, bytes);
    }
}
