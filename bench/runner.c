/* SPDX-License-Identifier: MIT */
#include "runner.h"

#include <stdlib.h>

#include "model.h"

const char *const variant_names[NVARIANTS] = {"shim", "native", "rounds", "shim_persistent",
                                              "native_persistent"};

/* --- one variant of a collective ---------------------------------------------------------------*/

bool variant_is_persistent(enum variant v)
{
    return v == SHIM_PERSISTENT || v == NATIVE_PERSISTENT;
}

static bool runner_set_up(struct runner *r)
{
    if (r->variant == ROUNDS)
        return (r->rounds = rounds_new(r->o, r->o->comm)) != NULL;
    if (variant_is_persistent(r->variant))
        return operands_init(r->calls, r->o, &r->request);
    return operands_start(r->calls, r->o, &r->request) &&
           !r->calls->Wait(&r->request, MPI_STATUS_IGNORE);
}

bool runner_make(struct runner *r, enum variant v, const struct operands *o)
{
    bool ours = v == SHIM || v == SHIM_PERSISTENT;
    r->variant = v;
    r->o = o;
    r->calls = ours ? &shim : &native;
    r->request = MPI_REQUEST_NULL;
    r->rounds = NULL;
    return on_all_ranks(o->comm, runner_set_up(r));
}

void runner_free(struct runner *r)
{
    rounds_free(r->rounds);
    r->rounds = NULL;
    if (r->calls && r->request != MPI_REQUEST_NULL)
        r->calls->Request_free(&r->request);
    r->calls = NULL;
}

void runner_start(struct runner *r)
{
    if (variant_is_persistent(r->variant))
        r->calls->Start(&r->request);
    else
        operands_start(r->calls, r->o, &r->request);
}

void runner_wait(struct runner *r)
{
    r->calls->Wait(&r->request, MPI_STATUS_IGNORE);
}

bool runner_test(struct runner *r)
{
    int flag;
    r->calls->Test(&r->request, &flag, MPI_STATUS_IGNORE);
    return flag;
}

volatile sig_atomic_t runner_runs;

static void runner_run(struct runner *r)
{
    if (r->variant == ROUNDS) {
        rounds_run(r->rounds, r->o);
    } else {
        runner_start(r);
        runner_wait(r);
    }
    runner_runs = (runner_runs + 1) & 0xffff;
}

/* --- samples -----------------------------------------------------------------------------------*/

bool on_all_ranks(MPI_Comm comm, bool mine)
{
    int here = mine, all;
    PMPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MIN, comm);
    return all;
}

void of_slowest(MPI_Comm comm, double *figures, int n)
{
    PMPI_Allreduce(MPI_IN_PLACE, figures, n, MPI_DOUBLE, MPI_MAX, comm);
}

void runner_warm_up(MPI_Comm comm, int samples)
{
    enum { COUNT = 4096 };
    static double mine[COUNT], sum[COUNT];
    double start = MPI_Wtime(), passed = 0, enough = 0.3;
    if (samples < ENOUGH)
        enough *= (double)samples / ENOUGH;
    while (passed < enough) {
        for (int i = 0; i < 20; i++)
            PMPI_Allreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, comm);
        passed = MPI_Wtime() - start;
        of_slowest(comm, &passed, 1);
    }
}

double runner_sample(struct runner *r, int calls)
{
    MPI_Comm comm = r->o->comm;
    native.Barrier(comm);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        runner_run(r);
    double each = (MPI_Wtime() - start) / calls;
    of_slowest(comm, &each, 1);
    return each;
}

int runner_calibrate(struct runner *r, double seconds)
{
    runner_sample(r, 1);
    double once = runner_sample(r, 3);
    int calls = once > 0 ? (int)(seconds / once) : 2000;
    return calls < 1 ? 1 : calls > 2000 ? 2000 : calls;
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

struct quartiles quartiles_of(double *samples, int n)
{
    qsort(samples, n, sizeof *samples, compare);
    return (struct quartiles){samples[n / 2], samples[n / 4], samples[n - 1 - n / 4]};
}
