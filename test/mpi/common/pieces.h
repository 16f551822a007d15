/* SPDX-License-Identifier: MIT */
/* Counts the pieces of memory that nbcshim holds, by the malloc of the program that includes this
 * header, in one file. Not in the static library (library.h). The program may refuse a piece: it
 * defines pieces_refuse before. */
#ifndef NBC_TEST_PIECES_H
#define NBC_TEST_PIECES_H

#include "library.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

/* The sanitizers have a malloc of their own, and programs without one of glibc's. */
#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define OWN_MALLOC 1
#else
#define OWN_MALLOC 0
#endif

static int pieces_asked;         /* how often */
static int pieces_live;          /* pieces of the library's */
static long long pieces_in_live; /* bytes in them */

#ifndef pieces_refuse
#define pieces_refuse(size) false
#endif

#if OWN_MALLOC
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static bool pieces_refused(size_t size)
{
    (void)size;
    pieces_asked++;
    if (!pieces_refuse(size))
        return false;
    errno = ENOMEM;
    return true;
}

static void *pieces_add(void *p)
{
    pieces_live += p != NULL;
    pieces_in_live += p ? (long long)malloc_usable_size(p) : 0;
    return p;
}

static void pieces_remove(void *p)
{
    pieces_live -= p != NULL;
    pieces_in_live -= p ? (long long)malloc_usable_size(p) : 0;
}

void *malloc(size_t size)
{
    if (!FROM_LIBRARY)
        return __libc_malloc(size);
    return pieces_refused(size) ? NULL : pieces_add(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    if (!FROM_LIBRARY)
        return __libc_calloc(n, size);
    return pieces_refused(n * size) ? NULL : pieces_add(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
    if (!FROM_LIBRARY)
        return __libc_realloc(p, size);
    if (pieces_refused(size))
        return NULL;
    pieces_remove(p);
    return pieces_add(__libc_realloc(p, size));
}

void *aligned_alloc(size_t align, size_t size)
{
    if (!FROM_LIBRARY)
        return __libc_memalign(align, size);
    return pieces_refused(size) ? NULL : pieces_add(__libc_memalign(align, size));
}

void free(void *p)
{
    if (p && FROM_LIBRARY)
        pieces_remove(p);
    __libc_free(p);
}
#endif

#endif
