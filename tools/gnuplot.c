/* SPDX-License-Identifier: MIT */
#include "gnuplot.h"

#include <math.h>

void gnuplot_string(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++)
        fprintf(out, *text == '\'' ? "''" : "%c", *text);
    fputc('\'', out);
}

/* The first ones are those of Okabe and Ito, which most people can tell from each other. */
static const char *const colours[] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8b4513",
    "#7f3fbf", "#bb0022", "#888888", "#88cc00", "#00a0a0", "#ff66cc", "#3333ff", "#b0a000",
};

enum { NCOLOURS = sizeof colours / sizeof *colours, NMARKERS = 13 };

void gnuplot_line_types(FILE *out, int n)
{
    for (int i = 0; i < n; i++) {
        int marker = 4 + i % NMARKERS; /* 1 to 3 are crosses, hard to see on a line */
        if (i < NCOLOURS)
            fprintf(out, "set linetype %d lc rgb '%s'", i + 1, colours[i]);
        else /* hues in steps of the golden ratio, darker from turn to turn */
            fprintf(out, "set linetype %d lc rgb hsv2rgb(%.4f, 0.9, %.3f)", i + 1,
                    fmod(i * 0.618034, 1), 0.8 - 0.4 * (i % 3) / 2);
        fprintf(out, " lw 1.5 pt %d ps 0.6 dt %d\n", marker, i < NCOLOURS / 2 ? 1 : 2);
    }
}

const char *gnuplot_size(double bytes, char *text, size_t size)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    int unit = 0;
    while (unit < 4 && bytes >= 1024 && fmod(bytes, 1024) == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, "%.0f%s", bytes, units[unit]);
    return text;
}

void gnuplot_axis(FILE *out, double least, double most, bool bytes)
{
    enum { MOST_TICKS = 20 };
    double step = 2, low = exp2(floor(log2(least > 0 ? least : 1))), high = low;
    while (high < most)
        high *= 2;
    while (log(high / low) / log(step) > MOST_TICKS)
        step *= 2;
    if (high <= low)
        high = 2 * low;
    fprintf(out, "set logscale x 2\nset xrange [%.9g:%.9g]\nset xtics (", low / 1.1, high * 1.1);
    for (double at = low; at <= high; at *= step) {
        char label[32];
        if (bytes)
            gnuplot_size(at, label, sizeof label);
        else
            snprintf(label, sizeof label, "%.0f", at);
        fprintf(out, "%s'%s' %.0f", at > low ? ", " : "", label, at);
    }
    fprintf(out, ") rotate by -45\n");
}
