/* SPDX-License-Identifier: MIT */
#include "groups.h"

#include <stdlib.h>

static MPI_Comm make_comm(int kind, struct rng *shared)
{
    MPI_Comm comm = MPI_COMM_NULL;
    int part = 1 + rng_below(shared, test_size);

    switch (kind) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        break;
    case 1: /* reversed */
        MPI_Comm_split(MPI_COMM_WORLD, 0, test_size - test_rank, &comm);
        break;
    case 2: /* odd and even ranks */
        MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, test_rank * 7 % test_size, &comm);
        break;
    case 3: /* only some */
        MPI_Comm_split(MPI_COMM_WORLD, test_rank < part ? 0 : MPI_UNDEFINED, 0, &comm);
        break;
    case 4:
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        break;
    default:
        comm = topology_random(MPI_COMM_WORLD, shared);
        break;
    }
    return comm;
}

static struct group *make_group(int kind, struct rng *shared)
{
    MPI_Comm comm = make_comm(kind, shared);
    struct group *absent;

    if (comm != MPI_COMM_NULL)
        return group_new(comm);
    absent = test_alloc(sizeof *absent);
    *absent = (struct group){.comm = MPI_COMM_NULL};
    return absent;
}

void groups_make(struct groups *g, struct rng *shared)
{
    *g = (struct groups){.nretired = 0};
    for (int i = 0; i < NGROUPS; i++)
        g->now[i] = make_group(i, shared);
}

void groups_replace(struct groups *g, int i, struct rng *shared)
{
    if (g->now[i]->comm != MPI_COMM_NULL)
        MPI_Comm_free(&g->now[i]->comm);
    g->retired = realloc(g->retired, (size_t)(g->nretired + 1) * sizeof(struct group *));
    if (!g->retired)
        abort();
    g->retired[g->nretired++] = g->now[i];
    g->now[i] = make_group(i, shared);
}

void groups_free(struct groups *g)
{
    for (int i = 0; i < NGROUPS; i++)
        group_delete(g->now[i]);
    for (int i = 0; i < g->nretired; i++)
        group_delete(g->retired[i]);
    free(g->retired);
}
