/* SPDX-License-Identifier: MIT */
/* Datatypes whose map the tests know: where each data element of a datatype element lies. */
#ifndef NBC_TEST_LAYOUTS_H
#define NBC_TEST_LAYOUTS_H

#include "kinds.h"

enum form {
    FORM_PLAIN,    /* the kind's own type, or contiguous */
    FORM_DUP,      /* MPI_Type_dup of that */
    FORM_GAPS,     /* vector: every second place */
    FORM_NEG_LB,   /* resized with a negative lower bound */
    FORM_BACKWARD, /* vector with negative stride */
    FORM_STRUCT,   /* struct whose members stand in reverse order in memory */
    FORM_INDEXED,  /* indexed, in no order */
    FORM_COLUMN,   /* column of a row-major matrix: extent of one element, elements interleave */
    NFORMS,
    FORM_ABSOLUTE = NFORMS /* absolute addresses, for MPI_BOTTOM */
};

/* Called with each type that is made, where this thread has set it. */
extern _Thread_local void (*layout_made)(MPI_Datatype type);

struct layout {
    MPI_Datatype type, handle; /* type: null once freed; handle: what it was */
    const struct kind *kind;
    enum form form;
    int units;        /* data elements in one datatype element */
    MPI_Aint *offset; /* of each, in the order of the type map */
    MPI_Aint lb, extent;
    bool predefined; /* the type is the kind's own */
    struct layout *next;
};

const char *form_name(enum form form);

/* A datatype of `units` data elements. columns: how many elements a buffer has at most (only for
 * FORM_COLUMN). */
struct layout *layout_new(const struct kind *kind, enum form form, int units, int64_t columns);

/* A datatype of elements that lie at `offset[i]` from MPI_BOTTOM. */
struct layout *layout_absolute(const struct kind *kind, int units, const MPI_Aint *offset);

/* Frees the MPI's handle; the layout stays known to operators until it is deleted. */
void layout_free_type(struct layout *layout);

void layout_delete(struct layout *layout);

/* The layout of a datatype handle that an operator gets: the newest of that handle. NULL: none. */
const struct layout *layout_find(MPI_Datatype handle);

/* Makes the types of kinds known to layout_find. */
void layout_register_kind(const struct kind *kind);
void layout_forget_kinds(void);

#endif
