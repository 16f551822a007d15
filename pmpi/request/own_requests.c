/* SPDX-License-Identifier: MIT */
#include "request/own_requests.h"

#include <stdlib.h>
#include <string.h>

#include "below/next.h"

static bool own_requests_grow(struct nbc_own_requests *p, int n)
{
    struct nbc_own_request *list = malloc(n * sizeof *list);
    if (!list)
        return false;
    memcpy(list, p->some, sizeof p->some);
    p->list = list;
    return true;
}

bool nbc_own_requests_find(struct nbc_own_requests *p, int n, const MPI_Request *requests,
                           bool inactive_too)
{
    const int room = sizeof p->some / sizeof *p->some;
    p->list = p->some;
    p->n = p->others = 0;
    for (int i = 0; i < n; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        struct nbc_request *r = nbc_request_find(requests[i]);
        p->others += !r;
        if (!r || (r->state == NBC_INACTIVE && !inactive_too))
            continue;
        if (p->n == room && !own_requests_grow(p, n))
            return false;
        p->list[p->n++] = (struct nbc_own_request){r, i};
    }
    return true;
}

void nbc_own_requests_release(struct nbc_own_requests *p)
{
    if (p->list != p->some)
        free(p->list);
}
