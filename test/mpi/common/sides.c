/* SPDX-License-Identifier: MIT */
#include "sides.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    GUARD = 64,      /* bytes before and behind each buffer */
    SLACK = 400,     /* elements that holes between blocks may add to a buffer */
    MAX_SPARSE = 600 /* data elements in types of absolute addresses */
};

struct block *side_add(struct side *s, int src, int dst, int tag, int64_t units)
{
    struct block *b;

    s->block = realloc(s->block, (size_t)(s->n + 1) * sizeof *s->block);
    assert(s->block);
    b = &s->block[s->n++];
    *b = (struct block){.src = src, .dst = dst, .tag = tag, .units = units};
    return b;
}

static struct layout *own(struct side *s, struct layout *l)
{
    assert(s->nowned < MAX_LAYOUTS);
    s->owned[s->nowned++] = l;
    return l;
}

const struct layout *side_draw_layout(struct side *s, const struct style *style, struct rng *rng,
                                      int64_t all_units)
{
    static const int divisors[] = {1, 2, 3, SEXTET};
    int units = style->plain || style->fine ? 1 : divisors[rng_below(rng, 4)];
    bool plain = style->plain || rng_chance(rng, 25);
    enum form form = plain ? FORM_PLAIN : (enum form)rng_below(rng, NFORMS);

    return own(s, layout_new(style->kind, form, units, all_units / units + SLACK));
}

int64_t side_units(const struct side *s)
{
    int64_t sum = 0;

    for (int i = 0; i < s->n; i++)
        sum += s->block[i].units;
    return sum;
}

static void set_layout(struct block *b, const struct layout *layout)
{
    b->layout = layout;
    b->elements = b->units / layout->units;
}

static void place_dense(struct side *s, const struct layout *layout)
{
    int64_t at = 0;

    for (int i = 0; i < s->n; i++) {
        struct block *b = &s->block[i];
        set_layout(b, layout);
        b->origin = (MPI_Aint)at * layout->extent;
        at += b->elements;
    }
}

/* Blocks in any order, here and there a hole; or as if they were dense. */
static void place_spread(struct side *s, const struct layout *layout, bool plain, struct rng *rng)
{
    int *order = test_alloc((size_t)s->n * sizeof *order);
    int64_t at = 0;

    for (int i = 0; i < s->n; i++)
        order[i] = i;
    if (!plain)
        rng_shuffle(rng, order, s->n);
    for (int i = 0; i < s->n; i++) {
        struct block *b = &s->block[order[i]];
        at += plain ? 0 : rng_below(rng, 3);
        set_layout(b, layout);
        b->origin = (MPI_Aint)at * layout->extent;
        b->displ = (MPI_Aint)at;
        at += b->elements;
    }
    free(order);
}

/* Lowest and highest byte of a block relative to its first element. */
static void block_span(const struct block *b, MPI_Aint *low, MPI_Aint *high)
{
    const struct layout *l = b->layout;

    *low = *high = 0;
    for (int j = 0; j < l->units && b->elements > 0; j++) {
        MPI_Aint last = l->offset[j] + (MPI_Aint)(b->elements - 1) * l->extent + l->kind->size;
        *low = l->offset[j] < *low ? l->offset[j] : *low;
        *high = last > *high ? last : *high;
    }
}

static void place_typed(struct side *s, const struct style *style, struct rng *rng)
{
    MPI_Aint at = 0, low, high;

    for (int i = 0; i < s->n; i++) {
        struct block *b = &s->block[i];
        set_layout(b, side_draw_layout(s, style, rng, b->units));
        block_span(b, &low, &high);
        b->origin = b->displ = at - low;
        at += high - low + (MPI_Aint)style->kind->size * rng_below(rng, 3);
    }
}

static size_t guard_before(const struct side *s)
{
    return s->wall == WALL_BEFORE ? 0 : GUARD;
}

static size_t guard_behind(const struct side *s)
{
    return s->wall == WALL_BEHIND ? 0 : GUARD;
}

/* Whole pages, the first or the last of which is the wall. */
static unsigned char *walled(struct side *s, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (size + page - 1) / page * page;
    bool behind = s->wall == WALL_BEHIND;

    s->pages_size = inside + page;
    s->pages =
        mmap(NULL, s->pages_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(s->pages != MAP_FAILED);
    mprotect(s->pages + (behind ? inside : 0), page, PROT_NONE);
    return s->pages + (behind ? inside - size : page);
}

static void set_memory(struct side *s, size_t size)
{
    s->used = true;
    s->size = size;
    s->memory = s->wall ? walled(s, size) : test_alloc(size);
    s->filled = test_alloc(size);
    s->place = s->in ? device_new(s->in, size) : s->memory;
}

void side_protect(struct side *s, bool writable)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (s->pages)
        mprotect(s->pages + (s->wall == WALL_BEHIND ? 0 : page), s->pages_size - page,
                 PROT_READ | (writable ? PROT_WRITE : 0));
}

/* Memory for all blocks. */
static void allocate(struct side *s)
{
    MPI_Aint low = 0, high = 0, first, last;

    for (int i = 0; i < s->n; i++) {
        block_span(&s->block[i], &first, &last);
        first += s->block[i].origin;
        last += s->block[i].origin;
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    set_memory(s, guard_before(s) + (size_t)(high - low) + guard_behind(s));
    s->base = s->place + guard_before(s) - low;
    s->buf = s->base;
}

static void make_arguments(struct side *s)
{
    size_t n = (size_t)s->n;

    s->counts = test_alloc(n * sizeof *s->counts);
    s->displs = test_alloc(n * sizeof *s->displs);
    s->large_counts = test_alloc(n * sizeof *s->large_counts);
    s->byte_displs = test_alloc(n * sizeof *s->byte_displs);
    s->types = test_alloc(n * sizeof *s->types);
    for (int i = 0; i < s->n; i++) {
        const struct block *b = &s->block[i];
        s->counts[i] = (int)b->elements;
        s->large_counts[i] = b->elements;
        s->displs[i] = (int)b->displ;
        s->byte_displs[i] = b->displ;
        s->types[i] = b->layout->type;
    }
    if (s->n > 0) {
        s->count = s->counts[0];
        s->type = s->types[0];
    }
}

void side_make(struct side *s, const struct style *style, enum placing placing, int64_t units,
               struct rng *rng)
{
    bool absolute = !style->plain && (placing == TYPED || (placing == DENSE && s->n == 1)) &&
                    side_absolute_fits(s) && rng_chance(rng, 20);

    if (absolute) {
        side_make_absolute(s, style, rng);
        return;
    }
    if (placing == TYPED) {
        place_typed(s, style, rng);
    } else {
        const struct layout *layout = side_draw_layout(s, style, rng, side_units(s));
        s->type = layout->type;
        s->count = (int)(units / layout->units);
        if (placing == SPREAD)
            place_spread(s, layout, style->plain, rng);
        else
            place_dense(s, layout);
    }
    allocate(s);
    make_arguments(s);
    if (side_units(s) == 0 && rng_chance(rng, 30))
        s->buf = NULL;
}

void side_make_with(struct side *s, const struct layout *layout)
{
    place_dense(s, layout);
    allocate(s);
    make_arguments(s);
}

bool side_absolute_fits(const struct side *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->block[i].units == 0)
            return false;
    return s->n > 0 && side_units(s) <= MAX_SPARSE;
}

/* The memory first, then a type for each block that holds the addresses. */
void side_make_absolute(struct side *s, const struct style *style, struct rng *rng)
{
    int64_t total = side_units(s), n = 0;
    MPI_Aint at = (MPI_Aint)guard_before(s), start;
    MPI_Aint *offset = test_alloc((size_t)total * sizeof *offset);

    for (int64_t i = 0; i < total; i++) {
        at += rng_chance(rng, 20) ? style->kind->size : 0;
        offset[i] = at;
        at += style->kind->size;
    }
    set_memory(s, (size_t)at + guard_behind(s));
    MPI_Get_address(s->place, &start);
    for (int64_t i = 0; i < total; i++)
        offset[i] += start;
    for (int i = 0; i < s->n; i++) {
        struct block *b = &s->block[i];
        b->layout = own(s, layout_absolute(style->kind, (int)b->units, offset + n));
        b->elements = 1;
        n += b->units;
    }
    free(offset);
    s->base = NULL;
    s->buf = MPI_BOTTOM;
    make_arguments(s);
}

void side_use_addresses(struct side *s)
{
    MPI_Aint start;

    if (!s->base)
        return;
    MPI_Get_address(s->base, &start);
    for (int i = 0; i < s->n; i++)
        s->byte_displs[i] += start;
    s->buf = MPI_BOTTOM;
}

struct walk side_walk(const struct side *s, unsigned char *memory, const struct block *b)
{
    return (struct walk){.memory = memory,
                         .layout = b->layout,
                         .element = b->origin - (MPI_Aint)((intptr_t)s->place - (intptr_t)s->base)};
}

void side_push(const struct side *s)
{
    if (s->used && s->in)
        device_store(s->place, s->memory, s->size);
}

void side_pull(struct side *s)
{
    if (s->used && s->in)
        device_fetch(s->memory, s->place, s->size);
}

void side_drop(struct side *s)
{
    for (int i = 0; i < s->nowned; i++)
        layout_free_type(s->owned[i]);
    for (int i = 0; i < s->n && s->used; i++) {
        s->counts[i] = s->displs[i] = -77;
        s->large_counts[i] = s->byte_displs[i] = -77;
        s->types[i] = MPI_DATATYPE_NULL;
    }
}

void side_delete(struct side *s)
{
    for (int i = 0; i < s->nowned; i++)
        layout_delete(s->owned[i]);
    free(s->block);
    if (s->in && s->place)
        device_free(s->place);
    if (s->pages)
        munmap(s->pages, s->pages_size);
    else
        free(s->memory);
    free(s->filled);
    free(s->counts);
    free(s->displs);
    free(s->large_counts);
    free(s->byte_displs);
    free(s->types);
}
