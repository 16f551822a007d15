/* SPDX-License-Identifier: MIT */
/* The commands for gnuplot that nbcsim and nbcbench share. Each function writes to a pipe to
 * gnuplot. */
#ifndef NBC_TOOLS_GNUPLOT_H
#define NBC_TOOLS_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes a string constant of gnuplot's. */
void gnuplot_string(FILE *out, const char *text);

/* Defines the first n line types: no two have the same colour, and those near each other have
 * different markers. */
void gnuplot_line_types(FILE *out, int n);

/* A logarithmic x axis from least to most, with ticks at powers of two. bytes: the labels are sizes
 * with K, M and G. */
void gnuplot_axis(FILE *out, double least, double most, bool bytes);

/* Writes a size with K, M or G where that is exact; returns text. */
const char *gnuplot_size(double bytes, char *text, size_t size);

#endif
