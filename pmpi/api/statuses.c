/* SPDX-License-Identifier: MIT */
#include "api/statuses.h"

#include "api/wait_test.h"
#include "comm/context.h"
#include "op/types.h"

bool nbc_is_in_status(int error)
{
    int class = error;
    if (error != MPI_ERR_IN_STATUS)
        NEXT(Error_class)(error, &class); /* unreached: another code for MPI_ERR_IN_STATUS */
    return class == MPI_ERR_IN_STATUS;
}

void nbc_statuses_set(struct nbc_statuses *s, struct nbc_request *r, MPI_Request *request, int at)
{
    bool ignored = s->list == MPI_STATUSES_IGNORE;
    int error = r->state == NBC_ACTIVE ? MPI_ERR_PENDING : r->error;
    if (error && !s->error) {
        s->error = MPI_ERR_IN_STATUS;
        s->place = nbc_context_scope(r->context);
        for (int i = 0; i < s->nvalid && !ignored; i++)
            s->list[i].MPI_ERROR = MPI_SUCCESS;
    }
    if (r->state != NBC_ACTIVE)
        nbc_request_end(r, request);
    if (ignored)
        return;
    s->list[at] = nbc_empty_status;
    s->list[at].MPI_ERROR = error;
}

int nbc_statuses_raise(const struct nbc_statuses *s, int error)
{
    nbc_types_reclaim();
    return error || !s->error ? error : nbc_raise_at(&s->place, s->error);
}
