/* SPDX-License-Identifier: MIT */
/* Arithmetic on blocks: far apart, the bytes that they touch, and parts of them. */
#include <string.h>

#include "block.h"
#include "sim.h"
#include "unit.h"

/* An alltoall whose displacements have more than 32 bits. (Where blocks lie else: test_uses,
 * test_algs.) */
UNIT(blocks_lie_far_apart)
{
    static const struct nbc_type types[] = {{1, 1, 0, 1, true}, {4, 8, 0, 4, false}};
    const int64_t count = INT64_C(1) << 40;
    const struct nbc_shape s = {.coll = NBC_ALLTOALL,
                                .size = 3,
                                .types = types,
                                .ntypes = 2,
                                .send = {.count = count, .type = NBC_TYPE_SEND}};
    struct nbc_ref r = nbc_send_block(&s, 2);
    ck_assert_int_eq(r.off, 2 * 8 * count);
    ck_assert_int_eq(r.count, count);
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
