/* SPDX-License-Identifier: MIT */
/* The tuning rules in force: those of the file that NBCSHIM_TUNING names, then the built-in ones.
 * Set at init, before any communicator is ours, and read only afterwards. */
#ifndef NBC_TUNING_H
#define NBC_TUNING_H

#include <stdbool.h>

#include "rules.h"

extern const struct nbc_rules *nbc_tuning;

/* Reads the file, if one is named. A file that cannot be read, or has a line that is no rule, is
 * not used at all; then one line on standard error says so, where warn is true. */
void nbc_tuning_read(bool warn);

/* The built-in rules alone, since the ranks have read different ones. */
void nbc_tuning_drop(bool warn);

#endif
