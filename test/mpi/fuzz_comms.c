/* SPDX-License-Identifier: MIT */
/* The fuzzer's communicators: found by their ids, made in all ways there are, and freed. */
#include "config.h"
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local struct comm *comms;

struct comm *comm_find(int64_t id)
{
    struct comm *c = comms;

    while (c && (c->id != id || !c->live))
        c = c->next;
    return c;
}

struct comm *comm_add(const struct line *line, MPI_Comm comm)
{
    struct comm *c = test_alloc(sizeof *c);

    *c = (struct comm){.id = line->id, .wild = (int)line->wild, .live = true, .next = comms};
    if (comm != MPI_COMM_NULL) {
        c->group = group_new(comm);
    } else {
        c->group = test_alloc(sizeof *c->group);
        *c->group = (struct group){.comm = MPI_COMM_NULL};
    }
    comms = c;
    return c;
}

void settle(struct comm *c)
{
    const struct item *item;
    struct group *group;

    if (!c->parent)
        return;
    for (int i = 0; i < pool->n; i++)
        while ((item = pool->item[i]) && item->comm == c && item->makes)
            complete(true);
    c->parent = NULL;
    EXPECT(c->made != MPI_COMM_NULL, "MPI_Comm_idup has made nothing");
    group = group_new(c->made);
    *c->group = *group;
    free(group);
}

void settle_all(void)
{
    for (struct comm *c = comms; c; c = c->next)
        settle(c);
}

void comms_free(void)
{
    while (comms) {
        struct comm *next = comms->next;
        EXPECT_INT(comms->came, comms->due, "messages received by wildcards");
        if (comms->group->comm != MPI_COMM_NULL && (comms->lingers || comms->id == 0))
            attribute_drop(comms->group->comm);
        group_delete(comms->group);
        free(comms);
        comms = next;
    }
}

MPI_Info make_info(const struct line *line)
{
    char segment[20];
    MPI_Info info;

    MPI_Info_create(&info);
    if (line->algorithm)
        MPI_Info_set(info, "nbcshim_algorithm", algorithm_name(line->algorithm));
    snprintf(segment, sizeof segment, "%" PRId64, line->segment);
    if (line->segment)
        MPI_Info_set(info, "nbcshim_segment_size", segment);
    return info;
}

/* What an MPI-2.2 lacks, or the nearest that it has. */

/* MPICH2 1.4.1p1, MPICH 3.3.2 and 3.4.1 end the program in MPI_Comm_dup of a distributed graph
 * without weights. */
static void dup_plainly(MPI_Comm comm, MPI_Comm *result)
{
    int topology = MPI_UNDEFINED;
#if defined MPICH2_NUMVERSION || (defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40000000)
    MPI_Topo_test(comm, &topology);
#endif
    if (topology == MPI_DIST_GRAPH)
        MPI_Comm_split(comm, 0, 0, result);
    else
        MPI_Comm_dup(comm, result);
}

static MPI_Comm duplicate(const struct line *line, MPI_Comm comm)
{
    MPI_Comm result;
#ifdef HAVE_MPI_COMM_DUP_WITH_INFO
    if (line->algorithm || line->segment) {
        MPI_Info info = make_info(line);
        MPI_Comm_dup_with_info(comm, info, &result);
        MPI_Info_free(&info);
        return result;
    }
#endif
    (void)line;
    dup_plainly(comm, &result);
    return result;
}

/* The request, or null where the call has waited. */
static MPI_Request idup(const struct line *line, MPI_Comm comm, MPI_Comm *result)
{
    MPI_Request request = MPI_REQUEST_NULL;
#ifdef HAVE_MPI_COMM_IDUP_WITH_INFO
    if (line->algorithm || line->segment) {
        MPI_Info info = make_info(line);
        MPI_Comm_idup_with_info(comm, info, result, &request);
        MPI_Info_free(&info);
        return request;
    }
#endif
    (void)line;
#ifdef HAVE_MPI_COMM_IDUP
    MPI_Comm_idup(comm, result, &request);
#else
    dup_plainly(comm, result);
#endif
    return request;
}

/* MPICH 4.0.2 may hang while three of overlapping communicators are pending (doc/mpis.md). */
static void settle_others(const struct comm *parent)
{
#ifdef MPICH_VERSION
    for (struct comm *c = comms; c; c = c->next)
        if (c->parent != parent)
            settle(c);
#else
    (void)parent;
#endif
}

/* With nothing but the communicators themselves to depend on, it may take as long as it likes.
 * (While another thread makes a communicator, it hangs with MPICH 4.0.2 and Open MPI 4.1.4.) */
static void do_idup(const struct line *line, struct comm *c)
{
    struct comm *made = comm_add(line, MPI_COMM_NULL);
    struct item *item = item_new(line, made);
    MPI_Request request;

    settle_others(c);
    made->parent = c;
    request = idup(line, c->group->comm, &made->made);
    if (request == MPI_REQUEST_NULL) {
        free(item);
        return;
    }
    item->makes = true;
    pool_add(pool, request, item, true);
}

static bool has_create_group(void)
{
#ifdef HAVE_MPI_COMM_CREATE_GROUP
    return true;
#else
    return false;
#endif
}

/* Not collective over comm. */
static void create_group(MPI_Comm comm, MPI_Group group, MPI_Comm *result)
{
#ifdef HAVE_MPI_COMM_CREATE_GROUP
    MPI_Comm_create_group(comm, group, 5, result);
#else
    (void)comm, (void)group, (void)result;
#endif
}

static void set_info(MPI_Comm comm, MPI_Info info)
{
#ifdef HAVE_MPI_COMM_SET_INFO
    MPI_Comm_set_info(comm, info);
#else
    (void)comm, (void)info;
#endif
}

/* Of the ranks that a node has; where there is none of it, of ranks with another key. */
static MPI_Comm split_by(bool type, MPI_Comm comm, int color, int key)
{
    MPI_Comm result;
#ifdef HAVE_MPI_COMM_SPLIT_TYPE
    if (type) {
        MPI_Comm_split_type(comm, color == MPI_UNDEFINED ? color : MPI_COMM_TYPE_SHARED, key,
                            MPI_INFO_NULL, &result);
        return result;
    }
#endif
    (void)type;
    MPI_Comm_split(comm, color, key, &result);
    return result;
}

static MPI_Comm split(const struct group *g, struct rng *r, bool type)
{
    uint64_t seed = rng_next(r);
    int colors = 1 + rng_below(r, 3);
    int color = (int)(mix_in(seed, g->rank) % (uint64_t)colors);

    if (rng_chance(r, 20) && color == 0)
        color = MPI_UNDEFINED;
    return split_by(type, g->comm, color, (int)(mix_in(seed, -g->rank) % 100));
}

/* Some of the ranks, in another order. (MPI_Comm_create_group of Open MPI 4.1.4 takes over the
 * parent's topology, with neighbors that are not there, and its attributes.) */
static MPI_Comm create(const struct group *g, struct rng *r)
{
    int *ranks = test_alloc((size_t)g->size * sizeof *ranks), n = 1 + rng_below(r, g->size);
    bool bare = !g->topology && !attribute_is_on(g->comm), member = false;
    bool among_them = rng_chance(r, 50) && bare && has_create_group();
    MPI_Group all, some;
    MPI_Comm result = MPI_COMM_NULL;

    for (int i = 0; i < g->size; i++)
        ranks[i] = i;
    rng_shuffle(r, ranks, g->size);
    MPI_Comm_group(g->comm, &all);
    MPI_Group_incl(all, n, ranks, &some);
    for (int i = 0; i < n; i++)
        member = member || ranks[i] == g->rank;
    if (!among_them)
        MPI_Comm_create(g->comm, some, &result);
    else if (member)
        create_group(g->comm, some, &result);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    free(ranks);
    return result;
}

/* A communicator with the same ranks. MPI_Dist_graph_create_adjacent of Open MPI 5.0.10 keeps the
 * topology of its parent, so here it has none. */
static MPI_Comm without_topology(const struct group *g)
{
    MPI_Comm result;

    if (g->topology)
        MPI_Comm_split(g->comm, 0, g->rank, &result);
    else
        MPI_Comm_dup(g->comm, &result);
    return result;
}

/* On another communicator: Open MPI 4.1.4 gets its own messages for these mixed up on one that has
 * seen many (see common/blocked.h). */
static MPI_Comm with_topology(const struct group *g, struct rng *r)
{
    MPI_Comm parent = without_topology(g), result;

    result = topology_random(parent, r);
    MPI_Comm_free(&parent);
    return result;
}

/* Some dimensions of a grid, all or none at times. */
static MPI_Comm sub(const struct group *g, struct rng *r)
{
    enum { MAX_DIMS = 3 };
    MPI_Comm parent, grid = g->comm, result = MPI_COMM_NULL;
    int status, remain[MAX_DIMS];

    MPI_Topo_test(g->comm, &status);
    if (status != MPI_CART) {
        dup_plainly(g->comm, &parent);
        grid = topology_make(parent, TOPOLOGY_CART, r);
        MPI_Comm_free(&parent);
    }
    if (grid == MPI_COMM_NULL)
        return result;
    for (int i = 0; i < MAX_DIMS; i++)
        remain[i] = rng_chance(r, 60);
    MPI_Cart_sub(grid, remain, &result);
    if (grid != g->comm)
        MPI_Comm_free(&grid);
    return result;
}

static MPI_Comm inter(const struct group *g, struct rng *r)
{
    MPI_Comm local, result;
    int at, side;

    if (g->size == 1)
        return MPI_COMM_NULL;
    at = 1 + rng_below(r, g->size - 1);
    side = g->rank >= at;
    MPI_Comm_split(g->comm, side, g->rank, &local);
    MPI_Intercomm_create(local, 0, g->comm, side ? 0 : at, 6, &result);
    MPI_Comm_free(&local);
    return result;
}

static MPI_Comm merge(const struct group *g)
{
    MPI_Comm result;

    MPI_Intercomm_merge(g->comm, g->first > 0, &result);
    return result;
}

static MPI_Comm split_color(const struct group *g, struct rng *r)
{
    return split(g, r, false);
}

static MPI_Comm split_type(const struct group *g, struct rng *r)
{
    return split(g, r, true);
}

/* From intracommunicators. */
static MPI_Comm (*const construct[])(const struct group *g, struct rng *r) = {
    [SPLIT] = split_color, [SPLIT_TYPE] = split_type, [CREATE] = create, [TOPOLOGY] = with_topology,
    [SUB] = sub,           [INTER] = inter,
};

/* Open MPI 4.1.4: while an MPI_Comm_idup is pending, a constructor on the result of another hangs.
 */
static void settle_before_others(void)
{
#ifdef OPEN_MPI
    settle_all();
#endif
}

void do_constructor(const struct line *line, struct comm *c)
{
    struct rng r = {(uint64_t)line->seed};
    const struct group *g = c->group;
    MPI_Comm result = MPI_COMM_NULL;

    if (comm_find(line->id))
        return;
    settle_before_others();
    if (g->comm == MPI_COMM_NULL) {
        comm_add(line, result);
        return;
    }
    switch (line->verb) {
    case IDUP:
        if (threads == 1) {
            do_idup(line, c);
            return;
        }
        /* fall through */
    case DUP:
        result = duplicate(line, g->comm);
        break;
    case MERGE:
        result = g->remote ? merge(g) : duplicate(line, g->comm);
        break;
    default:
        if (g->remote)
            break;
        result = construct[line->verb](g, &r);
        break;
    }
    comm_add(line, result);
}

/* Open MPI 4.1.4 crashes when a persistent message is started whose communicator has been freed,
 * and loses messages that are pending on a freed intercommunicator whose context id was in use
 * before. MPICH 4.0.2 calls back for attributes when the last request of a message is gone, and
 * MPI_Comm_disconnect waits for that, inactive ones too. */
static void complete_messages(const struct comm *c, bool all)
{
    for (int i = 0; i < pool->n; i++) {
        const struct item *item = pool->item[i];
        if (!item || item->comm != c || !item_is_message(item))
            continue;
        if (!all && !item->persistent && !c->group->remote)
            continue;
        while (pool->active[i])
            complete(true);
        if (pool->item[i])
            drop_item(i);
    }
}

/* What MPI_Comm_disconnect leaves behind cannot be started any more. */
static void release_all(const struct comm *c)
{
    for (int i = 0; i < pool->n; i++) {
        struct item *item = pool->item[i];
        if (item && item->comm == c)
            item->released = true;
    }
}

/* MPICH 4.0.2 hangs in MPI_Comm_disconnect once there was a buffered message, natively too. */
static bool disconnects(const struct line *line, const struct comm *c)
{
#ifdef OPEN_MPI
    (void)c;
    return line->verb == DISCONNECT;
#else
    return line->verb == DISCONNECT && !c->lingers;
#endif
}

void do_free(const struct line *line, struct comm *c)
{
    bool disconnect = disconnects(line, c);

    if (c->id == 0)
        return;
    if (c->group->comm != MPI_COMM_NULL && c->lingers)
        attribute_drop(c->group->comm);
    complete_messages(c, disconnect ||
                             (c->group->comm != MPI_COMM_NULL && attribute_is_on(c->group->comm)));
    for (struct comm *child = comms; child; child = child->next)
        if (child->parent == c) /* freeing the parent crashes Open MPI 4.1.4 */
            settle(child);
    c->live = false;
    if (c->group->comm == MPI_COMM_NULL)
        return;
    if (disconnect) {
        release_all(c);
        MPI_Comm_disconnect(&c->group->comm);
    } else {
        MPI_Comm_free(&c->group->comm);
    }
}

void do_hint(const struct line *line, struct comm *c)
{
    MPI_Info info = make_info(line);

    set_info(c->group->comm, info);
    MPI_Info_free(&info);
}
