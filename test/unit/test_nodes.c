/* SPDX-License-Identifier: MIT */
/* The map of nodes: numbering, members, and that maps that can be said in two numbers take no
 * memory. What is built on it is tested with the other algorithms, but for the size of messages. */
#include "nodes.h"
#include "select.h"
#include "unit.h"

/* Every rank is where the map says it is. */
static void check_map(const struct nbc_nodes *n, const int64_t *where, int size)
{
    int total = 0, lowest = -1;
    ck_assert_int_eq(n->size, size);
    for (int k = 0; k < n->nnodes; k++) {
        ck_assert_int_eq(nbc_node_start(n, k), total);
        total += nbc_node_size(n, k);
        ck_assert_int_gt(nbc_node_member(n, k, 0), lowest); /* numbered by their lowest rank */
        lowest = nbc_node_member(n, k, 0);
        for (int i = 0; i < nbc_node_size(n, k); i++) {
            int rank = nbc_node_member(n, k, i);
            ck_assert_int_eq(nbc_node_of(n, rank), k);
            ck_assert_int_eq(nbc_node_index(n, rank), i);
            ck_assert_int_eq(where[rank], where[nbc_node_member(n, k, 0)]);
            ck_assert(i == 0 || nbc_node_member(n, k, i - 1) < rank);
        }
    }
    ck_assert_int_eq(total, size);
    for (int x = 0; x < size; x++)
        for (int y = 0; y < size; y++)
            ck_assert((where[x] == where[y]) == (nbc_node_of(n, x) == nbc_node_of(n, y)));
}

UNIT(any_map)
{
    static const struct {
        int size, nnodes;
        bool ordered, equal, small;
        int64_t where[12];
    } table[] = {
        {1, 1, true, true, true, {7}},
        {6, 1, true, true, true, {3, 3, 3, 3, 3, 3}},
        {6, 2, true, true, true, {9, 9, 9, 1, 1, 1}},
        {7, 3, true, false, true, {9, 9, 9, 1, 1, 1, 4}},
        {7, 2, true, false, false, {9, 9, 9, 1, 1, 1, 1}},
        {6, 2, false, false, false, {0, 1, 0, 1, 0, 1}},
        {8, 4, false, false, false, {-5, 100, 100, 2, -5, 3, 3, 2}},
        {5, 5, true, true, true, {4, 3, 2, 1, 0}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct nbc_nodes n;
        need(nbc_nodes_make(&n, table[i].where, table[i].size));
        ck_assert_int_eq(n.nnodes, table[i].nnodes);
        ck_assert(n.ordered == table[i].ordered);
        ck_assert(nbc_nodes_equal(&n) == table[i].equal);
        ck_assert((n.node_of == NULL) == table[i].small);
        check_map(&n, table[i].where, table[i].size);
        nbc_nodes_free(&n);
    }
}

UNIT(blocks)
{
    for (int size = 1; size <= 20; size++)
        for (int block = 1; block <= size; block++) {
            int64_t where[20];
            for (int i = 0; i < size; i++)
                where[i] = i / block;
            struct nbc_nodes n = nbc_nodes_blocks(size, block);
            check_map(&n, where, size);
            ck_assert(nbc_nodes_equal(&n) == (size % block == 0));
        }
}

/* Bytes of the longest message of a broadcast by nodes. */
static int64_t longest(int64_t segment)
{
    static const struct nbc_type types[] = {
        {1, 1, 0, 1, true}, {8, 8, 0, 8, true}, {8, 8, 0, 8, true}};
    const struct nbc_nodes nodes = nbc_nodes_blocks(12, 3);
    struct nbc_shape shape = {.coll = NBC_BCAST,
                              .size = 12,
                              .nodes = &nodes,
                              .segment = segment,
                              .types = types,
                              .ntypes = 3,
                              .recv = {.count = 16000, .type = NBC_TYPE_RECV}};
    int64_t most = 0;
    for (shape.rank = 0; shape.rank < shape.size; shape.rank++) {
        struct nbc_sched *s = nbc_build(nbc_alg_by_name(NBC_BCAST, "hierarchical")->build, &shape);
        need(s);
        for (int i = 0; i < s->nops; i++) {
            int64_t bytes = nbc_ref_bytes(&shape, nbc_op_a(&s->ops[i]));
            if (s->ops[i].kind == NBC_OP_SEND && bytes > most)
                most = bytes;
        }
        nbc_sched_free(s);
    }
    return most;
}

UNIT(parts_take_the_segments_of_the_call)
{
    ck_assert_int_eq(longest(128000), 128000);
    ck_assert_int_eq(longest(4096), 4096);
    ck_assert_int_gt(longest(0), 4096);
}
