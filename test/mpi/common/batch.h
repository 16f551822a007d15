/* SPDX-License-Identifier: MIT */
/* Cases that run at the same time: few waits for many operations. */
#ifndef NBC_TEST_BATCH_H
#define NBC_TEST_BATCH_H

#include "cases.h"

enum { MAX_BATCH = 24 };

struct batch {
    enum mode mode; /* not BLOCKING */
    int n;
    struct spec spec[MAX_BATCH];
};

/* Adds a case; runs all when there are enough. */
void batch_add(struct batch *b, const struct spec *spec);

/* Runs what is there: starts all, waits for all, checks; persistent ones three times. */
void batch_run(struct batch *b);

#endif
