/* SPDX-License-Identifier: MIT */
#include "op/world_ranks.h"

#include <stdbool.h>
#include <stdlib.h>

#include "op/nodemap.h"

/* Translates n ranks of a group, from `first` on; n is at most BATCH. */
enum { BATCH = 64 };

static int translate(MPI_Group group, MPI_Group world, int first, int n, int *to)
{
    int from[BATCH] = {first}; /* n > 0, but gcc -O1 warns */
    for (int i = 0; i < n; i++)
        from[i] = first + i;
    int error = NEXT(Group_translate_ranks)(group, n, from, world, to);
    for (int i = 0; i < n && !error; i++)
        if (to[i] == MPI_UNDEFINED)
            error = MPI_ERR_GROUP; /* unreached: the MPI fails */
    return error;
}

static int translate_all(MPI_Group group, MPI_Group world, int n, int *to)
{
    int error = MPI_SUCCESS;
    for (int first = 0; first < n && !error; first += BATCH)
        error = translate(group, world, first, n - first < BATCH ? n - first : BATCH, to + first);
    return error;
}

static bool is_identity(const int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] != i)
            return false;
    return true;
}

int nbc_world_ranks_new(MPI_Comm comm, int inter, int n, struct nbc_world_ranks **ranks)
{
    MPI_Group group;
    struct nbc_world_ranks *r = malloc(sizeof *r + (size_t)n * sizeof r->of[0]);
    *ranks = NULL;
    if (!r)
        return MPI_ERR_NO_MEM;
    int error = inter ? NEXT(Comm_remote_group)(comm, &group) : NEXT(Comm_group)(comm, &group);
    if (!error) {
        error = translate_all(group, nbc_nodemap_world(), n, r->of);
        NEXT(Group_free)(&group);
    }
    if (error || is_identity(r->of, n)) {
        free(r);
        return error;
    }
    r->refs = 1;
    *ranks = r;
    return MPI_SUCCESS;
}

void nbc_world_ranks_release(struct nbc_world_ranks *ranks)
{
    if (ranks && --ranks->refs == 0)
        free(ranks);
}
