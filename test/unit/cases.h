/* SPDX-License-Identifier: MIT */
/* One call of a collective on all its ranks: arguments made up from a few numbers, the result that
 * the definition of the collective demands, and the comparison of the two. */
#ifndef NBC_TEST_CASES_H
#define NBC_TEST_CASES_H

#include "nodes.h"
#include "select.h"
#include "sim.h"

/* Layouts of a block's elements. */
enum {
    PLAIN,     /* one atom */
    PAIR,      /* two, packed */
    GAP,       /* two, with gaps between and behind */
    SCRAMBLED, /* three, not in memory order, one below the address */
    COLUMN,    /* two far apart, the elements interleaved: a matrix column, resized */
    BACKWARD,  /* negative extent */
    SHIFTED,   /* packed, but not at the address */
    EMPTY,     /* no data */
    MIXED,     /* another one on every rank and side (and peer, where types are per peer) */
    NLAYOUTS
};

enum { SUM, AFFINE, HASH, NOPS }; /* HASH: what floating point does to bits */

struct test_case {
    const struct nbc_alg *alg;
    int size, remote; /* remote: size of the other group, or 0 */
    int root;         /* in the first group */
    int64_t count;    /* units a block; uneven blocks have 0 … 2 count */
    int op;
    bool in_place;
    int layout;
    int graph;       /* neighborhoods: 0 … NGRAPHS − 1, see cases.c */
    int nodes;       /* of a node map; 0: none */
    int64_t segment; /* bytes */
    bool even;       /* blocks that could be uneven are not */
    bool rendezvous;
    int runs; /* how often the operation is started */
    uint64_t seed;
};

enum { NGRAPHS = 6 };

/* "allreduce:ring P=5 …": what the command line of test_algs takes. */
void case_print(const struct test_case *c, char *text, size_t size);

/* Reads what case_print has written: the words of a command line. What is not there keeps its
 * value. Returns NULL or the word that is not understood. */
const char *case_parse(struct test_case *c, int nwords, char **words);

/* Sets what the collective does not have to one value, so that every case has one name. */
void case_normalize(struct test_case *c);

/* A rank's part. */
struct party {
    struct nbc_shape shape;
    struct nbc_neighbors neighbors;
    struct nbc_type *types;
    struct layout *layouts;
    void *counts[2], *displs[2];
    struct nbc_sched *sched;
    struct buffer {
        char *memory, *wanted; /* contents at the end */
        size_t size;
        char *base;
    } buffer[2];
    struct world *world;
    int id; /* over both groups */
};

struct world {
    struct test_case c;
    int n; /* ranks of both groups */
    struct party *party;
    struct sim_rank *ranks;
    int *node_of;
    struct nbc_nodes nodes;
    int **edges;      /* sources, destinations of each rank */
    uint64_t *folded; /* reductions: per run and rank, over its group up to it */
    int64_t total;    /* atoms in the vector that is reduced */
    int64_t messages; /* sends and receives of all ranks */
    char text[600];   /* the first thing that went wrong */
};

/* Shapes and arguments of all ranks. */
struct world *world_new(const struct test_case *c);

/* Whether the algorithm takes this call. The same on every rank, or text is set. */
bool world_applies(struct world *w);

/* Builds the schedules of all ranks; checks them. NULL, or what is wrong. */
const char *world_build(struct world *w);
const char *world_check(struct world *w);

/* Puts the operation into a simulation; after sim_run, world_result says whether it went well. */
void world_start(struct world *w, struct sim *sim);
const char *world_result(struct world *w);

void world_free(struct world *w);

/* The schedules of all ranks, for people. */
void world_print(const struct world *w, FILE *out);

/* All of the above. Not run are calls that the algorithm does not apply to, and those that take
 * more sends and receives than this, over all ranks. */
enum outcome { WENT_WELL, NOT_RUN, FAILED };

enum outcome case_run(const struct test_case *c, int64_t most_messages, char *text, size_t size);

#endif
