/* SPDX-License-Identifier: MIT */
/* The schedules of src/ put to two other uses: as the rounds of LibNBC's published design, and as
 * the critical path from which the floor is computed. */
#ifndef NBC_BENCH_MODEL_H
#define NBC_BENCH_MODEL_H

#include "cases.h"
#include "sched.h"
#include "select.h"

/* A shape as the shim would make it for these operands on `rank`, with its arrays. */
struct modelled {
    struct nbc_shape shape;
    struct nbc_type types[NBC_TYPE_FIRST_PEER];
    struct nbc_neighbors neighbors;
    int sources[2], destinations[2];
};

void model_shape(const struct operands *o, int rank, struct modelled *m);

/* The schedule the shim runs for them (operands_ask). */
struct nbc_sched *model_schedule(const struct operands *o, int rank);

/* Rounds: all operations of one depth of the graph are posted at once, MPI_Testall over an array
 * rebuilt for each round tells when it is over (Hoefler, Lumsdaine, Rehm, "Implementation and
 * performance analysis of non-blocking collective operations for MPI", SC'07). Started and waited
 * for in one call, with native functions only. */
struct rounds;
struct rounds *rounds_new(const struct operands *o, MPI_Comm comm);
void rounds_run(struct rounds *r, const struct operands *o);
void rounds_free(struct rounds *r);

/* Seconds for one message of n bytes from start to end, measured: half a round trip. */
struct wire {
    int n;
    struct {
        int64_t bytes;
        double seconds;
    } point[32]; /* ascending */
};

double wire_time(const struct wire *w, int64_t bytes);

/* Time of the longest chain of messages over all ranks; copies and reductions cost nothing. */
double critical_path(const struct operands *o, const struct wire *w);

#endif
