/* SPDX-License-Identifier: MIT */
/* uthash for tables keyed by MPI handles, or by structs, of which the first two words count. The
 * hash is one multiplication. */
#ifndef NBC_TABLE_H
#define NBC_TABLE_H

#include <stdint.h>
#include <string.h>

static inline uint32_t nbc_hash_key(const void *key, size_t length)
{
    uint64_t bits = 0, second = 0;
    memcpy(&bits, key, length < sizeof bits ? length : sizeof bits);
    if (length >= 2 * sizeof second)
        memcpy(&second, (const char *)key + sizeof bits, sizeof second);
    bits ^= second << 13 | second >> 51;
    return (uint32_t)((bits * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

#define HASH_FUNCTION(key, length, hash) ((hash) = nbc_hash_key(key, length))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Whether HASH_ADD has added the element. If false, memory ran out and the element is not in the
 * table. */
#define nbc_added(element) ((element)->hh.tbl != NULL)

#endif
