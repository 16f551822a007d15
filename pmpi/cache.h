/* SPDX-License-Identifier: MIT */
/* Schedules of earlier calls on a communicator. A schedule is a pure function of the shape, so a
 * call with an equal shape runs the same one again; programs repeat few shapes many times. */
#ifndef NBC_CACHE_H
#define NBC_CACHE_H

#include "select.h"

struct nbc_cache;

/* All of a shape (without arrays) that a schedule may depend on within one communicator, and what
 * else decided on the algorithm. Made by nbc_cache_key; compared as bytes. */
struct nbc_cache_key {
    int64_t send_count, recv_count, segment;
    struct nbc_type send, recv;
    const struct nbc_alg *override;
    int32_t coll, root, in_place, commutative;
};

struct nbc_cached {
    struct nbc_cache_key key;
    struct nbc_sched *sched; /* one owner */
    const struct nbc_alg *alg;
};

/* False for shapes that are not kept: those with arrays. */
bool nbc_cache_key(const struct nbc_shape *shape, const struct nbc_alg *override,
                   struct nbc_cache_key *key);

/* The entry of a key, NULL when there is none. cache may be NULL. */
const struct nbc_cached *nbc_cache_find(const struct nbc_cache *cache,
                                        const struct nbc_cache_key *key);

/* Keeps a schedule (one owner more), in place of an older one. Makes *cache when it is NULL.
 * Without memory nothing is kept. */
void nbc_cache_keep(struct nbc_cache **cache, const struct nbc_cache_key *key,
                    struct nbc_sched *sched, const struct nbc_alg *alg);

void nbc_cache_free(struct nbc_cache *cache);

#endif
