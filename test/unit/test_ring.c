/* SPDX-License-Identifier: MIT */
/* Rings of messages in shared memory: every message arrives whole, once, in order, whatever its
 * length, where the ring is full, and where counts wrap. */
#include "ring.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

struct ends {
    struct nbc_ring writer, reader;
};

static void *shared;
static size_t shared_bytes;

/* Both ends of a new ring that has passed so many slots and lines. */
static struct ends ends_new(uint32_t nlines, uint32_t slot, uint32_t line)
{
    shared_bytes = nbc_ring_bytes(nlines);
    shared = mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
    struct nbc_ring r = nbc_ring_end(shared, nlines);
    if (slot > 0) /* as in an earlier lap */
        memset(r.slots, 0xff, (size_t)r.nslots * NBC_RING_LINE);
    r.slot = r.kslot = slot;
    r.line = r.kline = line;
    *r.freed = (uint64_t)slot << 32 | line;
    return (struct ends){.writer = r, .reader = r};
}

static void ends_free(void)
{
    munmap(shared, shared_bytes);
}

/* The length and the content of message i, not longer than the longest. */
static uint32_t length(uint32_t i, uint32_t nlines)
{
    static const uint32_t few[] = {0, 1, 8, 55, 56, 57, 63, 64, 65, 128, 129};
    uint32_t longest = (uint32_t)nbc_ring_longest(nlines), kind = i * 2654435761U >> 16;
    uint32_t n = kind % 3 == 0 ? kind / 3 % (longest + 1) : few[kind % (sizeof few / sizeof *few)];
    return kind % 37 == 0 ? longest : n < longest ? n : longest;
}

static unsigned char content(uint32_t i, uint32_t at)
{
    return (unsigned char)(i * 31 + at * 7 + (at >> 8) + 1);
}

/* Returns whether there was room. */
static bool put(struct nbc_ring *writer, uint32_t i, uint32_t nlines)
{
    uint32_t n = length(i, nlines);
    unsigned char *room = nbc_ring_reserve(writer, n);
    if (!room)
        return false;
    need((char *)room >= writer->slots &&
         (char *)room + n <= writer->data + (size_t)nlines * NBC_RING_LINE);
    for (uint32_t at = 0; at < n; at++)
        room[at] = content(i, at);
    nbc_ring_send(writer, i & 0x7fffffff, n);
    return true;
}

static bool take(struct nbc_ring *reader, uint32_t i, uint32_t nlines)
{
    uint32_t tag, bytes;
    const unsigned char *data = nbc_ring_peek(reader, &tag, &bytes);
    if (!data)
        return false;
    need(tag == (i & 0x7fffffff) && bytes == length(i, nlines));
    for (uint32_t at = 0; at < bytes; at++)
        need(data[at] == content(i, at));
    nbc_ring_pop(reader, bytes);
    return true;
}

static const uint32_t sizes[] = {16, 32, 128, 2048};
enum { NSIZES = sizeof sizes / sizeof *sizes };

UNIT(one_at_a_time, .times = NSIZES)
{
    struct ends e = ends_new(sizes[_i], 0, 0);
    for (uint32_t i = 0; i < 5000; i++) {
        need(!take(&e.reader, i, sizes[_i]));
        need(put(&e.writer, i, sizes[_i]));
        need(take(&e.reader, i, sizes[_i]));
    }
    ends_free();
}

/* The reader takes all from time to time only, so the writer waits for room. */
UNIT(full, .times = NSIZES)
{
    struct ends e = ends_new(sizes[_i], 0, 0);
    uint32_t sent = 0, received = 0, waited = 0;
    while (received < 20000) {
        while (put(&e.writer, sent, sizes[_i]))
            sent++;
        waited++;
        need(sent > received && sent - received <= e.writer.nslots);
        while (take(&e.reader, received, sizes[_i]))
            received++;
        need(received == sent);
    }
    ck_assert_int_gt(waited, 20);
    ends_free();
}

/* A reader that is one message behind frees enough for the longest, wherever the lines are. */
UNIT(the_longest_always_fits, .times = NSIZES)
{
    const uint32_t longest = (uint32_t)nbc_ring_longest(sizes[_i]);
    uint32_t tag, bytes;
    for (uint32_t line = 0; line < sizes[_i]; line++) {
        struct ends e = ends_new(sizes[_i], 0, line);
        for (int i = 0; i < 40; i++) {
            need(nbc_ring_reserve(&e.writer, longest));
            nbc_ring_send(&e.writer, 1, longest);
            need(nbc_ring_peek(&e.reader, &tag, &bytes) && bytes == longest);
            nbc_ring_pop(&e.reader, bytes);
        }
        ends_free();
    }
}

/* The counts of slots and lines pass 2^32. */
UNIT(counts_wrap, .times = NSIZES)
{
    struct ends e = ends_new(sizes[_i], UINT32_MAX - 700, UINT32_MAX - 1000);
    uint32_t sent = 0, received = 0;
    while (received < 4000) {
        while (put(&e.writer, sent, sizes[_i]))
            sent++;
        for (int i = 0; i < 5 && take(&e.reader, received, sizes[_i]); i++)
            received++;
    }
    ck_assert_uint_lt(e.reader.slot, 5000);
    ends_free();
}

/* What was reserved may be sent without data. */
UNIT(nothing_is_sent)
{
    struct ends e = ends_new(16, 0, 0);
    uint32_t tag, bytes;
    for (int i = 0; i < 100; i++) {
        need(nbc_ring_reserve(&e.writer, (uint32_t)nbc_ring_longest(16)));
        nbc_ring_send(&e.writer, 7, 0);
        need(nbc_ring_peek(&e.reader, &tag, &bytes) && tag == 7 && bytes == 0);
        nbc_ring_pop(&e.reader, 0);
    }
    ends_free();
}

/* Two processes at once. */
UNIT(two_processes, .times = NSIZES)
{
    const uint32_t n = 50000;
    struct ends e = ends_new(sizes[_i], 0, 0);
    pid_t writer = fork();
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        for (uint32_t i = 0; i < n; i++)
            while (!put(&e.writer, i, sizes[_i]))
                sched_yield();
        _exit(0);
    }
    for (uint32_t i = 0; i < n; i++)
        while (!take(&e.reader, i, sizes[_i]))
            sched_yield();
    waitpid(writer, NULL, 0);
    ends_free();
}
