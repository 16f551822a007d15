/* SPDX-License-Identifier: MIT */
/* Names of the collectives, and the number of bytes that selection goes by. */
#include <string.h>

#include "coll.h"
#include "unit.h"

UNIT(names_lead_back)
{
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++) {
        const char *name = nbc_coll_name(coll);
        ck_assert_int_eq(nbc_coll_by_name(name), coll);
        for (const char *c = name; *c; c++)
            ck_assert((*c >= 'a' && *c <= 'z') || *c == '_');
    }
    ck_assert_int_eq(NBC_NCOLLS, 22);
    ck_assert_int_eq(nbc_coll_by_name("allreduces"), NBC_NCOLLS);
    ck_assert_int_eq(nbc_coll_by_name(""), NBC_NCOLLS);
    ck_assert_int_eq(nbc_coll_by_name("Reduce_SCATTER"), NBC_REDUCE_SCATTER);
    ck_assert_int_eq(nbc_coll_by_name("REDUCE_SCATTE"), NBC_NCOLLS);
    ck_assert_int_eq(nbc_coll_by_name("REDUCE@SCATTER"), NBC_NCOLLS);
}

UNIT(names_of_orders_lead_back)
{
    enum nbc_order order = NBC_ORDER_ANY;
    for (enum nbc_order o = NBC_ORDER_ANY; o <= NBC_ORDER_TREE; o++) {
        ck_assert(nbc_order_by_name(nbc_order_name(o), &order));
        ck_assert_int_eq(order, o);
    }
    ck_assert(!nbc_order_by_name("forest", &order));
    ck_assert_int_eq(order, NBC_ORDER_TREE);
}

UNIT(reducing_collectives_are_told_by_their_names)
{
    int n = 0;
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++) {
        const char *name = nbc_coll_name(coll);
        bool reduces = strstr(name, "reduce") || strstr(name, "scan");
        ck_assert_msg(nbc_coll_reduces(coll) == reduces, "%s", name);
        n += reduces;
    }
    ck_assert_int_eq(n, 6);
}

static const struct nbc_type types[] = {
    {1, 1, 0, 1, true}, {4, 8, 0, 4, false}, {10, 10, 0, 10, true}};
/* Of five ranks, and what lies behind. */
static const int32_t counts[] = {3, 0, 7, 1, 6, 1000};
static const int64_t wide_counts[] = {3, 0, 7, 1, 6, 1000};

static struct nbc_shape shape_of(enum nbc_coll coll)
{
    return (struct nbc_shape){
        .coll = coll,
        .size = 5,
        .types = types,
        .ntypes = 3,
        .send = {.count = 6, .type = NBC_TYPE_SEND},
        .recv = {.count = 9, .type = NBC_TYPE_RECV},
    };
}

static int64_t bytes_of(enum nbc_coll coll)
{
    struct nbc_shape s = shape_of(coll);
    return nbc_shape_bytes(&s);
}

UNIT(bytes_of_whole_vectors_and_single_blocks)
{
    ck_assert_int_eq(bytes_of(NBC_BARRIER), 0);
    ck_assert_int_eq(bytes_of(NBC_BCAST), 90);
    ck_assert_int_eq(bytes_of(NBC_GATHER), 24);
    ck_assert_int_eq(bytes_of(NBC_SCATTER), 90);
    ck_assert_int_eq(bytes_of(NBC_ALLGATHER), 90);
    ck_assert_int_eq(bytes_of(NBC_ALLTOALL), 90);
    ck_assert_int_eq(bytes_of(NBC_REDUCE), 24);
    ck_assert_int_eq(bytes_of(NBC_ALLREDUCE), 90);
    ck_assert_int_eq(bytes_of(NBC_REDUCE_SCATTER_BLOCK), 90);
    ck_assert_int_eq(bytes_of(NBC_SCAN), 24);
    ck_assert_int_eq(bytes_of(NBC_EXSCAN), 24);
    struct nbc_shape s = shape_of(NBC_GATHER);
    s.in_place = true;
    ck_assert_int_eq(nbc_shape_bytes(&s), 90);
    s.coll = NBC_SCATTER;
    ck_assert_int_eq(nbc_shape_bytes(&s), 24);
}

UNIT(bytes_of_uneven_blocks_are_their_mean)
{
    struct nbc_shape s = shape_of(NBC_ALLGATHERV);
    s.recv.counts = (struct nbc_ints){counts, 4};
    ck_assert_int_eq(nbc_shape_bytes(&s), 17 * 10 / 5);
    s.recv.counts = (struct nbc_ints){wide_counts, 8};
    ck_assert_int_eq(nbc_shape_bytes(&s), 17 * 10 / 5);
    s = shape_of(NBC_REDUCE_SCATTER);
    s.send.counts = (struct nbc_ints){counts, 4};
    ck_assert_int_eq(nbc_shape_bytes(&s), 17 * 4 / 5);
}

/* Of 5 ranks here and 4 there: the others have the two sides the other way round. */
UNIT(bytes_between_groups_are_the_same_in_both)
{
    const enum nbc_coll both[] = {NBC_ALLGATHER, NBC_ALLTOALL};
    for (int i = 0; i < 2; i++) {
        struct nbc_shape here = shape_of(both[i]), there = shape_of(both[i]);
        here.remote_size = 4;
        there.size = 4;
        there.remote_size = 5;
        there.send = here.recv;
        there.recv = here.send;
        ck_assert_int_eq(nbc_shape_bytes(&here), (24 + 90) / 2);
        ck_assert_int_eq(nbc_shape_bytes(&there), (24 + 90) / 2);
    }
    struct nbc_shape s = shape_of(NBC_REDUCE_SCATTER);
    s.remote_size = 4;
    s.send.counts = (struct nbc_ints){counts, 4};
    ck_assert_int_eq(nbc_shape_bytes(&s), 2 * 17 * 4 / 9);
    const struct {
        enum nbc_coll coll;
        int64_t bytes;
    } others[] = {{NBC_BARRIER, 0},
                  {NBC_BCAST, -1},
                  {NBC_ALLREDUCE, 90},
                  {NBC_REDUCE_SCATTER_BLOCK, 2 * 5 * 90 / 9}};
    for (int i = 0; i < 4; i++) {
        s = shape_of(others[i].coll);
        s.remote_size = 4;
        ck_assert_int_eq(nbc_shape_bytes(&s), others[i].bytes);
    }
}

UNIT(bytes_that_no_rank_knows)
{
    const enum nbc_coll colls[] = {
        NBC_GATHERV,           NBC_SCATTERV,           NBC_ALLTOALLV,
        NBC_ALLTOALLW,         NBC_NEIGHBOR_ALLGATHER, NBC_NEIGHBOR_ALLGATHERV,
        NBC_NEIGHBOR_ALLTOALL, NBC_NEIGHBOR_ALLTOALLV, NBC_NEIGHBOR_ALLTOALLW};
    for (size_t i = 0; i < sizeof colls / sizeof *colls; i++)
        ck_assert_int_eq(bytes_of(colls[i]), -1);
}

UNIT(bytes_above_32_bits)
{
    struct nbc_shape s = shape_of(NBC_BCAST);
    s.recv.count = INT64_C(1) << 33;
    ck_assert_int_eq(nbc_shape_bytes(&s), 10 * (INT64_C(1) << 33));
    s = shape_of(NBC_REDUCE_SCATTER);
    const int32_t many[] = {2000000000, 2000000000, 2000000000, 2000000000, 2000000000};
    s.send.counts = (struct nbc_ints){many, 4};
    ck_assert_int_eq(nbc_shape_bytes(&s), INT64_C(8000000000));
}
