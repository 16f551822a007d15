/* SPDX-License-Identifier: MIT */
/* Finds the requests of nbcshim in an array of requests that the program passes, and complete ones
 * without looking through the array: the program completes long arrays one by one, by MPI_Waitany
 * and its kin, and to look through the array in every call would cost more than the operations. A
 * call that looks through an array remembers in each request at which place it was. From then on
 * the request is in a list whenever it is complete: in that of the part of memory where the place
 * is. A later call finds there what is complete in its array, at a cost that does not grow with the
 * array.
 *
 * The program may have changed the array meanwhile. So a request counts only if its place holds its
 * handle, and a call that finds nothing in the lists looks through the array again.
 *
 * Under the lock. Local. */
#include <string.h>
#include <utlist.h>

#include "base/lock.h"
#include "request/request.h"

/* The number of lists, and the number of places of which one list takes the requests. Parts of
 * memory that are LISTS * SPAN places apart share a list. */
enum { LISTS = 64, SPAN = 512 };

static struct nbc_request *lists[LISTS]; /* those that completed first are first */

/* Modulo 2^32: another place that counts as the same holds another handle. */
static uint32_t place_of(const MPI_Request *place)
{
    return (uint32_t)((uintptr_t)place / sizeof *place);
}

static struct nbc_request **list_of(uint32_t place)
{
    return &lists[place / SPAN % LISTS];
}

static void leave(struct nbc_request *r)
{
    DL_DELETE2(*list_of(r->place), r, older, newer);
}

void nbc_ready_change(struct nbc_request *r, enum nbc_state state)
{
    nbc_assert_locked();
    if (r->state == NBC_COMPLETE)
        leave(r);
    if (state == NBC_COMPLETE)
        DL_APPEND2(*list_of(r->place), r, older, newer);
}

void nbc_ready_see(struct nbc_request *r, const MPI_Request *place)
{
    bool listed = r->state == NBC_COMPLETE;
    if (r->seen && r->place == place_of(place))
        return;
    if (r->seen && listed)
        leave(r);
    r->seen = true;
    r->place = place_of(place);
    if (listed)
        DL_APPEND2(*list_of(r->place), r, older, newer);
}

struct nbc_request *nbc_ready_find(const MPI_Request *requests, int n, unsigned turn, int *place)
{
    const uint32_t first = place_of(requests), length = (uint32_t)n;
    uint32_t nlists = (first % SPAN + length - 1) / SPAN + 1;
    struct nbc_request *r, *newer;
    nbc_assert_locked();
    if (nlists > LISTS)
        nlists = LISTS;
    for (uint32_t i = 0; i < nlists; i++) {
        DL_FOREACH_SAFE2(*list_of(first + (i + turn) % nlists * SPAN), r, newer, newer)
        {
            uint32_t at = r->place - first;
            if (at >= length)
                continue; /* in another array */
            *place = (int)at;
            if (requests[at] == r->handle)
                return r;
            leave(r); /* the program has removed it */
            r->seen = false;
        }
    }
    return NULL;
}

void nbc_ready_clear(void)
{
    memset(lists, 0, sizeof lists);
}
