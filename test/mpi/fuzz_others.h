/* SPDX-License-Identifier: MIT */
/* Requests of the fuzzer that are neither collectives nor messages. */
#ifndef NBC_TEST_FUZZ_OTHERS_H
#define NBC_TEST_FUZZ_OTHERS_H

#include "fuzz.h"

enum { GENERALIZED, WRITE, READ, PUT, GET, ACCUMULATE, NWAYS };

enum { OTHER_MOST = 256 }; /* bytes */

struct other {
    int way, n, rank; /* n: bytes; rank: target of the window */
    int64_t at;
    unsigned char *bytes;
    uint64_t key;
    MPI_Request inner; /* generalized: the request that it stands for */
    bool told;         /* MPI_Grequest_complete was called */
};

void other_fill(unsigned char *bytes, int n, uint64_t key);
void other_compare(const unsigned char *bytes, int n, int64_t first, uint64_t key,
                   const char *what);

/* --- fuzz_shared.c -----------------------------------------------------------------------------*/

/* Collective. */
void shared_begin(bool files, bool windows);
void shared_end(void);

bool shared_has(int way);

/* Returns the position of the data that is read from a file or by MPI_Get. */
int64_t shared_constant(const struct line *line);

MPI_Request file_start(struct other *o);
MPI_Request window_start(struct other *o);
void file_check(const struct other *o);
void window_check(const struct other *o);

#endif
