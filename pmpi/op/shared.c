/* SPDX-License-Identifier: MIT */
#include "op/shared.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/state.h"
#include "base/tag_space.h"
#include "op/message.h"
#include "op/stage.h"

/* A message that is too long for the ring has this bit in its tag, which no tag has. Its data are
 * the number of bytes that follow in pieces, whose tags are without it; or it has none, and is the
 * MPI's. */
#define LONG (UINT32_C(1) << 31)

/* --- messages that are not complete ----------------------------------------------------------- */

/* Records are never freed before the end. */
enum { RECORDS = 64 };

static struct slab {
    struct slab *next;
    struct nbc_shared_message records[RECORDS];
} * slabs;

static struct nbc_shared_message *unused;

static void record_give(struct nbc_shared_message *m)
{
    m->next = unused;
    unused = m;
}

static bool make_records(void)
{
    struct slab *slab = malloc(sizeof *slab);
    if (!slab)
        return false;
    slab->next = slabs;
    slabs = slab;
    for (int i = 0; i < RECORDS; i++)
        record_give(&slab->records[i]);
    return true;
}

static bool has_record(void)
{
    return unused || make_records();
}

static struct nbc_shared_message *record_take(void)
{
    if (!has_record())
        return NULL;
    struct nbc_shared_message *m = unused;
    unused = m->next;
    return m;
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
    if (m->dropped)
        record_give(m);
}

static inline bool is_direct(const struct nbc_run *run)
{
    return run->stage && nbc_stage_is_direct(run);
}

/* Whether the data are bytes in the memory of the host. */
static inline bool is_plain(const struct nbc_shared_message *m)
{
    return m->bytes == 0 || (m->run->handles.types[m->type]->layout.packed && !is_direct(m->run));
}

/* Whether the MPI moves a message that this rank sends. */
static inline bool is_long(const struct nbc_shared_message *m)
{
    return m->bytes > nbc_shared_most || !is_plain(m);
}

static inline bool is_in_pieces(const struct nbc_shared_message *m)
{
    return __builtin_expect(m->bytes > nbc_shared_piece, 0) && !is_long(m);
}

/* --- messages that the MPI moves -------------------------------------------------------------- */

static int call_below(const struct nbc_shared_message *m, int64_t count, nbc_handle *h)
{
    return m->sends ? nbc_message_send(m->run, m->addr, count, m->type, m->rank, h)
                    : nbc_message_receive(m->run, m->addr, count, m->type, m->rank, h);
}

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
    error = call_below(m, count, h);
    if (error > 0) {
        /* unreached below: the MPI fails */
        nbc_exec_fail(&r->exec, error);
        error = call_below(m, 0, h);
    }
    nbc_stage_leave(entered, before);
    if (error <= 0)
        return error;
    r->exec.lost = true;
    return NBC_SENT;
}

/* The MPI stores data that have arrived, from a copy. Returns likewise. */
static int post_to_self(struct nbc_shared_message *m, const void *data)
{
    struct nbc_run *r = m->run;
    MPI_Datatype type = r->handles.types[m->type]->handle;
    MPI_Request receive, send;
    int error = MPI_SUCCESS;
    void *before = NULL;
    if (!(m->copy = malloc((size_t)m->bytes)))
        return NBC_SENT - MPI_ERR_NO_MEM;
    memcpy(m->copy, data, (size_t)m->bytes);
    struct nbc_device *entered = is_direct(r) ? nbc_stage_enter(r, &before, &error) : NULL;
    if (!error)
        error = nbc_message_post(false, (void *)m->addr, m->count, type, 0, nbc_self_tag(),
                                 nbc_self_comm, &receive);
    if (!error)
        error = nbc_message_post(true, m->copy, m->bytes, MPI_BYTE, 0, nbc_self_tag(),
                                 nbc_self_comm, &send);
    nbc_stage_leave(entered, before);
    if (error)
        return NBC_SENT - error; /* unreached: the MPI fails */
    NEXT(Request_free)(&send);
    nbc_message_store(&m->below, receive);
    return 0;
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
    if (is_long(m)) {
        nbc_ring_send(&m->peer->to, (uint32_t)m->tag | LONG, 0);
        return post_below(m, h);
    }
    memcpy(room, (void *)m->addr, (size_t)m->bytes);
    nbc_ring_send(&m->peer->to, (uint32_t)m->tag, (uint32_t)m->bytes);
    return NBC_SENT;
}

/* From the ring or from a copy, if the data are plain. One of another length than the receive
 * expects is an error, as in the MPI's. Returns as nbc_transport.recv does. */
static int receive_plain(const struct nbc_shared_message *m, const void *data, uint32_t bytes)
{
    if (bytes != m->bytes)
        return NBC_SENT - MPI_ERR_TRUNCATE;
    memcpy((void *)m->addr, data, bytes);
    return NBC_SENT;
}

/* A short message for a receive that is the MPI's. If that is too late to be cancelled, it has
 * taken a later message. */
static int refuse_short(struct nbc_shared_message *m)
{
    bool cancelled = true;
    if (!m->result && !nbc_message_give_up(m->below, false, &cancelled))
        m->run->exec.abandoned = true; /* unreached: the later one is still under way */
    m->run->exec.lost |= !cancelled;
    return NBC_SENT - MPI_ERR_TRUNCATE;
}

/* Likewise, or by the MPI, in which also a short receive meets a long message. */
static int receive_data(struct nbc_shared_message *m, uint32_t tag, const void *data,
                        uint32_t bytes)
{
    if (tag & LONG)
        return m->early ? m->result : post_below(m, &m->below);
    if (m->early)
        return refuse_short(m);
    return is_plain(m) || bytes != m->bytes ? receive_plain(m, data, bytes) : post_to_self(m, data);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void ask(struct nbc_shared_peer *peer)
{
    if (!__atomic_load_n(peer->asked, __ATOMIC_RELAXED))
        __atomic_store_n(peer->asked, 1, __ATOMIC_RELAXED);
}

/* Sends the pieces for which the ring has room. Returns whether those are all. The rest waits for
 * the receiver to come, as a long message of the MPI does: what a rank that is ahead sends must not
 * fill the memory of another one. But messages behind it must not wait for it. */
static bool send_pieces(struct nbc_shared_message *m)
{
    struct nbc_ring *ring = &m->peer->to;
    while (m->done < m->bytes) {
        const int64_t left = m->bytes - m->done;
        int64_t n = left < nbc_shared_piece ? left : nbc_shared_piece;
        n = m->begun ? n : (int64_t)sizeof m->bytes;
        void *room = nbc_ring_reserve(ring, (uint32_t)n);
        if (!room && m->next)
            ask(m->peer);
        if (!room)
            return false;
        const void *from = m->begun ? (char *)m->addr + m->done : (char *)&m->bytes;
        if (!m->dropped)
            memcpy(room, from, (size_t)n);
        nbc_ring_send(ring, (uint32_t)m->tag | (m->begun ? 0 : LONG), (uint32_t)n);
        m->done += m->begun ? n : 0;
        m->begun = true;
    }
    return true;
}

/* Sends a message if the ring has room for all of it. Sets *result as nbc_transport.send returns.
 */
static inline bool send_now(struct nbc_shared_message *m, int *result, nbc_handle *h)
{
    *result = NBC_SENT;
    if (m->begun || is_in_pieces(m)) /* the run of one that was dropped may be gone */
        return send_pieces(m);
    void *room = nbc_ring_reserve(&m->peer->to, is_long(m) ? 0 : (uint32_t)m->bytes);
    if (__builtin_expect(!room, 0)) {
        ask(m->peer);
        return false;
    }
    *result = send_data(m, room, h);
    return true;
}

int nbc_shared_send(struct nbc_run *run, struct nbc_shared_peer *peer, uintptr_t addr,
                    int64_t count, int type, int rank, nbc_handle *h)
{
    struct nbc_shared_message m = describe(run, peer, addr, count, type, rank, true);
    int result;
    if (is_in_pieces(&m) && !has_record())
        return MPI_ERR_NO_MEM; /* what has begun cannot be refused */
    return !peer->unsent && send_now(&m, &result, h) ? result : record_add(&m, h);
}

/* Sends the messages for which the ring has room, oldest first. */
static void send_posted(struct nbc_shared_peer *peer)
{
    struct nbc_shared_message *m;
    int result;
    while ((m = peer->unsent) && send_now(m, &result, &m->below))
        record_end(m, result);
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

static struct nbc_shared_early *early_new(uint32_t tag, int64_t bytes)
{
    struct nbc_shared_early *e = malloc(sizeof *e + (size_t)bytes);
    if (e)
        *e = (struct nbc_shared_early){.tag = tag, .bytes = (uint32_t)bytes};
    return e;
}

static bool keep(struct nbc_shared_peer *peer, uint32_t tag, const void *data, uint32_t bytes)
{
    struct nbc_shared_early *e = early_new(tag, bytes);
    if (!e)
        return false;
    memcpy(e->data, data, bytes);
    DL_APPEND(peer->early, e);
    return true;
}

/* Gives a receive the message that has been kept, which may be in the list. */
static void receive_early(struct nbc_shared_message *m, struct nbc_shared_early *e)
{
    record_end(m, receive_data(m, e->tag, e->data, e->bytes));
    free(e);
}

/* The pieces go to where the receive wants the data, if that is posted and plain. Returns false
 * without memory. */
static bool pieces_begin(struct nbc_shared_peer *peer, uint32_t tag, int64_t bytes)
{
    struct nbc_shared_pieces p = {.left = bytes, .message = find_posted(peer, tag)};
    const struct nbc_shared_message *m = p.message;
    if (m && m->bytes == bytes && is_plain(m)) {
        p.at = (char *)m->addr;
    } else {
        p.message = NULL;
        if (!(p.early = early_new(tag & ~LONG, bytes)))
            return false;
        p.at = p.early->data;
    }
    peer->pieces = p;
    return true;
}

static void pieces_end(struct nbc_shared_peer *peer)
{
    const struct nbc_shared_pieces p = peer->pieces;
    peer->pieces = (struct nbc_shared_pieces){.at = NULL};
    struct nbc_shared_message *m = p.early ? find_posted(peer, p.early->tag) : NULL;
    if (p.message)
        record_end(p.message, NBC_SENT);
    else if (m)
        receive_early(m, p.early);
    else if (p.early)
        DL_APPEND(peer->early, p.early);
}

static void receive_piece(struct nbc_shared_peer *peer, const void *data, uint32_t bytes)
{
    struct nbc_shared_pieces *p = &peer->pieces;
    if (p->at) {
        memcpy(p->at, data, bytes);
        p->at += bytes;
    }
    p->left -= bytes;
    if (p->left == 0)
        pieces_end(peer);
}

static inline bool begins_pieces(uint32_t tag, uint32_t bytes)
{
    return tag & LONG && bytes > 0;
}

static bool receive_first(struct nbc_shared_peer *peer, uint32_t tag, const void *data,
                          uint32_t bytes)
{
    int64_t all;
    if (begins_pieces(tag, bytes)) {
        memcpy(&all, data, sizeof all);
        return pieces_begin(peer, tag, all);
    }
    struct nbc_shared_message *m = find_posted(peer, tag);
    if (!m)
        return keep(peer, tag, data, bytes);
    record_end(m, receive_data(m, tag, data, bytes));
    return true;
}

/* Receives what is next in the ring, if there is something. Without memory it stays. */
static bool receive_next(struct nbc_shared_peer *peer)
{
    uint32_t tag, bytes;
    const void *data = nbc_ring_peek(&peer->from, &tag, &bytes);
    if (!data)
        return false;
    if (peer->pieces.left > 0)
        receive_piece(peer, data, bytes);
    else if (!receive_first(peer, tag, data, bytes))
        return false;
    nbc_ring_pop(&peer->from, bytes);
    return true;
}

void nbc_shared_receive_all(void)
{
    __atomic_store_n(nbc_shared_asked, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < nbc_shared_npeers; i++)
        for (uint32_t n = nbc_shared_peers[i].from.nslots; n > 0; n--)
            if (!receive_next(&nbc_shared_peers[i]))
                break;
}

/* A message that has been kept, or NULL. */
static struct nbc_shared_early *find_early(struct nbc_shared_peer *peer, int tag)
{
    struct nbc_shared_early *e = peer->early;
    while (e && !has_tag(e->tag, tag))
        e = e->next;
    return e;
}

/* Whether the MPI has all older receives of messages with this tag, which come first there, too. */
static bool all_early(const struct nbc_shared_message *given)
{
    const struct nbc_shared_message *m = given->peer->posted;
    while (m && (m->early || m->tag != given->tag))
        m = m->next;
    return !m;
}

/* A receive whose message has been kept, or for whose data a record is needed. */
static int receive_slowly(const struct nbc_shared_message *given, struct nbc_shared_early *e,
                          nbc_handle *h)
{
    const bool early = !e && given->bytes > nbc_shared_most && all_early(given);
    int error = record_add(given, h);
    if (error || !(e || early))
        return error;
    struct nbc_shared_message *m = nbc_shared_message(*h);
    if (early) {
        m->early = true;
        m->result = post_below(m, &m->below);
        return MPI_SUCCESS;
    }
    DL_DELETE(m->peer->early, e);
    receive_early(m, e);
    return MPI_SUCCESS;
}

int nbc_shared_receive(struct nbc_run *run, struct nbc_shared_peer *peer, uintptr_t addr,
                       int64_t count, int type, int rank, nbc_handle *h)
{
    const struct nbc_shared_message m = describe(run, peer, addr, count, type, rank, false);
    struct nbc_shared_early *early = peer->early ? find_early(peer, m.tag) : NULL;
    uint32_t tag, bytes;
    if (early || peer->posted || peer->pieces.left > 0)
        return receive_slowly(&m, early, h);
    const void *data = nbc_ring_peek(&peer->from, &tag, &bytes);
    if (!data || !has_tag(tag, m.tag) || begins_pieces(tag, bytes) || !is_plain(&m))
        return receive_slowly(&m, NULL, h);
    int result = tag & LONG ? post_below(&m, h) : receive_plain(&m, data, bytes);
    nbc_ring_pop(&peer->from, bytes);
    return result;
}

/* --- both ------------------------------------------------------------------------------------- */

bool nbc_shared_test(nbc_handle h, int *error)
{
    struct nbc_shared_message *m = nbc_shared_message(h);
    if (m->sends && m->state == NBC_SHARED_POSTED)
        send_posted(m->peer);
    while (!m->sends && m->state == NBC_SHARED_POSTED && receive_next(m->peer))
        ;
    if (m->state == NBC_SHARED_BELOW && test_below(m))
        m->state = NBC_SHARED_OVER;
    if (m->state != NBC_SHARED_OVER)
        return false;
    *error = m->error;
    free(m->copy);
    record_give(m);
    return true;
}

bool nbc_shared_drop(nbc_handle h)
{
    struct nbc_shared_message *m = nbc_shared_message(h);
    if (m->sends && m->begun && m->state == NBC_SHARED_POSTED) {
        m->dropped = true; /* the reader expects all pieces */
        return true;
    }
    const bool below =
        m->state == NBC_SHARED_BELOW || (m->state == NBC_SHARED_POSTED && m->early && !m->result);
    bool over = !below || nbc_message_give_up(m->below, m->sends, NULL);
    if (m->state == NBC_SHARED_POSTED)
        DL_DELETE(*list_of(m), m);
    if (m->peer->pieces.message == m)
        m->peer->pieces.message = NULL, m->peer->pieces.at = NULL;
    if (over)
        free(m->copy);
    record_give(m);
    return over;
}

void nbc_shared_cleanup(void)
{
    struct nbc_shared_early *e, *next;
    for (int i = 0; i < nbc_shared_npeers; i++) {
        DL_FOREACH_SAFE (nbc_shared_peers[i].early, e, next)
            free(e);
        free(nbc_shared_peers[i].pieces.early);
    }
    for (struct slab *slab; (slab = slabs);) {
        slabs = slab->next;
        free(slab);
    }
    unused = NULL;
}
