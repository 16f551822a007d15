/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct figure {
    enum nbc_coll coll;
    const char *series;
    int64_t bytes;
    double seconds;
};

static struct figure *figures;
static int nfigures, room;

void plot_add(enum nbc_coll coll, const char *series, int64_t bytes, double seconds)
{
    if (nfigures == room) {
        int more = room ? 2 * room : 256;
        struct figure *f = realloc(figures, more * sizeof *f);
        if (!f)
            return;
        figures = f;
        room = more;
    }
    figures[nfigures++] = (struct figure){coll, series, bytes, seconds};
}

static const struct figure *find(enum nbc_coll coll, const char *series, int64_t bytes)
{
    for (int i = 0; i < nfigures; i++)
        if (figures[i].coll == coll && strcmp(figures[i].series, series) == 0 &&
            (bytes < 0 || figures[i].bytes == bytes))
            return &figures[i];
    return NULL;
}

/* The first figure of each series of a collective stands for the series. */
static bool is_first(const struct figure *f)
{
    return find(f->coll, f->series, -1) == f;
}

static void head(FILE *out, const char *directory, const char *name, const char *title,
                 const char *axis)
{
    fprintf(out,
            "set terminal svg size 720,480 background rgb 'white'\nset output '%s/%s.svg'\n"
            "set title '%s' noenhanced\nset logscale xy\nset grid\nset key left top noenhanced\n"
            "set xlabel 'bytes'\nset ylabel '%s'\nset format x '10^{%%L}'\nplot ",
            directory, name, title, axis);
}

/* The data blocks follow their plot command, in its order. */
static void draw_times(FILE *out, enum nbc_coll coll)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0, n = 0; i < nfigures; i++) {
            const struct figure *f = &figures[i];
            if (f->coll != coll || !is_first(f))
                continue;
            if (pass == 0) {
                fprintf(out, "%s'-' title '%s' with linespoints", n++ ? ", " : "", f->series);
                continue;
            }
            for (int k = i; k < nfigures; k++)
                if (figures[k].coll == coll && strcmp(figures[k].series, f->series) == 0)
                    fprintf(out, "%lld %g\n", (long long)figures[k].bytes,
                            figures[k].seconds * 1e6);
            fprintf(out, "e\n");
        }
        if (pass == 0)
            fprintf(out, "\n");
    }
}

static void draw_ratios(FILE *out)
{
    for (int pass = 0; pass < 2; pass++) {
        int n = 0;
        for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++) {
            if (!find(coll, "native", -1) || coll == NBC_BARRIER)
                continue;
            if (pass == 0)
                fprintf(out, "%s'-' title '%s' with linespoints", n++ ? ", " : "",
                        nbc_coll_name(coll));
            for (int i = 0; pass == 1 && i < nfigures; i++) {
                const struct figure *f = &figures[i];
                const struct figure *other = find(coll, "native", f->bytes);
                if (f->coll == coll && strcmp(f->series, "shim") == 0 && other)
                    fprintf(out, "%lld %g\n", (long long)f->bytes, f->seconds / other->seconds);
            }
            if (pass == 1)
                fprintf(out, "e\n");
        }
        if (pass == 0)
            fprintf(out, "%s1 with lines dashtype 2 notitle\n", n ? ", " : "");
    }
}

static bool has_ratios(void)
{
    for (int i = 0; i < nfigures; i++)
        if (figures[i].coll != NBC_BARRIER && strcmp(figures[i].series, "native") == 0)
            return true;
    return false;
}

bool plot_draw(const char *directory, const char *title)
{
    FILE *out = popen("gnuplot", "w");
    char text[256];
    if (!out) {
        perror("nbcbench: gnuplot");
        return false;
    }
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++) {
        bool any = false;
        for (int i = 0; i < nfigures; i++)
            any |= figures[i].coll == coll && coll != NBC_BARRIER;
        if (!any)
            continue;
        snprintf(text, sizeof text, "%s, %s", nbc_coll_name(coll), title);
        head(out, directory, nbc_coll_name(coll), text, "microseconds");
        draw_times(out, coll);
    }
    if (has_ratios()) {
        snprintf(text, sizeof text, "nbcshim / native, %s", title);
        head(out, directory, "ratio", text, "ratio");
        draw_ratios(out);
    }
    if (pclose(out) == 0)
        return true;
    fprintf(stderr, "nbcbench: gnuplot failed\n");
    return false;
}
