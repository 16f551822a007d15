/* SPDX-License-Identifier: MIT */
#include "nodemap.h"

#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "nodes.h"

static struct {
    bool known;             /* some processes share a node, not all do */
    struct nbc_nodes nodes; /* of MPI_COMM_WORLD */
    MPI_Group group;
    bool useful[NBC_NCOLLS]; /* an algorithm of the collective wants to know */
} world;

/* A number for this process's node, and whether the answer is the same for all: then there is
 * nothing to know. */
struct here {
    int node;
    bool trivial;
};

#ifdef HAVE_MPI_COMM_SPLIT_TYPE
/* By memory that can be shared: the node is called by the lowest rank on it. */
static int ask(int rank, int size, struct here *here)
{
    MPI_Comm node;
    int error =
        NEXT(Comm_split_type)(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    if (error)
        return error;
    int local, most[2], mine[2];
    here->node = rank;
    NEXT(Comm_size)(node, &local);
    error = NEXT(Bcast)(&here->node, 1, MPI_INT, 0, node);
    NEXT(Comm_free)(&node);
    mine[0] = local;
    mine[1] = -local;
    if (!error)
        error = NEXT(Allreduce)(mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    here->trivial = !error && (most[0] == 1 || -most[1] == size);
    return error;
}
#else
/* By the processor's name: the node is called by the lowest rank with this one's. */
static int ask(int rank, int size, struct here *here)
{
    enum { LENGTH = MPI_MAX_PROCESSOR_NAME + 1 };
    char name[LENGTH] = "", *names = malloc((size_t)size * LENGTH);
    int length;
    if (!names)
        return MPI_ERR_NO_MEM;
    NEXT(Get_processor_name)(name, &length);
    int error = NEXT(Allgather)(name, LENGTH, MPI_CHAR, names, LENGTH, MPI_CHAR, MPI_COMM_WORLD);
    here->node = rank;
    here->trivial = false;
    for (int i = rank - 1; i >= 0 && !error; i--)
        if (strcmp(name, names + (size_t)i * LENGTH) == 0)
            here->node = i;
    free(names);
    return error;
}
#endif

/* Asks all ranks where they are. */
static int find(int rank, int size)
{
    struct here here;
    int error = ask(rank, size, &here);
    if (error || here.trivial)
        return error;
    int *where = malloc((size_t)size * sizeof *where);
    if (!where)
        return MPI_ERR_NO_MEM;
    error = NEXT(Allgather)(&here.node, 1, MPI_INT, where, 1, MPI_INT, MPI_COMM_WORLD);
    if (!error && !nbc_nodes_make(&world.nodes, where, size))
        error = MPI_ERR_NO_MEM;
    free(where);
    return error;
}

int nbc_nodemap_setup(void)
{
    int rank, size, declared, mine = (int)nbc_settings.nodes;
    NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    NEXT(Comm_size)(MPI_COMM_WORLD, &size);
    int error = NEXT(Allreduce)(&mine, &declared, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (!error && declared)
        world.nodes = nbc_nodes_blocks(size, declared);
    else if (!error)
        error = find(rank, size);
    if (error)
        return error;
    world.known = world.nodes.nnodes > 1 && world.nodes.nnodes < size;
    for (int i = 0; i < nbc_nalgs; i++)
        world.useful[nbc_algs[i].coll] |= (nbc_algs[i].needs & NBC_NODES) != 0;
    return world.known ? NEXT(Comm_group)(MPI_COMM_WORLD, &world.group) : MPI_SUCCESS;
}

void nbc_nodemap_cleanup(void)
{
    if (world.known)
        NEXT(Group_free)(&world.group);
    world.known = false;
    nbc_nodes_free(&world.nodes);
}

/* where[i] is the node of rank i; false for processes that are not of MPI_COMM_WORLD, or an error.
 */
static bool locate(const struct nbc_context *c, int *ranks, int *where)
{
    MPI_Group group;
    for (int i = 0; i < c->size; i++)
        ranks[i] = i;
    if (NEXT(Comm_group)(c->hidden, &group))
        return false;
    int error = NEXT(Group_translate_ranks)(group, c->size, ranks, world.group, where);
    NEXT(Group_free)(&group);
    for (int i = 0; i < c->size && !error; i++) {
        if (where[i] == MPI_UNDEFINED)
            return false;
        where[i] = nbc_node_of(&world.nodes, where[i]);
    }
    return !error;
}

/* Of no use: an empty map. NULL: no memory, here alone: the call must fail. */
static struct nbc_nodes *make(const struct nbc_context *c)
{
    struct nbc_nodes *map = calloc(1, sizeof *map);
    int *ranks = malloc(2 * (size_t)c->size * sizeof *ranks);
    bool good = map && ranks;
    if (good && locate(c, ranks, ranks + c->size))
        good = nbc_nodes_make(map, ranks + c->size, c->size);
    free(ranks);
    if (!good) {
        free(map);
        return NULL;
    }
    if (map->nnodes == 1 || map->nnodes == c->size) {
        nbc_nodes_free(map);
        map->nnodes = 0;
    }
    return map;
}

int nbc_nodemap_of(struct nbc_context *c, enum nbc_coll coll, const struct nbc_nodes **map)
{
    *map = NULL;
    if (!world.known || !world.useful[coll] || c->remote_size)
        return MPI_SUCCESS;
    if (!c->nodes)
        c->nodes = make(c);
    if (!c->nodes)
        return MPI_ERR_NO_MEM;
    if (c->nodes->nnodes > 1)
        *map = c->nodes;
    return MPI_SUCCESS;
}

void nbc_nodemap_free(struct nbc_nodes *map)
{
    if (map)
        nbc_nodes_free(map);
    free(map);
}
