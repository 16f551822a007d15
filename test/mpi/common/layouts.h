/* SPDX-License-Identifier: MIT */
/* Datatypes with known type maps: the offset of each data element of a datatype element. */
#ifndef NBC_TEST_LAYOUTS_H
#define NBC_TEST_LAYOUTS_H

#include "kinds.h"

enum form {
    FORM_PLAIN,    /* the type of the kind, or contiguous */
    FORM_DUP,      /* MPI_Type_dup of that */
    FORM_GAPS,     /* vector with stride 2 */
    FORM_NEG_LB,   /* resized with a negative lower bound */
    FORM_BACKWARD, /* vector with negative stride */
    FORM_STRUCT,   /* struct with members in reverse memory order */
    FORM_INDEXED,  /* indexed, in random order */
    FORM_COLUMN,   /* column of a row-major matrix: extent of one element, elements interleave */
    NFORMS,
    FORM_ABSOLUTE = NFORMS /* absolute addresses, for MPI_BOTTOM */
};

/* Called with each type that this thread makes, if not NULL. */
extern _Thread_local void (*layout_made)(MPI_Datatype type);

struct layout {
    MPI_Datatype type, handle; /* type: null once freed; handle: its value before */
    const struct kind *kind;
    enum form form;
    int units;        /* data elements in one datatype element */
    MPI_Aint *offset; /* of each, in the order of the type map */
    MPI_Aint lb, extent;
    bool predefined; /* it is the predefined type of the kind */
    struct layout *next;
};

const char *form_name(enum form form);

/* Returns a datatype of `units` data elements. columns: the largest number of elements of a buffer,
 * for FORM_COLUMN only. */
struct layout *layout_new(const struct kind *kind, enum form form, int units, int64_t columns);

/* Returns a datatype of data elements at `offset[i]` from MPI_BOTTOM. */
struct layout *layout_absolute(const struct kind *kind, int units, const MPI_Aint *offset);

/* Frees the datatype; operators find the layout until it is deleted. */
void layout_free_type(struct layout *layout);

void layout_delete(struct layout *layout);

/* Returns the newest layout of a datatype handle that an operator receives, or NULL. */
const struct layout *layout_find(MPI_Datatype handle);

/* Registers the types of kinds for layout_find. */
void layout_register_kind(const struct kind *kind);
void layout_forget_kinds(void);

#endif
