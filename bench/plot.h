/* SPDX-License-Identifier: MIT */
/* Plots of the results, by gnuplot. */
#ifndef NBC_BENCH_PLOT_H
#define NBC_BENCH_PLOT_H

#include <stdbool.h>

/* Adds a point to a series of a picture. picture: "ratio", "overlap", "outstanding", or the name of
 * a collective, whose picture shows microseconds against bytes. An error bar reaches from low to
 * high; there is none if they are equal. */
void plot_add(const char *picture, const char *series, double x, double y, double low, double high);

/* Writes DIRECTORY/<picture>.svg for each picture. Returns false after a message on standard error
 * if gnuplot cannot be run. */
bool plot_draw(const char *directory, const char *title);

#endif
