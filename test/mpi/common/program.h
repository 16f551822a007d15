/* SPDX-License-Identifier: MIT */
/* The programs of the fuzzer as text: one statement per line, "verb name=value …", the same on all
 * ranks and for any number of ranks.
 *
 *     dup id=1 on=0                                 a communicator; 0 is MPI_COMM_WORLD
 *     call on=1 coll=alltoallw most=40 seed=7       a nonblocking collective
 *     init id=2 on=1 coll=scan most=9 seed=8        a persistent collective
 *     start of=2 seed=9                             with others, in random order on each rank
 *     complete times=3 seed=10                      random completion calls
 *
 * thread=1 … assigns a statement to another thread, whose communicator 0 is a duplicate of
 * MPI_COMM_WORLD from which all its communicators are made.
 *
 * A line determines its statement, so that removing a line does not change the others; statements
 * that refer to a removed one do nothing. Thus a program can be reduced line by line. */
#ifndef NBC_TEST_PROGRAM_H
#define NBC_TEST_PROGRAM_H

#include "cases.h"

enum verb {
    /* Communicators: id is made from on; algorithm, segment: hints of a duplicate. */
    DUP,
    IDUP, /* pending until its result is used */
    SPLIT,
    SPLIT_TYPE,
    CREATE,
    TOPOLOGY,
    SUB, /* of on, if that is Cartesian */
    INTER,
    MERGE,
    FREE, /* on, even if operations are pending */
    DISCONNECT,
    HINT,      /* on: algorithm, segment */
    ATTRIBUTE, /* of on; way: what its callbacks do */
    /* Collectives: on, coll, most (elements), seed; plain, apart (not in place); way = 1: the types
     * have attributes. */
    CALL,
    RUN, /* blocking */
    INIT,
    BURST, /* `times` equal nonblocking ones at once */
    /* Messages: on, bytes, shift (distance to the destination), tag; way of sending, or of
     * receiving. */
    MESSAGE,
    MESSAGE_INIT,
    SENDRECV,
    PROBE,
    GIVE_UP, /* requests are cancelled, or freed while active: way */
    OTHER,   /* a generalized request, or one of a file or window: way, bytes, shift */
    /* Requests. */
    START,    /* of */
    RELEASE,  /* of: freed after it was started */
    COMPLETE, /* times */
    DRAIN,    /* until `times` are left */
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

/* Draws a program with this number of lines per thread. */
struct program program_random(uint64_t seed, int nlines, int threads);

int program_threads(const struct program *p);

/* Reads a file. On a syntax error, prints a message and ends the process. */
struct program program_read(const char *path);

void line_print(const struct line *line, char *text, size_t size);
void program_free(struct program *p);

/* Returns the name of an algorithm of src/algs.def, counted from 1; NULL after the last one. */
const char *algorithm_name(int64_t i);

#endif
