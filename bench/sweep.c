/* SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <stdlib.h>

#include "model.h"
#include "runner.h"

static bool sweep_set_up(struct runner *r, struct operands *o, const struct nbc_alg *alg)
{
    if (!alg)
        return runner_make(r, SHIM_PERSISTENT, o);
    MPI_Info_create(&o->info);
    MPI_Info_set(o->info, "nbcshim_algorithm", alg->name);
    bool ok = runner_make(r, SHIM_PERSISTENT, o);
    MPI_Info_free(&o->info); /* sets it to MPI_INFO_NULL */
    return ok;
}

int sweep(struct operands *o, int samples, bool selected, struct contender contenders[SWEEP_MOST])
{
    struct runner *runners = calloc(SWEEP_MOST, sizeof *runners);
    struct modelled m;
    int n = 0, calls = 0;
    model_shape(o, o->rank, &m);
    for (int i = selected ? -1 : 0; runners && i < nbc_nalgs && n < SWEEP_MOST; i++) {
        const struct nbc_alg *alg = i < 0 ? NULL : &nbc_algs[i];
        if (alg && (alg->coll != o->coll || !nbc_alg_applies(alg, &m.shape)))
            continue;
        if (!sweep_set_up(&runners[n], o, alg))
            break;
        contenders[n].alg = alg;
        calls = calls ? calls : runner_calibrate(&runners[n], 5e-4);
        n++;
    }
    for (int s = 0; s < samples; s++)
        for (int i = 0; i < n; i++)
            runners[i].sample[s] = runner_sample(&runners[i], calls);
    for (int i = 0; i < n; i++) {
        contenders[i].median = quartiles_of(runners[i].sample, samples).median;
        runner_free(&runners[i]);
    }
    free(runners);
    return n;
}

int64_t sweep_bytes(const struct operands *o)
{
    struct modelled m;
    model_shape(o, o->rank, &m);
    return nbc_shape_bytes(&m.shape);
}
