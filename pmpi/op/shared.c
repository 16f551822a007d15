/* SPDX-License-Identifier: MIT */
#include "op/shared.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "op/message.h"
#include "op/stage.h"

/* A message that is too long has this bit in its tag, which no tag has, and no data. */
#define LONG (UINT32_C(1) << 31)

/* --- messages that are not complete ----------------------------------------------------------- */

static struct nbc_shared_message *unused;

static struct nbc_shared_message *record_take(void)
{
    struct nbc_shared_message *m = unused;
    if (!m)
        return malloc(sizeof *m);
    unused = m->next;
    return m;
}

static void record_give(struct nbc_shared_message *m)
{
    m->next = unused;
    unused = m;
}

static inline struct nbc_shared_message describe(struct nbc_run *run, struct nbc_shared_peer *peer,
                                                 uintptr_t addr, int64_t count, int type, int rank,
                                                 bool sends)
{
    return (struct nbc_shared_message){.peer = peer,
                                       .run = run,
                                       .addr = addr,
                                       .count = count,
                                       .bytes = count * run->handles.types[type]->layout.size,
                                       .type = type,
                                       .tag = run->tag,
                                       .rank = rank,
                                       .sends = sends};
}

static struct nbc_shared_message **list_of(const struct nbc_shared_message *m)
{
    return m->sends ? &m->peer->unsent : &m->peer->posted;
}

static int record_add(const struct nbc_shared_message *given, nbc_handle *h)
{
    struct nbc_shared_message *m = record_take();
    if (!m)
        return MPI_ERR_NO_MEM;
    *m = *given;
    DL_APPEND(*list_of(m), m);
    *h = nbc_shared_handle(m);
    return MPI_SUCCESS;
}

/* As post_below returns, of a message that both sides know to be the MPI's now, or that is
 * over. */
static void record_end(struct nbc_shared_message *m, int result)
{
    DL_DELETE(*list_of(m), m);
    m->state = result ? NBC_SHARED_OVER : NBC_SHARED_BELOW;
    m->error = result ? NBC_SENT - result : MPI_SUCCESS;
}

static inline bool is_direct(const struct nbc_run *run)
{
    return run->stage && nbc_stage_is_direct(run);
}

/* Whether the MPI moves a message that this rank sends. */
static inline bool is_long(const struct nbc_shared_message *m)
{
    return m->bytes > nbc_shared_most || is_direct(m->run);
}

/* --- messages that the MPI moves -------------------------------------------------------------- */

/* The other side knows of the message already, so that there is one in any case. Returns as
 * nbc_transport.send does, but no positive error. */
static int post_below(const struct nbc_shared_message *m, nbc_handle *h)
{
    struct nbc_run *r = m->run;
    int error = MPI_SUCCESS;
    void *before = NULL;
    struct nbc_device *entered =
        is_direct(r) ? nbc_stage_enter(r, &before, m->count > 0 ? &error : NULL) : NULL;
    const int64_t count = error ? 0 : m->count;
    if (error)
        nbc_exec_fail(&r->exec, error);
    error = m->sends ? nbc_message_send(r, m->addr, count, m->type, m->rank, h)
                     : nbc_message_receive(r, m->addr, count, m->type, m->rank, h);
    nbc_stage_leave(entered, before);
    if (error <= 0)
        return error;
    r->exec.lost = true; /* unreached: the MPI fails */
    return NBC_SENT - error;
}

/* Whether it is over; then its error is set. */
static bool test_below(struct nbc_shared_message *m)
{
    MPI_Request request = nbc_message_load(&m->below);
    MPI_Status status;
    bool over = nbc_message_is_worth_a_test(request);
    if (over)
        m->error = nbc_message_end(&request, &status, false, &over);
    if (over && !m->error && !m->sends)
        m->error = nbc_message_compare(&status, m->bytes);
    return over;
}

/* --- data ------------------------------------------------------------------------------------- */

/* To the ring, or by the MPI. Returns as nbc_transport.send does. */
static int send_data(const struct nbc_shared_message *m, void *room, nbc_handle *h)
{
    int error = MPI_SUCCESS;
    if (is_long(m)) {
        nbc_ring_send(&m->peer->to, (uint32_t)m->tag | LONG, 0);
        return post_below(m, h);
    }
    if (m->run->handles.types[m->type]->layout.packed)
        memcpy(room, (void *)m->addr, (size_t)m->bytes);
    else
        error = nbc_message_pack(m->run, true, m->addr, m->count, m->type, room);
    nbc_ring_send(&m->peer->to, (uint32_t)m->tag, error ? 0 : (uint32_t)m->bytes);
    return NBC_SENT - error;
}

/* From the ring, from a copy, or by the MPI, in which also a short receive meets a long message. A
 * message of another length is an error, as in the MPI's. Returns as nbc_transport.recv does. */
static int receive_data(const struct nbc_shared_message *m, uint32_t tag, const void *data,
                        uint32_t bytes, nbc_handle *h)
{
    int error = MPI_SUCCESS;
    if (tag & LONG)
        return post_below(m, h);
    if (bytes != m->bytes)
        error = MPI_ERR_TRUNCATE;
    else if (bytes > 0 && is_direct(m->run))
        error = nbc_stage_unpack(m->run, m->addr, m->count, m->type, (void *)data);
    else if (m->run->handles.types[m->type]->layout.packed)
        memcpy((void *)m->addr, data, bytes);
    else if (bytes > 0)
        error = nbc_message_pack(m->run, false, m->addr, m->count, m->type, (void *)data);
    return NBC_SENT - error;
}

/* --- sending ---------------------------------------------------------------------------------- */

static void *reserve(const struct nbc_shared_message *m)
{
    return nbc_ring_reserve(&m->peer->to, is_long(m) ? 0 : (uint32_t)m->bytes);
}

int nbc_shared_send(struct nbc_run *run, struct nbc_shared_peer *peer, uintptr_t addr,
                    int64_t count, int type, int rank, nbc_handle *h)
{
    const struct nbc_shared_message m = describe(run, peer, addr, count, type, rank, true);
    void *room = peer->unsent ? NULL : reserve(&m);
    return room ? send_data(&m, room, h) : record_add(&m, h);
}

/* Sends what there is room for now. */
static void send_posted(struct nbc_shared_peer *peer)
{
    struct nbc_shared_message *m;
    void *room;
    while ((m = peer->unsent) && (room = reserve(m)))
        record_end(m, send_data(m, room, &m->below));
}

/* --- receiving -------------------------------------------------------------------------------- */

static bool has_tag(uint32_t in_ring, int tag)
{
    return (in_ring & ~LONG) == (uint32_t)tag;
}

static struct nbc_shared_message *find_posted(struct nbc_shared_peer *peer, uint32_t in_ring)
{
    struct nbc_shared_message *m = peer->posted;
    while (m && !has_tag(in_ring, m->tag))
        m = m->next;
    return m;
}

static bool keep(struct nbc_shared_peer *peer, uint32_t tag, const void *data, uint32_t bytes)
{
    struct nbc_shared_early *e = malloc(sizeof *e + bytes);
    if (!e)
        return false;
    *e = (struct nbc_shared_early){.tag = tag, .bytes = bytes};
    memcpy(e->data, data, bytes);
    DL_APPEND(peer->early, e);
    return true;
}

/* Receives what has arrived, up to a message that is awaited. Without memory the rest stays. */
static void receive_until(const struct nbc_shared_message *awaited)
{
    struct nbc_shared_peer *peer = awaited->peer;
    uint32_t tag, bytes;
    const void *data;
    while (awaited->state == NBC_SHARED_POSTED &&
           (data = nbc_ring_peek(&peer->from, &tag, &bytes))) {
        struct nbc_shared_message *m = find_posted(peer, tag);
        if (m)
            record_end(m, receive_data(m, tag, data, bytes, &m->below));
        else if (!keep(peer, tag, data, bytes))
            return;
        nbc_ring_pop(&peer->from, bytes);
    }
}

/* A message that has been kept, or NULL. */
static struct nbc_shared_early *find_early(struct nbc_shared_peer *peer, int tag)
{
    struct nbc_shared_early *e = peer->early;
    while (e && !has_tag(e->tag, tag))
        e = e->next;
    return e;
}

static int receive_early(const struct nbc_shared_message *m, struct nbc_shared_early *e,
                         nbc_handle *h)
{
    int result = receive_data(m, e->tag, e->data, e->bytes, h);
    DL_DELETE(m->peer->early, e);
    free(e);
    return result;
}

int nbc_shared_receive(struct nbc_run *run, struct nbc_shared_peer *peer, uintptr_t addr,
                       int64_t count, int type, int rank, nbc_handle *h)
{
    const struct nbc_shared_message m = describe(run, peer, addr, count, type, rank, false);
    struct nbc_shared_early *early = peer->early ? find_early(peer, m.tag) : NULL;
    uint32_t tag, bytes;
    if (early)
        return receive_early(&m, early, h);
    const void *data = peer->posted ? NULL : nbc_ring_peek(&peer->from, &tag, &bytes);
    if (!data || !has_tag(tag, m.tag))
        return record_add(&m, h);
    int result = receive_data(&m, tag, data, bytes, h);
    nbc_ring_pop(&peer->from, bytes);
    return result;
}

/* --- both ------------------------------------------------------------------------------------- */

bool nbc_shared_test(nbc_handle h, int *error)
{
    struct nbc_shared_message *m = nbc_shared_message(h);
    if (m->state == NBC_SHARED_POSTED && m->sends)
        send_posted(m->peer);
    else if (m->state == NBC_SHARED_POSTED)
        receive_until(m);
    if (m->state == NBC_SHARED_BELOW && test_below(m))
        m->state = NBC_SHARED_OVER;
    if (m->state != NBC_SHARED_OVER)
        return false;
    *error = m->error;
    record_give(m);
    return true;
}

bool nbc_shared_drop(nbc_handle h)
{
    struct nbc_shared_message *m = nbc_shared_message(h);
    bool over = m->state != NBC_SHARED_BELOW || nbc_message_give_up(m->below, m->sends);
    if (m->state == NBC_SHARED_POSTED)
        DL_DELETE(*list_of(m), m);
    record_give(m);
    return over;
}

void nbc_shared_cleanup(void)
{
    struct nbc_shared_early *e, *next;
    for (int i = 0; i < nbc_shared_npeers; i++)
        DL_FOREACH_SAFE (nbc_shared_peers[i].early, e, next)
            free(e);
    for (struct nbc_shared_message *m; (m = unused);) {
        unused = m->next;
        free(m);
    }
}
