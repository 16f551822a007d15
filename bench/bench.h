/* SPDX-License-Identifier: MIT */
/* What all measures of nbcbench share: what is to be measured, and where the figures go. */
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
    bool native_persistent, all_algorithms, idle;
    const char *progress; /* what NBCSHIM_PROGRESS says */
    const char *plot;     /* a directory, or NULL */
    struct emit json;     /* json.writer.out: of rank 0, or NULL */
};

/* Each measures all cells and tells of them. */
void measure_time(struct bench *b);
void measure_calls(struct bench *b);
void measure_overlap(struct bench *b);
void measure_outstanding(struct bench *b);

/* Calls it for every collective and size whose operands all ranks can hold. */
void for_each_cell(struct bench *b, void (*measure)(struct bench *b, struct operands *o));

/* Bytes that the cell stands for. */
int64_t cell_bytes(const struct operands *o);

/* Begins a row of JSON, to be ended by json_end; false where none is wanted. */
bool json_begin(struct bench *b, const char *measure, const struct operands *o);
void json_quartiles(struct bench *b, const char *name, struct quartiles q);
void json_end(struct bench *b);

/* A column of the table in microseconds, or a dash. */
void print_time(bool have, double seconds);

#endif
