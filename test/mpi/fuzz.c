/* SPDX-License-Identifier: MIT */
/* Runs random programs (common/program.h) of collectives, communicators, messages, completions,
 * frees and restarts. Every result is compared with the definition of the collective.
 *
 *     fuzz [--seed=N] [--programs=N | --seconds=N] [--lines=N] [--print]
 *     fuzz --program=FILE
 *
 * test/fuzz runs it again and again, and makes the program that fails small. --break=COLLECTIVE
 * spoils the results of that collective's persistent operations at their second start, so that the
 * test of test/fuzz has something to find. */
#include "completion.h"
#include "config.h"
#include "messages.h"
#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    WILD_BYTES = 100000 + 16,
    MOST_PENDING = 60,
    MOST_BUFFERED = 600,          /* bytes of a message that the MPI keeps */
    BUFFER = 4096 * MOST_BUFFERED /* of all that are on their way */
};

/* Receives of a communicator may take any source or any tag. Not both: then a message sent later
 * may take the receive meant for one sent earlier, whose sender waits for it. */
enum { NAMED, ANY_SOURCE, ANY_TAG };

/* A communicator. Its group stays until the end: operations may be pending when it is freed. */
struct comm {
    int64_t id;
    int wild;
    bool live;
    struct group *group;
    const struct comm *parent; /* of one that MPI_Comm_idup is making: not to be used yet */
    MPI_Comm made;
    uint64_t due, came; /* messages received by wildcards: sums of their keys */
    struct comm *next;
};

/* What a request belongs to. */
struct item {
    int64_t id; /* persistent ones */
    struct testcase *testcase;
    enum coll coll;
    struct message message;
    struct comm *comm;
    bool persistent, released, makes; /* the communicator */
    int starts;
};

static struct comm *comms;
static struct pool *pool;
static struct rng own; /* of this rank and line */
static enum coll broken = NCOLLS;

/* --- messages received by wildcards ------------------------------------------------------------*/

/* Such a message tells itself what it is: a key, its length, and bytes made of the key. */
struct header {
    uint64_t key;
    int64_t bytes;
};

static unsigned char wild_byte(uint64_t key, int64_t i)
{
    return (unsigned char)(mix64(key) + (uint64_t)i * 13);
}

static uint64_t wild_key(const struct line *line, int rank, int starts)
{
    return mix_in(mix_in((uint64_t)line->tag, rank), starts);
}

static void wild_fill(struct message *m, uint64_t key)
{
    struct header h = {key, m->n - (int64_t)sizeof h};

    memcpy(m->bytes, &h, sizeof h);
    for (int64_t i = 0; i < h.bytes; i++)
        m->bytes[sizeof h + (size_t)i] = wild_byte(key, i);
}

static void wild_check(struct comm *c, const struct message *m)
{
    struct header h;
    int64_t i = 0;

    memcpy(&h, m->bytes, sizeof h);
    if (h.bytes < 0 || h.bytes > WILD_BYTES - (int64_t)sizeof h) {
        test_fail("a wildcard receive got something that nobody sent");
        return;
    }
    while (i < h.bytes && m->bytes[sizeof h + (size_t)i] == wild_byte(h.key, i))
        i++;
    EXPECT(i == h.bytes, "a message received by a wildcard is wrong at byte %" PRId64, i);
    c->came += mix64(h.key);
}

/* --- requests ----------------------------------------------------------------------------------*/

static void drop_item(int place)
{
    struct item *item = pool->item[place];

    if (item->persistent)
        MPI_Request_free(&pool->request[place]);
    EXPECT(pool->request[place] == MPI_REQUEST_NULL, "a request that is gone is not null");
    if (item->testcase)
        case_delete(item->testcase);
    else
        message_clear(&item->message);
    free(item);
    pool_remove(pool, place);
}

/* What nbcshim promises of its own operations. */
static void check_empty(const MPI_Status *status)
{
    int n, cancelled;

    if (!status || test_native)
        return;
    MPI_Get_count(status, MPI_BYTE, &n);
    MPI_Test_cancelled(status, &cancelled);
    EXPECT(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && n == 0 &&
               !cancelled,
           "the status of a collective says %d bytes from %d, tag %d, cancelled %d", n,
           status->MPI_SOURCE, status->MPI_TAG, cancelled);
}

static void finished(struct pool *p, int i, const MPI_Status *status)
{
    struct item *item = p->item[i];

    if (item->testcase)
        check_empty(status);
    if (item->testcase)
        case_check(item->testcase, item->persistent ? "persistent" : "nonblocking");
    else if (!item->makes && !item->comm->wild)
        message_check(&item->message, status);
    else if (item->message.receives)
        wild_check(item->comm, &item->message);
    EXPECT(!item->testcase || item->coll != broken || item->starts < 2,
           "this is what --break breaks");
    if (!item->persistent)
        drop_item(i);
}

static struct item *item_new(const struct line *line, struct comm *c)
{
    struct item *item = test_alloc(sizeof *item);

    *item = (struct item){.id = line->id, .comm = c, .coll = NCOLLS};
    item->persistent = line->verb == INIT || line->verb == MESSAGE_INIT;
    return item;
}

static void drain(int rest)
{
    pool_drain(pool, &own, rest, finished);
}

/* --- communicators -----------------------------------------------------------------------------*/

static struct comm *comm_find(int64_t id)
{
    struct comm *c = comms;

    while (c && (c->id != id || !c->live))
        c = c->next;
    return c;
}

static struct comm *comm_add(const struct line *line, MPI_Comm comm)
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

/* Completes what makes c. */
static void settle(struct comm *c)
{
    const struct item *item;
    struct group *group;

    if (!c->parent)
        return;
    for (int i = 0; i < pool->n; i++)
        while ((item = pool->item[i]) && item->comm == c && item->makes)
            pool_complete(pool, &own, true, finished);
    c->parent = NULL;
    EXPECT(c->made != MPI_COMM_NULL, "MPI_Comm_idup has made nothing");
    group = group_new(c->made);
    *c->group = *group;
    free(group);
}

static MPI_Info make_info(const struct line *line)
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
    MPI_Comm_dup(comm, &result);
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
    MPI_Comm_dup(comm, result);
#endif
    return request;
}

/* With nothing but the communicators themselves to depend on, it may take as long as it likes. */
static void do_idup(const struct line *line, struct comm *c)
{
    struct comm *made = comm_add(line, MPI_COMM_NULL);
    struct item *item = item_new(line, made);
    MPI_Request request;

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

static MPI_Comm split(const struct group *g, struct rng *r)
{
    uint64_t seed = rng_next(r);
    int colors = 1 + rng_below(r, 3);
    int color = (int)(mix_in(seed, g->rank) % (uint64_t)colors);
    MPI_Comm result;

    if (rng_chance(r, 20) && color == 0)
        color = MPI_UNDEFINED;
    MPI_Comm_split(g->comm, color, (int)(mix_in(seed, -g->rank) % 100), &result);
    return result;
}

/* Some of the ranks, in another order. (MPI_Comm_create_group of Open MPI 4.1.4 takes over the
 * parent's topology, with neighbors that are not there.) */
static MPI_Comm create(const struct group *g, struct rng *r)
{
    int *ranks = test_alloc((size_t)g->size * sizeof *ranks), n = 1 + rng_below(r, g->size);
    bool among_them = rng_chance(r, 50) && !g->topology && has_create_group(), member = false;
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

/* On a duplicate: Open MPI 4.1.4 gets its own messages for these mixed up on one that has seen many
 * (see common/blocked.h). */
static MPI_Comm with_topology(const struct group *g, struct rng *r)
{
    MPI_Comm parent, result;

    MPI_Comm_dup(g->comm, &parent);
    result = topology_random(parent, r);
    MPI_Comm_free(&parent);
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

/* Open MPI 4.1.4: while an MPI_Comm_idup is pending, a constructor on the result of another hangs.
 */
static void settle_before_others(void)
{
#ifdef OPEN_MPI
    for (struct comm *c = comms; c; c = c->next)
        settle(c);
#endif
}

static void do_constructor(const struct line *line, struct comm *c)
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
    case DUP:
        result = duplicate(line, g->comm);
        break;
    case IDUP:
        do_idup(line, c);
        return;
    case MERGE:
        result = g->remote ? merge(g) : duplicate(line, g->comm);
        break;
    default:
        if (g->remote)
            break;
        result = line->verb == SPLIT    ? split(g, &r)
                 : line->verb == CREATE ? create(g, &r)
                 : line->verb == INTER  ? inter(g, &r)
                                        : with_topology(g, &r);
        break;
    }
    comm_add(line, result);
}

/* Open MPI 4.1.4 crashes when a persistent message is started whose communicator has been freed,
 * and loses messages that are pending on a freed intercommunicator whose context id was in use
 * before. */
static void complete_messages(const struct comm *c)
{
    for (int i = 0; i < pool->n; i++) {
        const struct item *item = pool->item[i];
        if (!item || item->comm != c || item->testcase || item->makes)
            continue;
        if (!item->persistent && !c->group->remote)
            continue;
        while (pool->active[i])
            pool_complete(pool, &own, true, finished);
        if (pool->item[i])
            drop_item(i);
    }
}

static void do_free(const struct line *line, struct comm *c)
{
    (void)line;
    if (c->id == 0)
        return;
    complete_messages(c);
    for (struct comm *child = comms; child; child = child->next)
        if (child->parent == c) /* freeing the parent crashes Open MPI 4.1.4 */
            settle(child);
    c->live = false;
    if (c->group->comm != MPI_COMM_NULL)
        MPI_Comm_free(&c->group->comm);
}

static void do_hint(const struct line *line, struct comm *c)
{
    MPI_Info info = make_info(line);

    set_info(c->group->comm, info);
    MPI_Info_free(&info);
}

/* --- collectives -------------------------------------------------------------------------------*/

static bool make_spec(const struct line *line, const struct comm *c, struct spec *spec)
{
    const struct group *g = c->group;

    if ((line->coll >= NINTRA && !g->topology) || (line->coll >= SCAN && g->remote))
        return false;
    *spec = spec_random((enum coll)line->coll, g, (uint64_t)line->seed, (int)line->most);
    spec->in_place = spec->in_place && !line->apart;
    spec->style.plain = spec->style.plain || line->plain;
#ifdef MPICH_VERSION
    /* With some hundred types alive MPI_Pack of MPICH 4.0.2 stops early and tells of no error. */
    spec->style.plain = spec->style.plain || line->verb == BURST;
#endif
    return true;
}

static void start_collective(const struct line *line, struct comm *c, const struct spec *spec,
                             int round)
{
    MPI_Request request = MPI_REQUEST_NULL;
    bool persistent = line->verb == INIT;
    struct item *item = item_new(line, c);
    MPI_Info info = make_info(line);

    item->coll = spec->coll;
    item->testcase = case_new(spec);
    case_fill(item->testcase, round);
    case_expect(item->testcase,
                case_call(item->testcase, persistent ? PERSISTENT : NONBLOCKING, info, &request),
                "call");
    case_drop(item->testcase);
    MPI_Info_free(&info);
    pool_add(pool, request, item, !persistent);
}

/* A burst is more than nbcshim has under way on a communicator; the plan is the same for all. */
static void do_collective(const struct line *line, struct comm *c)
{
    struct spec spec;

    if (!make_spec(line, c, &spec) || (line->verb == INIT && !test_has_persistent()))
        return;
    if (line->verb == RUN)
        case_run(&spec, BLOCKING);
    else if (line->verb == BURST)
        for (int i = 0; i < line->times; i++)
            start_collective(line, c, &spec, i);
    else
        start_collective(line, c, &spec, line->verb == INIT ? -1 : 0);
}

/* --- messages ----------------------------------------------------------------------------------*/

/* Whom this rank sends to and receives from; false: nobody. */
static bool partners(const struct line *line, const struct comm *c, int *to, int *from)
{
    const struct group *g = c->group;
    int shift = (int)(line->shift % g->size);

    if (g->remote) {
        *to = *from = g->rank;
        return g->rank < g->remote;
    }
    *to = (g->rank + shift) % g->size;
    *from = (g->rank - shift + g->size) % g->size;
    return true;
}

/* A buffered message is on its way for longer than its request: see complete_messages. (A
 * persistent one of Open MPI 4.1.4 now and then brings old bytes at all its starts, natively too.) */
static int way_to_send(const struct line *line, const struct comm *c, int n)
{
#ifdef OPEN_MPI
    const bool buffers = line->verb != MESSAGE_INIT;
#else
    const bool buffers = true;
#endif

    if (line->way == MESSAGE_BUFFERED && buffers && n <= MOST_BUFFERED && !c->group->remote)
        return MESSAGE_BUFFERED;
    return line->way == MESSAGE_SYNCHRONOUS ? MESSAGE_SYNCHRONOUS : MESSAGE_STANDARD;
}

/* The two messages of a line, without contents. */
static bool make_messages(const struct line *line, const struct comm *c, struct message *in,
                          struct message *out)
{
    int to, from, n = (int)line->bytes;
    uint64_t key = (uint64_t)line->seed;
    int step = c->group->remote; /* of the numbers that keys are made of */

    if (!partners(line, c, &to, &from))
        return false;
    *in = (struct message){true, n, from, (int)line->tag, NULL, mix_in(key, from), 0, 0};
    *out = (struct message){false, n, to, (int)line->tag, NULL, mix_in(key, c->group->rank), 0, 0};
    if (step && c->group->first == 0)
        out->key++;
    if (step && c->group->first > 0)
        in->key++;
    if (c->wild) {
        in->n = WILD_BYTES;
        if (c->wild == ANY_SOURCE)
            in->other = MPI_ANY_SOURCE;
        else
            in->tag = MPI_ANY_TAG;
        out->n += (int)sizeof(struct header);
    }
    out->how = way_to_send(line, c, out->n);
    in->bytes = test_alloc((size_t)in->n);
    out->bytes = test_alloc((size_t)out->n);
    return true;
}

static void fill_message(const struct line *line, struct comm *c, struct message *m, int starts)
{
    int to, from;

    if (!c->wild) {
        message_fill(m, starts);
        return;
    }
    if (!m->receives)
        wild_fill(m, wild_key(line, c->group->rank, starts));
    else if (partners(line, c, &to, &from))
        c->due += mix64(wild_key(line, from, starts));
}

static void do_message(const struct line *line, struct comm *c)
{
    struct item *item[2];
    struct message m[2];
    bool persistent = line->verb == MESSAGE_INIT;

    if (!make_messages(line, c, &m[0], &m[1]))
        return;
    for (int i = 0; i < 2; i++) {
        item[i] = item_new(line, c);
        item[i]->message = m[i];
        if (!persistent)
            fill_message(line, c, &item[i]->message, 0);
        pool_add(pool,
                 persistent ? message_init(&item[i]->message, c->group->comm)
                            : message_start(&item[i]->message, c->group->comm),
                 item[i], !persistent);
    }
}

/* A call that blocks, or a few that do. */
static void send_and_receive(const struct line *line, const struct comm *c, struct message *in,
                             struct message *out, MPI_Status *status)
{
    enum { BY_RECV = 3, REPLACE };
    MPI_Comm comm = c->group->comm;
    MPI_Request request;

    if (line->way == BY_RECV) {
        request = message_start(out, comm);
        MPI_Recv(in->bytes, in->n, MPI_BYTE, in->other, in->tag, comm, status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (line->way == REPLACE && in->n == out->n) {
        memcpy(in->bytes, out->bytes, (size_t)in->n);
        MPI_Sendrecv_replace(in->bytes, in->n, MPI_BYTE, out->other, out->tag, in->other, in->tag,
                             comm, status);
    } else if (out->how != MESSAGE_STANDARD) {
        request = message_start(in, comm);
        if (out->how == MESSAGE_BUFFERED)
            MPI_Bsend(out->bytes, out->n, MPI_BYTE, out->other, out->tag, comm);
        else
            MPI_Ssend(out->bytes, out->n, MPI_BYTE, out->other, out->tag, comm);
        MPI_Wait(&request, status);
    } else {
        MPI_Sendrecv(out->bytes, out->n, MPI_BYTE, out->other, out->tag, in->bytes, in->n, MPI_BYTE,
                     in->other, in->tag, comm, status);
    }
}

static void do_sendrecv(const struct line *line, struct comm *c)
{
    struct message in, out;
    MPI_Status status;

    if (!make_messages(line, c, &in, &out))
        return;
    fill_message(line, c, &in, 0);
    fill_message(line, c, &out, 0);
    send_and_receive(line, c, &in, &out, &status);
    if (c->wild)
        wild_check(c, &in);
    else
        message_check(&in, &status);
    message_clear(&in);
    message_clear(&out);
}

static void receive_probed(const struct line *line, const struct message *in, MPI_Comm comm,
                           MPI_Status *status)
{
    int flag = 0;

    if (line->seed % 2)
        MPI_Probe(in->other, in->tag, comm, status);
    while (line->seed % 2 == 0 && !flag)
        MPI_Iprobe(in->other, MPI_ANY_TAG, comm, &flag, status);
    MPI_Recv(in->bytes, in->n, MPI_BYTE, in->other, in->tag, comm, status);
}

/* By a probe that matches. */
static void receive_matched(const struct line *line, const struct message *in, MPI_Comm comm,
                            MPI_Status *status)
{
#if defined HAVE_MPI_MPROBE && defined HAVE_MPI_IMPROBE && defined HAVE_MPI_MRECV && \
    defined HAVE_MPI_IMRECV
    MPI_Message message;
    MPI_Request request;
    int flag = 0;

    if (line->seed % 2) {
        MPI_Mprobe(in->other, in->tag, comm, &message, status);
        MPI_Mrecv(in->bytes, in->n, MPI_BYTE, &message, status);
        return;
    }
    while (!flag)
        MPI_Improbe(in->other, in->tag, comm, &flag, &message, status);
    MPI_Imrecv(in->bytes, in->n, MPI_BYTE, &message, &request);
    MPI_Wait(&request, status);
#else
    receive_probed(line, in, comm, status);
#endif
}

/* Found by a probe first; by name, because a wildcard receive might be posted. */
static void do_probe(const struct line *line, struct comm *c)
{
    MPI_Comm comm = c->group->comm;
    struct message in, out;
    MPI_Request request;
    MPI_Status status;

    if (c->wild) {
        do_sendrecv(line, c);
        return;
    }
    if (!make_messages(line, c, &in, &out))
        return;
    message_fill(&in, 0);
    message_fill(&out, 0);
    request = message_start(&out, comm);
    if (line->way > MESSAGE_BUFFERED)
        receive_matched(line, &in, comm, &status);
    else
        receive_probed(line, &in, comm, &status);
    message_check(&in, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    message_clear(&in);
    message_clear(&out);
}

/* --- persistent requests -----------------------------------------------------------------------*/

/* Places of the requests of a line. */
static int places_of(const struct line *line, int *place)
{
    int n = 0;

    for (int i = 0; i < line->nof; i++)
        for (int k = 0; k < pool->n; k++) {
            const struct item *item = pool->item[k];
            if (item && item->persistent && item->id == line->of[i] && !item->released)
                place[n++] = k;
        }
    return n;
}

static const struct line *line_of_item(const struct program *p, const struct item *item)
{
    for (int i = 0; i < p->n; i++)
        if (p->line[i].id == item->id && p->line[i].verb == MESSAGE_INIT)
            return &p->line[i];
    return NULL;
}

static void fill_item(const struct program *p, struct item *item)
{
    item->starts++;
    if (item->testcase)
        case_fill(item->testcase, item->starts);
    else
        fill_message(line_of_item(p, item), item->comm, &item->message, item->starts);
}

static void start_places(const int *place, int n)
{
    MPI_Request request[2 * MAX_OF];

    for (int i = 0; i < n; i++)
        request[i] = pool->request[place[i]];
    if (n == 1)
        MPI_Start(request);
    else
        MPI_Startall(n, request);
    for (int i = 0; i < n; i++) {
        EXPECT(request[i] == pool->request[place[i]], "a start has changed a handle");
        pool_started(pool, place[i]);
    }
}

/* One request is started again when it is complete; all ranks have started it by then. The order
 * of starts is this rank's own. */
static void do_start(const struct program *p, const struct line *line)
{
    int place[2 * MAX_OF], n = places_of(line, place);

    for (int i = 0; i < n; i++)
        while (pool->active[place[i]])
            pool_complete(pool, &own, true, finished);
    for (int i = 0; i < n; i++)
        fill_item(p, pool->item[place[i]]);
    rng_shuffle(&own, place, n);
    for (int i = 0; i < n;) {
        int together = 1 + rng_below(&own, n - i);
        start_places(place + i, together);
        i += together;
        if (rng_chance(&own, 30)) /* not all are started yet: no call that waits */
            pool_complete(pool, &own, false, finished);
    }
}

/* Each rank frees them in its own time. */
static void do_release(const struct line *line)
{
    int place[2 * MAX_OF], n = places_of(line, place);

    for (int i = 0; i < n; i++)
        ((struct item *)pool->item[place[i]])->released = true;
}

static void free_released(int percent)
{
    for (int i = 0; i < pool->n; i++) {
        const struct item *item = pool->item[i];
        if (item && item->released && !pool->active[i] && rng_chance(&own, percent))
            drop_item(i);
    }
}

static void do_complete(const struct line *line)
{
    for (int64_t i = 0; i < line->times; i++)
        pool_complete(pool, &own, rng_chance(&own, 30), finished);
    free_released(30);
}

/* --- programs ----------------------------------------------------------------------------------*/

static void (*const on_comm[NVERBS])(const struct line *line, struct comm *c) = {
    [DUP] = do_constructor,
    [IDUP] = do_constructor,
    [SPLIT] = do_constructor,
    [CREATE] = do_constructor,
    [TOPOLOGY] = do_constructor,
    [INTER] = do_constructor,
    [MERGE] = do_constructor,
    [FREE] = do_free,
    [HINT] = do_hint,
    [CALL] = do_collective,
    [RUN] = do_collective,
    [INIT] = do_collective,
    [BURST] = do_collective,
    [MESSAGE] = do_message,
    [MESSAGE_INIT] = do_message,
    [SENDRECV] = do_sendrecv,
    [PROBE] = do_probe,
};

static bool for_absent_too(int64_t verb)
{
    return verb <= FREE;
}

static void execute(const struct program *p, const struct line *line)
{
    struct comm *c = comm_find(line->on);

    if (c)
        settle(c);
    if (line->verb == START)
        do_start(p, line);
    else if (line->verb == RELEASE)
        do_release(line);
    else if (line->verb == COMPLETE)
        do_complete(line);
    else if (line->verb == DRAIN)
        drain((int)line->times);
    else if (c && (c->group->comm != MPI_COMM_NULL || for_absent_too(line->verb)))
        on_comm[line->verb](line, c);
}

static void clean_up(void)
{
    drain(0);
    for (struct comm *c = comms; c; c = c->next)
        settle(c);
    for (int i = 0; i < pool->n; i++)
        if (pool->item[i])
            drop_item(i);
    while (comms) {
        struct comm *next = comms->next;
        EXPECT(comms->due == comms->came, "messages received by wildcards are not those sent");
        group_delete(comms->group);
        free(comms);
        comms = next;
    }
}

static void run_program(const struct program *p)
{
    char text[400];

    pool = pool_new();
    comm_add(&(struct line){.id = 0}, MPI_COMM_WORLD);
    for (int i = 0; i < p->n; i++) {
        line_print(&p->line[i], text, sizeof text);
        test_place("line %d: %s", i + 1, text);
        own = (struct rng){mix_in((uint64_t)p->line[i].seed, test_rank)};
        if (rng_chance(&own, 3)) /* ranks are apart now and then */
            usleep((useconds_t)rng_below(&own, 300));
        execute(p, &p->line[i]);
        if (pool->nactive > MOST_PENDING)
            drain(MOST_PENDING / 2);
    }
    test_place("the end");
    clean_up();
    pool_delete(pool);
}

/* --- the main job ------------------------------------------------------------------------------*/

struct settings {
    const char *program;
    int programs, seconds, lines;
    bool print;
};

/* The sum over all ranks, by messages of the MPI's own. */
static int sum_of_all(int value)
{
    int other;

    for (int i = 1; i < test_size; i++) {
        if (test_rank == 0) {
            MPI_Recv(&other, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            value += other;
        } else if (test_rank == i) {
            MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
    }
    for (int i = 1; i < test_size; i++) {
        if (test_rank == 0)
            MPI_Send(&value, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
        else if (test_rank == i)
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return value;
}

static void print_program(const struct program *p)
{
    char text[400];

    for (int i = 0; i < p->n; i++) {
        line_print(&p->line[i], text, sizeof text);
        puts(text);
    }
}

/* Programs of consecutive seeds, until one fails. */
static void run_many(const struct settings *s)
{
    time_t end = time(NULL) + s->seconds;
    int done = 0;

    while (s->seconds ? sum_of_all(test_rank == 0 && time(NULL) < end) : done < s->programs) {
        struct program p = program_random(test_seed, s->lines);
        if (test_rank == 0)
            printf("program of seed %" PRIu64 "\n", test_seed);
        fflush(stdout);
        run_program(&p);
        program_free(&p);
        done++;
        if (sum_of_all(test_failures()) > 0)
            break;
        test_seed++;
    }
    if (test_rank == 0)
        printf("%d programs\n", done);
}

static bool read_number(const char *argument, const char *name, int *value)
{
    size_t length = strlen(name);

    if (strncmp(argument, name, length) != 0)
        return false;
    *value = atoi(argument + length);
    return true;
}

static struct settings read_arguments(int argc, char **argv)
{
    struct settings s = {.programs = 0, .lines = 60};

    for (int i = 1; i < argc; i++) {
        if (read_number(argv[i], "--programs=", &s.programs) ||
            read_number(argv[i], "--seconds=", &s.seconds) ||
            read_number(argv[i], "--lines=", &s.lines))
            continue;
        if (strncmp(argv[i], "--program=", 10) == 0)
            s.program = argv[i] + 10;
        else if (strncmp(argv[i], "--break=", 8) == 0)
            broken = coll_by_name(argv[i] + 8);
        else if (strcmp(argv[i], "--print") == 0)
            s.print = true;
        else
            test_fail("what is %s?", argv[i]);
    }
    return s;
}

int main(int argc, char **argv)
{
    struct settings s;
    void *buffer = test_alloc(BUFFER);
    int size;

    test_init(&argc, &argv);
    MPI_Buffer_attach(buffer, BUFFER);
    kinds_init();
    s = read_arguments(argc, argv);
    if (!s.programs && !s.seconds)
        s.programs = test_scale(test_crowded() ? 40 : 150, 3000);
    if (s.print) {
        struct program p = program_random(test_seed, s.lines);
        if (test_rank == 0)
            print_program(&p);
        program_free(&p);
    } else if (s.program) {
        struct program p = program_read(s.program);
        run_program(&p);
        program_free(&p);
    } else {
        run_many(&s);
    }
    kinds_finish();
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
    return test_done();
}
