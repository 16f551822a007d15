/* SPDX-License-Identifier: MIT */
/* The settings that all ranks must share, since they determine what all ranks do alike. Each has a
 * value, a number; where ranks have different values, a rule says which one all of them take. */
#ifndef NBC_ALIKE_H
#define NBC_ALIKE_H

#include <stdint.h>

#include "coll.h"

enum { NBC_ALIKE_VARIABLES = 12, NBC_ALIKE = NBC_ALIKE_VARIABLES + NBC_NCOLLS };

struct nbc_alike {
    int64_t value[NBC_ALIKE];
};

/* The values of this rank. After the tuning file has been read. */
void nbc_alike_describe(struct nbc_alike *mine);

/* Values that differ have different digests with high probability. */
uint64_t nbc_alike_digest(const struct nbc_alike *mine);

/* The variable of a setting. `room` is used for names that are composed. */
struct nbc_alike_name {
    char room[64];
};
const char *nbc_alike_variable(int setting, struct nbc_alike_name *room);

/* Takes the value that the rule gives, for a setting on which two of `size` ranks differ. Sets
 * *outcome to what is done, for the line that reports it; to NULL if all ranks take the value of
 * the rank that is returned. */
int nbc_alike_settle(int setting, int size, const struct nbc_alike *all, const char **outcome);

#endif
