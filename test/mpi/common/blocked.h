/* SPDX-License-Identifier: MIT */
/* The progress rule, tested call by call: rank 0 starts collectives that the others cannot complete
 * unless it forwards its part later, then blocks in the call. The others start the same
 * collectives, complete them, and only then do what the call waits for. Without progress inside the
 * call all hang. */
#ifndef NBC_TEST_BLOCKED_H
#define NBC_TEST_BLOCKED_H

#include "util.h"

struct blocked {
    const char *name;
    void (*block)(void);   /* what rank 0 calls */
    void (*release)(void); /* what the others do then; NULL: the same */
    void (*prepare)(void); /* what all do before, or NULL */
    bool named_only;       /* runs only where it is named */
};

/* A communicator of all, for the calls, another one in each case; the collectives have their own.
 * (One that has seen some twenty constructors makes Open MPI 4.1.4 hang in the next
 * MPI_Dist_graph_create, natively too: it gives the tags of that to others by then.) */
extern MPI_Comm blocked_comm;

/* Runs the cases, or those named in the arguments of the program. */
void blocked_run(const struct blocked *cases, int n, char **names);

/* That a call returned MPI_SUCCESS. */
#define OK(call) blocked_check(call, #call)
void blocked_check(int error, const char *call);

#endif
