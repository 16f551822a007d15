/* SPDX-License-Identifier: MIT */
/* A test case: a collective call with its buffers. It is drawn at random, made as a blocking,
 * nonblocking or persistent call, and checked byte by byte against the definition of the
 * collective.
 *
 * All data is a function of (seed, round, sender, receiver), so each rank can compute the expected
 * result without communication. Around and between the data is a pattern that must not change. */
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
enum coll coll_by_name(const char *name); /* NCOLLS if there is none */
bool coll_rooted(enum coll coll);
bool coll_reduces(enum coll coll);

/* A communicator. Its processes are numbered: by their ranks, and in an intercommunicator those of
 * one group first, then those of the other. */
struct group {
    MPI_Comm comm;
    int rank, size;
    int remote;            /* size of the other group of an intercommunicator, or 0 */
    int first, first_peer; /* numbers of the first process of this group, and of the first peer */
    struct topology *topology; /* or NULL */
};

struct group *group_new(MPI_Comm comm);
int group_total(const struct group *g); /* processes in both groups */
void group_delete(struct group *g);     /* also frees the communicator, except MPI_COMM_WORLD */

/* The properties of a call that are the same on all ranks. */
struct spec {
    enum coll coll;
    const struct group *group;
    int root; /* number of the root */
    struct style style;
    const struct opdef *op; /* of reductions; of the kind of the style */
    int count;              /* of a block; in v and w collectives up to twice as many */
    bool in_place;
    bool large;     /* use the functions with MPI_Count */
    bool extension; /* else persistent ones by the names of Open MPI 4's extension, MPIX_... */
    bool open;      /* no buffer is next to an inaccessible page, read-only or at MPI_BOTTOM */
    uint64_t seed;
    const char *algorithm; /* a hint for persistent ones of a batch, or NULL */
};

/* Draws all fields except the collective and the group. Counts are at most max_count. */
struct spec spec_random(enum coll coll, const struct group *group, uint64_t seed, int max_count);

enum mode { BLOCKING, NONBLOCKING, PERSISTENT };

struct testcase;

/* Allocates buffers, and makes types, the operator and argument arrays. Local. */
struct testcase *case_new(const struct spec *spec);

/* Fills the buffers with new contents. round: any number, the same on all ranks. */
void case_fill(struct testcase *c, int round);

/* Takes one element from each block that has more, in the arguments of one side on this rank, which
 * then disagrees with the others. Returns whether that has changed anything. */
bool case_shorten(struct testcase *c, bool send);

/* Calls MPI_X, MPI_IX or MPI_X_init. Returns its error code. */
int case_call(struct testcase *c, enum mode mode, MPI_Info info, MPI_Request *request);

/* Reports an error code other than MPI_SUCCESS. */
void case_expect(struct testcase *c, int code, const char *what);

/* Frees the datatypes and the operator and overwrites the argument arrays, as soon as the call has
 * returned. Does nothing in native runs: there arrays must stay valid, and either MPI may crash on
 * types that are freed early. */
void case_drop(struct testcase *c);

/* Compares the results after completion. `what` is part of the error message. */
void case_check(struct testcase *c, const char *what);

/* Checks that no buffer has changed since it was filled. */
void case_untouched(struct testcase *c, const char *what);

void case_delete(struct testcase *c);

/* Fills the buffers, makes the call, completes it by MPI_Wait, and checks the results. */
void case_run(const struct spec *spec, enum mode mode);

#endif
