/* SPDX-License-Identifier: MIT */
#include "op/nodemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/settings.h"
#include "below/quirks.h"
#include "op/rings.h"

#include "fast_network.h"
#include "hash.h"
#include "nodes.h"

static struct {
    int fullest;            /* most ranks on a node; 0: unknown */
    struct nbc_nodes nodes; /* of MPI_COMM_WORLD */
    bool sockets;           /* there are several hosts, without a network faster than sockets */
} world;

bool nbc_oversubscribed = true;

/* A number of this host: that of its name, and of the kernel that it has started, since hosts of a
 * cloud may have one name. */
static uint64_t own_host(void)
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "", started[64] = "";
    int length;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        length = (int)fread(started, 1, sizeof started, file);
        fclose(file);
    }
    NEXT(Get_processor_name)(name, &length);
    return nbc_hash_bytes(name, sizeof name) ^ nbc_hash_bytes(started, sizeof started);
}

/* Finds the nodes of all ranks by their hosts. MPI_Comm_split_type would tell whether the MPI uses
 * shared memory (MPICH 5.0.2 of Debian 14 does not), and takes longer. Collective. */
static int find_nodes(int size)
{
    int64_t host = (int64_t)own_host(), *hosts = malloc((size_t)size * sizeof *hosts);
    if (!hosts)
        return MPI_ERR_NO_MEM; /* unreached: no memory */
    int error =
        NEXT(Allgather)(&host, sizeof host, MPI_BYTE, hosts, sizeof host, MPI_BYTE, MPI_COMM_WORLD);
    if (!error && !nbc_nodes_make(&world.nodes, hosts, size))
        error = MPI_ERR_NO_MEM; /* unreached: no memory */
    free(hosts);
    return error; /* unreached: the MPI fails */
}

/* What any host has is known on all. Nodes that are declared tell nothing of the
 * network. */
static int ask_hosts(int rank, bool declared)
{
    int here = nbc_node_size(&world.nodes, nbc_node_of(&world.nodes, rank)), any[2];
    int mine[] = {here > sysconf(_SC_NPROCESSORS_ONLN), nbc_fast_adapters(NULL, 0) > 0};
    int error = NEXT(Allreduce)(mine, any, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (!error) {
        nbc_oversubscribed = any[0];
        world.sockets = world.nodes.nnodes > 1 && !any[1] && !declared && !NBC_RANKS_ARE_ALIKE;
    }
    return error;
}

int nbc_nodemap_setup(void)
{
    int rank, size, declared = (int)nbc_settings.test.nodes; /* the same on all ranks */
    NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    NEXT(Comm_size)(MPI_COMM_WORLD, &size);
    int error = MPI_SUCCESS;
    if (declared)
        world.nodes = nbc_nodes_blocks(size, declared);
    else
        error = find_nodes(size);
    if (error)
        return error;
    for (int i = 0; i < world.nodes.nnodes; i++) {
        int here = nbc_node_size(&world.nodes, i);
        world.fullest = here > world.fullest ? here : world.fullest;
    }
    error = ask_hosts(rank, declared > 0);
    if (!error && world.fullest > 1 && !NBC_RANKS_ARE_ALIKE)
        error = nbc_rings_setup(&world.nodes, rank);
    return error ? error : NEXT(Comm_group)(MPI_COMM_WORLD, &nbc_world_group);
}

void nbc_nodemap_cleanup(void)
{
    if (world.fullest)
        NEXT(Group_free)(&nbc_world_group);
    world.fullest = 0;
    world.sockets = false;
    nbc_rings_cleanup();
    nbc_nodes_free(&world.nodes);
}

int nbc_nodemap_count(void)
{
    return world.nodes.nnodes;
}

/* Sets *ranks to those of a communicator in MPI_COMM_WORLD, if all have one there; the caller
 * releases them. Returns an MPI error code. */
static int world_ranks(const struct nbc_members *m, MPI_Comm comm, struct nbc_world_ranks **ranks,
                       bool *in_world)
{
    int error = m->in_world ? MPI_SUCCESS : nbc_world_ranks_new(comm, false, m->size, ranks);
    if (m->in_world && (*ranks = m->world))
        m->world->refs++;
    *in_world = !error;
    return error == MPI_ERR_GROUP ? MPI_SUCCESS : error;
}

static int node_at(const struct nbc_world_ranks *ranks, int rank)
{
    return nbc_node_of(&world.nodes, ranks ? ranks->of[rank] : rank);
}

/* Processes of another job have no node: MPICH 4.0 translates their ranks to those of processes of
 * MPI_COMM_WORLD. */
int nbc_nodemap_place(struct nbc_members *m, MPI_Comm comm, bool spans_jobs)
{
    struct nbc_world_ranks *ranks;
    bool in_world;
    m->local = !m->remote_size && m->size == 1;
    m->oversubscribed = m->handshake = m->sockets = false;
    m->mixed = !spans_jobs && !m->remote_size && world.fullest > 1 && world.nodes.nnodes > 1;
    if (m->local || m->remote_size || spans_jobs || (m->size > world.fullest && !world.sockets))
        return MPI_SUCCESS;
    int error = world_ranks(m, comm, &ranks, &in_world);
    if (error)
        return error;
    m->local = in_world;
    for (int i = 1; i < m->size && m->local; i++)
        m->local = node_at(ranks, i) == node_at(ranks, 0);
    nbc_world_ranks_release(ranks);
    m->oversubscribed = m->local && nbc_oversubscribed;
    m->handshake = m->local && NBC_HANDSHAKE_ON_NODE;
    m->sockets = world.sockets && !m->local && in_world;
    return MPI_SUCCESS;
}

/* Returns an empty map if no two ranks share a node, or if not all are in MPI_COMM_WORLD. Returns
 * NULL without memory: only this rank lacks it, so the call must fail. */
static struct nbc_nodes *nodemap_new(const struct nbc_members *m, MPI_Comm comm)
{
    struct nbc_world_ranks *ranks;
    struct nbc_nodes *map = calloc(1, sizeof *map);
    int64_t *where = malloc((size_t)m->size * sizeof *where);
    bool known = false, good = map && where && !world_ranks(m, comm, &ranks, &known);
    for (int i = 0; i < m->size && known; i++)
        where[i] = node_at(ranks, i);
    if (known) {
        nbc_world_ranks_release(ranks);
        good = nbc_nodes_make(map, where, m->size);
    }
    free(where);
    if (!good) {
        /* unreached below: no memory */
        free(map);
        return NULL;
    }
    if (map->nnodes == m->size) {
        nbc_nodes_free(map);
        map->nnodes = 0;
    }
    return map;
}

int nbc_nodemap_of(struct nbc_members *m, MPI_Comm comm, const struct nbc_nodes **map)
{
    *map = NULL;
    if (!m->mixed || m->local)
        return MPI_SUCCESS;
    if (!m->nodes)
        m->nodes = nodemap_new(m, comm);
    if (!m->nodes)
        return MPI_ERR_NO_MEM; /* unreached: no memory */
    if (m->nodes->nnodes > 1)
        *map = m->nodes;
    return MPI_SUCCESS;
}

void nbc_nodemap_free(struct nbc_nodes *map)
{
    if (map)
        nbc_nodes_free(map);
    free(map);
}
