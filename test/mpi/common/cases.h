/* SPDX-License-Identifier: MIT */
/* One collective call with its buffers: drawn at random, made in any of the three ways (blocking,
 * nonblocking, persistent), and checked byte by byte against the definition of the collective.
 *
 * All data is a function of (seed, round, sender, receiver), so each rank knows the right result
 * without asking anybody. Around and between the data lies a pattern that nobody may write. */
#ifndef NBC_TEST_CASES_H
#define NBC_TEST_CASES_H

#include "kinds.h"
#include "sides.h"
#include "topology.h"

enum coll {
#define COLL(NAME, name, Name) NAME,
#include "colls.def"
#undef COLL
    NCOLLS,
    NINTRA = NEIGHBOR_ALLGATHER /* the collectives before it need no topology */
};

const char *coll_name(enum coll coll);
enum coll coll_by_name(const char *name); /* NCOLLS: none */
bool coll_rooted(enum coll coll);
bool coll_reduces(enum coll coll);

/* A communicator and what the cases need of it. Its processes have numbers: their ranks; of an
 * intercommunicator those of one group first, then those of the other. */
struct group {
    MPI_Comm comm;
    int rank, size;
    int remote;                /* size of the other group of an intercommunicator, or 0 */
    int first, first_peer;     /* numbers of the first process here, and of the first to talk to */
    struct topology *topology; /* or NULL */
};

struct group *group_new(MPI_Comm comm);
int group_total(const struct group *g); /* processes in both groups */
void group_delete(struct group *g);     /* frees the communicator too, but for MPI_COMM_WORLD */

/* What is the same on all ranks of a call. */
struct spec {
    enum coll coll;
    const struct group *group;
    int root; /* its number */
    struct style style;
    const struct opdef *op; /* reductions; its kind is the style's */
    int count;              /* of a block; the v and w ones have up to twice as many */
    bool in_place;
    bool large; /* the forms with MPI_Count */
    uint64_t seed;
};

/* Draws everything but the collective and the group. Counts of up to max_count. */
struct spec spec_random(enum coll coll, const struct group *group, uint64_t seed, int max_count);

enum mode { BLOCKING, NONBLOCKING, PERSISTENT };

struct testcase;

/* Allocates buffers, makes types, operator and argument arrays. Local. */
struct testcase *case_new(const struct spec *spec);

/* New contents; round: any number, the same on all ranks. */
void case_fill(struct testcase *c, int round);

/* Makes the call: MPI_X, MPI_IX or MPI_X_init. Returns what it returns. */
int case_call(struct testcase *c, enum mode mode, MPI_Info info, MPI_Request *request);

/* Reports what is not MPI_SUCCESS. */
void case_expect(struct testcase *c, int code, const char *what);

/* Frees the datatypes and the operator and destroys the argument arrays: to be used as soon as the
 * call has returned. Does nothing in native runs, where arrays must live on, and where types that
 * are freed early are a way to crash either MPI. */
void case_drop(struct testcase *c);

/* Compares after completion. `what` goes into the message. */
void case_check(struct testcase *c, const char *what);

/* That nothing has been written since it was filled. */
void case_untouched(struct testcase *c, const char *what);

void case_delete(struct testcase *c);

/* Fills, calls, completes with MPI_Wait and checks. */
void case_run(const struct spec *spec, enum mode mode);

#endif
