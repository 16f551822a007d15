/* SPDX-License-Identifier: MIT */
/* Where blocks lie, and which bytes they touch. */
#include <string.h>

#include "block.h"
#include "sim.h"
#include "unit.h"

/* send: 4 bytes of data every 8; recv: 10 every 10; two more for the w collectives */
static const struct nbc_type types[] = {{1, 1, 0, 1, true},
                                        {4, 8, 0, 4, false},
                                        {10, 10, 0, 10, true},
                                        {2, 2, 0, 2, true},
                                        {3, 3, 0, 3, true}};
static const int32_t counts[] = {3, 0, 7};
static const int64_t wide_displs[] = {20, -1, 5};
static const int32_t displs[] = {20, -1, 5};

static struct nbc_shape shape_of(enum nbc_coll coll, int rank)
{
    return (struct nbc_shape){
        .coll = coll,
        .rank = rank,
        .size = 3,
        .types = types,
        .ntypes = 5,
        .send = {.count = 6, .type = NBC_TYPE_SEND},
        .recv = {.count = 9, .type = NBC_TYPE_RECV},
    };
}

static void expect(struct nbc_ref r, int buf, int64_t off, int64_t count, int type)
{
    ck_assert_int_eq(r.buf, buf);
    ck_assert_int_eq(r.off, off);
    ck_assert_int_eq(r.count, count);
    ck_assert_int_eq(r.type, type);
}

UNIT(dense_blocks)
{
    struct nbc_shape s = shape_of(NBC_ALLTOALL, 1);
    expect(nbc_send_block(&s, 2), NBC_BUF_SEND, 2 * 6 * 8, 6, NBC_TYPE_SEND);
    expect(nbc_recv_block(&s, 2), NBC_BUF_RECV, 2 * 9 * 10, 9, NBC_TYPE_RECV);
    s.send.count = INT64_C(1) << 40;
    expect(nbc_send_block(&s, 2), NBC_BUF_SEND, INT64_C(1) << 44, INT64_C(1) << 40, NBC_TYPE_SEND);
}

UNIT(collectives_with_one_block_to_send)
{
    const enum nbc_coll colls[] = {NBC_GATHER,
                                   NBC_GATHERV,
                                   NBC_ALLGATHER,
                                   NBC_ALLGATHERV,
                                   NBC_NEIGHBOR_ALLGATHER,
                                   NBC_NEIGHBOR_ALLGATHERV};
    for (size_t i = 0; i < sizeof colls / sizeof *colls; i++) {
        struct nbc_shape s = shape_of(colls[i], 1);
        expect(nbc_send_block(&s, 2), NBC_BUF_SEND, 0, 6, NBC_TYPE_SEND);
        expect(nbc_recv_block(&s, 2), NBC_BUF_RECV, 180, 9, NBC_TYPE_RECV);
    }
}

UNIT(broadcast_has_one_buffer)
{
    struct nbc_shape s = shape_of(NBC_BCAST, 1);
    expect(nbc_send_block(&s, 0), NBC_BUF_RECV, 0, 9, NBC_TYPE_RECV);
    expect(nbc_recv_block(&s, 0), NBC_BUF_RECV, 0, 9, NBC_TYPE_RECV);
}

UNIT(counts_and_displacements_in_extents)
{
    struct nbc_shape s = shape_of(NBC_ALLTOALLV, 1);
    s.send.counts = s.recv.counts = (struct nbc_ints){counts, 4};
    s.send.displs = (struct nbc_ints){displs, 4};
    s.recv.displs = (struct nbc_ints){wide_displs, 8};
    for (int i = 0; i < 3; i++) {
        expect(nbc_send_block(&s, i), NBC_BUF_SEND, displs[i] * 8, counts[i], NBC_TYPE_SEND);
        expect(nbc_recv_block(&s, i), NBC_BUF_RECV, wide_displs[i] * 10, counts[i], NBC_TYPE_RECV);
    }
}

UNIT(types_by_peer_have_displacements_in_bytes)
{
    struct nbc_shape s = shape_of(NBC_ALLTOALLW, 1);
    s.send = (struct nbc_side){.counts = {counts, 4},
                               .displs = {displs, 4},
                               .type = NBC_TYPE_SEND,
                               .peer_types = true,
                               .displs_bytes = true};
    for (int i = 0; i < 3; i++)
        expect(nbc_send_block(&s, i), NBC_BUF_SEND, displs[i], counts[i], NBC_TYPE_SEND + i);
}

UNIT(reduce_scatter_counts_imply_displacements)
{
    struct nbc_shape s = shape_of(NBC_REDUCE_SCATTER, 2);
    s.send.counts = (struct nbc_ints){counts, 4};
    s.send.displs_implied = true;
    s.recv.count = 7;
    expect(nbc_send_block(&s, 0), NBC_BUF_SEND, 0, 3, NBC_TYPE_SEND);
    expect(nbc_send_block(&s, 1), NBC_BUF_SEND, 24, 0, NBC_TYPE_SEND);
    expect(nbc_send_block(&s, 2), NBC_BUF_SEND, 24, 7, NBC_TYPE_SEND);
    expect(nbc_recv_block(&s, 0), NBC_BUF_RECV, 0, 7, NBC_TYPE_RECV);
    s.in_place = true;
    expect(nbc_send_block(&s, 2), NBC_BUF_RECV, 24, 7, NBC_TYPE_SEND);
}

/* MPI_IN_PLACE: what the standard says of each collective. */
UNIT(in_place_input_is_in_the_receive_buffer)
{
    const enum nbc_coll own[] = {NBC_GATHER, NBC_GATHERV, NBC_ALLGATHER, NBC_ALLGATHERV};
    for (int i = 0; i < 4; i++) { /* this rank's block of the result */
        struct nbc_shape s = shape_of(own[i], 1);
        s.in_place = true;
        expect(nbc_send_block(&s, 2), NBC_BUF_RECV, 90, 9, NBC_TYPE_RECV);
    }
    const enum nbc_coll same[] = {NBC_ALLTOALL, NBC_ALLTOALLV, NBC_ALLTOALLW};
    for (int i = 0; i < 3; i++) { /* block for block */
        struct nbc_shape s = shape_of(same[i], 1);
        s.in_place = true;
        expect(nbc_send_block(&s, 2), NBC_BUF_RECV, 180, 9, NBC_TYPE_RECV);
    }
    const enum nbc_coll whole[] = {NBC_REDUCE, NBC_ALLREDUCE, NBC_SCAN, NBC_EXSCAN};
    for (int i = 0; i < 4; i++) {
        struct nbc_shape s = shape_of(whole[i], 1);
        s.in_place = true;
        expect(nbc_send_block(&s, 0), NBC_BUF_RECV, 0, 9, NBC_TYPE_RECV);
    }
}

UNIT(in_place_scatter_keeps_the_roots_block_where_it_is)
{
    for (int v = 0; v < 2; v++) {
        struct nbc_shape s = shape_of(v ? NBC_SCATTERV : NBC_SCATTER, 1);
        s.root = 1;
        expect(nbc_recv_block(&s, 2), NBC_BUF_RECV, 0, 9, NBC_TYPE_RECV);
        s.in_place = true;
        expect(nbc_send_block(&s, 2), NBC_BUF_SEND, 96, 6, NBC_TYPE_SEND);
        expect(nbc_recv_block(&s, 2), NBC_BUF_SEND, 48, 6, NBC_TYPE_SEND);
    }
}

static struct layout random_layout(struct rng *rng)
{
    int64_t at[MAX_ATOMS], slot = rng_below(rng, 9) - 4;
    int natoms = (int)rng_below(rng, MAX_ATOMS + 1);
    for (int i = 0; i < natoms; i++, slot += 1 + rng_below(rng, 3))
        at[i] = slot * ATOM;
    return layout_make(ATOM, natoms, at, (rng_below(rng, 21) - 10) * ATOM);
}

/* The span of a reference against the bytes that its elements really touch. */
UNIT(spans_are_the_bytes_touched)
{
    struct rng rng = {4711};
    for (int round = 0; round < 5000; round++) {
        struct layout l = random_layout(&rng);
        struct nbc_shape s = {.types = &l.type, .ntypes = 1};
        struct nbc_ref r = {.off = rng_below(&rng, 100) - 50, .count = rng_below(&rng, 5)};
        int64_t want_low = 0, want_high = 0, low, high;
        bool any = false;
        for (int64_t i = 0; i < r.count; i++)
            for (int k = 0; k < l.natoms; k++) {
                int64_t at = r.off + i * l.type.extent + l.at[k];
                want_low = !any || at < want_low ? at : want_low;
                want_high = !any || at + ATOM > want_high ? at + ATOM : want_high;
                any = true;
            }
        nbc_ref_span(&s, r, &low, &high);
        need(low == want_low);
        need(high == want_high);
        need(nbc_ref_bytes(&s, r) == r.count * l.natoms * ATOM);
    }
}

UNIT(parts_are_nearly_equal_and_cover_all)
{
    for (int64_t n = 0; n < 60; n++)
        for (int parts = 1; parts < 20; parts++) {
            need(nbc_part_start(n, parts, 0) == 0);
            need(nbc_part_start(n, parts, parts) == n);
            for (int i = 0; i < parts; i++) {
                int64_t size = nbc_part_start(n, parts, i + 1) - nbc_part_start(n, parts, i);
                need(size == n / parts || size == n / parts + 1);
            }
        }
    int64_t n = INT64_C(1) << 60;
    need(nbc_part_start(n, 3, 3) == n);
}

UNIT(parts_of_references)
{
    struct nbc_shape s = shape_of(NBC_ALLREDUCE, 0);
    struct nbc_ref r = {.off = 16, .count = 10, .type = NBC_TYPE_SEND, .buf = NBC_BUF_TEMP};
    expect(nbc_ref_part(&s, r, 3, 2), NBC_BUF_TEMP, 16 + 24, 2, NBC_TYPE_SEND);
    expect(nbc_ref_split(&s, r, 4, 0), NBC_BUF_TEMP, 16, 3, NBC_TYPE_SEND);
    expect(nbc_ref_split(&s, r, 4, 3), NBC_BUF_TEMP, 16 + 8 * 8, 2, NBC_TYPE_SEND);
}

UNIT(division_rounds_up)
{
    ck_assert_int_eq(nbc_div_up(0, 4), 0);
    ck_assert_int_eq(nbc_div_up(1, 4), 1);
    ck_assert_int_eq(nbc_div_up(4, 4), 1);
    ck_assert_int_eq(nbc_div_up(5, 4), 2);
    ck_assert_int_eq(nbc_div_up(5, INT64_MAX), 1);
    ck_assert_int_eq(nbc_div_up(INT64_MAX, INT64_MAX), 1);
    ck_assert_int_eq(nbc_div_up(INT64_MAX, 2), INT64_MAX / 2 + 1);
}
