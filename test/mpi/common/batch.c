/* SPDX-License-Identifier: MIT */
#include "batch.h"

void batch_run(struct batch *b)
{
    struct testcase *c[MAX_BATCH];
    MPI_Request request[MAX_BATCH];
    MPI_Status status[MAX_BATCH];
    int rounds = b->mode == PERSISTENT ? 3 : 1;

    for (int i = 0; i < b->n; i++) {
        c[i] = case_new(&b->spec[i]);
        case_fill(c[i], 0);
        case_expect(c[i], case_call(c[i], b->mode, MPI_INFO_NULL, &request[i]), "call");
        case_drop(c[i]);
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < b->n && b->mode == PERSISTENT; i++) {
            case_fill(c[i], round);
            MPI_Start(&request[i]);
        }
        bool failed = MPI_Waitall(b->n, request, status) != MPI_SUCCESS;
        for (int i = 0; i < b->n; i++) {
            case_expect(c[i], failed ? status[i].MPI_ERROR : MPI_SUCCESS, "MPI_Waitall");
            case_check(c[i], b->mode == PERSISTENT ? "persistent" : "nonblocking");
        }
    }
    for (int i = 0; i < b->n; i++) {
        if (b->mode == PERSISTENT)
            MPI_Request_free(&request[i]);
        case_delete(c[i]);
    }
    b->n = 0;
}

void batch_add(struct batch *b, const struct spec *spec)
{
    b->spec[b->n++] = *spec;
    if (b->n == MAX_BATCH)
        batch_run(b);
}
