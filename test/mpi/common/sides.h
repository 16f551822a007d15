/* SPDX-License-Identifier: MIT */
/* One side of a collective call: blocks of data with random types and places, their memory, and the
 * arguments that describe them. Around and between the data is a pattern that must not change. */
#ifndef NBC_TEST_SIDES_H
#define NBC_TEST_SIDES_H

#include "device.h"
#include "layouts.h"

enum {
    SEXTET = 6,  /* data elements per unit of count: a multiple of 1, 2, 3 and 6 */
    ANYONE = -1, /* as dst: the sender sends the same data to all */
    MAX_LAYOUTS = 128
};

/* How the types of a call are drawn. */
struct style {
    const struct kind *kind;
    bool fine; /* any counts, types of one element; else multiples of SEXTET, with types of 1, 2, */
               /* 3 and 6 elements, which differ by rank */
    bool plain; /* predefined types only, no gaps */
};

/* The data that `src` sends to `dst` over edge `tag`. */
struct block {
    int src, dst, tag;
    int64_t units; /* data elements */
    bool nobody;   /* the neighbor is MPI_PROC_NULL */
    const struct layout *layout;
    int64_t elements; /* of the datatype */
    MPI_Aint origin;  /* of the first element relative to the buffer argument */
    MPI_Aint displ;   /* the same, as the displacement argument */
};

/* Where memory ends, or begins, with the data, next to an inaccessible page. A send buffer in such
 * memory is read-only until it is filled again. */
enum wall { NO_WALL, WALL_BEHIND, WALL_BEFORE, NWALLS };

enum placing {
    DENSE,  /* contiguous blocks, one type */
    SPREAD, /* displacements in extents, one type */
    TYPED   /* displacements in bytes, a type per block */
};

struct side {
    bool used; /* this rank has such a buffer */
    enum wall wall;
    enum device_memory in; /* not on the host: without a wall */
    int n;
    struct block *block;
    unsigned char *memory, *filled; /* the memory, and a copy from before the call */
    size_t size;
    unsigned char *place; /* the address of the memory in the call: its own, or a device's */
    unsigned char *pages; /* the mapping, if the side has a wall */
    size_t pages_size;
    unsigned char *base; /* address to which origins are relative; NULL for absolute addresses */

    /* Arguments. */
    void *buf;
    int count;
    MPI_Datatype type;
    int *counts, *displs;
    MPI_Count *large_counts;
    MPI_Aint *byte_displs; /* also the displs of calls with large counts */
    MPI_Datatype *types;

    struct layout *owned[MAX_LAYOUTS];
    int nowned;
};

struct block *side_add(struct side *s, int src, int dst, int tag, int64_t units);

/* Draws a type, which the side owns. all_units: size of the whole buffer. */
const struct layout *side_draw_layout(struct side *s, const struct style *style, struct rng *rng,
                                      int64_t all_units);

int64_t side_units(const struct side *s);

/* Draws types and places, allocates memory, sets the arguments. units: the count if there is no
 * block. */
void side_make(struct side *s, const struct style *style, enum placing placing, int64_t units,
               struct rng *rng);

/* The same with a given type and contiguous blocks. */
void side_make_with(struct side *s, const struct layout *layout);

/* Replaces types by types of absolute addresses, with MPI_BOTTOM: for one block, or for blocks with
 * a type each. Only if side_absolute_fits. */
void side_make_absolute(struct side *s, const struct style *style, struct rng *rng);
bool side_absolute_fits(const struct side *s);

/* Replaces displacements by addresses, with MPI_BOTTOM: byte_displs only. */
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

/* If there is a wall, makes the memory writable or read-only. */
void side_protect(struct side *s, bool writable);

/* Copies the memory to the device, or back, if it is there in the call. */
void side_push(const struct side *s);
void side_pull(struct side *s);

/* Frees the datatypes and overwrites the argument arrays. */
void side_drop(struct side *s);

void side_delete(struct side *s);

#endif
