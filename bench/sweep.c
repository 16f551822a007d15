/* SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <stdlib.h>

#include "model.h"

enum { MAX_SAMPLES = 101 };

struct runner {
    MPI_Request request;
    double sample[MAX_SAMPLES];
};

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Seconds per call, of the slowest rank. */
static double sample(struct runner *r, MPI_Comm comm, int calls)
{
    native.Barrier(comm);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        shim.Start(&r->request);
        shim.Wait(&r->request, MPI_STATUS_IGNORE);
    }
    double mine = (MPI_Wtime() - start) / calls, slowest;
    PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm);
    return slowest;
}

/* As many calls as last half a millisecond. */
static int calibrate(struct runner *r, MPI_Comm comm)
{
    sample(r, comm, 1);
    double once = sample(r, comm, 3);
    int calls = once > 0 ? (int)(5e-4 / once) : 1000;
    return calls < 1 ? 1 : calls > 1000 ? 1000 : calls;
}

static bool runner_make(struct runner *r, struct operands *o, const struct nbc_alg *alg)
{
    MPI_Info_create(&o->info);
    MPI_Info_set(o->info, "nbcshim_algorithm", alg->name);
    bool ok = case_init(&shim, o, &r->request);
    MPI_Info_free(&o->info); /* and is MPI_INFO_NULL again */
    return ok;
}

int sweep(struct operands *o, int samples, struct contender contenders[SWEEP_MOST])
{
    struct runner *runners = calloc(SWEEP_MOST, sizeof *runners);
    struct modelled m;
    int n = 0, calls = 0;
    model_shape(o, o->rank, &m);
    for (int i = 0; runners && i < nbc_nalgs && n < SWEEP_MOST; i++) {
        if (nbc_algs[i].coll != o->coll || !nbc_alg_applies(&nbc_algs[i], &m.shape))
            continue;
        if (!runner_make(&runners[n], o, &nbc_algs[i]))
            break;
        contenders[n].alg = &nbc_algs[i];
        calls = calls ? calls : calibrate(&runners[n], o->comm);
        n++;
    }
    samples = samples < MAX_SAMPLES ? samples : MAX_SAMPLES;
    for (int s = 0; s < samples; s++)
        for (int i = 0; i < n; i++)
            runners[i].sample[s] = sample(&runners[i], o->comm, calls);
    for (int i = 0; i < n; i++) {
        qsort(runners[i].sample, samples, sizeof *runners[i].sample, compare);
        contenders[i].median = runners[i].sample[samples / 2];
        shim.Request_free(&runners[i].request);
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
