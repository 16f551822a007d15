/* SPDX-License-Identifier: MIT */
/* What the tests of the rules of requests share: which errors were raised, what statuses say, and
 * operations that are surely pending. */
#ifndef NBC_TEST_OBSERVE_H
#define NBC_TEST_OBSERVE_H

#include "util.h"

#define CHECK(condition) EXPECT(condition, "%s:%d: %s", __func__, __LINE__, #condition)

enum { UNTOUCHED = 77, GATE = 900, DATA = 901 };

extern MPI_Comm comm; /* where the collectives run; WORLD carries the messages */

/* Errors on this communicator are noted, and returned. */
void note_errors(MPI_Comm on);
extern int nraised; /* since the last call of raised */

/* One error of that class was raised since the last call of this, on that communicator;
 * MPI_COMM_NULL: on one that is not the program's. */
bool raised(int class, MPI_Comm on);

/* The same where the MPI may have raised its own before: MPICH 4.0.2 raises whatever a completion
 * call finds on WORLD, also for the messages below an operation. */
bool raised_last(int class, MPI_Comm on);

/* Fills statuses with what no call writes; MPI_ERROR with UNTOUCHED. */
void spoil(MPI_Status *s, int n);
bool is_empty(const MPI_Status *s);
bool is_message(const MPI_Status *s, int source, int tag); /* of one int */

/* The last rank keeps out of the collectives of the others until each of them has opened the gate.
 * All ranks call gate_wait before theirs, all but the last gate_open. */
bool is_late(void);
void gate_wait(void);
void gate_open(void);

int right(void);
int left(void);
int sum_of_ranks(void);

/* A nonblocking sum and a persistent one, of one_in into one_out: test_rank and -1 at first. */
extern int one_in, one_out;
MPI_Request sum_start(void);
MPI_Request sum_init(void);

/* All completion calls on requests that are not active do nothing, and say so. */
void single_inactive(MPI_Request r);
void array_inactive(int n, MPI_Request *r);

/* Polls by MPI_Request_get_status alone: it must move the operation on, and leave the request. */
void poll_status(MPI_Request r);

#endif
