/* SPDX-License-Identifier: MIT */
/* Whether ranks use a pattern of their edges (pattern.h), and how they share it. That the schedules
 * made of it are right is tested in test_algs and test_uses. */
#include <stdlib.h>

#include "nodes.h"
#include "pattern.h"
#include "select.h"
#include "unit.h"

static const struct nbc_type types[NBC_TYPE_FIRST_PEER] = {
    {1, 1, 0, 1, true}, {4, 4, 0, 4, true}, {4, 4, 0, 4, true}};

static struct nbc_shape shape_of(int rank, const struct nbc_neighbors *neighbors,
                                 const struct nbc_nodes *nodes)
{
    return (struct nbc_shape){.coll = NBC_NEIGHBOR_ALLTOALL,
                              .rank = rank,
                              .size = nodes->size,
                              .types = types,
                              .ntypes = NBC_TYPE_FIRST_PEER,
                              .send = {.count = 3, .type = NBC_TYPE_SEND},
                              .recv = {.count = 3, .type = NBC_TYPE_RECV},
                              .neighbors = neighbors,
                              .nodes = nodes};
}

/* In the order of the numbers: linear; apart, within nodes and between; together, likewise. One
 * more step takes 600. */
UNIT(the_gain_must_be_a_fifth)
{
    const struct {
        int64_t numbers[NBC_PATTERN_NUMBERS];
        bool forced;
        enum nbc_pattern_choice choice;
    } cases[] = {
        {{10000, 400, 7000, 400, 6401}, false, NBC_PATTERN_APART},
        {{10000, 400, 7001, 400, 6400}, false, NBC_PATTERN_TOGETHER},
        {{10000, 400, 7001, 400, 6401}, false, NBC_PATTERN_NEITHER},
        {{10000, 400, 7001, 400, 6402}, true, NBC_PATTERN_APART},
        {{10000, 400, 9000, 400, 8000}, true, NBC_PATTERN_TOGETHER},
        {{0, 0, 0, 0, 0}, false, NBC_PATTERN_NEITHER},
        {{INT64_MAX, INT64_MAX / 8, 0, INT64_MAX / 8, 1}, false, NBC_PATTERN_APART},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(nbc_pattern_choose(cases[i].numbers, cases[i].forced), cases[i].choice);
}

/* Messages between nodes take more than those within one, and copies count. */
UNIT(numbers_are_of_the_messages)
{
    const int peers[] = {1, 2, 3};
    const struct nbc_neighbors neighbors = {peers, peers, 3, 3, false};
    const struct nbc_nodes nodes = nbc_nodes_blocks(4, 2);
    const struct nbc_shape shape = shape_of(0, &neighbors, &nodes);
    int64_t n[NBC_PATTERN_NUMBERS];
    struct nbc_sched *linear = nbc_sched_new(&shape), *other = nbc_sched_new(&shape);
    struct nbc_ref block = nbc_send_block(&shape, 0);
    nbc_send(linear, block, 1, NBC_NONE);
    nbc_send(linear, block, 2, NBC_NONE);
    nbc_recv(linear, nbc_recv_block(&shape, 0), 3, NBC_NONE);
    nbc_copy(other, nbc_recv_block(&shape, 0), block, NBC_NONE);
    nbc_join_of(other, NULL, 0);
    linear = nbc_sched_finish(linear);
    other = nbc_sched_finish(other);
    nbc_pattern_numbers(&shape, linear, linear, other, n);
    ck_assert_int_eq(n[0], n[1] + n[2]);
    ck_assert_int_eq(n[1], 150 + 3);
    ck_assert_int_eq(n[2], 2 * 200);
    ck_assert_int_eq(n[3], 30 + 3);
    ck_assert_int_eq(n[4], 0);
    nbc_sched_free(linear);
    nbc_sched_free(other);
}

enum { BLOCK = 4, RANKS = 9 * BLOCK };

/* Every rank has an edge to, or from, each rank of the other nodes. */
static void connect_all(int rank, int *peers, struct nbc_edge *offer)
{
    int n = RANKS - BLOCK;
    offer[0] = (struct nbc_edge){n, n, 0};
    for (int i = 0; i < n; i++) {
        peers[i] = i < rank / BLOCK * BLOCK ? i : i + BLOCK;
        offer[1 + i] = (struct nbc_edge){rank, peers[i], 12};
        offer[1 + n + i] = (struct nbc_edge){peers[i], rank, 12};
    }
}

/* Eight other nodes, four ranks: about two each, where a rank alone would send to 32 ranks. */
UNIT(ranks_share_the_other_nodes)
{
    enum { ROOM = 2 * RANKS };
    static struct nbc_edge offers[BLOCK * ROOM];
    int peers[BLOCK][RANKS];
    const struct nbc_nodes nodes = nbc_nodes_blocks(RANKS, BLOCK);
    struct nbc_pattern pattern;
    for (int rank = 0; rank < BLOCK; rank++)
        connect_all(rank, peers[rank], offers + rank * ROOM);
    ck_assert(nbc_pattern_make(&pattern, offers, BLOCK, ROOM));
    for (int rank = 0; rank < BLOCK; rank++) {
        const struct nbc_neighbors neighbors = {peers[rank], peers[rank], RANKS - BLOCK,
                                                RANKS - BLOCK, false};
        struct nbc_shape shape = shape_of(rank, &neighbors, &nodes);
        shape.pattern = &pattern;
        struct nbc_sched *s = nbc_build(nbc_neighbor_locality, &shape);
        int sent = 0, received = 0;
        for (nbc_id id = 0; id < s->nops; id++) {
            bool away = s->ops[id].kind != NBC_OP_COPY && s->ops[id].peer >= BLOCK;
            sent += away && s->ops[id].kind == NBC_OP_SEND;
            received += away && s->ops[id].kind == NBC_OP_RECV;
        }
        ck_assert_int_ge(sent, 1);
        ck_assert_int_le(sent, 3);
        ck_assert_int_ge(received, 1);
        ck_assert_int_le(received, 3);
        nbc_sched_free(s);
    }
    nbc_pattern_free(&pattern);
}
