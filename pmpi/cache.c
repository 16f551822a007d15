/* SPDX-License-Identifier: MIT */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 64 };

/* Larger schedules are not kept: memory per communicator stays small. */
enum { MAX_OPS = 1024 };

struct nbc_cache {
    struct nbc_cached slot[SLOTS];
};

bool nbc_cache_key(const struct nbc_shape *shape, const struct nbc_alg *override,
                   struct nbc_cache_key *key)
{
    if (shape->send.counts.data || shape->recv.counts.data || shape->send.peer_types ||
        shape->recv.peer_types)
        return false;
    memset(key, 0, sizeof *key); /* padding too */
    key->send_count = shape->send.count;
    key->recv_count = shape->recv.count;
    key->segment = shape->segment;
    memcpy(&key->send, &shape->types[shape->send.type], sizeof key->send);
    memcpy(&key->recv, &shape->types[shape->recv.type], sizeof key->recv);
    key->override = override;
    key->coll = shape->coll;
    key->root = shape->root;
    key->in_place = shape->in_place;
    key->commutative = shape->commutative;
    return true;
}

static int slot_of(const struct nbc_cache_key *key)
{
    uint64_t mix = (uint64_t)key->send_count * 31 + (uint64_t)key->recv_count * 37 +
                   (uint64_t)key->coll * 1009 + (uint64_t)key->root * 131 +
                   (uint64_t)key->recv.size;
    return (int)(mix * UINT64_C(0x9E3779B97F4A7C15) >> 58) % SLOTS;
}

const struct nbc_cached *nbc_cache_find(const struct nbc_cache *cache,
                                        const struct nbc_cache_key *key)
{
    if (!cache)
        return NULL;
    const struct nbc_cached *c = &cache->slot[slot_of(key)];
    return c->sched && memcmp(&c->key, key, sizeof *key) == 0 ? c : NULL;
}

static void drop(struct nbc_cached *c)
{
    if (c->sched && --c->sched->refs == 0)
        nbc_sched_free(c->sched);
    c->sched = NULL;
}

void nbc_cache_keep(struct nbc_cache **cache, const struct nbc_cache_key *key,
                    struct nbc_sched *sched, const struct nbc_alg *alg)
{
    if (sched->nops > MAX_OPS)
        return;
    if (!*cache)
        *cache = calloc(1, sizeof **cache);
    if (!*cache)
        return;
    struct nbc_cached *c = &(*cache)->slot[slot_of(key)];
    drop(c);
    c->key = *key;
    c->sched = sched;
    c->alg = alg;
    sched->refs++;
}

void nbc_cache_free(struct nbc_cache *cache)
{
    if (!cache)
        return;
    for (int i = 0; i < SLOTS; i++)
        drop(&cache->slot[i]);
    free(cache);
}
