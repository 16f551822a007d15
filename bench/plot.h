/* SPDX-License-Identifier: MIT */
/* Pictures of what was measured, drawn by gnuplot: one per collective, time against size. */
#ifndef NBC_BENCH_PLOT_H
#define NBC_BENCH_PLOT_H

#include <stdbool.h>

#include "coll.h"

/* One figure. Names of series and of collectives must outlive the plot. */
void plot_add(enum nbc_coll coll, const char *series, int64_t bytes, double seconds);

/* Writes DIRECTORY/<collective>.svg, each with all series of that collective, and
 * DIRECTORY/ratio.svg: the series "shim" over "native", all collectives. False, after a line on
 * standard error, where gnuplot cannot be run. */
bool plot_draw(const char *directory, const char *title);

#endif
