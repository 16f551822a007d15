/* SPDX-License-Identifier: MIT */
/* The fuzzer's messages: one line is a send and a receive on each rank. */
#include "config.h"
#include "fuzz.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_WILD = 100000,
    WILD_BYTES = MOST_WILD + 16,
    MOST_BUFFERED = BUFFER / 4096 /* bytes of a message that the MPI keeps */
};

/* --- a message with known contents -------------------------------------------------------------*/

static unsigned char byte_of(const struct message *m, int i)
{
    return (unsigned char)mix64(m->key + (uint64_t)(m->round * 65536 + i));
}

void message_fill(struct message *m, int round)
{
    m->round = round;
    for (int i = 0; i < m->n; i++)
        m->bytes[i] = m->receives ? 0 : byte_of(m, i);
}

MPI_Request message_start(struct message *m, MPI_Comm comm)
{
    MPI_Request r;

    if (m->receives)
        MPI_Irecv(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else if (m->how == MESSAGE_SYNCHRONOUS)
        MPI_Issend(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else if (m->how == MESSAGE_BUFFERED)
        MPI_Ibsend(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else
        MPI_Isend(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    return r;
}

MPI_Request message_init(struct message *m, MPI_Comm comm)
{
    MPI_Request r;

    if (m->receives)
        MPI_Recv_init(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else if (m->how == MESSAGE_SYNCHRONOUS)
        MPI_Ssend_init(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else if (m->how == MESSAGE_BUFFERED)
        MPI_Bsend_init(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    else
        MPI_Send_init(m->bytes, m->n, MPI_BYTE, m->other, m->tag, comm, &r);
    return r;
}

static int right_bytes(const struct message *m)
{
    const volatile unsigned char *bytes = m->bytes;
    int i = 0;

    while (i < m->n && bytes[i] == byte_of(m, i))
        i++;
    return i;
}

bool message_is_right(const struct message *m)
{
    return right_bytes(m) == m->n;
}

void message_check(const struct message *m, const MPI_Status *status)
{
    int n;

    if (!m->receives)
        return;
    n = right_bytes(m);
    EXPECT_INT(n, m->n, "bytes that are right of a message from %d, tag %d", m->other, m->tag);
    if (!status)
        return;
    MPI_Get_count(status, MPI_BYTE, &n);
    EXPECT_INT(status->MPI_SOURCE, m->other);
    EXPECT_INT(status->MPI_TAG, m->tag);
    EXPECT_INT(n, m->n);
}

void message_clear(struct message *m)
{
    free(m->bytes);
}

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
    EXPECT_INT(i, h.bytes, "bytes that are right of a message received by a wildcard");
    c->came += mix64(h.key);
}

/* --- sending and receiving --------------------------------------------------------------------*/

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
 * persistent one of Open MPI 4.1.4 now and then brings old bytes at all its starts, natively too.
 * Intel MPI crashes if the communicator of a pending synchronous message is freed.) */
static int way_to_send(const struct line *line, const struct comm *c, int n)
{
    bool buffers = true, synchronizes = true;

#ifdef OPEN_MPI
    buffers = line->verb != MESSAGE_INIT;
#elif defined I_MPI_VERSION
    synchronizes = false;
#endif

    if (line->way == MESSAGE_BUFFERED && buffers && n <= MOST_BUFFERED && !c->group->remote)
        return MESSAGE_BUFFERED;
    return line->way == MESSAGE_SYNCHRONOUS && synchronizes ? MESSAGE_SYNCHRONOUS
                                                            : MESSAGE_STANDARD;
}

bool make_messages(const struct line *line, struct comm *c, struct message *in, struct message *out)
{
    int to, from, n = (int)line->bytes;
    uint64_t key = (uint64_t)line->seed;
    int step = c->group->remote; /* of the numbers that keys are made of */

    if (!partners(line, c, &to, &from))
        return false;
    if (c->wild && n > MOST_WILD)
        n = MOST_WILD;
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
    c->lingers = c->lingers || out->how == MESSAGE_BUFFERED;
    in->bytes = test_alloc((size_t)in->n);
    out->bytes = test_alloc((size_t)out->n);
    return true;
}

void fill_message(const struct line *line, struct comm *c, struct message *m, int starts)
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

void check_message(struct comm *c, const struct message *m, const MPI_Status *status)
{
    if (!c->wild)
        message_check(m, status);
    else if (m->receives)
        wild_check(c, m);
}

void do_message(const struct line *line, struct comm *c)
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

void do_sendrecv(const struct line *line, struct comm *c)
{
    struct message in, out;
    MPI_Status status;

    if (!make_messages(line, c, &in, &out))
        return;
    fill_message(line, c, &in, 0);
    fill_message(line, c, &out, 0);
    send_and_receive(line, c, &in, &out, &status);
    check_message(c, &in, &status);
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
void do_probe(const struct line *line, struct comm *c)
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
