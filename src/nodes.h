/* SPDX-License-Identifier: MIT */
/* Node maps: which node each rank is on (struct nbc_nodes of coll.h). */
#ifndef NBC_NODES_H
#define NBC_NODES_H

#include "coll.h"

/* Returns the map in which node r has the ranks r · block … (r + 1) · block − 1, and the last node
 * the remaining ones. It holds no memory. */
struct nbc_nodes nbc_nodes_blocks(int size, int block);

/* Makes the map from one number per rank, equal on ranks that share a node. nodes->nnodes is 1 if
 * all numbers are equal. Returns false if memory ran out. Free the map by nbc_nodes_free. */
bool nbc_nodes_make(struct nbc_nodes *nodes, const int64_t *where, int size);
void nbc_nodes_free(struct nbc_nodes *nodes);

/* The node of a rank, and the number of ranks on a node. */
int nbc_node_of(const struct nbc_nodes *nodes, int rank);
int nbc_node_size(const struct nbc_nodes *nodes, int node);

/* The i-th rank of a node, in ascending order, and the index of a rank on its node. */
int nbc_node_member(const struct nbc_nodes *nodes, int node, int i);
int nbc_node_index(const struct nbc_nodes *nodes, int rank);

/* The number of ranks on all nodes before this one. */
int nbc_node_start(const struct nbc_nodes *nodes, int node);

/* Whether every node has a contiguous range of ranks, all of the same number. */
bool nbc_nodes_equal(const struct nbc_nodes *nodes);

#endif
