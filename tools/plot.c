/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnuplot.h"

struct point {
    char picture[32], series[64];
    double x, y, low, high;
    bool ring;
};

static struct point *points;
static int npoints, room;

/* Pictures that are not of a collective have other axes. */
static const struct axes {
    const char *picture, *title, *x, *y;
    const char *scale; /* logarithmic axes */
    const char *also;  /* additional curves */
} special[] = {{"ratio", "time of nbcshim / time of the MPI", "bytes", "ratio", "xy",
                ", 1 with lines lc rgb 'black' dt 2 title 'equally fast'"},
               {"overlap", "overlap", "bytes", "percent of the operation hidden by computation",
                "x", ""},
               {"outstanding", "outstanding operations", "operations", "microseconds per operation",
                "xy", ""},
               {"by ranks", "", "ranks", "microseconds", "xy", ""},
               {"by bytes", "", "bytes", "microseconds", "xy", ""}},
  usual = {NULL, NULL, "bytes", "microseconds", "xy", ""};

void plot_add(const char *picture, const char *series, double x, double y, double low, double high)
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
    *p = (struct point){.x = x, .y = y, .low = low, .high = high};
    snprintf(p->picture, sizeof p->picture, "%s", picture);
    snprintf(p->series, sizeof p->series, "%s", series);
}

void plot_add_ring(const char *picture, const char *series, double x, double y)
{
    int before = npoints;
    plot_add(picture, series, x, y, y, y);
    if (npoints > before)
        points[before].ring = true;
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

/* What a series is, for the legend. */
static const char *label_of(const char *series)
{
    static const struct {
        const char *series, *label;
    } labels[] = {
        {"shim", "nbcshim"},
        {"native", "the MPI"},
        {"rounds", "rounds: nbcshim's algorithm as LibNBC runs it"},
        {"shim_persistent", "nbcshim, persistent"},
        {"native_persistent", "the MPI, persistent"},
        {"floor", "floor: critical path of the messages alone"},
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strcmp(labels[i].series, series) == 0)
            return labels[i].label;
    return series;
}

static bool has_bars(const char *picture, const char *series)
{
    for (int i = 0; i < npoints; i++)
        if (is_in(&points[i], picture, series) && points[i].low < points[i].high)
            return true;
    return false;
}

static void write_title(FILE *out, const char *picture, const char *title)
{
    char text[512];
    const char *special_title = axes_of(picture)->title;
    snprintf(text, sizeof text, "%s%s%s%s", special_title ? special_title : picture,
             special_title && !*special_title ? "" : "\n", title,
             has_bars(picture, NULL) ? "; bars: quartiles" : "");
    fputs("set title \"", out);
    for (const char *c = text; *c; c++)
        if (*c == '\n')
            fputs("\\n", out);
        else
            fprintf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    fputs("\" noenhanced\n", out);
}

static void write_range(FILE *out, const char *picture)
{
    double least = 0, most = 0;
    for (int i = 0; i < npoints; i++) {
        if (!is_in(&points[i], picture, NULL))
            continue;
        least = least == 0 || points[i].x < least ? points[i].x : least;
        most = points[i].x > most ? points[i].x : most;
    }
    gnuplot_axis(out, least, most, strcmp(axes_of(picture)->x, "bytes") == 0);
}

/* Above 1 and below it, each side with its name; ticks at powers of two. A bar that is much longer
 * than the rest is cut off. */
static void write_sides(FILE *out)
{
    double least = 0.5, most = 2;
    for (int i = 0; i < npoints; i++) {
        const struct point *p = &points[i];
        if (!is_in(p, "ratio", NULL))
            continue;
        least = fmin(least, fmax(p->low, p->y / 4));
        most = fmax(most, fmin(p->high, p->y * 4));
    }
    least = exp2(floor(log2(least) * 2) / 2);
    most = exp2(ceil(log2(most) * 2) / 2);
    fprintf(out, "set yrange [%.6g:%.6g]\nset logscale y 2\nset ytics (", least, most);
    for (int power = -20; power <= 20; power++)
        fprintf(out, "%s'%s%.0f' %.9g", power > -20 ? ", " : "", power < 0 ? "1/" : "",
                exp2(abs(power)), exp2(power));
    fputs(")\n"
          "set object 1 rect from graph 0, first 1 to graph 1, graph 1 behind fc rgb '#fdeee6' "
          "fs solid noborder\n"
          "set object 2 rect from graph 0, graph 0 to graph 1, first 1 behind fc rgb '#e8f2f8' "
          "fs solid noborder\n"
          "set label 1 'above 1: the MPI is faster' at graph 0.01, graph 0.95 left front\n"
          "set label 2 'below 1: nbcshim is faster' at graph 0.01, graph 0.05 left front\n",
          out);
}

/* The terminal of gnuplot that draws such a file, NULL if none does. */
static const char *terminal_of(const char *file)
{
    const char *base = strrchr(file, '/') ? strrchr(file, '/') : file, *kind = strrchr(base, '.');
    if (!kind || strcmp(kind, ".png") == 0)
        return "pngcairo size 1100,560";
    if (strcmp(kind, ".pdf") == 0)
        return "pdfcairo size 11,5.6";
    return strcmp(kind, ".svg") == 0 ? "svg size 1100,560 background rgb 'white'" : NULL;
}

bool plot_kind_is_known(const char *file)
{
    return terminal_of(file);
}

static void write_head(FILE *out, const char *file, const char *picture, const char *title)
{
    const struct axes *a = axes_of(picture);
    fprintf(out, "reset\nset terminal %s\nset output ", terminal_of(file));
    gnuplot_string(out, file);
    fputc('\n', out);
    write_title(out, picture, title);
    write_range(out, picture);
    if (strchr(a->scale, 'y'))
        fprintf(out, "set logscale y\n");
    if (strcmp(picture, "ratio") == 0)
        write_sides(out);
    if (strcmp(picture, "overlap") == 0) /* what is far outside is noise */
        fputs("set yrange [-100:150]\nset ytics 25\n", out);
    fprintf(out, "set grid\nset key below noenhanced\nset xlabel '%s'\nset ylabel '%s'\n", a->x,
            a->y);
}

/* The next of the numbers, below 2 * npoints, of the series of a picture, in the order in which
 * they are drawn: the rings come last. The remainder by npoints is the first point of the series.
 */
static int next_series(const char *picture, int k)
{
    for (k++; k < 2 * npoints; k++) {
        const struct point *p = &points[k % npoints];
        if (p->ring == (k >= npoints) && is_in(p, picture, NULL) && is_first(k % npoints, true))
            break;
    }
    return k;
}

/* The data blocks follow the plot command, in its order. */
static void write_series(FILE *out, const char *picture)
{
    int n = 0, end = 2 * npoints;
    for (int k = next_series(picture, -1); k < end; k = next_series(picture, k))
        n++;
    gnuplot_line_types(out, n);
    const char *between = "plot ";
    for (int k = next_series(picture, -1); k < end; k = next_series(picture, k)) {
        const struct point *p = &points[k % npoints];
        fprintf(out, "%s'-' with %s title ", between,
                p->ring                        ? "points lc rgb 'black' lw 1.5 pt 6 ps 1.6"
                : has_bars(picture, p->series) ? "yerrorlines"
                                               : "linespoints");
        gnuplot_string(out, label_of(p->series));
        between = ", ";
    }
    fprintf(out, "%s\n", axes_of(picture)->also);
    for (int k = next_series(picture, -1); k < end; k = next_series(picture, k)) {
        for (int i = 0; i < npoints; i++)
            if (is_in(&points[i], picture, points[k % npoints].series))
                fprintf(out, "%.9g %.6g %.6g %.6g\n", points[i].x, points[i].y, points[i].low,
                        points[i].high);
        fprintf(out, "e\n");
    }
}

/* directory: NULL if `file` is the name of the only picture. */
static bool draw(const char *directory, const char *file, const char *title)
{
    char name[4200];
    FILE *out = popen("gnuplot", "w");
    if (!out) {
        perror("gnuplot");
        return false;
    }
    for (int i = 0; i < npoints; i++)
        if (is_first(i, false)) {
            snprintf(name, sizeof name, "%s/%s.svg", directory ? directory : "", points[i].picture);
            write_head(out, directory ? name : file, points[i].picture, title);
            write_series(out, points[i].picture);
        }
    if (pclose(out) == 0)
        return true;
    fprintf(stderr, "gnuplot failed\n");
    return false;
}

bool plot_draw_file(const char *file, const char *title)
{
    return draw(NULL, file, title);
}

bool plot_draw(const char *directory, const char *title)
{
    return draw(directory, NULL, title);
}
