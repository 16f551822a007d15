/* SPDX-License-Identifier: MIT */
/* Schedules: what the emitters make, how they are printed, and which defects sched_check finds. */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "cases.h"
#include "sched_check.h"
#include "sched_print.h"
#include "unit.h"

/* --- a call to build for ---------------------------------------------------------------------- */

/* Data of 8 in 8 bytes; 8 in 16; a column: 16 in elements that lie 8 apart. */
static const struct nbc_type plain = {8, 8, 0, 8, true};
static const struct nbc_type gaps = {8, 16, 0, 8, false};
static const struct nbc_type column = {16, 8, 0, 48, false};

static struct nbc_type types[] = {
    {1, 1, 0, 1, true}, {8, 8, 0, 8, true}, {8, 8, 0, 8, true}, {8, 8, 0, 8, true}};

static struct nbc_shape shape_of(enum nbc_coll coll)
{
    for (int i = 1; i < 4; i++)
        types[i] = plain;
    return (struct nbc_shape){
        .coll = coll,
        .rank = 1,
        .size = 4,
        .commutative = true,
        .types = types,
        .ntypes = 4,
        .send = {.count = 3, .type = NBC_TYPE_SEND},
        .recv = {.count = 3, .type = NBC_TYPE_RECV},
    };
}

static struct nbc_ref ref(int buf, int64_t off, int64_t count, int type)
{
    return (struct nbc_ref){.off = off, .count = count, .type = type, .buf = buf};
}

static struct nbc_ref from_send(int64_t off, int64_t count)
{
    return ref(NBC_BUF_SEND, off, count, NBC_TYPE_SEND);
}

static struct nbc_ref in_recv(int64_t off, int64_t count)
{
    return ref(NBC_BUF_RECV, off, count, NBC_TYPE_RECV);
}

/* --- what the emitters make ------------------------------------------------------------------- */

/* Number of done (or issue) edges from x to y. */
static int edges(const struct nbc_sched *s, nbc_id x, nbc_id y, bool issue)
{
    const struct nbc_op *op = &s->ops[x];
    int n = 0;
    for (int32_t i = 0; i < op->nsucc_issue + op->nsucc_done; i++)
        n += s->succ[op->succ + i] == y && (i < op->nsucc_issue) == issue;
    return n;
}

UNIT(an_edge_for_every_wait)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id a = nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    nbc_id b = nbc_send(s, from_send(0, 3), 2, a);
    nbc_id c = nbc_send(s, from_send(0, 3), 3, NBC_NONE);
    nbc_after(s, c, b);
    nbc_after(s, c, NBC_NONE);
    nbc_after(s, c, c);
    nbc_after(s, NBC_NONE, a);
    s = nbc_sched_finish(s);
    ck_assert_int_eq(s->nops, 3);
    ck_assert_int_eq(s->nmsgs, 3);
    ck_assert_int_eq(s->nsucc, 2);
    ck_assert_int_eq(edges(s, a, b, false), 1);
    ck_assert_int_eq(edges(s, b, c, false), 1);
    ck_assert_int_eq(s->ops[a].npre, 0);
    ck_assert_int_eq(s->ops[c].npre, 1);
    nbc_sched_free(s);
}

UNIT(joins_only_where_two_things_meet)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id a = nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    nbc_id b = nbc_recv(s, in_recv(48, 3), 2, NBC_NONE);
    ck_assert_int_eq(nbc_join(s, NBC_NONE, NBC_NONE), NBC_NONE);
    ck_assert_int_eq(nbc_join(s, a, NBC_NONE), a);
    ck_assert_int_eq(nbc_join(s, NBC_NONE, b), b);
    ck_assert_int_eq(nbc_join(s, a, a), a);
    ck_assert_int_eq(s->nops, 2);
    nbc_id both = nbc_join(s, a, b);
    s = nbc_sched_finish(s);
    ck_assert_int_eq(s->ops[both].kind, NBC_OP_JOIN);
    ck_assert_int_eq(edges(s, a, both, false), 1);
    ck_assert_int_eq(edges(s, b, both, false), 1);
    nbc_sched_free(s);
}

UNIT(an_operation_waits_for_a_list_and_for_all_since_another)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id a = nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    nbc_id b = nbc_recv(s, in_recv(24, 3), 1, NBC_NONE);
    nbc_id c = nbc_recv(s, in_recv(48, 3), 2, NBC_NONE);
    nbc_id list = nbc_send(s, from_send(0, 3), 2, NBC_NONE);
    nbc_after_all(s, list, (const nbc_id[]){a, NBC_NONE, c}, 3);
    nbc_id all = nbc_send(s, from_send(0, 3), 3, NBC_NONE);
    nbc_after_since(s, all, b);
    nbc_after_since(s, all, all); /* nothing since: nothing to wait for */
    s = nbc_sched_finish(s);
    ck_assert(edges(s, a, list, false) && edges(s, c, list, false));
    ck_assert(!edges(s, b, list, false) && !edges(s, a, all, false));
    ck_assert(edges(s, b, all, false) && edges(s, c, all, false) && edges(s, list, all, false));
    ck_assert_int_eq(s->nsucc, 5);
    nbc_sched_free(s);
}

UNIT(messages_with_one_peer_are_posted_in_order)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id ids[60];
    for (int i = 0; i < 60; i++) /* sends to and receives from three peers, mixed */
        ids[i] = i % 2 ? nbc_send(s, from_send(0, 1), i % 3 ? 0 : 2, NBC_NONE)
                       : nbc_recv(s, in_recv(0, 0), i % 3 ? 0 : 2, NBC_NONE);
    s = nbc_sched_finish(s);
    for (int i = 0; i < 60; i++)
        for (int j = i + 1; j < 60; j++) {
            const struct nbc_op *x = &s->ops[ids[i]], *y = &s->ops[ids[j]];
            bool next = x->peer == y->peer && x->kind == y->kind;
            for (int k = i + 1; k < j && next; k++)
                next = s->ops[ids[k]].peer != x->peer || s->ops[ids[k]].kind != x->kind;
            ck_assert_int_eq(edges(s, ids[i], ids[j], true), next);
        }
    nbc_sched_free(s);
}

UNIT(copies_of_nothing_and_to_oneself_are_left_out)
{
    struct nbc_shape shape = shape_of(NBC_ALLREDUCE);
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id a = nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    ck_assert_int_eq(nbc_copy(s, in_recv(0, 3), in_recv(0, 3), a), a);
    ck_assert_int_eq(nbc_copy(s, in_recv(0, 0), from_send(0, 0), a), a);
    ck_assert_int_ne(nbc_copy(s, in_recv(0, 3), from_send(0, 3), a), a);
    nbc_sched_free(nbc_sched_finish(s));
}

/* Elements of 16 bytes that are not packed, in pieces of 6: some end in no element. */
UNIT(pieces_of_elements_come_in_any_order)
{
    enum { NPIECES = 8, PIECE = 6 };
    struct nbc_shape shape = shape_of(NBC_BCAST);
    types[NBC_TYPE_RECV] = column;
    struct nbc_sched *s = nbc_sched_new(&shape);
    struct nbc_bytes data = nbc_bytes_of(s, &shape, in_recv(0, 3));
    nbc_id piece[NPIECES];
    for (int i = 0; i < NPIECES; i++) {
        piece[i] = nbc_recv(s, nbc_byte_range(data.raw, i * PIECE, PIECE), 0, NBC_NONE);
        nbc_bytes_unpack(s, &data, (i + 1) * PIECE, piece[i]);
    }
    s = nbc_sched_finish(s);
    for (int i = 0; i < NPIECES; i++)
        for (int j = 0; j < NPIECES; j++)
            ck_assert_int_eq(edges(s, piece[i], piece[j], false), 0);
    nbc_sched_free(s);
}

UNIT(the_last_release_frees)
{
    struct nbc_shape shape = shape_of(NBC_ALLREDUCE);
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_send(s, from_send(0, 3), 0, NBC_NONE);
    s = nbc_sched_finish(s);
    s->refs++;
    nbc_sched_release(s);
    ck_assert_int_eq(s->refs, 1);
    ck_assert_int_eq(s->ops[0].kind, NBC_OP_SEND);
    nbc_sched_release(s);
}

UNIT(temporary_room_is_never_shared)
{
    struct nbc_shape shape = shape_of(NBC_ALLREDUCE);
    struct nbc_sched *s = nbc_sched_new(&shape);
    types[NBC_TYPE_RECV] = (struct nbc_type){8, -24, 16, 8, false};
    struct nbc_ref room[6];
    int64_t low[6], high[6];
    for (int i = 0; i < 6; i++) {
        room[i] = i % 2 ? nbc_temp_like(s, in_recv(5, 4)) : nbc_temp_bytes(s, 100);
        nbc_ref_span(&shape, room[i], &low[i], &high[i]);
        ck_assert_int_eq(room[i].buf, NBC_BUF_TEMP);
        ck_assert_int_eq(room[i].off % 16, 0); /* where malloc would have put an element */
        ck_assert(low[i] >= (i ? high[i - 1] : 0));
    }
    ck_assert_int_eq(room[1].count, 4);
    ck_assert_int_eq(room[1].type, NBC_TYPE_RECV);
    s = nbc_sched_finish(s);
    ck_assert(high[5] <= s->temp_bytes);
    nbc_sched_free(s);
}

UNIT(printed_line_by_line)
{
    struct nbc_shape shape = shape_of(NBC_ALLREDUCE);
    struct nbc_sched *s = nbc_sched_new(&shape);
    struct nbc_ref temp = nbc_temp_like(s, in_recv(0, 3)), bytes = nbc_temp_bytes(s, 24);
    nbc_id got = nbc_recv(s, temp, 0, NBC_NONE);
    nbc_id more = nbc_recv(s, bytes, 0, NBC_NONE);
    nbc_id copied = nbc_copy(s, in_recv(0, 3), from_send(0, 3), NBC_NONE);
    nbc_id sum = nbc_reduce(s, in_recv(0, 3), temp, in_recv(0, 3), got);
    nbc_after(s, sum, copied);
    nbc_send(s, in_recv(0, 3), 2, nbc_join(s, sum, more));
    s = nbc_sched_finish(s);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    nbc_sched_print(s, out);
    fclose(out);
    ck_assert_str_eq(text, "6 operations, 3 messages, 128 bytes temporary\n"
                           "   0 recv temp+0 3*t2 from 0\n"
                           "   1 recv temp+64 24 bytes from 0, posted after 0\n"
                           "   2 copy recv+0 3*t2 <- send+0 3*t1\n"
                           "   3 reduce recv+0 3*t2 <- temp+0 op recv+0, after 0 2\n"
                           "   4 join, after 1 3\n"
                           "   5 send recv+0 3*t2 to 2, after 4\n");
    free(text);
    nbc_sched_free(s);
}

/* --- defects that the check finds ------------------------------------------------------------- */

/* Finishes the schedule and expects a complaint with these words in it; NULL: none. */
static void expect(struct nbc_sched *s, const struct nbc_shape *shape, const char *words)
{
    char text[300];
    s = nbc_sched_finish(s);
    const char *wrong = sched_check(s, shape, text, sizeof text);
    if (!words)
        ck_assert_msg(!wrong, "%s", wrong);
    else
        ck_assert_msg(wrong && strstr(wrong, words), "wanted \"%s\", got \"%s\"", words,
                      wrong ? wrong : "nothing");
    nbc_sched_free(s);
}

/* Schedules of one operation. */

static void expect_send(const struct nbc_shape *shape, struct nbc_ref from, int peer,
                        const char *words)
{
    struct nbc_sched *s = nbc_sched_new(shape);
    nbc_send(s, from, peer, NBC_NONE);
    expect(s, shape, words);
}

static void expect_recv(const struct nbc_shape *shape, struct nbc_ref to, int peer,
                        const char *words)
{
    struct nbc_sched *s = nbc_sched_new(shape);
    nbc_recv(s, to, peer, NBC_NONE);
    expect(s, shape, words);
}

static void expect_copy(const struct nbc_shape *shape, struct nbc_ref to, struct nbc_ref from,
                        const char *words)
{
    struct nbc_sched *s = nbc_sched_new(shape);
    nbc_copy(s, to, from, NBC_NONE);
    expect(s, shape, words);
}

static void expect_reduce(const struct nbc_shape *shape, struct nbc_ref to, struct nbc_ref left,
                          struct nbc_ref right, const char *words)
{
    struct nbc_sched *s = nbc_sched_new(shape);
    nbc_reduce(s, to, left, right, NBC_NONE);
    expect(s, shape, words);
}

UNIT(check_wants_references_inside_the_buffers)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    const struct {
        struct nbc_ref r;
        bool read, write;
    } places[] = {
        {from_send(0, 12), true, false}, /* all blocks */
        {from_send(0, 13), false, false},
        {from_send(-8, 1), false, false},
        {in_recv(0, 12), true, true},
        {in_recv(88, 1), true, true},
        {in_recv(96, 1), false, false},
        {in_recv(92, 1), false, false},
        {ref(NBC_BUF_RECV, 95, 1, NBC_TYPE_BYTE), true, true},
        {ref(NBC_BUF_RECV, 95, 2, NBC_TYPE_BYTE), false, false},
        {ref(NBC_BUF_TEMP, 0, 64, NBC_TYPE_BYTE), true, true},
        {ref(NBC_BUF_TEMP, 0, 65, NBC_TYPE_BYTE), false, false},
        {ref(NBC_BUF_TEMP, -1, 2, NBC_TYPE_BYTE), false, false},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int write = 0; write < 2; write++) {
            struct nbc_sched *s = nbc_sched_new(&shape);
            nbc_temp_bytes(s, 64);
            if (write)
                nbc_recv(s, places[i].r, 0, NBC_NONE);
            else
                nbc_send(s, places[i].r, 0, NBC_NONE);
            bool fine = write ? places[i].write : places[i].read;
            expect(s, &shape, fine ? NULL : write ? "writes" : "reads");
        }
}

UNIT(check_wants_ranks_off_buffers_they_do_not_have)
{
    struct nbc_shape shape = shape_of(NBC_GATHER); /* rank 1, root 0: no receive buffer */
    expect_recv(&shape, in_recv(0, 3), 0, "writes recv");
    shape.coll = NBC_SCATTER; /* no send buffer */
    expect_send(&shape, from_send(0, 3), 0, "reads send");
    shape.coll = NBC_REDUCE;
    expect_copy(&shape, in_recv(0, 3), from_send(0, 3), "writes recv");
    shape.root = 1;
    expect_copy(&shape, in_recv(0, 3), from_send(0, 3), NULL);
    shape.in_place = true; /* the send buffer is MPI_IN_PLACE */
    expect_send(&shape, from_send(0, 3), 0, "reads send");
    shape.coll = NBC_BCAST; /* the root's data stay as they are */
    expect_recv(&shape, in_recv(0, 3), 0, "writes recv");
    shape.coll = NBC_EXSCAN; /* undefined on rank 0, and in place untouched */
    shape.rank = 0;
    expect_recv(&shape, in_recv(0, 3), 1, "writes recv");
    shape.coll = NBC_BARRIER;
    expect_send(&shape, from_send(0, 1), 1, "reads send");
}

UNIT(check_wants_gaps_left_alone)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    types[NBC_TYPE_RECV] = gaps;
    expect_recv(&shape, ref(NBC_BUF_RECV, 0, 24, NBC_TYPE_BYTE), 0, "writes recv");
    expect_recv(&shape, in_recv(8, 1), 0, "not elements of the call"); /* an element between two */
    expect_recv(&shape, in_recv(16, 11), 0, NULL);
}

/* Blocks of a w collective may lie in each other's gaps. */
UNIT(check_lets_columns_interleave)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    types[NBC_TYPE_RECV] = column;
    struct nbc_sched *s = nbc_sched_new(&shape);
    for (int i = 0; i < 4; i++)
        if (i != 1)
            nbc_recv(s, nbc_recv_block(&shape, i), i, NBC_NONE);
    expect(s, &shape, NULL);
    s = nbc_sched_new(&shape);
    nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    nbc_recv(s, in_recv(16, 3), 2, NBC_NONE); /* the third element twice */
    expect(s, &shape, "race");
}

UNIT(check_wants_peers_that_exist)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    const struct {
        int peer, remote;
        const char *words;
    } peers[] = {{0, 0, NULL},        {3, 0, NULL}, {4, 0, "no peer 4"}, {-1, 0, "no peer -1"},
                 {1, 0, "to itself"}, {1, 2, NULL}, {2, 2, "no peer 2"}, {5, 6, NULL}};
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        shape.remote_size = peers[i].remote;
        expect_send(&shape, from_send(0, 0), peers[i].peer, peers[i].words);
    }
}

UNIT(check_wants_neighbors)
{
    const int sources[] = {0, -1}, destinations[] = {2, 3};
    const struct nbc_neighbors neighbors = {sources, destinations, 2, 2, false};
    struct nbc_shape shape = shape_of(NBC_NEIGHBOR_ALLTOALL);
    shape.neighbors = &neighbors;
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    nbc_send(s, from_send(24, 3), 3, NBC_NONE);
    expect(s, &shape, NULL);
    expect_recv(&shape, in_recv(0, 3), 2, "no source");
    expect_send(&shape, from_send(0, 3), 0, "no destination");
    expect_recv(&shape, in_recv(24, 3), 0, "writes recv"); /* the block of MPI_PROC_NULL */
}

/* The program's mistake; nothing is copied to where there is no block. */
UNIT(an_edge_to_oneself_wants_its_other_end)
{
    const int sources[] = {2}, destinations[] = {1}; /* of the sources, none is in the list */
    const struct nbc_neighbors neighbors = {sources, destinations, 0, 1, false};
    struct nbc_shape shape = shape_of(NBC_NEIGHBOR_ALLTOALL);
    shape.neighbors = &neighbors;
    struct nbc_sched *s = nbc_build(nbc_neighbor_linear, &shape);
    ck_assert_int_eq(s->nops, 0);
    nbc_sched_free(s);
}

UNIT(check_finds_races)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    struct nbc_sched *s = nbc_sched_new(&shape); /* sends what is not there yet */
    nbc_id got = nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    nbc_send(s, in_recv(16, 1), 2, NBC_NONE);
    expect(s, &shape, "race: operation 1 does not wait for 0");
    s = nbc_sched_new(&shape); /* the same, ordered */
    got = nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    nbc_send(s, in_recv(16, 1), 2, got);
    expect(s, &shape, NULL);
    s = nbc_sched_new(&shape); /* overwrites what is being sent */
    nbc_send(s, in_recv(0, 3), 2, NBC_NONE);
    nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    expect(s, &shape, "race");
    s = nbc_sched_new(&shape); /* two messages into one place */
    nbc_recv(s, in_recv(0, 3), 2, NBC_NONE);
    nbc_recv(s, in_recv(16, 3), 0, NBC_NONE);
    expect(s, &shape, "race");
    s = nbc_sched_new(&shape); /* two readers */
    nbc_send(s, from_send(0, 3), 2, NBC_NONE);
    nbc_send(s, from_send(0, 3), 0, NBC_NONE);
    expect(s, &shape, NULL);
    s = nbc_sched_new(&shape); /* by way of what waits for all */
    nbc_recv(s, in_recv(0, 3), 2, NBC_NONE);
    nbc_id all = nbc_join_of(s, NULL, 0);
    nbc_after_since(s, all, 0);
    nbc_send(s, in_recv(0, 3), 0, all);
    expect(s, &shape, NULL);
}

/* Posting in order is not completing in order. */
UNIT(check_knows_that_message_order_is_no_order_of_data)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
    expect(s, &shape, "race");
    /* … but what waits for x and is posted before y puts x before y. */
    s = nbc_sched_new(&shape);
    nbc_id got = nbc_recv(s, in_recv(0, 3), 2, NBC_NONE);
    nbc_send(s, from_send(0, 3), 0, got);
    nbc_send(s, in_recv(0, 3), 0, NBC_NONE);
    expect(s, &shape, NULL);
}

UNIT(check_wants_operands_in_their_places)
{
    struct nbc_shape shape = shape_of(NBC_ALLREDUCE);
    shape.commutative = true;
    expect_reduce(&shape, in_recv(0, 3), in_recv(0, 3), from_send(0, 3), "left operand");
    expect_reduce(&shape, in_recv(0, 3), from_send(0, 3), in_recv(0, 3), NULL);
    expect_reduce(&shape, in_recv(0, 2), from_send(0, 2), in_recv(8, 2), "overwrites its operand");
    expect_reduce(&shape, in_recv(0, 2), from_send(0, 3), in_recv(0, 2),
                  "operand and the result differ");
    expect_reduce(&shape, ref(NBC_BUF_RECV, 0, 8, NBC_TYPE_BYTE),
                  ref(NBC_BUF_SEND, 0, 8, NBC_TYPE_BYTE), ref(NBC_BUF_RECV, 0, 8, NBC_TYPE_BYTE),
                  "not the call's");
    shape.coll = NBC_ALLTOALL;
    expect_reduce(&shape, in_recv(0, 3), from_send(0, 3), in_recv(0, 3), "no op");
}

UNIT(check_wants_copies_of_one_size)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    expect_copy(&shape, in_recv(0, 3), from_send(0, 2), "copies");
    expect_copy(&shape, in_recv(0, 3), in_recv(16, 3), "overwrites its operand");
    expect_copy(&shape, in_recv(0, 3), ref(NBC_BUF_SEND, 0, 24, NBC_TYPE_BYTE), NULL);
}

UNIT(check_wants_slots_counts_and_buffers_that_exist)
{
    struct nbc_shape shape = shape_of(NBC_ALLTOALL);
    const struct {
        struct nbc_ref r;
        const char *words;
    } refs[] = {{ref(NBC_BUF_SEND, 0, 1, 4), "no type slot 4"},
                {ref(NBC_BUF_SEND, 0, 1, -1), "no type slot -1"},
                {ref(NBC_BUF_SEND, 0, -1, 1), "count -1"},
                {ref(3, 0, 1, 1), "no buffer 3"}};
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++) {
        expect_send(&shape, refs[i].r, 0, refs[i].words);
    }
}

/* Defects of the arrays, which the builder calls cannot make. */
UNIT(check_finds_broken_graphs)
{
    for (int defect = 0; defect < 7; defect++) {
        struct nbc_shape shape = shape_of(NBC_ALLTOALL);
        char text[300];
        struct nbc_sched *s = nbc_sched_new(&shape);
        nbc_id a = nbc_recv(s, in_recv(0, 3), 0, NBC_NONE);
        nbc_send(s, in_recv(0, 3), 2, a);
        nbc_send(s, in_recv(0, 3), 2, a);
        s = nbc_sched_finish(s);
        ck_assert_ptr_eq(sched_check(s, &shape, text, sizeof text), NULL);
        if (defect == 0)
            s->succ[0] = 0; /* to itself */
        else if (defect == 1)
            s->succ[0] = 3; /* to nowhere */
        else if (defect == 2)
            s->ops[1].npre = 2;
        else if (defect == 3)
            s->nmsgs = 2;
        else if (defect == 4)
            s->ops[1].nsucc_issue = 0, s->ops[2].npre = 1,
            s->ops[2].succ = s->nsucc = 2; /* order */
        else if (defect == 5)
            s->ops[1].kind = 9;
        else
            s->nsucc = 4;
        const char *wrong = sched_check(s, &shape, text, sizeof text);
        ck_assert_msg(wrong != NULL, "defect %d", defect);
        if (defect == 4)
            ck_assert_msg(strstr(wrong, "either order"), "%s", wrong);
        nbc_sched_free(s);
    }
}

/* --- the check against the simulation --------------------------------------------------------- */

/* Takes the done edge number i of an operation out of the graph. */
static void drop_edge(struct nbc_sched *s, nbc_id id, int32_t i)
{
    struct nbc_op *op = &s->ops[id];
    int32_t at = op->succ + op->nsucc_issue + i;
    s->ops[s->succ[at]].npre--;
    memmove(&s->succ[at], &s->succ[at + 1], (size_t)(s->nsucc - at - 1) * sizeof *s->succ);
    op->nsucc_done--;
    s->nsucc--;
    for (nbc_id later = id + 1; later < s->nops; later++)
        s->ops[later].succ--;
}

static const char *simulated(struct world *w, uint64_t seed)
{
    struct sim_config config = {.seed = seed, .rendezvous = true, .jitter = 6, .delay = 4};
    struct sim *sim = sim_new(&config);
    world_start(w, sim);
    const char *stuck = sim_run(sim);
    sim_free(sim);
    return world_result(w) ? world_result(w) : stuck;
}

struct score {
    int dropped, found, missed;
};

/* A schedule that lost an edge: if the check is content, then it was one too many, and every run
 * must go well. (Only then: a race need not show.) */
static void drop_and_compare(const struct test_case *c, int id, struct score *score)
{
    for (nbc_id op = 0;; op++)
        for (int32_t i = 0;; i++) {
            struct world *w = world_new(c);
            ck_assert_msg(!world_build(w), "%s", w->text);
            struct nbc_sched *s = w->party[id].sched;
            bool last = op >= s->nops, none = last || i >= s->ops[op].nsucc_done;
            if (none) {
                world_free(w);
                if (last)
                    return;
                break;
            }
            drop_edge(s, op, i);
            bool fine = !world_check(w) && c->alg->coll != NBC_BARRIER; /* has no data to check */
            score->dropped++;
            score->found += !fine;
            char name[500];
            case_print(c, name, sizeof name);
            w->text[0] = 0;
            for (uint64_t seed = 0; seed < 3 && fine; seed++)
                ck_assert_msg(!simulated(w, seed),
                              "%s, rank %d without edge %d of operation %d: %s", name, id, (int)i,
                              (int)op, w->text);
            world_free(w);
        }
}

UNIT(a_schedule_that_passes_the_check_runs_right, .each_row = true)
{
    const struct nbc_alg *alg = &nbc_algs[_i];
    struct score score = {0};
    for (int in_place = 0; in_place < 2; in_place++) {
        struct test_case c = {.alg = alg,
                              .size = alg->needs & NBC_POW2 ? 4 : 6,
                              .remote = alg->needs & NBC_INTER ? 4 : 0,
                              .count = 2,
                              .op = alg->needs & NBC_COMMUTATIVE ? SUM : AFFINE,
                              .in_place = in_place,
                              .layout = PAIR,
                              .graph = 4,
                              .nodes = alg->needs & NBC_NODES ? 2 : 0,
                              .segment = 16,
                              .runs = 1,
                              .seed = 6};
        case_normalize(&c);
        if (in_place > c.in_place)
            continue;
        drop_and_compare(&c, 1, &score);
    }
    ck_assert_msg(score.dropped == 0 || score.found > 0 || alg->coll == NBC_BARRIER,
                  "%s:%s: %d edges, and none needed", nbc_coll_name(alg->coll), alg->name,
                  score.dropped);
}
