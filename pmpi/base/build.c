/* SPDX-License-Identifier: MIT */
#include "base/build.h"

#include "config.h"

#include "fingerprint.h"
#include "hash.h"

const char *nbc_build(void)
{
    return PACKAGE_VERSION ", sources " NBC_FINGERPRINT;
}

uint64_t nbc_build_digest(void)
{
    uint64_t h = NBC_HASH_START;
    for (const char *c = nbc_build(); *c; c++)
        h = nbc_hash(h, (unsigned char)*c);
    return h;
}
