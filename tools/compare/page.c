/* SPDX-License-Identifier: MIT */
#include "page.h"

#include <math.h>
#include <string.h>

#include "names.h"

/* Those of Okabe and Ito, which most people can tell from each other. */
static const char *const colours[NVARIANTS] = {"#0072b2", "#d55e00", "#009e73"};

enum { WIDTH = 1000, LEFT = 330, RIGHT = 110, ROW = 16, MOST_SITES = 15, MOST_RANKS = 64 };

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
}

/* A time in a unit in which it has some digits. */
static const char *time_name(double seconds, char *text, size_t size)
{
    double s = fabs(seconds);
    if (s >= 1)
        snprintf(text, size, "%.3g s", seconds);
    else if (s >= 1e-3)
        snprintf(text, size, "%.3g ms", seconds * 1e3);
    else
        snprintf(text, size, "%.3g us", seconds * 1e6);
    return text;
}

/* --- plots --- */

struct plot {
    FILE *out;
    double least, most; /* of the axis */
    int height;
};

static double at_x(const struct plot *p, double value)
{
    return LEFT + (value - p->least) / (p->most - p->least) * (WIDTH - LEFT - RIGHT);
}

static double step_of(double range)
{
    double unit = pow(10, floor(log10(range / 5)));
    double times = range / 5 / unit;
    return unit * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

static void plot_begin(struct plot *p, FILE *out, double least, double most, int height,
                       const char *axis)
{
    char text[32];
    if (most <= least)
        most = least + 1e-6;
    *p = (struct plot){out, least, most, height};
    fprintf(out,
            "<div class=\"wide\"><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "width=\"%d\" "
            "height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n",
            WIDTH, height + 45, WIDTH, height + 45);
    double step = step_of(most - least);
    for (double v = ceil(least / step) * step; v <= most + step / 1000; v += step) {
        double shown = fabs(v) < step / 1000 ? 0 : v;
        fprintf(out, "<line x1=\"%.1f\" y1=\"0\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>\n",
                at_x(p, v), at_x(p, v), height);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", at_x(p, v),
                height + 15, shown == 0 ? "0" : time_name(shown, text, sizeof text));
    }
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, height + 35, axis);
}

static void plot_label(const struct plot *p, double y, const char *label)
{
    fprintf(p->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y);
    put_text(p->out, label);
    fputs("</text>\n", p->out);
}

/* From zero to a value, with its spread. */
static void plot_bar(const struct plot *p, double y, struct figure f, int v)
{
    char text[32];
    double zero = at_x(p, p->least > 0 ? p->least : 0), end = at_x(p, f.median);
    fprintf(p->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n",
            fmin(zero, end), y, fmax(fabs(end - zero), 0.5), ROW - 4, colours[v]);
    if (f.high > f.low)
        fprintf(p->out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"black\" "
                "stroke-width=\"2\"/>\n",
                at_x(p, f.low), y + ROW / 2.0 - 2, at_x(p, f.high), y + ROW / 2.0 - 2);
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            fmax(fmax(end, zero), at_x(p, f.high)) + 5, y + ROW - 6,
            time_name(f.median, text, sizeof text));
}

static int nvariants(const struct comparison *c)
{
    return c->have[NATIVE] + c->have[NBCSHIM] + c->have[THREAD];
}

/* A dot for each run; the line is the median. */
static void plot_wall(FILE *out, const struct comparison *c)
{
    struct plot p;
    double most = 0;
    int y = 10;
    for (int i = 0; i < c->nruns; i++)
        for (int k = 0; k < c->nranks; k++)
            most = fmax(most, c->runs[i].wall[k]);
    plot_begin(&p, out, 0, most, 10 + 2 * ROW * nvariants(c),
               "from MPI_Init to MPI_Finalize: a dot for each run, a line at their median");
    for (int v = 0; v < NVARIANTS; v++) {
        if (!c->have[v])
            continue;
        plot_label(&p, y + ROW, variant_labels[v]);
        for (int i = 0; i < c->nruns; i++) {
            double wall = 0;
            for (int k = 0; k < c->nranks; k++)
                wall = fmax(wall, c->runs[i].wall[k]);
            if ((int)c->runs[i].variant == v)
                fprintf(
                    out,
                    "<circle cx=\"%.1f\" cy=\"%d\" r=\"5\" fill=\"%s\" fill-opacity=\"0.6\"/>\n",
                    at_x(&p, wall), y + ROW - 4, colours[v]);
        }
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"black\" "
                "stroke-width=\"2\"/>\n",
                at_x(&p, c->wall[v].median), y, at_x(&p, c->wall[v].median), y + 2 * ROW - 8);
        y += 2 * ROW;
    }
    fputs("</svg></div>\n", out);
}

static void plot_sites(FILE *out, const struct comparison *c)
{
    struct plot p;
    double most = 0;
    int n = c->nsites < MOST_SITES ? c->nsites : MOST_SITES, block = ROW * nvariants(c) + 10, y = 6;
    for (int i = 0; i < n; i++)
        for (int v = 0; v < NVARIANTS; v++)
            most = fmax(most, c->sites[i].seconds[v].high);
    plot_begin(&p, out, 0, most, n * block, "in MPI for this collective, mean of all ranks");
    for (int i = 0; i < n; i++) {
        const struct site *s = &c->sites[i];
        char name[64], size[64], label[128];
        snprintf(label, sizeof label, "%s, %s bytes", function_name(s->key, name, sizeof name),
                 size_name(s, size, sizeof size));
        plot_label(&p, y + 12, label);
        plot_label(&p, y + 27, name_shortened(s->where, label, 48));
        for (int v = 0, row = 0; v < NVARIANTS; v++)
            if (c->have[v])
                plot_bar(&p, y + row++ * ROW, s->seconds[v], v);
        y += block;
    }
    fputs("</svg></div>\n", out);
}

static void plot_late(FILE *out, const struct comparison *c)
{
    struct plot p;
    double least = 0, most = 0;
    int n = c->nranks < MOST_RANKS ? c->nranks : MOST_RANKS, block = ROW * nvariants(c) + 8, y = 4;
    for (int v = 0; v < NVARIANTS; v++)
        for (int i = 0; c->have[v] && i < n; i++) {
            least = fmin(least, c->late[v][i]);
            most = fmax(most, c->late[v][i]);
        }
    plot_begin(&p, out, least, most, n * block, "after the mean of all ranks, at a collective");
    for (int i = 0; i < n; i++) {
        char label[128];
        snprintf(label, sizeof label, "rank %d, %.60s", i, c->runs[0].host[i]);
        plot_label(&p, y + 12, label);
        for (int v = 0, row = 0; v < NVARIANTS; v++)
            if (c->have[v])
                plot_bar(&p, y + row++ * ROW,
                         (struct figure){c->late[v][i], c->late[v][i], c->late[v][i]}, v);
        y += block;
    }
    fputs("</svg></div>\n", out);
}

/* --- text --- */

static void put_legend(FILE *out, const struct comparison *c)
{
    fputs("<p>", out);
    for (int v = 0; v < NVARIANTS; v++)
        if (c->have[v])
            fprintf(out, "<span class=\"key\"><span style=\"color:%s\">&#9632;</span> %s</span> ",
                    colours[v], variant_labels[v]);
    fputs("</p>\n", out);
}

static void put_head(FILE *out, const struct comparison *c)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>",
          out);
    put_text(out, c->command);
    /* What is wider than the window scrolls by itself; names of sites break anywhere. */
    fputs("</title>\n<style>body{font-family:sans-serif;max-width:1300px;margin:2em auto;padding:0 "
          "1em}"
          "h1{font-size:1.5em}h1,td:first-child{overflow-wrap:anywhere}"
          ".key{white-space:nowrap;margin-right:1em}"
          ".wide{overflow-x:auto}svg{max-width:100%;min-width:640px;height:auto}"
          "table{border-collapse:collapse}td,th{padding:.2em .5em;text-align:right}"
          "td:first-child{min-width:14em}"
          "@media(max-width:900px){td,th{font-size:.75em;padding:.2em .25em}"
          "td:first-child{min-width:11em}}"
          "td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#f3f3f3}"
          ".verdict{font-size:1.3em;border-left:6px solid #0072b2;padding:.5em 1em;"
          "background:#f3f3f3}</style></head><body>\n<h1><code>",
          out);
    put_text(out, c->command);
    fputs("</code></h1>\n<p class=\"verdict\">", out);
    put_text(out, c->verdict);
    fprintf(out,
            "</p>\n<p>%d rank%s; %d run%s of each kind, in turns. Figures are medians over the "
            "runs; bars from the first to the third quartile.</p>\n",
            c->nranks, c->nranks == 1 ? "" : "s", c->turns, c->turns == 1 ? "" : "s");
}

static void put_share(FILE *out, double share)
{
    if (share < 0)
        fputs("<td></td>", out);
    else
        fprintf(out, "<td>%.0f%%</td>", 100 * share);
}

static void put_table(FILE *out, const struct comparison *c)
{
    fputs("<div class=\"wide\"><table><tr><th>call "
          "site</th><th>function</th><th>bytes</th><th>calls</th>",
          out);
    for (int v = 0; v < NVARIANTS; v++)
        if (c->have[v])
            fprintf(out, "<th>%s</th><th>hidden</th>", variant_labels[v]);
    fputs("</tr>\n", out);
    for (int i = 0; i < c->nsites; i++) {
        const struct site *s = &c->sites[i];
        char name[64], size[64], seconds[32];
        fputs("<tr><td>", out);
        put_text(out, s->where);
        fprintf(out, "</td><td>%s</td><td>%s</td><td>%.5g</td>",
                function_name(s->key, name, sizeof name), size_name(s, size, sizeof size),
                s->calls);
        for (int v = 0; v < NVARIANTS; v++) {
            if (!c->have[v])
                continue;
            fprintf(out, "<td>%s</td>", time_name(s->seconds[v].median, seconds, sizeof seconds));
            put_share(out, s->hidden[v]);
        }
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n<p><i>hidden</i>: the share of the time from the start of an operation "
          "to its "
          "completion in which the rank was not in MPI.</p>\n",
          out);
}

void page_write(FILE *out, const struct comparison *c)
{
    put_head(out, c);
    fputs("<h2>Wall time</h2>\n", out);
    put_legend(out, c);
    plot_wall(out, c);
    if (c->nsites) {
        fputs("<h2>Time in collectives, by call site and size</h2>\n", out);
        put_legend(out, c);
        plot_sites(out, c);
        put_table(out, c);
        fputs("<h2>Which ranks come late</h2>\n", out);
        put_legend(out, c);
        plot_late(out, c);
    }
    fputs("</body></html>\n", out);
}
