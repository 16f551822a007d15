/* SPDX-License-Identifier: MIT */
/* A block as a plain run of bytes. Datatypes and counts of one block may differ between ranks as
 * long as they hold the same data, so an algorithm that cuts data into pieces must cut bytes: only
 * they are the same everywhere. */
#ifndef NBC_BYTES_H
#define NBC_BYTES_H

#include "sched.h"

struct nbc_bytes {
    const struct nbc_shape *shape;
    struct nbc_ref user; /* the block, as elements */
    struct nbc_ref
        raw;       /* its bytes: in the user's buffer where the type is packed, else temporary */
    bool direct;   /* the former: nothing to pack or unpack */
    int64_t moved; /* elements packed or unpacked so far */
    nbc_id last;   /* done when the bytes packed so far are there; unpacking: when the first */
                   /* bytes of an element that is not whole yet have arrived */
};

struct nbc_bytes nbc_bytes_of(struct nbc_sched *s, const struct nbc_shape *shape,
                              struct nbc_ref user);

/* Fills raw up to byte `end`; call it with ascending ends. Returns an id that is done when all the
 * bytes before `end` are there (NBC_NONE: they are there from the start). */
nbc_id nbc_bytes_pack(struct nbc_sched *s, struct nbc_bytes *v, int64_t end);

/* Hands the user the elements that end at or before byte `end`. `arrived` is done when the bytes
 * since the last call are in raw; call it with ascending ends. */
void nbc_bytes_unpack(struct nbc_sched *s, struct nbc_bytes *v, int64_t end, nbc_id arrived);

/* Bytes first … first + n − 1 of a reference to bytes. */
static inline struct nbc_ref nbc_byte_range(struct nbc_ref raw, int64_t first, int64_t n)
{
    raw.off += first;
    raw.count = n;
    return raw;
}

/* How many of `bytes` a pipelined algorithm moves at a time: what the shape says, else a default.
 * Never more than 1024 pieces, so that the schedule of a huge vector stays small. */
int64_t nbc_segment_bytes(const struct nbc_shape *shape, int64_t bytes);

/* The same for a pipeline `hops` messages long. With S pieces of n bytes it takes (hops + S) times
 * the cost m + n/S of one, which is least where the length n/S of a piece is √(nm/hops). */
int64_t nbc_pipeline_bytes(const struct nbc_shape *shape, int64_t bytes, int hops);

/* Keeps a long stream of messages from being posted all at once: polling looks at each message
 * under way, and a rank that is ahead should not fill the memory of one that is behind. Zero is an
 * empty window. */
enum { NBC_WINDOW = 8 };

struct nbc_window {
    nbc_id recent[NBC_WINDOW];
    unsigned n;
};

/* `message`, the next of the stream, waits for the one that is NBC_WINDOW before it. */
void nbc_window_add(struct nbc_sched *s, struct nbc_window *w, nbc_id message);

#endif
