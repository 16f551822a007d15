/* SPDX-License-Identifier: MIT */
/* Test cases that run concurrently: many operations, few waits. */
#ifndef NBC_TEST_BATCH_H
#define NBC_TEST_BATCH_H

#include "cases.h"

enum { MAX_BATCH = 24 };

struct batch {
    enum mode mode; /* not BLOCKING */
    bool shuffled;  /* each rank starts persistent ones in an order of its own */
    int n;
    struct spec spec[MAX_BATCH];
};

/* Adds a case; runs all if the batch is full. */
void batch_add(struct batch *b, const struct spec *spec);

/* Runs the batch: starts all cases, waits for all, checks them; three times if persistent. */
void batch_run(struct batch *b);

#endif
