/* SPDX-License-Identifier: MIT */
/* Whether the launcher has started several processes of which each is alone in MPI_COMM_WORLD: the
 * launcher and the MPI do not understand each other. */
#define _GNU_SOURCE
#include "diag/diag.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct launcher {
    const char *size, *rank; /* variables: how many processes, and which of them this is */
};

/* The launcher of an MPI may itself be started by Slurm, once per node, and its ranks inherit
 * Slurm's variables: those count only if no launcher of an MPI has set its own. */
enum { SLURM = 4 };
static const struct launcher launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"}, /* Hydra; srun --mpi=pmi2 */
    {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
    [SLURM] = {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

static int number(const char *variable)
{
    const char *value = getenv(variable);
    return value ? atoi(value) : 0;
}

/* Of launchers within each other the inner one has started this process; it is not known which one
 * that is, so that none may have started it alone. */
static const struct launcher *starter_of_several(void)
{
    const struct launcher *found = NULL;
    for (int i = 0; i < SLURM; i++) {
        int n = number(launchers[i].size);
        if (n == 1)
            return NULL;
        if (n > 1 && !found)
            found = &launchers[i];
    }
    if (found)
        return found;
    /* In a shell that srun --pty has started, a program that is started there is alone. */
    const struct launcher *slurm = &launchers[SLURM];
    return number(slurm->size) > 1 && !getenv("SLURM_PTY_PORT") ? slurm : NULL;
}

int nbc_launcher_rank(void)
{
    if (getenv("PMIX_RANK"))
        return number("PMIX_RANK");
    for (int i = 0; i <= SLURM; i++)
        if (getenv(launchers[i].rank))
            return number(launchers[i].rank);
    return -1;
}

/* The MPICH of Ubuntu 24.04 asks for its ranks by PMIx alone, which its own launcher does not
 * answer. */
static const char *advice(void)
{
    if (getenv("SLURM_STEP_NUM_TASKS"))
        return " (srun: try another --mpi=)";
    return dlsym(RTLD_DEFAULT, "PMIx_Init") ? " (this one uses PMIx: try mpiexec of Open MPI)" : "";
}

void nbc_launcher_check(int size)
{
    const struct launcher *l = size == 1 ? starter_of_several() : NULL;
    if (!l || number(l->rank) != 0)
        return;
    fprintf(
        stderr,
        "nbcshim: %s=%d, but each of these processes is alone in MPI_COMM_WORLD: the launcher is "
        "not one for this MPI%s\n",
        l->size, number(l->size), advice());
}
