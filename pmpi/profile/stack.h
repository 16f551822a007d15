/* SPDX-License-Identifier: MIT */
/* The call stacks from which the program calls MPI. To walk a stack takes microseconds, so that it
 * is done once for each: a later call from the same address at the same height of the stack has
 * the same callers if the same return addresses lie where they lay then. Under the mutex. */
#ifndef NBC_PROFILE_STACK_H
#define NBC_PROFILE_STACK_H

#include <stdint.h>

enum { NBC_STACK_DEPTH = 8 };

struct nbc_stack {
    int n;
    const void *frame[NBC_STACK_DEPTH];  /* to which the calls return, the innermost first */
    int32_t offset[NBC_STACK_DEPTH];     /* of the return address from `place`, in bytes */
    const char *place;                   /* of the first one */
    const struct nbc_stack *same, *next; /* the first stack with the same frames; in a chain */
};

/* The stack of a call that returns to `caller`; this address lies at `place`. Equal stacks are the
 * same object. NULL without memory. */
const struct nbc_stack *nbc_stack_find(const void *caller, const void *place);

#endif
