/* SPDX-License-Identifier: MIT */
/* Pictures of what was measured, drawn by gnuplot. */
#ifndef NBC_BENCH_PLOT_H
#define NBC_BENCH_PLOT_H

#include <stdbool.h>

/* One point of a series in a picture: "ratio", "overlap", "outstanding", or a collective's name, of
 * which the picture shows microseconds against bytes. */
void plot_add(const char *picture, const char *series, double x, double y);

/* Writes DIRECTORY/<picture>.svg for each. False, after a line on standard error, where gnuplot
 * cannot be run. */
bool plot_draw(const char *directory, const char *title);

#endif
