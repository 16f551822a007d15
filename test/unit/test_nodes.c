/* SPDX-License-Identifier: MIT */
/* The map of nodes: numbering, members, and that maps that can be said in two numbers take no
 * memory. What is built on it is tested with the other algorithms. */
#include "nodes.h"
#include "unit.h"

/* Every rank is where the map says it is. */
static void check_map(const struct nbc_nodes *n, const int *where, int size)
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

START_TEST(any_map)
{
    static const struct {
        int size, nnodes;
        bool ordered, equal, small;
        int where[12];
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
        ck_assert(nbc_nodes_ordered(&n) == table[i].ordered);
        ck_assert(nbc_nodes_equal(&n) == table[i].equal);
        ck_assert((n.node_of == NULL) == table[i].small);
        check_map(&n, table[i].where, table[i].size);
        nbc_nodes_free(&n);
    }
}
END_TEST

START_TEST(blocks)
{
    for (int size = 1; size <= 20; size++)
        for (int block = 1; block <= size; block++) {
            int where[20];
            for (int i = 0; i < size; i++)
                where[i] = i / block;
            struct nbc_nodes n = nbc_nodes_blocks(size, block);
            check_map(&n, where, size);
            ck_assert(nbc_nodes_equal(&n) == (size % block == 0));
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodes");
    TCase *tcase = tcase_create("nodes");
    tcase_add_test(tcase, any_map);
    tcase_add_test(tcase, blocks);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
