/* SPDX-License-Identifier: MIT */
#include "base/build.h"

#include "config.h"

#include "fingerprint.h"

const char *nbc_build(void)
{
    return PACKAGE_VERSION ", sources " NBC_FINGERPRINT;
}

uint64_t nbc_build_digest(void)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *c = nbc_build(); *c; c++)
        h = (h ^ (uint64_t)(unsigned char)*c) * UINT64_C(1099511628211);
    return h;
}
