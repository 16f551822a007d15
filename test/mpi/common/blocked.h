/* SPDX-License-Identifier: MIT */
/* Tests of the progress rule, call by call. Rank 0 starts collectives that the others cannot
 * complete unless it forwards data later, then blocks in the call. The others start the same
 * collectives, complete them, and only then do what the call waits for. Without progress in the
 * call all hang. Then each case runs once more in the other order: the call must return although
 * the collectives cannot complete yet. */
#ifndef NBC_TEST_BLOCKED_H
#define NBC_TEST_BLOCKED_H

#include "util.h"

struct blocked {
    const char *name;
    void (*block)(void);   /* the blocking call of rank 0 */
    void (*release)(void); /* what the others do afterwards; NULL: the same call */
    void (*prepare)(void); /* what all ranks do before, or NULL */
    bool named_only;       /* runs only if it is named in the arguments */
};

/* A communicator of all ranks for the calls, a new one for each case; the collectives run on
 * another. (After some twenty constructors on one communicator, Open MPI 4.1.4 hangs in the next
 * MPI_Dist_graph_create, natively too, since it reuses the tags of that call.) */
extern MPI_Comm blocked_comm;

/* Runs the cases, or those that the arguments of the program name. */
void blocked_run(const struct blocked *cases, int n, char **names);

#endif
