/* SPDX-License-Identifier: MIT */
/* Which node each rank is on: struct nbc_nodes of coll.h. */
#ifndef NBC_NODES_H
#define NBC_NODES_H

#include "coll.h"

/* Nodes r hold the ranks r · block … (r + 1) · block − 1, the last one what is left. No memory. */
struct nbc_nodes nbc_nodes_blocks(int size, int block);

/* From a number for each rank, any number, the same on the ranks of a node. False: no memory.
 * nodes->nnodes is 1 when all are equal. Free it afterwards. */
bool nbc_nodes_make(struct nbc_nodes *nodes, const int *where, int size);
void nbc_nodes_free(struct nbc_nodes *nodes);

int nbc_node_of(const struct nbc_nodes *nodes, int rank);
int nbc_node_size(const struct nbc_nodes *nodes, int node);

/* The i-th rank of a node, ascending; and back. */
int nbc_node_member(const struct nbc_nodes *nodes, int node, int i);
int nbc_node_index(const struct nbc_nodes *nodes, int rank);

/* How many ranks are on the nodes before this one. */
int nbc_node_start(const struct nbc_nodes *nodes, int node);

/* Whether ranks stand in the order of their nodes: each node has a range of them. */
bool nbc_nodes_ordered(const struct nbc_nodes *nodes);

/* Whether they are ordered and all nodes have as many. */
bool nbc_nodes_equal(const struct nbc_nodes *nodes);

#endif
