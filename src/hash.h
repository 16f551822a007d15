/* SPDX-License-Identifier: MIT */
/* FNV-1a, a word or a byte at a time (Fowler, Noll, Vo). */
#ifndef NBC_HASH_H
#define NBC_HASH_H

#include <stdint.h>

#define NBC_HASH_START UINT64_C(14695981039346656037)

static inline uint64_t nbc_hash(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(1099511628211);
}

#endif
