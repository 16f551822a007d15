/* SPDX-License-Identifier: MIT */
/* Plots of what nbcbench and nbcsim find, by gnuplot. */
#ifndef NBC_TOOLS_PLOT_H
#define NBC_TOOLS_PLOT_H

#include <stdbool.h>

/* Adds a point to a series of a picture. picture: "ratio", "overlap", "outstanding", "by ranks",
 * "by bytes", or the name of a collective, whose picture shows microseconds against bytes. An error
 * bar reaches from low to high; there is none if they are equal. */
void plot_add(const char *picture, const char *series, double x, double y, double low, double high);

/* Adds a point that one of another series also is, with a ring around it. */
void plot_add_ring(const char *picture, const char *series, double x, double y);

/* Whether gnuplot draws a file of that name: .png, .svg or .pdf, or without a suffix. */
bool plot_kind_is_known(const char *file);

/* Writes the only picture to a file, or DIRECTORY/<picture>.svg for each of them. Return false
 * after a message on standard error if gnuplot cannot be run. */
bool plot_draw_file(const char *file, const char *title);
bool plot_draw(const char *directory, const char *title);

#endif
