/* SPDX-License-Identifier: MIT */
#include "nodes.h"

#include <stdlib.h>

struct nbc_nodes nbc_nodes_blocks(int size, int block)
{
    int nnodes = size / block + (size % block != 0);
    return (struct nbc_nodes){.size = size, .nnodes = nnodes, .block = block, .ordered = true};
}

struct named {
    int64_t where;
    int rank;
};

static int by_name(const void *x, const void *y)
{
    const struct named *a = x, *b = y;
    if (a->where != b->where)
        return a->where < b->where ? -1 : 1;           /* mutants: <= for <: unequal */
    return a->rank < b->rank ? -1 : a->rank > b->rank; /* mutants: <= for <, >= for >: unequal */
}

/* Numbers the nodes in the order of their lowest ranks: sets node_of[rank]. Returns the number of
 * nodes, or 0 if memory ran out. */
static int number(const int64_t *where, int size, int *node_of)
{
    struct named *list = malloc((size_t)size * sizeof *list);
    int nnodes = 0;
    if (!list)
        return 0; /* unreached: no memory */
    for (int i = 0; i < size; i++)
        list[i] = (struct named){where[i], i};
    qsort(list, (size_t)size, sizeof *list, by_name);
    for (int i = 0, lowest = 0; i < size; i++) { /* which identifies a node until it has a number */
        lowest = i > 0 && list[i].where == list[i - 1].where ? lowest : list[i].rank;
        node_of[list[i].rank] = lowest;
    }
    for (int i = 0; i < size; i++)
        node_of[i] = node_of[i] == i ? nnodes++ : node_of[node_of[i]];
    free(list);
    return nnodes;
}

/* Returns the length of the blocks if nodes are contiguous blocks of it, else 0. */
static int block_of(const int *node_of, int size)
{
    int block = 0;
    while (block < size && node_of[block] == 0)
        block++;
    for (int i = 0; i < size; i++)
        if (node_of[i] != i / block)
            return 0;
    return block;
}

static bool is_ordered(const int *node_of, int size)
{
    for (int i = 1; i < size; i++)
        if (node_of[i] < node_of[i - 1])
            return false;
    return true;
}

/* Lists the ranks node by node, by a counting sort. */
static void list_members(struct nbc_nodes *n, int *first, int *member)
{
    for (int k = 0; k <= n->nnodes; k++)
        first[k] = 0;
    for (int i = 0; i < n->size; i++)
        first[n->node_of[i] + 1]++;
    for (int k = 0; k < n->nnodes; k++) /* mutants: <= for <: an entry that nobody reads */
        first[k + 1] += first[k];
    for (int i = 0; i < n->size; i++)
        member[first[n->node_of[i]]++] = i;
    for (int k = n->nnodes; k > 0; k--) /* mutants: >= for >: all are written once more */
        first[k] = first[k - 1];
    first[0] = 0;
}

bool nbc_nodes_make(struct nbc_nodes *nodes, const int64_t *where, int size)
{
    /* One allocation for node_of, member and first. */
    int *memory = malloc((3 * (size_t)size + 1) * sizeof *memory);
    *nodes = (struct nbc_nodes){.size = size};
    int nnodes = memory ? number(where, size, memory) : 0;
    if (nnodes == 0) {
        free(memory); /* unreached: no memory */
        return false;
    }
    int block = block_of(memory, size);
    if (block > 0) {
        free(memory);
        *nodes = nbc_nodes_blocks(size, block);
        return true;
    }
    *nodes = (struct nbc_nodes){.size = size,
                                .nnodes = nnodes,
                                .ordered = is_ordered(memory, size),
                                .node_of = memory,
                                .member = memory + size,
                                .first = memory + 2 * (size_t)size};
    list_members(nodes, memory + 2 * (size_t)size, memory + size);
    return true;
}

void nbc_nodes_free(struct nbc_nodes *nodes)
{
    free((int *)nodes->node_of);
    nodes->node_of = NULL;
}

int nbc_node_of(const struct nbc_nodes *n, int rank)
{
    return n->block ? rank / n->block : n->node_of[rank];
}

int nbc_node_start(const struct nbc_nodes *n, int node)
{
    if (!n->block)
        return n->first[node];
    return node < n->nnodes ? node * n->block : n->size;
}

int nbc_node_size(const struct nbc_nodes *n, int node)
{
    return nbc_node_start(n, node + 1) - nbc_node_start(n, node);
}

int nbc_node_member(const struct nbc_nodes *n, int node, int i)
{
    return n->block ? node * n->block + i : n->member[n->first[node] + i];
}

int nbc_node_index(const struct nbc_nodes *n, int rank)
{
    /* mutants: forget - 1: an entry more, where the search ends at the same one */
    int node = nbc_node_of(n, rank), low = 0, high = nbc_node_size(n, node) - 1;
    if (n->block)
        return rank % n->block;
    while (low < high) {
        int middle = (low + high) / 2;
        if (nbc_node_member(n, node, middle) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool nbc_nodes_equal(const struct nbc_nodes *n)
{
    return n->block > 0 && n->size % n->block == 0;
}
