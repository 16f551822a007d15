/* SPDX-License-Identifier: MIT */
/* What the ranks of a node tell one another, and what all ranks make of it (pattern.h). That the
 * schedules made of it are right is tested in test_algs. */
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

static void check_edge(const struct nbc_edge *e, int from, int to, int64_t bytes)
{
    ck_assert_int_eq(e->from, from);
    ck_assert_int_eq(e->to, to);
    ck_assert_int_eq(e->bytes, bytes);
}

/* Those to other nodes, in order; neither MPI_PROC_NULL nor the rank itself, nor its node. */
UNIT(a_rank_offers_its_edges_to_other_nodes)
{
    const int in[] = {3, -2, 1, 0}, out[] = {5, 0, 2, 5, -2, 1};
    const struct nbc_neighbors neighbors = {in, out, 4, 6, false};
    const struct nbc_nodes nodes = nbc_nodes_blocks(6, 2);
    const struct nbc_shape shape = shape_of(0, &neighbors, &nodes);
    struct nbc_offer offer;
    ck_assert(nbc_offer_make(&offer, &shape));
    ck_assert_int_eq(offer.n, 5);
    ck_assert_int_eq(offer.busiest, 3);
    check_edge(&offer.edges[0], 3, 1, 0);
    check_edge(&offer.edges[1], 0, 5, 12);
    check_edge(&offer.edges[2], 0, 2, 12);
    check_edge(&offer.edges[3], 0, 5, 12);
    check_edge(&offer.edges[4], 3, 0, 12);
    free(offer.edges);
}

UNIT(blocks_without_data_are_no_edges)
{
    const int peers[] = {2};
    const struct nbc_neighbors neighbors = {peers, peers, 1, 1, false};
    const struct nbc_nodes nodes = nbc_nodes_blocks(4, 2);
    struct nbc_shape shape = shape_of(0, &neighbors, &nodes);
    struct nbc_offer offer;
    shape.send.count = shape.recv.count = 0;
    ck_assert(nbc_offer_make(&offer, &shape));
    ck_assert_int_eq(offer.n, 1);
    ck_assert_int_eq(offer.busiest, 0);
    free(offer.edges);
}

/* Both neighbors are one rank: what goes to the lower one comes from the upper one. */
UNIT(incoming_edges_are_in_the_order_of_the_senders)
{
    const int around[] = {1, 1};
    const int64_t counts[] = {1, 2}, displs[] = {0, 1};
    const struct nbc_neighbors neighbors = {around, around, 2, 2, true};
    const struct nbc_nodes nodes = nbc_nodes_blocks(2, 1);
    struct nbc_shape shape = shape_of(0, &neighbors, &nodes);
    struct nbc_end ends[2];
    shape.coll = NBC_NEIGHBOR_ALLTOALLV;
    shape.recv.counts = (struct nbc_ints){counts, 8};
    shape.recv.displs = (struct nbc_ints){displs, 8};
    ck_assert_int_eq(nbc_ends_list(&shape, false, ends), 2);
    ck_assert_int_eq(ends[0].block.count, 2);
    ck_assert_int_eq(ends[1].block.count, 1);
}

UNIT(a_pattern_has_the_edges_of_all_ranks)
{
    const struct nbc_edge offers[] = {{1, 1, 0}, {0, 7, 5}, {8, 0, 6},  /* of rank 0 */
                                      {0, 2, 0}, {9, 1, 7}, {9, 1, 8}}; /* of rank 1 */
    struct nbc_pattern p;
    ck_assert(nbc_pattern_make(&p, offers, 2, 3));
    ck_assert_int_eq(p.nout, 1);
    ck_assert_int_eq(p.nin, 3);
    check_edge(&p.out[0], 0, 7, 5);
    check_edge(&p.in[0], 8, 0, 6);
    check_edge(&p.in[1], 9, 1, 7);
    check_edge(&p.in[2], 9, 1, 8);
    nbc_pattern_free(&p);
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
