/* SPDX-License-Identifier: MIT */
/* Constructors of communicators, and local calls. */
#include <stddef.h>

#include "routines.h"

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 31

/* --- constructors, each with its free ----------------------------------------------------------*/

/* Errors end the program: the communicators have the default error handler. */
#define CONSTRUCT(function, ...)           \
    static int function(struct side *s)    \
    {                                      \
        MPI_Comm made;                     \
        s->calls->__VA_ARGS__;             \
        return s->calls->Comm_free(&made); \
    }

#define COMM s->o->comm

static const int one = 1;

/* gcc takes MPICH's MPI_UNWEIGHTED for an array of no elements and warns of it. */
static int *unweighted(void)
{
    int *volatile weights = MPI_UNWEIGHTED;
    return weights;
}

CONSTRUCT(comm_dup, Comm_dup(COMM, &made))
CONSTRUCT(dup_with_info, Comm_dup_with_info(COMM, MPI_INFO_NULL, &made))
CONSTRUCT(split, Comm_split(COMM, 0, s->o->rank, &made))
CONSTRUCT(split_type, Comm_split_type(COMM, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made))
CONSTRUCT(create, Comm_create(COMM, s->group, &made))
CONSTRUCT(create_group, Comm_create_group(COMM, s->group, 1, &made))
CONSTRUCT(cart_create, Cart_create(COMM, 1, &s->o->size, &one, 0, &made))
CONSTRUCT(cart_sub, Cart_sub(COMM, &one, &made))
CONSTRUCT(intercomm_merge, Intercomm_merge(s->comm, s->o->rank % 2, &made))

static int idup(struct side *s)
{
    MPI_Comm made;
    MPI_Request request;
    s->calls->Comm_idup(COMM, &made, &request);
    s->calls->Wait(&request, MPI_STATUS_IGNORE);
    return s->calls->Comm_free(&made);
}

static int disconnect(struct side *s)
{
    MPI_Comm made;
    s->calls->Comm_dup(COMM, &made);
    return s->calls->Comm_disconnect(&made);
}

/* Ranks 0 and 1 are joined to each other, or the only rank to itself. */
static int graph_create(struct side *s)
{
    MPI_Comm made;
    int index[2] = {1, 2}, edges[2] = {s->o->size > 1, 0}, nodes = s->o->size > 1 ? 2 : 1;
    s->calls->Graph_create(COMM, nodes, index, edges, 0, &made);
    return made == MPI_COMM_NULL ? MPI_SUCCESS : s->calls->Comm_free(&made);
}

static int dist_graph_create(struct side *s)
{
    MPI_Comm made;
    int next = (s->o->rank + 1) % s->o->size;
    s->calls->Dist_graph_create(COMM, 1, &s->o->rank, &one, &next, unweighted(), MPI_INFO_NULL, 0,
                                &made);
    return s->calls->Comm_free(&made);
}

static int dist_graph_create_adjacent(struct side *s)
{
    MPI_Comm made;
    int size = s->o->size, next = (s->o->rank + 1) % size, last = (s->o->rank + size - 1) % size;
    s->calls->Dist_graph_create_adjacent(COMM, 1, &last, unweighted(), 1, &next, unweighted(),
                                         MPI_INFO_NULL, 0, &made);
    return s->calls->Comm_free(&made);
}

/* Between the even and the odd ranks. */
static int intercomm_create(struct side *s)
{
    MPI_Comm made;
    s->calls->Intercomm_create(s->comm, 0, COMM, 1 - s->o->rank % 2, 1, &made);
    return s->calls->Comm_free(&made);
}

static int with_group(struct side *s)
{
    return MPI_Comm_group(COMM, &s->group);
}

static void free_group(struct side *s)
{
    MPI_Group_free(&s->group);
}

static int with_half(struct side *s)
{
    return s->calls->Comm_split(COMM, s->o->rank % 2, 0, &s->comm);
}

static int with_bridge(struct side *s)
{
    with_half(s);
    MPI_Comm half = s->comm;
    s->calls->Intercomm_create(half, 0, COMM, 1 - s->o->rank % 2, 1, &s->comm);
    return s->calls->Comm_free(&half);
}

static void free_comm(struct side *s)
{
    s->calls->Comm_free(&s->comm);
}

const struct routine communicator_routines[] = {
    ROW("Comm_dup+Comm_free", comm_dup),
    ROW("Comm_dup_with_info+Comm_free", dup_with_info),
    ROW("Comm_idup+Wait+Comm_free", idup),
    ROW("Comm_dup+Comm_disconnect", disconnect),
    ROW("Comm_split+Comm_free", split),
    ROW("Comm_split_type+Comm_free", split_type),
    ROW("Comm_create+Comm_free", create, AROUND(with_group, free_group)),
    ROW("Comm_create_group+Comm_free", create_group, AROUND(with_group, free_group)),
    ROW("Cart_create+Comm_free", cart_create),
    ROW("Cart_sub+Comm_free", cart_sub),
    ROW("Graph_create+Comm_free", graph_create),
    ROW("Dist_graph_create+Comm_free", dist_graph_create),
    ROW("Dist_graph_create_adjacent+Comm_free", dist_graph_create_adjacent),
    ROW("Intercomm_create+Comm_free", intercomm_create, AROUND(with_half, free_comm), .ranks = 2),
    ROW("Intercomm_merge+Comm_free", intercomm_merge, AROUND(with_bridge, free_comm), .ranks = 2),
    {.name = NULL}};

/* --- local calls -------------------------------------------------------------------------------*/

static int type_free(struct side *s)
{
    MPI_Datatype type;
    s->calls->Type_contiguous(2, MPI_INT, &type);
    return s->calls->Type_free(&type);
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static int op_free(struct side *s)
{
    MPI_Op op;
    s->calls->Op_create(add, 1, &op);
    return s->calls->Op_free(&op);
}

static int error_class(struct side *s)
{
    int class;
    return s->calls->Error_class(MPI_ERR_TRUNCATE, &class);
}

static int error_string(struct side *s)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    return s->calls->Error_string(MPI_ERR_TRUNCATE, text, &length);
}

static int query_thread(struct side *s)
{
    int provided;
    return s->calls->Query_thread(&provided);
}

static int errhandler(struct side *s)
{
    MPI_Errhandler handler;
    s->calls->Comm_get_errhandler(COMM, &handler);
    s->calls->Comm_set_errhandler(COMM, handler);
    return s->calls->Errhandler_free(&handler);
}

__attribute__((unused)) static int info(struct side *s)
{
    MPI_Info hints;
    s->calls->Comm_get_info(COMM, &hints);
    s->calls->Comm_set_info(COMM, hints);
    return s->calls->Info_free(&hints);
}

static int name(struct side *s)
{
    return s->calls->Comm_set_name(COMM, "measured");
}

static int attribute(struct side *s)
{
    s->calls->Comm_set_attr(COMM, s->keyval, NULL);
    return s->calls->Comm_delete_attr(COMM, s->keyval);
}

static int create_keyval(struct side *s)
{
    return s->calls->Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &s->keyval,
                                        NULL);
}

static void free_keyval(struct side *s)
{
    s->calls->Comm_free_keyval(&s->keyval);
}

static int keyval(struct side *s)
{
    create_keyval(s);
    return s->calls->Comm_free_keyval(&s->keyval);
}

const struct routine local_routines[] = {
    ROW("Type_contiguous+Type_free", type_free),
    ROW("Op_create+Op_free", op_free),
    ROW("Error_class", error_class),
    ROW("Error_string", error_string),
    ROW("Query_thread", query_thread),
    ROW("Comm_get_errhandler+Comm_set_errhandler+Errhandler_free", errhandler),
#ifndef I_MPI_VERSION /* 2021.18 does not return from the third MPI_Comm_set_info */
    ROW("Comm_get_info+Comm_set_info+Info_free", info),
#endif
    ROW("Comm_set_name", name),
    ROW("Comm_set_attr+Comm_delete_attr", attribute, AROUND(create_keyval, free_keyval)),
    ROW("Comm_create_keyval+Comm_free_keyval", keyval),
    {.name = NULL}};

#else
const struct routine communicator_routines[] = {{.name = NULL}},
                     local_routines[] = {{.name = NULL}};
#endif
