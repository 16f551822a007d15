/* SPDX-License-Identifier: MIT */
/* Two further uses of the schedules of src/: running them in rounds, as in the published design of
 * LibNBC, and computing the critical path, the lower bound of the time. */
#ifndef NBC_BENCH_MODEL_H
#define NBC_BENCH_MODEL_H

#include "call.h"
#include "cases.h"

/* The call that the operands describe, for the shapes and schedules of all ranks. */
struct tool_call model_call(const struct operands *o);

/* Rounds: all operations of one depth of the graph are posted at once; the round ends when
 * MPI_Testall over an array, rebuilt for each round, succeeds (Hoefler, Lumsdaine, Rehm,
 * "Implementation and performance analysis of non-blocking collective operations for MPI", SC'07).
 * One call starts the operation and waits for it, by native functions only. */
struct rounds;
struct rounds *rounds_new(const struct operands *o, MPI_Comm comm);
void rounds_run(struct rounds *r, const struct operands *o);
void rounds_free(struct rounds *r);

/* Measured seconds of a message of n bytes: half a round trip. */
struct wire {
    int n;
    struct {
        int64_t bytes;
        double seconds;
    } point[32]; /* ascending */
};

/* Returns the time of the longest path of messages over all ranks; copies and reductions are free.
 */
double critical_path(const struct operands *o, const struct wire *w);

#endif
