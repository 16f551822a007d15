/* SPDX-License-Identifier: MIT */
#include "request/handles.h"

#include <stdlib.h>

#include "base/table.h"
#include "request/request.h"

struct entry {
    MPI_Request handle;
    struct nbc_request *r; /* NULL: free */
};

/* An open-addressing table with linear probing. The number of entries is a power of two, and at
 * most three of four are taken. */
static struct entry *entries;
static size_t mask; /* number of entries − 1; 0: no table */
static size_t taken;

unsigned nbc_nhandles;

/* The entry of a handle, or the free entry where it belongs. */
static struct entry *entry_of(MPI_Request handle)
{
    size_t i = nbc_hash_key(&handle, sizeof handle);
    while (entries[i & mask].r && entries[i & mask].handle != handle)
        i++;
    return &entries[i & mask];
}

struct nbc_request *nbc_handles_find(MPI_Request handle)
{
    return mask ? entry_of(handle)->r : NULL;
}

static bool handles_grow(void)
{
    enum { FIRST = 64 };
    struct entry *old = entries;
    size_t n = mask ? mask + 1 : 0, more = n ? 2 * n : FIRST;
    struct entry *wider = calloc(more, sizeof *wider);
    if (!wider)
        return false;
    entries = wider;
    mask = more - 1;
    for (size_t i = 0; i < n; i++)
        if (old[i].r)
            *entry_of(old[i].handle) = old[i];
    free(old);
    return true;
}

bool nbc_handles_add(MPI_Request handle, struct nbc_request *r)
{
    if (taken >= (mask + 1) / 4 * 3 && !handles_grow())
        return false;
    *entry_of(handle) = (struct entry){handle, r};
    taken++;
    nbc_nhandles++;
    return true;
}

void nbc_handles_clear(void)
{
    free(entries);
    entries = NULL;
    mask = taken = 0;
}
