/* SPDX-License-Identifier: MIT */
/* Prints a schedule as text, for people. */
#ifndef NBC_SCHED_PRINT_H
#define NBC_SCHED_PRINT_H

#include <stdio.h>

struct nbc_sched;

/* Writes one line per operation. The format is stable: tests compare it. */
void nbc_sched_print(const struct nbc_sched *s, FILE *out);

#endif
