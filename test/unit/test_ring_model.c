/* SPDX-License-Identifier: MIT */
/* The memory orders of the ring, in a model: src/ring.h as it is, run by a writer and a reader of a
 * few messages in every order that C11 allows. x86 never shows a wrong order of the ring, because
 * it keeps the order of loads and that of stores anyway; arm64 does, rarely.
 *
 * What is modelled: the words of the slots and `freed` are atomic, and their accesses come here.
 * The rest of each slot, and each line, is plain data; so is what nbc_ring_own touches. Two
 * accesses to data, one of them a write, are a race unless one happens before the other by a store
 * that releases and a load that acquires. A load of `freed` returns any value from the last one
 * seen on. The threads take turns before loads only: a race is found whichever access comes first.
 *
 * What is not: a load of a word that returns an older value than the newest. That one is of an
 * earlier lap and changes nothing, so it equals waiting. Nor does a thread that waits load again
 * what it has seen. */
#include <string.h>

#include "unit.h"

static uint64_t load(const void *at, int order);
static void store(void *at, uint64_t value, int order);
static void touch(const void *at, bool writes, int value);

#define __atomic_load_n(at, order) load(at, order)
#define __atomic_store_n(at, value, order) \
    _Generic((at), char * : touch(at, true, 0), uint64_t * : store(at, value, order))
#include "ring.h"
#undef __atomic_load_n
#undef __atomic_store_n

enum { WRITER, READER, NSLOTS = 8, NLINES = 16, PLACES = 1 + NBC_RING_FEWEST_SLOTS + NLINES };
enum { MOST_MESSAGES = 12, MOST_STORES = NSLOTS + MOST_MESSAGES, MOST_CHOICES = 100 };

struct messages {
    uint32_t slot, line; /* of the first */
    int n, bytes[MOST_MESSAGES];
};

struct store {
    const void *at;
    uint64_t value;
    bool releases; /* with all that its thread did before, to a load that acquires it */
};

static char memory[PLACES * NBC_RING_LINE]; /* only its addresses count: `freed`, slots, lines */
static int values[PLACES];
static struct thread {
    struct nbc_ring end;
    struct store stores[MOST_STORES];
    int made, wrote[PLACES], read[PLACES]; /* stores: in all, before its last accesses */
    int seen, known;                       /* the other's newest store: loaded, acquired */
    int message;
    bool waits;
} threads[2], *self, *other;
static int taken[MOST_CHOICES], of[MOST_CHOICES], choice, loads, executions;
static bool again;
static const char *fault;
static int missing =
    -1; /* the order left out: 0, 1 of stores to words, to `freed`; 2, 3 of loads */

static int choose(int n)
{
    need(choice < MOST_CHOICES);
    of[choice] = n;
    return taken[choice++];
}

/* Returns whether there is another execution. */
static bool choose_otherwise(void)
{
    for (; choice > 0; taken[--choice] = 0)
        if (taken[choice - 1] + 1 < of[choice - 1])
            return ++taken[choice - 1];
    return false;
}

static bool orders(const void *at, int order, int wanted)
{
    return order == wanted && missing != 2 * (wanted == __ATOMIC_ACQUIRE) + (at == memory);
}

static uint64_t load(const void *at, int order)
{
    const int oldest = self->seen + self->waits;
    int i = other->made - 1;
    need(loads++ == 0); /* of a message: or else the other thread may have its turn here */
    if (at == memory)
        i = again ? self->seen : oldest + choose(other->made - oldest);
    self->seen = i;
    while (other->stores[i].at != at)
        i--;
    if (i > self->known && other->stores[i].releases && orders(at, order, __ATOMIC_ACQUIRE))
        self->known = i;
    return other->stores[i].value;
}

static void store(void *at, uint64_t value, int order)
{
    need(self->made < MOST_STORES && (at == memory) == (self == &threads[READER]));
    self->stores[self->made++] = (struct store){at, value, orders(at, order, __ATOMIC_RELEASE)};
}

static void touch(const void *at, bool writes, int value)
{
    const long place = ((const char *)at - memory) / NBC_RING_LINE;
    if (other->wrote[place] > self->known || (writes && other->read[place] > self->known))
        fault = "race";
    else if (!writes && values[place] != value)
        fault = "wrong data";
    *(writes ? &self->wrote[place] : &self->read[place]) = self->made;
    values[place] = value;
}

/* Returns whether there was room, or a message. */
static bool pass_one(int bytes)
{
    const bool writes = self == &threads[WRITER];
    loads = 0;
    uint32_t tag = (uint32_t)self->message, n = (uint32_t)bytes;
    const char *data =
        writes ? nbc_ring_reserve(&self->end, n) : nbc_ring_peek(&self->end, &tag, &n);
    if (!data)
        return false;
    if ((int)tag != self->message || (int)n != bytes)
        fault = "wrong message";
    for (int at = 0; at < bytes && !fault; at += NBC_RING_LINE)
        touch(data + at, writes, 1 + self->message);
    writes ? nbc_ring_send(&self->end, tag, n) : nbc_ring_pop(&self->end, n);
    self->message++;
    return true;
}

/* A thread passes one message; the writer also those for which what it saw of `freed` is enough. */
static void turn(const struct messages *m, int thread)
{
    self = &threads[thread];
    other = &threads[!thread];
    self->waits = !pass_one(m->bytes[self->message]);
    again = thread == WRITER && !self->waits;
    while (again)
        again = self->message < m->n && pass_one(m->bytes[self->message]);
}

static bool can_run(const struct messages *m, int thread)
{
    const struct thread *t = &threads[thread];
    return t->message < m->n && !(t->waits && t->seen == threads[!thread].made - 1);
}

/* The words are those of an earlier lap. */
static void start(const struct messages *m)
{
    choice = 0;
    memset(threads, 0, sizeof threads);
    struct nbc_ring r = nbc_ring_end(memory, NLINES);
    r.nslots = NSLOTS;
    self = &threads[WRITER];
    for (r.slot = m->slot - NSLOTS; r.slot != m->slot; r.slot++)
        store(nbc_ring_word(&r), nbc_ring_lap(&r), __ATOMIC_RELEASE);
    r.kslot = r.slot;
    r.line = r.kline = m->line;
    self = &threads[READER];
    store(r.freed, (uint64_t)r.slot << 32 | r.line, __ATOMIC_RELEASE);
    threads[WRITER].end = threads[READER].end = r;
}

static const char *explore(const struct messages *m)
{
    fault = NULL;
    executions = 0;
    memset(taken, 0, sizeof taken);
    do {
        start(m);
        while (!fault && (can_run(m, WRITER) || can_run(m, READER)))
            turn(m, !can_run(m, WRITER) || (can_run(m, READER) && choose(2)));
        if (!fault && threads[READER].message < m->n)
            fault = "deadlock";
        need(executions++ < 1000000);
    } while (!fault && choose_otherwise());
    return fault ? fault : "no fault";
}

static const struct messages lists[] = {
    {0, 0, 12, {0, 1, 56, 8, 0, 55, 56, 1, 8, 56, 0, 56}},
    {0, 0, 7, {256, 256, 200, 193, 256, 255, 256}},
    {0, 13, 10, {57, 192, 150, 129, 192, 128, 192, 192, 129, 192}}, /* lines left out at the end */
    {UINT32_MAX - 3, UINT32_MAX - 6, 11, {192, 8, 64, 150, 8, 128, 56, 192, 0, 65, 192}},
    {NSLOTS * 65535 - 4, 1 << 20, 12, {56, 8, 8, 8, 8, 8, 8, 8, 8, 1, 1, 1}}, /* laps 65535, 0 */
};
enum { LISTS = sizeof lists / sizeof *lists, HAS_RINGS = sizeof(void *) >= sizeof(uint64_t) };

UNIT(no_execution_has_a_race, .times = LISTS)
{
    ck_assert_str_eq(HAS_RINGS ? explore(&lists[_i]) : "no fault", "no fault");
    ck_assert_int_gt(executions, HAS_RINGS ? 1000 : -1);
}

/* The model notices if one of the four orders is missing. */
UNIT(a_missing_order_is_a_race, .times = 4 * LISTS)
{
    missing = _i % 4;
    ck_assert_str_eq(HAS_RINGS ? explore(&lists[_i / 4]) : "race", "race");
    missing = -1;
}
