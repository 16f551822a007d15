/* SPDX-License-Identifier: MIT */
/* One side of a collective call: blocks of data with types and places drawn at random, the memory
 * they lie in, and the arguments that describe it. Around and between the data lies a pattern that
 * nobody may write. */
#ifndef NBC_TEST_SIDES_H
#define NBC_TEST_SIDES_H

#include "layouts.h"

enum {
    SEXTET = 6,  /* data elements in a unit of count: types of 1, 2, 3 and 6 divide it */
    ANYONE = -1, /* as dst: the sender sends the same to all */
    MAX_LAYOUTS = 128
};

/* How the types of a call are drawn. */
struct style {
    const struct kind *kind;
    bool fine;  /* counts of any value, only types of one element; else multiples of SEXTET, with */
                /* types of 1, 2, 3 and 6 elements, another on each rank */
    bool plain; /* predefined types only, no holes */
};

/* Which data it is: what `src` sends to `dst` over edge `tag`. */
struct block {
    int src, dst, tag;
    int64_t units; /* data elements */
    bool nobody;   /* the neighbor is MPI_PROC_NULL */
    const struct layout *layout;
    int64_t elements; /* of the datatype */
    MPI_Aint origin;  /* of the first element relative to the buffer argument */
    MPI_Aint displ;   /* the same as the call has it */
};

/* Memory that ends, or begins, where the data does, at a page that nobody can even read. What is
 * sent from such memory can only be read until it is filled again. */
enum wall { NO_WALL, WALL_BEHIND, WALL_BEFORE, NWALLS };

enum placing {
    DENSE,  /* one block behind the other, one type */
    SPREAD, /* displacements in extents, one type */
    TYPED   /* displacements in bytes, a type for each block */
};

struct side {
    bool used; /* this rank has such a buffer */
    enum wall wall;
    int n;
    struct block *block;
    unsigned char *memory, *filled; /* now, and as it was before the call */
    size_t size;
    unsigned char *pages; /* of a side with a wall */
    size_t pages_size;
    unsigned char *base; /* what origins are relative to; NULL for absolute addresses */

    /* Arguments. */
    void *buf;
    int count;
    MPI_Datatype type;
    int *counts, *displs;
    MPI_Count *large_counts;
    MPI_Aint *byte_displs; /* also what displs are in calls with large counts */
    MPI_Datatype *types;

    struct layout *owned[MAX_LAYOUTS];
    int nowned;
};

struct block *side_add(struct side *s, int src, int dst, int tag, int64_t units);

/* Draws a type. all_units: of the whole buffer. The side owns it. */
const struct layout *side_draw_layout(struct side *s, const struct style *style, struct rng *rng,
                                      int64_t all_units);

int64_t side_units(const struct side *s);

/* Chooses types and places, allocates memory, sets the arguments. `units` is the count where there
 * is no block. */
void side_make(struct side *s, const struct style *style, enum placing placing, int64_t units,
               struct rng *rng);

/* The same with one type given, dense. */
void side_make_with(struct side *s, const struct layout *layout);

/* With a type (each) of absolute addresses and MPI_BOTTOM: of one block, or of blocks with types
 * of their own. Only if side_absolute_fits. */
void side_make_absolute(struct side *s, const struct style *style, struct rng *rng);
bool side_absolute_fits(const struct side *s);

/* MPI_BOTTOM with displacements that are addresses: byte_displs only. */
void side_use_addresses(struct side *s);

/* The data elements of a block, one after the other, within the memory or in a copy of it. */
struct walk {
    unsigned char *memory;
    const struct layout *layout;
    MPI_Aint element; /* of the datatype */
    int unit;         /* the next one in it */
};

struct walk side_walk(const struct side *s, unsigned char *memory, const struct block *b);

static inline unsigned char *walk_next(struct walk *w)
{
    const struct layout *l = w->layout;
    unsigned char *at = w->memory + (w->element + l->offset[w->unit]);

    if (++w->unit == l->units) {
        w->unit = 0;
        w->element += l->extent;
    }
    return at;
}

/* Where there is a wall: allows or forbids writing. */
void side_protect(struct side *s, bool writable);

/* Frees the datatypes and makes the argument arrays useless. */
void side_drop(struct side *s);

void side_delete(struct side *s);

#endif
