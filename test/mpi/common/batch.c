/* SPDX-License-Identifier: MIT */
#include "batch.h"

static void call(struct testcase *c, const struct spec *spec, enum mode mode, MPI_Request *request)
{
    MPI_Info info = MPI_INFO_NULL;
    case_fill(c, 0);
    if (spec->algorithm) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "nbcshim_algorithm", spec->algorithm);
    }
    case_expect(c, case_call(c, mode, info, request), "call");
    case_drop(c);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
}

static void start(const struct batch *b, struct testcase **c, MPI_Request *request, int round)
{
    int order[MAX_BATCH];
    struct rng rng = rng_private(round);
    for (int i = 0; i < b->n; i++)
        order[i] = i;
    if (b->shuffled)
        rng_shuffle(&rng, order, b->n);
    for (int i = 0; i < b->n; i++) {
        case_fill(c[order[i]], round);
        MPI_Start(&request[order[i]]);
    }
}

void batch_run(struct batch *b)
{
    struct testcase *c[MAX_BATCH];
    MPI_Request request[MAX_BATCH];
    MPI_Status status[MAX_BATCH];
    int rounds = b->mode == PERSISTENT ? 3 : 1;

    for (int i = 0; i < b->n; i++) {
        c[i] = case_new(&b->spec[i]);
        call(c[i], &b->spec[i], b->mode, &request[i]);
    }
    for (int round = 0; round < rounds; round++) {
        if (b->mode == PERSISTENT)
            start(b, c, request, round);
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
