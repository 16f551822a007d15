/* SPDX-License-Identifier: MIT */
/* The fuzzer's attributes, of communicators and of datatypes: their callbacks use MPI. */
#include "fuzz.h"

#include <stdlib.h>

/* What the callbacks of a communicator do: a collective on MPI_COMM_SELF or on itself, one that is
 * completed later, or completion of what is pending. Those of a datatype: the first. */
enum { ALONE, TOGETHER, PENDING, COMPLETION };

/* A sum over the processes of a communicator. */
struct sum {
    int in, out, due;
};

static int comm_key, type_key;
static _Atomic int made, deleted;
static _Thread_local int64_t verb; /* of the line that is run */

void attributes_at(const struct line *line)
{
    verb = line->verb;
}

/* --- what callbacks do -------------------------------------------------------------------------*/

static int processes(MPI_Comm comm)
{
    int inter, n;

    MPI_Comm_test_inter(comm, &inter);
    if (inter)
        MPI_Comm_remote_size(comm, &n);
    else
        MPI_Comm_size(comm, &n);
    return n;
}

static MPI_Request start_sum(MPI_Comm comm, struct sum *s)
{
    MPI_Request request;

    *s = (struct sum){1, 0, processes(comm)};
    MPI_Iallreduce(&s->in, &s->out, 1, MPI_INT, MPI_SUM, comm, &request);
    return request;
}

void sum_check(const struct sum *s)
{
    EXPECT_INT(s->out, s->due, "a sum that a callback has started");
}

static void sum_now(MPI_Comm comm)
{
    struct sum s;
    MPI_Request request = start_sum(comm, &s);

    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sum_check(&s);
    MPI_Barrier(comm);
}

static void sum_later(MPI_Comm comm)
{
    struct item *item = item_new(&(struct line){.verb = CALL}, NULL);
    MPI_Request request;

    item->sum = test_alloc(sizeof *item->sum);
    request = start_sum(comm, item->sum);
    pool_add(pool, request, item, true);
}

/* MPI_Comm_idup waits for nobody, and MPI_Comm_disconnect for all that is pending. Open MPI 4.1.4
 * calls back with a lock of the process held: of two threads on each of two ranks, each may wait
 * for another. */
static int allowed(int way)
{
#ifdef OPEN_MPI
    if (threads > 1)
        return ALONE;
#endif
    if (way == TOGETHER && verb == IDUP)
        return ALONE;
    return way == PENDING && verb == DISCONNECT ? TOGETHER : way;
}

static void use_mpi(MPI_Comm comm, int way)
{
    switch (allowed(way)) {
    case TOGETHER:
        sum_now(comm);
        break;
    case PENDING:
        sum_later(comm);
        break;
    case COMPLETION:
        complete(false);
        break;
    default:
        sum_now(MPI_COMM_SELF);
        break;
    }
}

/* --- communicators -----------------------------------------------------------------------------*/

static int *new_value(int way)
{
    int *value = test_alloc(sizeof *value);

    *value = way;
    made++;
    return value;
}

static int copy_of_comm(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)key, (void)extra;
    use_mpi(comm, *(int *)value);
    *(int **)copy = new_value(*(int *)value);
    *flag = 1;
    return MPI_SUCCESS;
}

static int end_of_comm(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)extra;
    use_mpi(comm, *(int *)value);
    free(value);
    deleted++;
    return MPI_SUCCESS;
}

bool attribute_is_on(MPI_Comm comm)
{
    void *value;
    int flag;

    MPI_Comm_get_attr(comm, comm_key, &value, &flag);
    return flag;
}

void attribute_drop(MPI_Comm comm)
{
    if (attribute_is_on(comm))
        MPI_Comm_delete_attr(comm, comm_key);
}

void do_attribute(const struct line *line, struct comm *c)
{
    MPI_Comm_set_attr(c->group->comm, comm_key, new_value((int)line->way));
}

/* --- datatypes ---------------------------------------------------------------------------------*/

static int copy_of_type(MPI_Datatype type, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)type, (void)key, (void)extra;
    sum_now(MPI_COMM_SELF);
    *(void **)copy = value;
    made++;
    *flag = 1;
    return MPI_SUCCESS;
}

static int end_of_type(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    sum_now(MPI_COMM_SELF);
    deleted++;
    return MPI_SUCCESS;
}

static void mark_type(MPI_Datatype type)
{
    MPI_Datatype copy;

    made++;
    MPI_Type_set_attr(type, type_key, &type_key);
    MPI_Type_dup(type, &copy);
    MPI_Type_free(&copy);
}

void mark_types(bool on)
{
    layout_made = on ? mark_type : NULL;
}

/* --- all ---------------------------------------------------------------------------------------*/

void attributes_begin(void)
{
    MPI_Comm_create_keyval(copy_of_comm, end_of_comm, &comm_key, NULL);
    MPI_Type_create_keyval(copy_of_type, end_of_type, &type_key, NULL);
}

void attributes_check(void)
{
    EXPECT_INT(made, deleted);
    made = deleted = 0;
}

void attributes_end(void)
{
    MPI_Comm_free_keyval(&comm_key);
    MPI_Type_free_keyval(&type_key);
}
