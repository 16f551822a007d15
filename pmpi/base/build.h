/* SPDX-License-Identifier: MIT */
/* What this library was built from. Ranks with different builds could run different schedules for
 * the same call. The checksum is one of the sources and of the functions that the MPI has, not of
 * the binary: builds for different processors, and the static and the shared library, are alike. */
#ifndef NBC_BUILD_H
#define NBC_BUILD_H

#include <stdint.h>

/* "0.3.0, sources 1234567890" */
const char *nbc_build(void);

uint64_t nbc_build_digest(void);

#endif
