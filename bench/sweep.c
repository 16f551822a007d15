/* SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

#include "nbcshim.h"

#include "model.h"
#include "runner.h"

/* An algorithm on a communicator of its own, whose info names it. */
struct entrant {
    struct operands o;
    struct runner r;
};

static void entrant_free(struct entrant *e)
{
    runner_free(&e->r);
    MPI_Comm_free(&e->o.comm);
}

/* Whether nbcshim leaves a nonblocking call to the MPI, on all ranks. */
static bool goes_to_mpi(struct runner *r)
{
    runner_start(r);
    const char *runs = nbcshim_algorithm(r->request, NULL);
    bool mine = runs && strcmp(runs, "mpi") == 0;
    runner_wait(r);
    return on_all_ranks(r->o->comm, mine);
}

static bool entrant_make(struct entrant *e, const struct operands *o, enum variant v,
                         const struct nbc_alg *alg)
{
    e->o = *o;
    if (alg)
        e->o.comm = comm_with_hint(o->comm, "nbcshim_algorithm", alg->name);
    else
        MPI_Comm_dup(o->comm, &e->o.comm);
    if (runner_make(&e->r, v, &e->o) && !(alg && alg->needs & NBC_BY_MPI && !goes_to_mpi(&e->r)))
        return true;
    entrant_free(e);
    return false;
}

int sweep(struct operands *o, int samples, enum variant v, bool selected,
          struct contender contenders[SWEEP_MOST])
{
    struct entrant *entrants = calloc(SWEEP_MOST, sizeof *entrants);
    struct tool_call call = model_call(o);
    struct tool_rank rank;
    int n = 0, calls = 0;
    if (!entrants || !tool_rank_make(&rank, &call, o->rank)) {
        free(entrants);
        return 0;
    }
    rank.shape.by_mpi = !variant_is_persistent(v);
    for (int i = selected ? -1 : 0; i < nbc_nalgs && n < SWEEP_MOST; i++) {
        const struct nbc_alg *alg = i < 0 ? NULL : &nbc_algs[i];
        if (alg && (alg->coll != o->coll || !nbc_alg_applies(alg, &rank.shape)))
            continue;
        if (!entrant_make(&entrants[n], o, v, alg))
            continue;
        contenders[n].alg = alg;
        calls = calls ? calls : runner_calibrate(&entrants[n].r, 5e-4);
        n++;
    }
    for (int s = 0; s < samples; s++)
        for (int i = 0; i < n; i++)
            entrants[i].r.sample[s] = runner_sample(&entrants[i].r, calls);
    for (int i = 0; i < n; i++) {
        contenders[i].median = quartiles_of(entrants[i].r.sample, samples).median;
        entrant_free(&entrants[i]);
    }
    tool_rank_free(&rank);
    free(entrants);
    return n;
}

int64_t sweep_bytes(const struct operands *o)
{
    struct tool_call call = model_call(o);
    struct tool_rank rank;
    if (!tool_rank_make(&rank, &call, o->rank))
        return -1;
    int64_t bytes = nbc_shape_bytes(&rank.shape);
    tool_rank_free(&rank);
    return bytes;
}
