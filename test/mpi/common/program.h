/* SPDX-License-Identifier: MIT */
/* The programs of the fuzzer as text: one statement a line, "verb name=value …", the same on all
 * ranks and for any number of them.
 *
 *     dup id=1 on=0                                 a communicator; 0 is MPI_COMM_WORLD
 *     call on=1 coll=alltoallw most=40 seed=7       a nonblocking collective
 *     init id=2 on=1 coll=scan most=9 seed=8        a persistent one
 *     start of=2 seed=9                             with others, in another order on each rank
 *     complete times=3 seed=10                      random calls that complete something
 *
 * With thread=1 … it is another thread's, all of whose communicators come from a duplicate of
 * MPI_COMM_WORLD that is its communicator 0.
 *
 * Everything about a statement is in its line: one may be taken out and the others stay what they
 * are; those that lack what they refer to do nothing. So a program can be made smaller line by
 * line. */
#ifndef NBC_TEST_PROGRAM_H
#define NBC_TEST_PROGRAM_H

#include "cases.h"

enum verb {
    /* Communicators: id from on; algorithm, segment: hints of a duplicate. */
    DUP,
    IDUP, /* goes on until its result is used */
    SPLIT,
    SPLIT_TYPE,
    CREATE,
    TOPOLOGY,
    SUB, /* of a Cartesian one: on, if it is */
    INTER,
    MERGE,
    FREE, /* on, whatever is pending */
    DISCONNECT,
    HINT,      /* on: algorithm, segment */
    ATTRIBUTE, /* of on: way, what its callbacks do */
    /* Collectives: on, coll, most (elements), seed; plain, apart (not in place); way: 1: the types
     * have attributes, too. */
    CALL,
    RUN, /* blocking */
    INIT,
    BURST, /* so many nonblocking ones that are alike, at once: times */
    /* Messages: on, bytes, shift (to the rank so much further on), tag; way of sending, or of
     * receiving. */
    MESSAGE,
    MESSAGE_INIT,
    SENDRECV,
    PROBE,
    GIVE_UP, /* requests are cancelled, or freed while active: way */
    OTHER,   /* a generalized request, or one of a file or window: way, bytes, shift */
    /* Requests. */
    START,    /* of */
    RELEASE,  /* of: freed soon after */
    COMPLETE, /* times */
    DRAIN,    /* until so many are left: times */
    NVERBS
};

enum { MAX_OF = 6 };

struct line {
    int64_t verb, thread, id, on, coll, most, plain, apart, algorithm, segment, bytes, shift, tag,
        times, way, wild, seed;
    int64_t of[MAX_OF];
    int nof;
};

struct program {
    int n;
    struct line *line;
};

/* Makes one up, of so many lines for each thread. */
struct program program_random(uint64_t seed, int nlines, int threads);

int program_threads(const struct program *p);

/* Reads a file; says what it does not understand and ends the process then. */
struct program program_read(const char *path);

void line_print(const struct line *line, char *text, size_t size);
void program_free(struct program *p);

/* The names of algorithms of src/algs.def: 1 … ; NULL: no more. */
const char *algorithm_name(int64_t i);

#endif
