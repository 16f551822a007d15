/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct point {
    char picture[32], series[64];
    double x, y;
};

static struct point *points;
static int npoints, room;

/* Pictures that are not of a collective have other axes. */
static const struct axes {
    const char *picture, *title, *x, *y;
    const char *scale; /* logarithmic axes */
    const char *also;  /* additional curves */
} special[] = {{"ratio", "nbcshim / native", "bytes", "ratio", "xy", ", 1 with lines dt 2 notitle"},
               {"overlap", "overlap", "bytes", "percent", "x", ""},
               {"outstanding", "outstanding operations", "operations", "microseconds per operation",
                "xy", ""}},
  usual = {NULL, NULL, "bytes", "microseconds", "xy", ""};

void plot_add(const char *picture, const char *series, double x, double y)
{
    if (npoints == room) {
        int more = room ? 2 * room : 256;
        struct point *p = realloc(points, more * sizeof *p);
        if (!p)
            return;
        points = p;
        room = more;
    }
    struct point *p = &points[npoints++];
    *p = (struct point){.x = x, .y = y};
    snprintf(p->picture, sizeof p->picture, "%s", picture);
    snprintf(p->series, sizeof p->series, "%s", series);
}

static const struct axes *axes_of(const char *picture)
{
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (strcmp(special[i].picture, picture) == 0)
            return &special[i];
    return &usual;
}

static bool is_in(const struct point *p, const char *picture, const char *series)
{
    return strcmp(p->picture, picture) == 0 && (!series || strcmp(p->series, series) == 0);
}

/* Whether it is the first point of its picture, or of its series there. */
static bool is_first(int i, bool of_series)
{
    for (int k = 0; k < i; k++)
        if (is_in(&points[k], points[i].picture, of_series ? points[i].series : NULL))
            return false;
    return true;
}

static void write_head(FILE *out, const char *directory, const char *picture, const char *title)
{
    const struct axes *a = axes_of(picture);
    fprintf(out,
            "reset\nset terminal svg size 720,480 background rgb 'white'\n"
            "set output '%s/%s.svg'\nset title '%s, %s' noenhanced\nset logscale %s\nset grid\n"
            "set key left top noenhanced\nset xlabel '%s'\nset ylabel '%s'\n"
            "set format x '10^{%%L}'\n",
            directory, picture, a->title ? a->title : picture, title, a->scale, a->x, a->y);
}

/* The data blocks follow the plot command, in its order. */
static void write_series(FILE *out, const char *picture)
{
    const char *between = "plot ";
    for (int i = 0; i < npoints; i++)
        if (is_in(&points[i], picture, NULL) && is_first(i, true)) {
            fprintf(out, "%s'-' title '%s' with linespoints", between, points[i].series);
            between = ", ";
        }
    fprintf(out, "%s\n", axes_of(picture)->also);
    for (int i = 0; i < npoints; i++) {
        if (!is_in(&points[i], picture, NULL) || !is_first(i, true))
            continue;
        for (int k = i; k < npoints; k++)
            if (is_in(&points[k], picture, points[i].series))
                fprintf(out, "%.9g %.6g\n", points[k].x, points[k].y);
        fprintf(out, "e\n");
    }
}

bool plot_draw(const char *directory, const char *title)
{
    FILE *out = popen("gnuplot", "w");
    if (!out) {
        perror("nbcbench: gnuplot");
        return false;
    }
    for (int i = 0; i < npoints; i++)
        if (is_first(i, false)) {
            write_head(out, directory, points[i].picture, title);
            write_series(out, points[i].picture);
        }
    if (pclose(out) == 0)
        return true;
    fprintf(stderr, "nbcbench: gnuplot failed\n");
    return false;
}
