/* SPDX-License-Identifier: MIT */
/* Common code of the tests of requests: raised errors, the contents of statuses, and operations
 * that are known to be pending. */
#ifndef NBC_TEST_OBSERVE_H
#define NBC_TEST_OBSERVE_H

#include "util.h"

enum { UNTOUCHED = 77, GATE = 900, DATA = 901 };

extern MPI_Comm comm; /* where the collectives run; WORLD carries the messages */

/* Make and free that communicator, for test_main; errors on it and on WORLD are noted. */
void observe_begin(void);
void observe_end(void);

/* Makes errors on this communicator be counted and returned. */
void note_errors(MPI_Comm on);
extern int nraised; /* since the last call of raised */

/* Returns whether one error of this class was raised on this communicator since the last call;
 * MPI_COMM_NULL: on a communicator that is not the program's. */
bool raised(int class, MPI_Comm on);

/* The same, if the MPI may have raised one before: MPICH 4.0.2 raises every error that a completion
 * call finds on WORLD, even those of the messages of an operation. */
bool raised_last(int class, MPI_Comm on);

/* Fills statuses with values that no call writes, and MPI_ERROR with UNTOUCHED. */
void spoil(MPI_Status *s, int n);
bool is_empty(const MPI_Status *s);
bool is_message(const MPI_Status *s, int source, int tag); /* of one int */

/* The last rank does not start its collectives until every other rank has opened the gate. All
 * ranks call gate_wait before they start theirs; all but the last call gate_open. */
bool is_late(void);
void gate_wait(void);
void gate_open(void);

/* Make a nonblocking and a persistent sum of one_in to one_out, which are set to test_rank and -1.
 */
extern int one_in, one_out;
MPI_Request sum_start(void);
MPI_Request sum_init(void);

/* Check that all completion calls on inactive requests return at once, with empty statuses. */
void single_inactive(MPI_Request r);
void array_inactive(int n, MPI_Request *r);

/* Polls by MPI_Request_get_status only, which must progress the operation and not free the request.
 */
void poll_status(MPI_Request r);

#endif
