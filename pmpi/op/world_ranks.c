/* SPDX-License-Identifier: MIT */
#include "op/world_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "op/nodemap.h"

static int translate(MPI_Comm comm, int inter, int n, int *from, int *to)
{
    MPI_Group group;
    int error = inter ? NEXT(Comm_remote_group)(comm, &group) : NEXT(Comm_group)(comm, &group);
    if (error)
        return error;
    error = NEXT(Group_translate_ranks)(group, n, from, nbc_nodemap_world(), to);
    NEXT(Group_free)(&group);
    for (int i = 0; i < n && !error; i++)
        if (to[i] == MPI_UNDEFINED)
            error = MPI_ERR_GROUP; /* unreached: the MPI fails */
    return error;
}

int nbc_world_ranks_new(MPI_Comm comm, int inter, int n, struct nbc_world_ranks **ranks)
{
    size_t size = (size_t)n * sizeof(int);
    struct nbc_world_ranks *r = malloc(sizeof *r + 2 * size), *half;
    *ranks = NULL;
    if (!r)
        return MPI_ERR_NO_MEM;
    int *own = r->of + n; /* the ranks in the communicator, behind the table */
    for (int i = 0; i < n; i++)
        own[i] = i;
    int error = translate(comm, inter, n, own, r->of);
    if (error || memcmp(own, r->of, size) == 0) {
        free(r);
        return error;
    }
    r->refs = 1;
    half = realloc(r, sizeof *r + size);
    *ranks = half ? half : r;
    return MPI_SUCCESS;
}

void nbc_world_ranks_release(struct nbc_world_ranks *ranks)
{
    if (ranks && --ranks->refs == 0)
        free(ranks);
}
