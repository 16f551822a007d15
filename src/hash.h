/* SPDX-License-Identifier: MIT */
/* Hashes: FNV-1a, a word or a byte at a time (Fowler, Noll, Vo), and one of two words. */
#ifndef NBC_HASH_H
#define NBC_HASH_H

#include <stddef.h>
#include <stdint.h>

#define NBC_HASH_START UINT64_C(14695981039346656037)

static inline uint64_t nbc_hash(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(1099511628211);
}

static inline uint64_t nbc_hash_bytes(const void *data, size_t size)
{
    uint64_t hash = NBC_HASH_START;
    for (size_t i = 0; i < size; i++)
        hash = nbc_hash(hash, ((const unsigned char *)data)[i]);
    return hash;
}

/* A number that depends on both, in all its bits: the finalizer of splitmix64. */
static inline uint64_t nbc_hash_pair(uint64_t a, uint64_t b)
{
    uint64_t x = a + (b + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

#endif
