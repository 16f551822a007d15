/* SPDX-License-Identifier: MIT */
/* Memory that processes of one node share. It has no name in any file system: nothing remains of it
 * when the processes end, however they end. Local. */
#ifndef NBC_SEGMENT_H
#define NBC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Creates memory, all zero. Returns its descriptor in this process, -1 if that is not possible. */
int nbc_segment_create(size_t bytes);

/* Opens that of another process of the same user, by its number and its descriptor there. Returns a
 * descriptor, -1 if that is not possible. */
int nbc_segment_open(int process, int descriptor);

/* Provides pages for the `n` bytes at `from`, on the NUMA node of the caller. If an access needed
 * one that cannot be had, it would end the process. Returns whether they are there. */
bool nbc_segment_provide(int descriptor, size_t from, size_t n);

/* Maps it. Returns NULL if that is not possible. nbc_segment_unmap ends it; accepts NULL. */
void *nbc_segment_map(int descriptor, size_t bytes);
void nbc_segment_unmap(void *memory, size_t bytes);

#endif
