/* SPDX-License-Identifier: MIT */
/* A test case: a call of a collective on all its ranks. Its arguments are derived from a few
 * numbers; its results are compared with the definition of the collective. */
#ifndef NBC_TEST_CASES_H
#define NBC_TEST_CASES_H

#include <stdio.h>

#include "nodes.h"
#include "pattern.h"
#include "select.h"
#include "sim.h"

/* Layouts of a block's elements. */
enum {
    PLAIN,     /* one atom */
    PAIR,      /* two atoms, packed */
    GAP,       /* two atoms, with gaps between and after them */
    SCRAMBLED, /* three atoms, not in memory order, one below the address */
    COLUMN,    /* two atoms far apart, elements interleaved: a resized matrix column */
    BACKWARD,  /* negative extent */
    SHIFTED,   /* packed, but not at the address */
    EMPTY,     /* no data */
    MIXED,     /* differs by rank, side and, in the w collectives, peer */
    NLAYOUTS
};

enum {
    SUM,
    AFFINE,
    HASH,  /* not associative, like floating point; any order */
    RANKS, /* the same, and the order of ranks is required */
    TREE,  /* the same, and that of a tree is */
    NOPS
};

struct test_case {
    const struct nbc_alg *alg;
    int size, remote; /* remote: size of the other group, or 0 */
    int root;         /* in the first group */
    int64_t count;    /* units per block; uneven blocks have 0 … 2 count */
    int op;
    bool in_place;
    int layout;
    int graph;       /* neighborhoods: 0 … NGRAPHS − 1, see cases.c */
    int nodes;       /* number of nodes of the node map; 0: no map */
    int64_t segment; /* bytes */
    bool sockets;    /* ranks on several hosts, without a faster network */
    bool even;       /* blocks have equal size, even if the collective allows others */
    bool rendezvous;
    int runs; /* number of times that the operation is started */
    uint64_t seed;
};

enum { NGRAPHS = 6 };

/* Writes a case as test_algs takes it on its command line: "allreduce:ring P=5 …". */
void case_print(const struct test_case *c, char *text, size_t size);

/* Reads the words of such a command line. Fields that no word names keep their values. Returns
 * NULL, or the first word with a syntax error. */
const char *case_parse(struct test_case *c, int nwords, char **words);

/* Sets fields that have no meaning for the collective to fixed values, so that every case has one
 * name. */
void case_normalize(struct test_case *c);

/* A rank of a case. */
struct party {
    struct nbc_shape shape;
    struct nbc_neighbors neighbors;
    struct nbc_pattern pattern;
    struct nbc_type *types;
    struct layout *layouts;
    void *counts[2], *displs[2];
    struct nbc_sched *sched;
    struct buffer {
        char *memory, *wanted; /* the buffer, and its expected contents at the end */
        size_t size;
        char *base;
    } buffer[2];
    struct world *world;
    int id; /* number over both groups */
};

struct world {
    struct test_case c;
    int n; /* ranks of both groups */
    struct party *party;
    struct sim_rank *ranks;
    int64_t *node_of;
    struct nbc_nodes nodes;
    int **edges;      /* sources, destinations of each rank */
    uint64_t *folded; /* reductions: per run and rank, the result over its group up to it */
    int64_t total;    /* atoms of the reduced vector */
    int64_t messages; /* sends and receives of all ranks */
    char text[600];   /* the first error */
};

/* Makes the shapes and arguments of all ranks. */
struct world *world_new(const struct test_case *c);

/* Whether the algorithm applies to the call. If ranks disagree, w->text says so. */
bool world_applies(struct world *w);

/* Build the schedules of all ranks; check them. Return NULL, or an error message. */
const char *world_build(struct world *w);
const char *world_check(struct world *w);

/* Adds the operation to a simulation. After sim_run, world_result returns NULL, or an error
 * message. */
void world_start(struct world *w, struct sim *sim);
const char *world_result(struct world *w);

void world_free(struct world *w);

/* Prints the schedules of all ranks. */
void world_print(const struct world *w, FILE *out);

/* Does all of the above. Cases to which the algorithm does not apply are not run, nor are those
 * with more sends and receives than this, over all ranks. */
enum outcome { WENT_WELL, NOT_RUN, FAILED };

enum outcome case_run(const struct test_case *c, int64_t most_messages, char *text, size_t size);

#endif
