/* SPDX-License-Identifier: MIT */
/* The tuning rules in force: those of the file that NBCSHIM_TUNING names, followed by the built-in
 * rules. Set at init, before a communicator has a context; afterwards only read. */
#ifndef NBC_TUNING_H
#define NBC_TUNING_H

#include <stdbool.h>

#include "rules.h"

extern const struct nbc_rules *nbc_tuning;

/* The file whose rules are in force, NULL if only the built-in ones are. */
extern const char *nbc_tuning_file;

/* Reads the file, if NBCSHIM_TUNING names one. If the file cannot be read or has an invalid line,
 * all of it is ignored; if `warn`, one line on standard error says so. */
void nbc_tuning_read(bool warn);

/* Puts only the built-in rules in force, because the ranks have read different rules. */
void nbc_tuning_drop(void);

#endif
