/* SPDX-License-Identifier: MIT */
/* A block as contiguous bytes. The standard lets ranks describe the same data by different
 * datatypes and counts, so an algorithm that divides data into segments must divide bytes. */
#ifndef NBC_BYTES_H
#define NBC_BYTES_H

#include "sched.h"

struct nbc_bytes {
    const struct nbc_shape *shape;
    struct nbc_ref user; /* the block, as elements */
    struct nbc_ref raw;  /* its bytes */
    bool direct;         /* raw is in the user's buffer, as the type is packed; else temporary */
    int64_t moved;       /* elements packed or unpacked so far */
    nbc_id last;         /* packing: done when all bytes packed so far are in raw; unpacking: */
                         /* done when the first bytes of an incomplete element have arrived */
};

/* Makes the bytes of a block; takes temporary memory unless its type is packed. */
struct nbc_bytes nbc_bytes_of(struct nbc_sched *s, const struct nbc_shape *shape,
                              struct nbc_ref user);

/* Emits the copies that fill raw up to byte `end`. Successive calls pass ascending ends. Returns an
 * id that is done when all bytes before `end` are in raw; NBC_NONE if they are from the start. */
nbc_id nbc_bytes_pack(struct nbc_sched *s, struct nbc_bytes *v, int64_t end);

/* Emits the copies of the elements that end at or before byte `end` to the user's buffer.
 * Successive calls pass ascending ends. `arrived` is done when the bytes since the last call are in
 * raw. */
void nbc_bytes_unpack(struct nbc_sched *s, struct nbc_bytes *v, int64_t end, nbc_id arrived);

/* Returns the bytes first … first + n − 1 of a reference to bytes. */
static inline struct nbc_ref nbc_byte_range(struct nbc_ref raw, int64_t first, int64_t n)
{
    raw.off += first;
    raw.count = n;
    return raw;
}

/* What the MPI sends over sockets without a handshake, unless a rule says so. Set before schedules
 * are built, to the same on all ranks. */
extern int64_t nbc_sockets_eager;

/* Returns the length that segments should not exceed: `most`, or on several nodes what the MPI
 * sends without a handshake, if that is known or there are only sockets. There the time of a
 * pipeline would be that of many handshakes. Where it is unknown and a network faster, longer
 * segments are better. */
int64_t nbc_segment_limit(const struct nbc_shape *shape, int64_t most);

/* Returns the length of the segments in which an algorithm moves `bytes` bytes: the shape's, or one
 * of at most `most`. hops: of a pipeline the number of its messages from end to end, otherwise 0. n
 * bytes in S segments take (hops + S) times the cost m + n/S of one segment, which is least where
 * its length n/S is √(nm/hops). There are at most 1024 segments, which bounds the size of the
 * schedule. */
enum { NBC_SEGMENT = 64 * 1024 }; /* `most` where nothing is reduced */
int64_t nbc_segment_bytes(const struct nbc_shape *shape, int64_t bytes, int hops, int64_t most);

/* Where every rank sends to every other: with more pieces that need no handshake, their overhead
 * exceeds the time of a handshake. */
enum { NBC_SHORT_PIECES = 9 };

/* Returns the number of messages in which a block of so many bytes moves. Between hosts that have
 * only sockets these are pieces that need no handshake, unless there would be too many, or segments
 * if the shape has any; elsewhere one. */
int nbc_block_pieces(const struct nbc_shape *shape, int64_t bytes);

/* Receives a block from a peer (`in`), or sends it, in such pieces; not if it has no bytes. Both
 * ends know them. Returns an id that is done when all of the block is in its place, or is sent. */
nbc_id nbc_move_pieces(struct nbc_sched *s, const struct nbc_shape *shape, bool in,
                       struct nbc_ref block, int peer, nbc_id after);

/* Limits the number of messages of a stream that are in flight. Without a limit, each poll would
 * test every message, and a fast sender could fill the memory of a slow receiver with unexpected
 * messages. A zeroed window is empty. */
enum { NBC_WINDOW = 8 };

struct nbc_window {
    nbc_id recent[NBC_WINDOW];
    unsigned n;
};

/* Makes `message`, the next of the stream, wait for the one NBC_WINDOW before it. */
void nbc_window_add(struct nbc_sched *s, struct nbc_window *w, nbc_id message);

/* The same for a part of the stream that is several messages: the id for which they have to wait,
 * then the one that is done when they are. */
nbc_id nbc_window_next(const struct nbc_window *w);
void nbc_window_put(struct nbc_window *w, nbc_id done);

#endif
