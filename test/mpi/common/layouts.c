/* SPDX-License-Identifier: MIT */
#include "layouts.h"

#include <pthread.h>
#include <stdlib.h>

/* Newest first. Operators look into it, on the progress thread too: a layout may not end while an
 * operation has its type. So kinds' own types stand here once, for as long as the program runs. */
static struct layout *known;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static struct layout *own[NKINDS];
static int nown;

_Thread_local void (*layout_made)(MPI_Datatype type);

const char *form_name(enum form form)
{
    static const char *const names[] = {"plain",  "dup",     "gaps",   "negative lb", "backward",
                                        "struct", "indexed", "column", "absolute"};
    return names[form];
}

static struct layout *layout_alloc(const struct kind *kind, enum form form, int units)
{
    struct layout *l = test_alloc(sizeof *l);

    *l = (struct layout){.kind = kind, .form = form, .units = units};
    l->offset = test_alloc((size_t)units * sizeof *l->offset);
    for (int i = 0; i < units; i++)
        l->offset[i] = (MPI_Aint)i * kind->size;
    l->type = kind->type;
    return l;
}

static void make_known(struct layout *l)
{
    pthread_mutex_lock(&known_lock);
    l->next = known;
    known = l;
    pthread_mutex_unlock(&known_lock);
}

static void complete(struct layout *l)
{
    if (!l->predefined)
        MPI_Type_commit(&l->type);
    MPI_Type_get_extent(l->type, &l->lb, &l->extent);
    l->handle = l->type;
    if (l->predefined)
        return;
    make_known(l);
    if (layout_made)
        layout_made(l->type);
}

static void contiguous(struct layout *l)
{
    if (l->units == 1)
        l->predefined = true;
    else
        MPI_Type_contiguous(l->units, l->kind->type, &l->type);
}

static void duplicate(struct layout *l)
{
    MPI_Datatype plain = l->kind->type;

    if (l->units > 1)
        MPI_Type_contiguous(l->units, l->kind->type, &plain);
    MPI_Type_dup(plain, &l->type);
    if (l->units > 1)
        MPI_Type_free(&plain);
}

static void vector(struct layout *l, MPI_Aint stride)
{
    MPI_Type_create_hvector(l->units, 1, stride, l->kind->type, &l->type);
    for (int i = 0; i < l->units; i++)
        l->offset[i] = i * stride;
}

/* Replaces the type by one with other bounds. */
static void resize(struct layout *l, MPI_Aint lb, MPI_Aint extent)
{
    MPI_Datatype inner = l->type;

    MPI_Type_create_resized(inner, lb, extent, &l->type);
    if (!l->predefined)
        MPI_Type_free(&inner);
    l->predefined = false;
}

static void reversed_struct(struct layout *l)
{
    int *length = test_alloc((size_t)l->units * sizeof *length);
    MPI_Datatype *type = test_alloc((size_t)l->units * sizeof *type);

    for (int i = 0; i < l->units; i++) {
        length[i] = 1;
        type[i] = l->kind->type;
        l->offset[i] = (MPI_Aint)(l->units - 1 - i) * 2 * l->kind->size;
    }
    MPI_Type_create_struct(l->units, length, l->offset, type, &l->type);
    free(length);
    free(type);
}

/* Places 1, 0, 4, 3, 7, 6, …: holes, and no order. */
static void indexed(struct layout *l)
{
    int *length = test_alloc((size_t)l->units * sizeof *length);
    int *place = test_alloc((size_t)l->units * sizeof *place);

    for (int i = 0; i < l->units; i++) {
        length[i] = 1;
        place[i] = i / 2 * 3 + 1 - i % 2;
        l->offset[i] = (MPI_Aint)place[i] * l->kind->size;
    }
    MPI_Type_indexed(l->units, length, place, l->kind->type, &l->type);
    free(length);
    free(place);
}

struct layout *layout_new(const struct kind *kind, enum form form, int units, int64_t columns)
{
    struct layout *l = layout_alloc(kind, form, units);
    MPI_Aint size = kind->size;

    switch (form) {
    case FORM_PLAIN:
        contiguous(l);
        break;
    case FORM_DUP:
        duplicate(l);
        break;
    case FORM_GAPS:
        vector(l, 2 * size);
        resize(l, 0, (2 * units + 1) * size);
        break;
    case FORM_NEG_LB:
        contiguous(l);
        resize(l, -2 * size, (units + 3) * size);
        break;
    case FORM_BACKWARD:
        vector(l, -2 * size);
        break;
    case FORM_STRUCT:
        reversed_struct(l);
        break;
    case FORM_INDEXED:
        indexed(l);
        break;
    default:
        vector(l, (MPI_Aint)columns * size);
        resize(l, 0, size);
        break;
    }
    complete(l);
    return l;
}

struct layout *layout_absolute(const struct kind *kind, int units, const MPI_Aint *offset)
{
    struct layout *l = layout_alloc(kind, FORM_ABSOLUTE, units);
    int *length = test_alloc((size_t)units * sizeof *length);

    for (int i = 0; i < units; i++) {
        length[i] = 1;
        l->offset[i] = offset[i];
    }
    MPI_Type_create_hindexed(units, length, l->offset, kind->type, &l->type);
    free(length);
    complete(l);
    return l;
}

void layout_free_type(struct layout *layout)
{
    if (!layout->predefined && layout->type != MPI_DATATYPE_NULL)
        MPI_Type_free(&layout->type);
}

void layout_delete(struct layout *layout)
{
    struct layout **link = &known;

    layout_free_type(layout);
    pthread_mutex_lock(&known_lock);
    while (*link && *link != layout)
        link = &(*link)->next;
    if (*link)
        *link = layout->next;
    pthread_mutex_unlock(&known_lock);
    free(layout->offset);
    free(layout);
}

const struct layout *layout_find(MPI_Datatype handle)
{
    const struct layout *l;

    pthread_mutex_lock(&known_lock);
    l = known;
    while (l && l->handle != handle)
        l = l->next;
    pthread_mutex_unlock(&known_lock);
    return l;
}

void layout_register_kind(const struct kind *kind)
{
    make_known(own[nown++] = layout_new(kind, FORM_PLAIN, 1, 1));
}

void layout_forget_kinds(void)
{
    while (nown > 0)
        layout_delete(own[--nown]);
}
