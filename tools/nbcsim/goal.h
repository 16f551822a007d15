/* SPDX-License-Identifier: MIT */
/* Writes programs in the language GOAL, for LogGOPSim. */
#ifndef NBCSIM_GOAL_H
#define NBCSIM_GOAL_H

#include "engine.h"

/* Writes a program as text in the language GOAL, which LogGOPSim's txt2bin reads: Hoefler,
 * Siebert, Lumsdaine, "Group operation assembly language - a flexible way to express collective
 * communication", 2009; Hoefler, Schneider, Lumsdaine, "LogGOPSim", 2010. The program must
 * have been made without a symmetry. */
void goal_write(const struct program *p, const struct network *net, FILE *out);

#endif
