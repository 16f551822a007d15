/* SPDX-License-Identifier: MIT */
#include "bytes.h"

int64_t nbc_sockets_eager = 16384;

enum { MAX_SEGMENTS = 1024 };

struct nbc_bytes nbc_bytes_of(struct nbc_sched *s, const struct nbc_shape *shape,
                              struct nbc_ref user)
{
    const struct nbc_type *t = &shape->types[user.type];
    int64_t bytes = nbc_ref_bytes(shape, user);
    struct nbc_bytes v = {.shape = shape, .user = user, .direct = t->packed, .last = NBC_NONE};
    if (!v.direct) {
        v.raw = nbc_temp_bytes(s, bytes);
        return v;
    }
    v.raw = user;
    v.raw.off += t->true_lb;
    v.raw.type = NBC_TYPE_BYTE;
    v.raw.count = bytes;
    return v;
}

nbc_id nbc_bytes_pack(struct nbc_sched *s, struct nbc_bytes *v, int64_t end)
{
    int64_t size = v->shape->types[v->user.type].size;
    if (v->direct || size == 0)
        return v->last;
    int64_t n = nbc_div_up(end, size) - v->moved;
    if (n <= 0) /* mutants: < for <=: a copy of nothing is none */
        return v->last;
    struct nbc_ref from = nbc_ref_part(v->shape, v->user, v->moved, n);
    v->last = nbc_copy(s, nbc_byte_range(v->raw, v->moved * size, n * size), from, v->last);
    v->moved += n;
    return v->last;
}

void nbc_bytes_unpack(struct nbc_sched *s, struct nbc_bytes *v, int64_t end, nbc_id arrived)
{
    int64_t size = v->shape->types[v->user.type].size;
    if (v->direct || size == 0)
        return;
    int64_t n = end / size - v->moved;
    if (n <= 0) { /* the element is incomplete */
        v->last = nbc_join(s, v->last, arrived);
        return;
    }
    struct nbc_ref to = nbc_ref_part(v->shape, v->user, v->moved, n);
    nbc_id copied = nbc_copy(s, to, nbc_byte_range(v->raw, v->moved * size, n * size), arrived);
    nbc_after(s, copied, v->last);
    v->moved += n;
    v->last = end % size ? arrived : NBC_NONE;
}

int64_t nbc_segment_limit(const struct nbc_shape *shape, int64_t most)
{
    int64_t eager = shape->eager;
    if (eager <= 0 && shape->sockets)
        eager = nbc_sockets_eager;
    return shape->local || eager <= 0 || eager > most ? most : eager;
}

/* MESSAGE_BYTES: the bytes that are sent in the time that one more message costs. */
int64_t nbc_segment_bytes(const struct nbc_shape *shape, int64_t bytes, int hops, int64_t most)
{
    enum { LEAST = 4096, MESSAGE_BYTES = 20 * 1024 };
    int64_t segment = shape->segment, least = nbc_div_up(bytes, MAX_SEGMENTS);
    if (segment > 0)
        return segment > least ? segment : least;
    segment = nbc_segment_limit(shape, most);
    while (hops > 0 && segment > LEAST &&
           /* mutants: forget - 1: no power of two is a multiple of MESSAGE_BYTES */
           (segment * segment - 1) / MESSAGE_BYTES >= bytes / hops)
        segment /= 2;
    return segment > least ? segment : least;
}

/* With more pieces of a block, their overhead exceeds the time of a handshake. If every rank has a
 * block for every other, each of them has a share in that of all. Measured: doc/performance.md. All
 * blocks together have no more than MAX_SEGMENTS, which bounds the size of the schedule. */
enum { MOST_PIECES = 24 };

static int most_pieces(const struct nbc_shape *shape)
{
    int all = MAX_SEGMENTS / shape->size;
    int best = shape->coll < NBC_ALLGATHER ? MOST_PIECES : NBC_SHORT_PIECES;
    return shape->segment > 0 || all < best ? all : best;
}

int nbc_block_pieces(const struct nbc_shape *shape, int64_t bytes)
{
    int64_t n = nbc_div_up(bytes, nbc_segment_bytes(shape, bytes, 0, NBC_SEGMENT));
    return shape->sockets && n > 1 && n <= most_pieces(shape) ? (int)n : 1;
}

nbc_id nbc_move_pieces(struct nbc_sched *s, const struct nbc_shape *shape, bool in,
                       struct nbc_ref block, int peer, nbc_id after)
{
    int64_t bytes = nbc_ref_bytes(shape, block);
    int n = nbc_block_pieces(shape, bytes);
    if (n == 1)
        return bytes > 0 ? (in ? nbc_recv : nbc_send)(s, block, peer, after) : NBC_NONE;
    struct nbc_bytes data = nbc_bytes_of(s, shape, block);
    nbc_id moved = NBC_NONE;
    data.last = after;
    if (!in)
        after = nbc_bytes_pack(s, &data, bytes);
    for (int i = 0; i < n; i++) {
        struct nbc_ref piece = nbc_ref_split(shape, data.raw, n, i);
        moved = nbc_join(s, moved, (in ? nbc_recv : nbc_send)(s, piece, peer, after));
    }
    return in && !data.direct ? nbc_copy(s, block, data.raw, moved) : moved;
}

nbc_id nbc_window_next(const struct nbc_window *w)
{
    return w->n >= NBC_WINDOW ? w->recent[w->n % NBC_WINDOW] : NBC_NONE;
}

void nbc_window_put(struct nbc_window *w, nbc_id done)
{
    w->recent[w->n++ % NBC_WINDOW] = done;
}

void nbc_window_add(struct nbc_sched *s, struct nbc_window *w, nbc_id message)
{
    nbc_after(s, message, nbc_window_next(w));
    nbc_window_put(w, message);
}
