/* SPDX-License-Identifier: MIT */
/* The settings of a run of nbcbench, and the output that all measures share. */
#ifndef NBC_BENCH_BENCH_H
#define NBC_BENCH_BENCH_H

#include "emit.h"
#include "runner.h"

struct bench {
    MPI_Comm comm; /* with a ring topology */
    int rank, size;
    bool coll[NBC_NCOLLS];
    int64_t sizes[64]; /* bytes */
    int nsizes;
    int samples;
    int most_samples; /* of a cell that is measured until its ratio is clear */
    bool native_persistent, all_algorithms, idle;
    const char *progress; /* value of NBCSHIM_PROGRESS */
    const char *plot;     /* a directory, or NULL */
    bool failed;          /* a measure cannot run, and has said why */
    struct emit json;     /* json.writer.out: of rank 0, or NULL */
};

/* Each measures all cells and prints the results. Collective over b->comm. */
void measure_time(struct bench *b);
void measure_calls(struct bench *b);
void measure_overlap(struct bench *b);
void measure_device(struct bench *b);
void measure_halo(struct bench *b);
void measure_outstanding(struct bench *b);
void measure_untouched(struct bench *b);

/* Returns the seconds of an operation with a rest of `seconds` between its start and its wait. */
double idle_sample(const struct bench *b, struct runner *r, int calls, double seconds);

bool untouched_choose(const char *group);

/* Returns the value of a variable of nbcshim in force, "-" if there is no such variable. */
const char *setting_in_force(const char *name);

/* Calls `measure` for every collective and size whose operands all ranks can allocate. */
void for_each_cell(struct bench *b, void (*measure)(struct bench *b, struct operands *o));

/* Measures n variants of a cell, of which `runners` has room for each, by samples that alternate:
 * sample i of variant v, of as many calls as take so many seconds. Rank 0 reports each at the end.
 */
struct variants {
    const enum variant *which;
    struct runner *runners;
    int n;
    double seconds;
    void (*sample)(const struct bench *b, int v, int calls, int i);
    void (*report)(struct bench *b, const struct operands *o, int v);
};
void measure_variants(struct bench *b, const struct operands *o, const struct variants *all);

/* Returns the bytes of a cell: of the vector or of a block. */
int64_t cell_bytes(const struct operands *o);

/* Begins a row of JSON, to be ended by json_end. Returns false if no JSON was requested. */
bool json_begin(struct bench *b, const char *measure, const struct operands *o);
void json_quartiles(struct bench *b, const char *name, struct quartiles q);
void json_end(struct bench *b);

/* Prints a column of the table: microseconds, or a dash. */
void print_time(bool have, double seconds);

/* The same, and a column with a ratio. */
void print_ratio(bool have, double seconds, double ratio);

#endif
