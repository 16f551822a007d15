/* SPDX-License-Identifier: MIT */
#include "goal.h"

#include <inttypes.h>

/* An empty message is written as one byte: LogGOPSim multiplies G by size − 1. The tag is the index
 * of the message among those between its two ranks, so that the order of posting does not matter.
 */
static void write_step(const struct program *p, const struct network *net, int rank, int k,
                       FILE *out)
{
    struct step step = program_step(p, rank, k);
    int64_t bytes = step.bytes > 0 ? step.bytes : 1;
    double work = 0;
    switch (step.kind) {
    case NBC_OP_SEND:
        fprintf(out, "l%d: send %" PRId64 "b to %d tag %d\n", k + 1, bytes, step.peer, step.nth);
        return;
    case NBC_OP_RECV:
        fprintf(out, "l%d: recv %" PRId64 "b from %d tag %d\n", k + 1, bytes, step.peer, step.nth);
        return;
    case NBC_OP_COPY:
        work = (double)step.bytes * net->copy;
        break;
    case NBC_OP_REDUCE:
        work = (double)step.bytes * net->reduce;
        break;
    default: /* those of staged schedules are not simulated */
        break;
    }
    fprintf(out, "l%d: calc %" PRId64 "\n", k + 1, (int64_t)(work * 1e9 + 0.5)); /* ns */
}

static void write_edge(void *self, int first, int second, bool issue)
{
    fprintf(self, "l%d %s l%d\n", second + 1, issue ? "irequires" : "requires", first + 1);
}

void goal_write(const struct program *p, const struct network *net, FILE *out)
{
    fprintf(out, "num_ranks %" PRId64 "\n", program_size(p));
    for (int rank = 0; rank < program_size(p); rank++) {
        fprintf(out, "\nrank %d {\n", rank);
        for (int k = 0; k < program_steps(p, rank); k++)
            write_step(p, net, rank, k, out);
        program_edges(p, rank, write_edge, out);
        fprintf(out, "}\n");
    }
}
