/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include <stdlib.h>
#include <string.h>

#include "nbcshim.h"
#include "runner.h"
#include "select.h"

int operands_blocks(const struct operands *o)
{
    return nbc_coll_is_neighborhood(o->coll) ? 2 : o->size;
}

size_t operands_doubles(const struct operands *o)
{
    return (size_t)operands_blocks(o) * o->count + 1;
}

bool all_on_one_node(MPI_Comm comm)
{
    static int answer = -1;
    char mine[MPI_MAX_PROCESSOR_NAME + 1] = "", first[sizeof mine];
    int length;
    if (answer < 0) {
        MPI_Get_processor_name(mine, &length);
        memcpy(first, mine, sizeof first);
        PMPI_Bcast(first, sizeof first, MPI_CHAR, 0, comm);
        answer = on_all_ranks(comm, strcmp(mine, first) == 0);
    }
    return answer;
}

MPI_Comm comm_with_hint(MPI_Comm comm, const char *key, const char *value)
{
    MPI_Comm made;
    MPI_Info info;
    MPI_Comm_dup(comm, &made);
    MPI_Info_create(&info);
    MPI_Info_set(info, (char *)key, (char *)value);
    MPI_Comm_set_info(made, info);
    MPI_Info_free(&info);
    return made;
}

bool operands_make(struct operands *o, enum nbc_coll coll, MPI_Comm comm, int count)
{
    *o = (struct operands){.coll = coll, .comm = comm, .count = count, .info = MPI_INFO_NULL};
    MPI_Comm_rank(comm, &o->rank);
    MPI_Comm_size(comm, &o->size);
    o->local = all_on_one_node(comm);
    int blocks = operands_blocks(o);
    size_t doubles = operands_doubles(o);
    o->send = malloc(doubles * sizeof *o->send);
    o->recv = calloc(doubles, sizeof *o->recv);
    o->counts = malloc(blocks * sizeof *o->counts);
    o->displs = malloc(blocks * sizeof *o->displs);
    o->byte_displs = malloc(blocks * sizeof *o->byte_displs);
    o->wide_displs = malloc(blocks * sizeof *o->wide_displs);
    o->types = malloc(blocks * sizeof *o->types);
    if (!o->send || !o->recv || !o->counts || !o->displs || !o->byte_displs || !o->wide_displs ||
        !o->types)
        return false;
    for (size_t i = 0; i < doubles; i++)
        o->send[i] = (double)(i % 7);
    for (int i = 0; i < blocks; i++) {
        o->counts[i] = count;
        o->displs[i] = i * count;
        o->byte_displs[i] = i * count * (int)sizeof(double);
        o->wide_displs[i] = (MPI_Aint)i * count * (MPI_Aint)sizeof(double);
        o->types[i] = MPI_DOUBLE;
    }
    return true;
}

void operands_free(struct operands *o)
{
    free(o->send);
    free(o->recv);
    free(o->counts);
    free(o->displs);
    free(o->byte_displs);
    free(o->wide_displs);
    free(o->types);
}

#define BUFFER o->recv, o->count, MPI_DOUBLE
#define S_BLOCK o->send, o->count, MPI_DOUBLE
#define R_BLOCK o->recv, o->count, MPI_DOUBLE
#define S_VECTOR o->send, o->counts, o->displs, MPI_DOUBLE
#define R_VECTOR o->recv, o->counts, o->displs, MPI_DOUBLE
#define S_TYPES o->send, o->counts, o->byte_displs, o->types
#define R_TYPES o->recv, o->counts, o->byte_displs, o->types
#define S_ADDRESSES o->send, o->counts, o->wide_displs, o->types
#define R_ADDRESSES o->recv, o->counts, o->wide_displs, o->types
#define VECTOR o->send, o->recv, o->count, MPI_DOUBLE, MPI_SUM
#define OF_BLOCK VECTOR
#define OF_BLOCKS o->send, o->recv, o->counts, MPI_DOUBLE, MPI_SUM
#define ROOT 0

bool operands_call(const struct calls *c, const struct operands *o)
{
    switch (o->coll) {
    case NBC_BARRIER:
        return c->Barrier && !c->Barrier(o->comm);
#define CALL(NAME, Name, name, ...) \
    case NBC_##NAME:                \
        return c->Name && !c->Name(__VA_ARGS__, o->comm);
#include "common/collectives.def"
#undef CALL
    default:
        return false;
    }
}

bool operands_start(const struct calls *c, const struct operands *o, MPI_Request *r)
{
    switch (o->coll) {
    case NBC_BARRIER:
        return c->Ibarrier && !c->Ibarrier(o->comm, r);
#define CALL(NAME, Name, name, ...) \
    case NBC_##NAME:                \
        return c->I##name && !c->I##name(__VA_ARGS__, o->comm, r);
#include "common/collectives.def"
#undef CALL
    default:
        return false;
    }
}

bool operands_init(const struct calls *c, const struct operands *o, MPI_Request *r)
{
    switch (o->coll) {
    case NBC_BARRIER:
        return c->Barrier_init && !c->Barrier_init(o->comm, o->info, r);
#define CALL(NAME, Name, name, ...) \
    case NBC_##NAME:                \
        return c->Name##_init && !c->Name##_init(__VA_ARGS__, o->comm, o->info, r);
#include "common/collectives.def"
#undef CALL
    default:
        return false;
    }
}

void operands_ask(struct operands *o)
{
    MPI_Request r;
    long long segment;
    if (!operands_init(&shim, o, &r))
        return;
    const char *name = nbcshim_algorithm(r, &segment);
    if (name) {
        o->alg = nbc_alg_by_name(o->coll, name);
        o->segment = segment;
    }
    shim.Request_free(&r);
}
