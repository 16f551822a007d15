/* SPDX-License-Identifier: MIT */
/* The executor over a transport that does as it is told and writes down every call. */
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "cases.h"
#include "unit.h"

/* --- a transport ------------------------------------------------------------------------------ */

enum { MOST = 64 };

struct fake {
    char log[2000];      /* "s3 r1 c +": send to 3, receive from 1, copy, reduce; S, R: empty */
    nbc_handle next;     /* handles are 1, 2, 3, … in posted order */
    bool complete[MOST]; /* by handle: to be reported by the next poll */
    bool alive[MOST];    /* by handle */
    bool sends_at_once;  /* sends are complete when they are posted */
    int fail_send, fail_recv, fail_copy, fail_reduce, fail_poll; /* errors to return, once */
    bool fail_empty;                                             /* empty messages fail too */
    bool poll_is_useless; /* polls that fail report no message */
    bool drops_late;      /* what is dropped may still use its memory */
    uintptr_t addr[MOST]; /* by handle */
    uintptr_t last[3];    /* addresses of the last copy or reduction */
};

/* Errors are returned once. */
static int take(int *error)
{
    int once = *error;
    *error = 0;
    return once;
}

static void note(struct fake *f, char what, int number)
{
    size_t n = strlen(f->log);
    if (number < 0)
        snprintf(f->log + n, sizeof f->log - n, "%c ", what);
    else
        snprintf(f->log + n, sizeof f->log - n, "%c%d ", what, number);
}

static int fake_post(struct fake *f, char what, uintptr_t addr, int peer, nbc_handle *h, int error)
{
    note(f, what, peer);
    if (error)
        return error;
    if (f->fail_empty && isupper((unsigned char)what))
        return 99;
    *h = ++f->next;
    f->addr[*h] = addr;
    f->alive[*h] = true;
    return 0;
}

static int fake_send(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    struct fake *f = self;
    (void)type;
    if (!f->sends_at_once || f->fail_send)
        return fake_post(f, count ? 's' : 'S', addr, peer, h, take(&f->fail_send));
    note(f, 's', peer);
    return NBC_SENT;
}

static int fake_recv(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    struct fake *f = self;
    (void)type;
    return fake_post(f, count ? 'r' : 'R', addr, peer, h, take(&f->fail_recv));
}

static int fake_poll(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    struct fake *f = self;
    ck_assert_int_gt(n, 0);
    *ndone = 0;
    for (int i = 0; i < n && !f->poll_is_useless; i++) {
        ck_assert_msg(f->alive[h[i]], "polled a handle that is gone");
        if (!f->complete[h[i]])
            continue;
        f->alive[h[i]] = false;
        done[(*ndone)++] = i;
    }
    return *ndone || f->poll_is_useless ? take(&f->fail_poll) : 0;
}

static int fake_copy(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src,
                     int64_t scount, int stype)
{
    struct fake *f = self;
    (void)dcount, (void)dtype, (void)scount, (void)stype;
    note(f, 'c', -1);
    f->last[0] = dst;
    f->last[1] = src;
    return take(&f->fail_copy);
}

static int fake_reduce(void *self, uintptr_t dst, uintptr_t left, uintptr_t right, int64_t count,
                       int type)
{
    struct fake *f = self;
    (void)count, (void)type;
    note(f, '+', -1);
    f->last[0] = dst;
    f->last[1] = left;
    f->last[2] = right;
    return take(&f->fail_reduce);
}

/* What is waited for arrives, the oldest first. */
static int fake_wait(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    struct fake *f = self;
    nbc_handle oldest = h[0];
    for (int i = 1; i < n; i++)
        oldest = h[i] < oldest ? h[i] : oldest;
    f->complete[oldest] = true;
    note(f, 'w', (int)oldest);
    return fake_poll(self, n, h, done, ndone);
}

static bool fake_drop(void *self, int i, nbc_handle h)
{
    struct fake *f = self;
    (void)i;
    ck_assert(f->alive[h]);
    f->alive[h] = false;
    note(f, 'd', (int)h);
    return !f->drops_late;
}

static const struct nbc_transport transport = {
    .send = fake_send,
    .recv = fake_recv,
    .poll = fake_poll,
    .copy = fake_copy,
    .reduce = fake_reduce,
    .drop = fake_drop,
};

/* --- a schedule ------------------------------------------------------------------------------- */

static const struct nbc_type types[] = {{1, 1, 0, 1, true}, {8, 8, 0, 8, true}, {8, 8, 0, 8, true}};

static const struct nbc_shape shape = {
    .coll = NBC_ALLREDUCE,
    .rank = 1,
    .size = 4,
    .commutative = true,
    .types = types,
    .ntypes = 3,
    .send = {.count = 3, .type = NBC_TYPE_SEND},
    .recv = {.count = 3, .type = NBC_TYPE_RECV},
};

static struct nbc_ref ref(int buf, int64_t off)
{
    return (struct nbc_ref){.off = off, .count = 1, .type = NBC_TYPE_SEND, .buf = buf};
}

struct run {
    struct fake fake;
    struct nbc_sched *sched;
    struct nbc_exec exec;
    void *memory;
};

/* Binds a finished schedule to a fresh transport. */
static void bind(struct run *r, struct nbc_sched *s)
{
    memset(&r->fake, 0, sizeof r->fake);
    r->sched = nbc_sched_finish(s);
    r->memory = malloc(nbc_exec_memory(r->sched));
    nbc_exec_init(&r->exec, r->sched, &transport, &r->fake, r->memory);
    r->exec.base[NBC_BUF_SEND] = 1000;
    r->exec.base[NBC_BUF_RECV] = 2000;
    r->exec.base[NBC_BUF_TEMP] = 3000;
}

static void unbind(struct run *r)
{
    nbc_sched_free(r->sched);
    free(r->memory);
}

static void expect_log(struct run *r, const char *log)
{
    ck_assert_str_eq(r->fake.log, log);
    r->fake.log[0] = 0;
}

/* Receives from 0 and 2, adds both to a copy of the input, sends the sum to 3 and, posted behind
 * it, something else. */
static struct nbc_sched *sum_of_three(void)
{
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id from0 = nbc_recv(s, ref(NBC_BUF_TEMP, 0), 0, NBC_NONE);
    nbc_id from2 = nbc_recv(s, ref(NBC_BUF_TEMP, 8), 2, NBC_NONE);
    nbc_id copied = nbc_copy(s, ref(NBC_BUF_RECV, 0), ref(NBC_BUF_SEND, 0), NBC_NONE);
    nbc_id one = nbc_reduce(s, ref(NBC_BUF_RECV, 0), ref(NBC_BUF_TEMP, 0), ref(NBC_BUF_RECV, 0),
                            nbc_join(s, copied, from0));
    nbc_id two =
        nbc_reduce(s, ref(NBC_BUF_RECV, 0), ref(NBC_BUF_TEMP, 8), ref(NBC_BUF_RECV, 0), one);
    nbc_after(s, two, from2);
    nbc_send(s, ref(NBC_BUF_RECV, 0), 3, two);
    nbc_send(s, ref(NBC_BUF_SEND, 8), 3, NBC_NONE);
    return s;
}

/* --- what it must do -------------------------------------------------------------------------- */

UNIT(nothing_to_do_is_done_at_the_start)
{
    struct run r;
    bind(&r, nbc_sched_new(&shape));
    ck_assert(nbc_exec_start(&r.exec));
    ck_assert_int_eq(r.exec.error, 0);
    expect_log(&r, "");
    unbind(&r);
}

UNIT(local_work_is_done_at_the_start)
{
    struct run r;
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id copied = nbc_copy(s, ref(NBC_BUF_RECV, 8), ref(NBC_BUF_SEND, 16), NBC_NONE);
    nbc_reduce(s, ref(NBC_BUF_RECV, 0), ref(NBC_BUF_SEND, 0), ref(NBC_BUF_TEMP, 24), copied);
    bind(&r, s);
    ck_assert(nbc_exec_start(&r.exec));
    ck_assert_int_eq(r.exec.error, 0);
    expect_log(&r, "c + ");
    ck_assert_uint_eq(r.fake.last[0], 2000);
    ck_assert_uint_eq(r.fake.last[1], 1000);
    ck_assert_uint_eq(r.fake.last[2], 3024);
    unbind(&r);
}

/* The run is started, then started again: what the start issues, what the first poll issues. */
static void expect_twice(struct run *r, const char *started, const char *polled)
{
    for (int again = 0; again < 2; again++) {
        ck_assert(!nbc_exec_start(&r->exec));
        expect_log(r, started);
        ck_assert(!nbc_exec_poll(&r->exec));
        expect_log(r, polled);
        memset(r->fake.complete, 1, sizeof r->fake.complete);
        ck_assert(nbc_exec_poll(&r->exec));
        memset(r->fake.complete, 0, sizeof r->fake.complete);
    }
}

UNIT(long_work_is_left_to_polls)
{
    struct run r;
    struct nbc_sched *s = nbc_sched_new(&shape);
    struct nbc_ref to = ref(NBC_BUF_RECV, 8), from = ref(NBC_BUF_SEND, 16);
    nbc_id copied = nbc_copy(s, ref(NBC_BUF_RECV, 0), ref(NBC_BUF_SEND, 0), NBC_NONE);
    to.count = from.count = 2;
    nbc_id after = nbc_copy(s, to, from, NBC_NONE);
    nbc_send(s, ref(NBC_BUF_SEND, 0), 3, copied);
    nbc_send(s, to, 4, after);
    bind(&r, s);
    r.exec.defer = 2;
    expect_twice(&r, "c s3 ", "c s4 "); /* what is behind it is not held up */
    unbind(&r);
    bind(&r, (s = nbc_sched_new(&shape), nbc_copy(s, to, from, NBC_NONE), s));
    r.exec.defer = 2;
    ck_assert(!nbc_exec_start(&r.exec));
    ck_assert(nbc_exec_poll(&r.exec)); /* with no message under way */
    expect_log(&r, "c ");
    unbind(&r);
}

/* Messages to the same peer keep their order, also those that become ready in the meantime. */
UNIT(messages_are_left_to_polls)
{
    struct run r;
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id copied = nbc_copy(s, ref(NBC_BUF_RECV, 0), ref(NBC_BUF_SEND, 0), NBC_NONE);
    nbc_send(s, ref(NBC_BUF_SEND, 0), 3, NBC_NONE);
    nbc_send(s, ref(NBC_BUF_RECV, 0), 3, copied);
    nbc_recv(s, ref(NBC_BUF_RECV, 1), 2, NBC_NONE);
    nbc_send(s, ref(NBC_BUF_SEND, 0), 4, NBC_NONE);
    bind(&r, s);
    r.exec.defer_kinds = 1 << NBC_OP_SEND;
    expect_twice(&r, "c r2 ", "s3 s3 s4 ");
    r.exec.defer_kinds = 1 << NBC_OP_RECV;
    expect_twice(&r, "c s3 s3 s4 ", "r2 ");
    unbind(&r);
}

static void run_sum(struct run *r)
{
    struct fake *f = &r->fake;
    f->next = 0;
    memset(f->complete, 0, sizeof f->complete);
    ck_assert(!nbc_exec_start(&r->exec));
    expect_log(r, "r0 r2 c ");
    ck_assert(!nbc_exec_poll(&r->exec));
    expect_log(r, "");
    f->complete[2] = true; /* the later one first */
    ck_assert(!nbc_exec_poll(&r->exec));
    expect_log(r, "");
    f->complete[1] = true;
    ck_assert(!nbc_exec_poll(&r->exec));
    expect_log(r,
               "+ + s3 s3 "); /* the second send is posted behind the first, not when it is done */
    f->complete[4] = true;
    ck_assert(!nbc_exec_poll(&r->exec));
    f->complete[3] = true;
    ck_assert(nbc_exec_poll(&r->exec));
    expect_log(r, "");
    ck_assert_int_eq(r->exec.error, 0);
    ck_assert_uint_eq(f->addr[1], 3000);
    ck_assert_uint_eq(f->addr[2], 3008);
    ck_assert_uint_eq(f->addr[3], 2000);
    ck_assert_uint_eq(f->addr[4], 1008);
}

/* Operations start when what they wait for is done, in each run. */
UNIT(a_finished_run_can_be_started_again)
{
    struct run r;
    bind(&r, sum_of_three());
    for (int i = 0; i < 3; i++)
        run_sum(&r);
    unbind(&r);
}

UNIT(two_runs_of_one_schedule_do_not_meet)
{
    struct run r, other;
    bind(&r, sum_of_three());
    memset(&other.fake, 0, sizeof other.fake);
    other.memory = malloc(nbc_exec_memory(r.sched));
    nbc_exec_init(&other.exec, r.sched, &transport, &other.fake, other.memory);
    ck_assert(!nbc_exec_start(&other.exec));
    run_sum(&r);
    ck_assert(!nbc_exec_poll(&other.exec));
    expect_log(&other, "r0 r2 c ");
    free(other.memory);
    unbind(&r);
}

UNIT(everything_complete_at_the_first_poll)
{
    struct run r;
    bind(&r, sum_of_three());
    memset(r.fake.complete, 1, sizeof r.fake.complete);
    ck_assert(!nbc_exec_start(&r.exec));
    ck_assert(!nbc_exec_poll(&r.exec));
    ck_assert(nbc_exec_poll(&r.exec));
    expect_log(&r, "r0 r2 c + + s3 s3 ");
    unbind(&r);
}

UNIT(sends_that_complete_at_once)
{
    struct run r;
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_id first = nbc_send(s, ref(NBC_BUF_SEND, 0), 3, NBC_NONE);
    nbc_send(s, ref(NBC_BUF_SEND, 8), 4, first);
    nbc_copy(s, ref(NBC_BUF_RECV, 0), ref(NBC_BUF_SEND, 0), first);
    bind(&r, s);
    r.fake.sends_at_once = true;
    for (int again = 0; again < 2; again++) {
        ck_assert(nbc_exec_start(&r.exec));
        expect_log(&r, "s3 s4 c ");
        ck_assert_int_eq(r.exec.error, 0);
    }
    unbind(&r);
    bind(&r, sum_of_three());
    r.fake.sends_at_once = true;
    ck_assert(!nbc_exec_start(&r.exec));
    r.fake.complete[1] = r.fake.complete[2] = true;
    ck_assert(nbc_exec_poll(&r.exec));
    expect_log(&r, "r0 r2 c + + s3 s3 ");
    unbind(&r);
}

/* Many messages that complete in an arbitrary order, several in a poll. */
UNIT(completions_in_any_order)
{
    struct rng rng = {99};
    for (int round = 0; round < 200; round++) {
        struct run r;
        struct nbc_sched *s = nbc_sched_new(&shape);
        int n = 1 + (int)rng_below(&rng, 20), sends = 0;
        for (int i = 0; i < n; i++) {
            nbc_id got = nbc_recv(s, ref(NBC_BUF_TEMP, 8 * i), i % 4, NBC_NONE);
            nbc_send(s, ref(NBC_BUF_TEMP, 8 * i), i % 4, got);
        }
        bind(&r, s);
        bool complete = nbc_exec_start(&r.exec);
        for (int polls = 0; !complete; polls++) {
            for (nbc_handle h = 1; h <= r.fake.next; h++)
                r.fake.complete[h] = rng_below(&rng, 3) == 0;
            complete = nbc_exec_poll(&r.exec);
            ck_assert_int_lt(polls, 1000);
        }
        for (const char *c = r.fake.log; *c; c++)
            sends += *c == 's';
        ck_assert_int_eq(sends, n);
        for (nbc_handle h = 1; h <= r.fake.next; h++)
            ck_assert(!r.fake.alive[h]);
        unbind(&r);
    }
}

/* --- errors ----------------------------------------------------------------------------------- */

/* The sum of three, in which one call of the transport fails. All messages are posted all the same,
 * but those that are sent after the error are empty, as is one that takes the place of one that
 * cannot be posted. Nothing is reduced after the error. */
UNIT(an_error_ends_nothing)
{
#define FAIL(what) offsetof(struct fake, fail_##what)
    static const struct {
        size_t fails;
        const char *log;
    } table[] = {
        {FAIL(recv), "r0 R0 r2 c S3 S3 "},  {FAIL(copy), "r0 r2 c S3 S3 "},
        {FAIL(reduce), "r0 r2 c + S3 S3 "}, {FAIL(send), "r0 r2 c + + s3 S3 S3 "},
        {FAIL(poll), "r0 r2 c S3 S3 "},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int error = 17 + (int)i;
        struct run r;
        bind(&r, sum_of_three());
        memcpy((char *)&r.fake + table[i].fails, &error, sizeof error);
        ck_assert(!nbc_exec_start(&r.exec));
        r.fake.complete[1] = true;
        ck_assert(!nbc_exec_poll(&r.exec));
        memset(r.fake.complete, 1, sizeof r.fake.complete);
        ck_assert(!nbc_exec_poll(&r.exec));
        ck_assert(nbc_exec_poll(&r.exec));
        ck_assert_int_eq(r.exec.error, error);
        ck_assert(!r.exec.lost);
        expect_log(&r, table[i].log);
        unbind(&r);
    }
#undef FAIL
}

UNIT(the_first_error_counts)
{
    struct run r;
    bind(&r, sum_of_three());
    r.fake.fail_recv = 21;
    r.fake.fail_copy = r.fake.fail_poll = 22;
    memset(r.fake.complete, 1, sizeof r.fake.complete);
    ck_assert(!nbc_exec_start(&r.exec));
    ck_assert(!nbc_exec_poll(&r.exec));
    ck_assert(nbc_exec_poll(&r.exec));
    ck_assert_int_eq(r.exec.error, 21);
    unbind(&r);
}

/* A message for which not even an empty one can be posted, or whose completion cannot be learned:
 * the run ends, and tells that messages may be left over. */
UNIT(messages_are_lost)
{
    for (int i = 0; i < 3; i++) {
        struct run r;
        bind(&r, sum_of_three());
        r.fake.fail_empty = true;
        r.fake.poll_is_useless = i == 2;
        *(i == 0 ? &r.fake.fail_recv : i == 1 ? &r.fake.fail_send : &r.fake.fail_poll) = 31;
        memset(r.fake.complete, 1, sizeof r.fake.complete);
        bool complete = nbc_exec_start(&r.exec);
        for (int polls = 0; !complete; polls++) {
            ck_assert_int_lt(polls, 5);
            complete = nbc_exec_poll(&r.exec);
        }
        ck_assert_int_eq(r.exec.error, 31);
        ck_assert(r.exec.lost);
        ck_assert(r.exec.abandoned == (i == 2));
        expect_log(&r, i == 0   ? "r0 R0 r2 c S3 S3 S3 S3 "
                       : i == 1 ? "r0 r2 c + + s3 S3 S3 S3 "
                                : "r0 r2 c ");
        unbind(&r);
    }
}

UNIT(a_failed_run_can_be_started_again)
{
    struct run r;
    bind(&r, sum_of_three());
    r.fake.fail_copy = 18;
    r.fake.fail_recv = 19;
    r.fake.fail_empty = true;
    memset(r.fake.complete, 1, sizeof r.fake.complete);
    ck_assert(!nbc_exec_start(&r.exec));
    ck_assert(nbc_exec_poll(&r.exec));
    ck_assert(r.exec.error && r.exec.lost);
    r.fake.log[0] = 0;
    run_sum(&r);
    ck_assert(!r.exec.lost);
    unbind(&r);
}

/* A run that ends between two receives has satisfied one of the two edges of the second reduction.
 * Its next start waits for both again. */
UNIT(a_run_that_was_given_up_can_be_started_again)
{
    struct run r;
    bind(&r, sum_of_three());
    ck_assert(!nbc_exec_start(&r.exec));
    r.fake.complete[1] = true;
    ck_assert(!nbc_exec_poll(&r.exec));
    expect_log(&r, "r0 r2 c + ");
    nbc_exec_give_up(&r.exec, 32);
    expect_log(&r, "d2 ");
    ck_assert_int_eq(r.exec.error, 32);
    ck_assert(r.exec.lost && !r.exec.abandoned);
    run_sum(&r);
    ck_assert(!r.exec.lost);
    ck_assert(!nbc_exec_start(&r.exec));
    r.fake.drops_late = true;
    nbc_exec_give_up(&r.exec, 32);
    ck_assert(r.exec.lost && r.exec.abandoned);
    unbind(&r);
}

UNIT(a_wait_is_in_the_transport_if_that_can)
{
    struct nbc_transport waits = transport;
    struct run r;
    bind(&r, sum_of_three());
    ck_assert(!nbc_exec_start(&r.exec));
    ck_assert(
        !nbc_exec_wait(&r.exec)); /* this transport cannot: a poll, in which nothing happens */
    expect_log(&r, "r0 r2 c ");
    waits.wait = fake_wait;
    r.exec.transport = &waits;
    ck_assert(!nbc_exec_wait(&r.exec));
    ck_assert(!nbc_exec_wait(&r.exec));
    expect_log(&r, "w1 + w2 + s3 s3 ");
    ck_assert(!nbc_exec_wait(&r.exec));
    ck_assert(nbc_exec_wait(&r.exec));
    expect_log(&r, "w3 w4 ");
    unbind(&r);
    struct nbc_sched *s = nbc_sched_new(&shape);
    nbc_recv(s, ref(NBC_BUF_RECV, 0), 2, NBC_NONE);
    nbc_copy(s, ref(NBC_BUF_RECV, 1), ref(NBC_BUF_SEND, 0), NBC_NONE);
    bind(&r, s);
    r.exec.transport = &waits;
    r.exec.defer = 1;
    ck_assert(!nbc_exec_start(&r.exec));
    ck_assert(!nbc_exec_wait(&r.exec)); /* there is something to do first */
    expect_log(&r, "r2 c ");
    unbind(&r);
}

/* The n-th call of the transport fails, for every n, somewhere among the ranks of a real algorithm.
 * All ranks must end, with no message left over (the simulation watches), and those that end
 * without an error have right results, as all have in the other run. */
UNIT(any_call_may_fail, .each_row = true)
{
    const struct nbc_alg *alg = &nbc_algs[_i];
    struct test_case c = {.alg = alg,
                          .size = 4,
                          .remote = alg->needs & NBC_INTER ? 2 : 0,
                          .count = 3,
                          .layout = GAP,
                          .graph = 4,
                          .segment = 24,
                          .sockets = !(alg->needs & NBC_INTER),
                          .nodes = 2,
                          .runs = 2,
                          .seed = 1};
    case_normalize(&c);
    bool failed = true;
    for (int call = 1; failed; call++) {
        struct world *w = world_new(&c);
        ck_assert_msg(!world_build(w), "%s", w->text);
        struct sim_config config = {.seed = (uint64_t)call,
                                    .rendezvous = call % 2,
                                    .jitter = 2,
                                    .delay = 2,
                                    .fail_at = call,
                                    .staged = call % 3 == 0,
                                    .swallow = call % 4 == 2};
        struct sim *sim = sim_new(&config);
        world_start(w, sim);
        const char *wrong = sim_run(sim);
        failed = sim_failed(sim);
        ck_assert_msg(!wrong, "%s:%s, call %d: %s", nbc_coll_name(alg->coll), alg->name, call,
                      wrong);
        ck_assert_msg(!world_result(w), "%s:%s, call %d: %s", nbc_coll_name(alg->coll), alg->name,
                      call, w->text);
        sim_free(sim);
        world_free(w);
    }
}

/* --- windows --- */

/* Algorithms that hold their messages back: how many a rank has under way at once, at most. */
static const struct window {
    enum nbc_coll coll;
    const char *name;
    int most;
} windows[] = {
    {NBC_GATHER, "windowed", NBC_WINDOW},
    {NBC_GATHERV, "windowed", NBC_WINDOW},
    {NBC_SCATTER, "windowed", NBC_WINDOW},
    {NBC_SCATTERV, "windowed", NBC_WINDOW},
    {NBC_ALLTOALL, "throttled", 2 * NBC_WINDOW},
    {NBC_ALLTOALLV, "throttled", 2 * NBC_WINDOW},
    {NBC_ALLTOALLW, "throttled", 2 * NBC_WINDOW},
    {NBC_ALLTOALL, "pairwise", 4},
    {NBC_ALLTOALLV, "pairwise", 4},
    {NBC_ALLTOALLW, "pairwise", 4},
};

/* count: of elements in a block; of as many messages on hosts that have only sockets. */
static void check_crowd(const struct window *window, struct test_case c, int most)
{
    case_normalize(&c);
    struct world *w = world_new(&c);
    ck_assert_msg(!world_build(w), "%s", w->text);
    struct sim_config config = {.seed = 7, .rendezvous = true, .jitter = 3};
    struct sim *sim = sim_new(&config);
    world_start(w, sim);
    const char *wrong = sim_run(sim);
    ck_assert_msg(!wrong, "%s", wrong);
    int crowd = 0;
    for (int id = 0; id < w->n; id++)
        crowd = w->ranks[id].crowd > crowd ? w->ranks[id].crowd : crowd;
    ck_assert_msg(crowd <= most, "%s:%s has %d messages under way, not %d",
                  nbc_coll_name(window->coll), window->name, crowd, most);
    sim_free(sim);
    world_free(w);
}

UNIT(a_window_holds_messages_back, .times = sizeof windows / sizeof *windows)
{
    const struct window *window = &windows[_i];
    struct test_case c = {.alg = nbc_alg_by_name(window->coll, window->name),
                          .size = 40,
                          .count = 1,
                          .even = true,
                          .seed = 3};
    need(c.alg);
    for (int in_place = 0; in_place < 2; in_place++) {
        c.in_place = in_place;
        check_crowd(window, c, window->most);
    }
}

/* Of blocks that move in pieces, a window holds back as many. */
UNIT(a_window_holds_pieces_back, .times = sizeof windows / sizeof *windows)
{
    enum { PIECES = 5 };
    const struct window *window = &windows[_i];
    struct test_case c = {.alg = nbc_alg_by_name(window->coll, window->name),
                          .size = 40,
                          .count = PIECES,
                          .even = true,
                          .sockets = true,
                          .segment = 8,
                          .seed = 3};
    check_crowd(window, c, PIECES * window->most);
}
