/* SPDX-License-Identifier: MIT */
/* A ring of short messages from one process to another, in memory that the two share. One writer
 * and one reader; no lock, no system call.
 *
 *     freed | word, data | word, data | word | ...      slots: a message each
 *           | data . . . . . . | data . . . | ...       lines: of those that a slot is too small
 * for
 *
 * The word of a slot says in which lap it was written, so the reader knows by it alone that the
 * message is there, and never writes to what the writer writes: a message that fits into its slot
 * moves one cache line from one processor to the other. The reader tells rarely what it has freed.
 * The idea is that of FastForward (Giacomoni, Moseley, Vachharajani, "FastForward for efficient
 * pipeline parallelism: a cache-optimized concurrent lock-free queue", PPoPP 2008). */
#ifndef NBC_RING_H
#define NBC_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NBC_RING_LINE = 64,                                       /* bytes */
    NBC_RING_IN_SLOT = NBC_RING_LINE - (int)sizeof(uint64_t), /* of data */
    NBC_RING_FEWEST = 16,                                     /* lines */
    NBC_RING_FEWEST_SLOTS = 64
};

/* One end of a ring, in memory of its process. Counts are modulo 2^32. */
struct nbc_ring {
    char *slots, *data;
    uint64_t *freed;         /* by the reader: slots << 32 | lines */
    uint32_t nslots, nlines; /* powers of two */
    uint32_t slot, line;     /* what this end has passed */
    uint32_t kslot, kline;   /* of the other end, as far as the writer knows or the reader told */
};

/* A ring has an eighth as many slots as lines, and no fewer than NBC_RING_FEWEST_SLOTS: so many
 * messages a rank may be ahead. */
static inline uint32_t nbc_ring_slots(uint32_t nlines)
{
    return nlines / 8 < NBC_RING_FEWEST_SLOTS ? NBC_RING_FEWEST_SLOTS : nlines / 8;
}

/* The shared bytes of a ring with so many lines, a power of two from NBC_RING_FEWEST on: aligned to
 * a line, and all zero at first. */
static inline size_t nbc_ring_bytes(uint32_t nlines)
{
    return (size_t)(1 + nbc_ring_slots(nlines) + nlines) * NBC_RING_LINE;
}

static inline struct nbc_ring nbc_ring_end(void *shared, uint32_t nlines)
{
    char *slots = (char *)shared + NBC_RING_LINE;
    uint32_t nslots = nbc_ring_slots(nlines);
    return (struct nbc_ring){.slots = slots,
                             .data = slots + (size_t)nslots * NBC_RING_LINE,
                             .freed = shared,
                             .nslots = nslots,
                             .nlines = nlines};
}

/* The longest message: a quarter of the lines. With as many before it that are left out because it
 * would not be contiguous, and as many of which the reader has not told, it fits. */
static inline int64_t nbc_ring_longest(uint32_t nlines)
{
    return (int64_t)nlines / 4 * NBC_RING_LINE;
}

/* Rings are used where a word of 64 bits is one access (op/rings.c). */
static inline uint64_t nbc_ring_load(const uint64_t *at)
{
    return sizeof(void *) < sizeof *at ? *at : __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline void nbc_ring_store(uint64_t *at, uint64_t value)
{
    if (sizeof(void *) < sizeof *at)
        *at = value;
    else
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static inline uint64_t *nbc_ring_word(const struct nbc_ring *r)
{
    return (uint64_t *)(void *)(r->slots + (size_t)(r->slot & (r->nslots - 1)) * NBC_RING_LINE);
}

/* What is expected in the lowest 16 bits of the next word: the lap. */
static inline uint64_t nbc_ring_lap(const struct nbc_ring *r)
{
    return (uint16_t)(r->slot / r->nslots + 1);
}

/* The first of the contiguous lines for so many bytes, and the line after them. */
static inline uint32_t nbc_ring_first(const struct nbc_ring *r, uint32_t bytes, uint32_t *end)
{
    const uint32_t n = (bytes + NBC_RING_LINE - 1) / NBC_RING_LINE;
    const uint32_t left = r->nlines - (r->line & (r->nlines - 1));
    const uint32_t first = n > left ? r->line + left : r->line;
    *end = first + n;
    return first;
}

static inline void *nbc_ring_line(const struct nbc_ring *r, uint32_t line)
{
    return r->data + (size_t)(line & (r->nlines - 1)) * NBC_RING_LINE;
}

/* Whether the writer may write up to these ends. */
static inline bool nbc_ring_has_room(struct nbc_ring *r, uint32_t slot, uint32_t line)
{
    if (slot - r->kslot <= r->nslots && line - r->kline <= r->nlines)
        return true;
    const uint64_t freed = nbc_ring_load(r->freed);
    r->kslot = (uint32_t)(freed >> 32);
    r->kline = (uint32_t)freed;
    return slot - r->kslot <= r->nslots && line - r->kline <= r->nlines;
}

/* The writer: where to store the data of a message of so many bytes, before nbc_ring_send; NULL if
 * there is no room for it now. */
static inline void *nbc_ring_reserve(struct nbc_ring *r, uint32_t bytes)
{
    uint32_t first = r->line, end = r->line;
    if (bytes > NBC_RING_IN_SLOT)
        first = nbc_ring_first(r, bytes, &end);
    if (!nbc_ring_has_room(r, r->slot + 1, end))
        return NULL;
    return bytes > NBC_RING_IN_SLOT ? nbc_ring_line(r, first) : nbc_ring_word(r) + 1;
}

/* Either all bytes that were reserved, or none. */
static inline void nbc_ring_send(struct nbc_ring *r, uint32_t tag, uint32_t bytes)
{
    const uint64_t word = (uint64_t)tag << 32 | (uint64_t)bytes << 16 | nbc_ring_lap(r);
    nbc_ring_store(nbc_ring_word(r), word);
    r->slot++;
    if (bytes > NBC_RING_IN_SLOT)
        nbc_ring_first(r, bytes, &r->line);
}

/* The reader: the data of the next message, with its tag and bytes, before nbc_ring_pop; NULL if
 * there is none. */
static inline const void *nbc_ring_peek(const struct nbc_ring *r, uint32_t *tag, uint32_t *bytes)
{
    const uint64_t *at = nbc_ring_word(r);
    const uint64_t word = nbc_ring_load(at);
    uint32_t end;
    if ((uint16_t)word != nbc_ring_lap(r))
        return NULL;
    *tag = (uint32_t)(word >> 32);
    *bytes = (uint16_t)(word >> 16);
    return *bytes > NBC_RING_IN_SLOT ? nbc_ring_line(r, nbc_ring_first(r, *bytes, &end)) : at + 1;
}

/* Makes a line the reader's alone, which no longer needs it: the processor moves that faster to the
 * writer than one that both have (AMD's EPYC, messages of 4 KiB: 27 instead of 40 ns a line). */
static inline void nbc_ring_own(void *line)
{
    __atomic_store_n((char *)line + NBC_RING_LINE - 1, 0, __ATOMIC_RELAXED);
}

static inline void nbc_ring_pop(struct nbc_ring *r, uint32_t bytes)
{
    uint32_t end = r->line;
    nbc_ring_own(nbc_ring_word(r));
    r->slot++;
    if (bytes > NBC_RING_IN_SLOT)
        for (uint32_t line = nbc_ring_first(r, bytes, &end); line != end; line++)
            nbc_ring_own(nbc_ring_line(r, line));
    r->line = end;
    if (r->slot - r->kslot < r->nslots / 4 && r->line - r->kline < r->nlines / 4)
        return;
    r->kslot = r->slot;
    r->kline = r->line;
    nbc_ring_store(r->freed, (uint64_t)r->slot << 32 | r->line);
}

#endif
