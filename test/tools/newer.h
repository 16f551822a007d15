/* SPDX-License-Identifier: MIT */
/* Included before programs that nbcshim is preloaded into, where the MPI is an MPI-2.2: declares
 * the functions that it lacks, and lets them be missing until then. */
#ifndef NBC_TEST_NEWER_H
#define NBC_TEST_NEWER_H

#include "../../include/nbcshim.h"

#define WEAK(name) _Pragma(#name)
#define COLL(NAME, name, Name) WEAK(weak MPI_I##name) WEAK(weak MPI_##Name##_init)
#include "../../src/colls.def"
#undef COLL
#undef WEAK

#endif
