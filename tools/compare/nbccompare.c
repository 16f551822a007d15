/* SPDX-License-Identifier: MIT */
/* nbccompare: what nbcrun --compare tells of the runs that it has made. Not a command for people:
 *
 *   nbccompare [--json=FILE] [--html=FILE] COMMAND without=FILE nbcshim=FILE [thread=FILE] ... */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "figures.h"
#include "json.h"
#include "names.h"
#include "page.h"

/* --- text --- */

static void print_share(double share)
{
    if (share < 0)
        printf(" %7s", "-");
    else
        printf(" %6.0f%%", 100 * share);
}

static void print_wall(const struct comparison *c)
{
    printf("%-18s %12s %24s %16s %7s\n", "", "wall time s", "quartiles", "in collectives",
           "hidden");
    for (int v = 0; v < NVARIANTS; v++) {
        if (!c->have[v])
            continue;
        struct figure w = c->wall[v];
        printf("%-18s %12.4f %13.4f .. %.4f", variant_labels[v], w.median, w.low, w.high);
        printf(" %8.4f %6.0f%%", c->seconds[v].median,
               w.median > 0 ? 100 * c->seconds[v].median / w.median : 0);
        print_share(c->hidden[v]);
        printf("\n");
    }
}

enum { WHERE = 50 };

/* The bytes to which a name is padded: a character of UTF-8 may have several. */
static int bytes_of_where(const char *name)
{
    int n = WHERE;
    for (; *name; name++)
        n += ((unsigned char)*name & 0xc0) == 0x80;
    return n;
}

static void print_sites(const struct comparison *c)
{
    enum { MOST = 20 };
    printf("\nIn collectives, mean of all ranks, in ms. hidden: share of the time from start to "
           "completion in\nwhich the rank was not in MPI.\n");
    printf("%-*s %-26s %9s %8s", WHERE, "call site", "function", "bytes", "calls");
    for (int v = 0; v < NVARIANTS; v++)
        if (c->have[v])
            printf(" %15s %7s", variant_labels[v], "hidden");
    printf("\n");
    for (int i = 0; i < c->nsites && i < MOST; i++) {
        const struct site *s = &c->sites[i];
        char name[64], size[64], where[WHERE + 1];
        name_shortened(s->where, where, WHERE);
        printf("%-*s %-26s %9s %8.*f", bytes_of_where(where), where,
               function_name(s->key, name, sizeof name), size_name(s, size, sizeof size),
               s->calls == floor(s->calls) ? 0 : 1, s->calls);
        for (int v = 0; v < NVARIANTS; v++)
            if (c->have[v]) {
                printf(" %15.3f", s->seconds[v].median * 1e3);
                print_share(s->hidden[v]);
            }
        printf("\n");
    }
    if (c->nsites > MOST)
        printf("and %d more (all: --json=FILE)\n", c->nsites - MOST);
}

static void print_late(const struct comparison *c)
{
    int n = 0;
    printf("\n");
    for (int i = 0; i < c->nranks; i++)
        if (is_late(c, NATIVE, i) && n++ < 10)
            printf("rank %d (%s) comes late to collectives: %.3f ms after the mean of all ranks\n",
                   i, c->runs[0].host[i], c->late[NATIVE][i] * 1e3);
    if (n > 10)
        printf("and %d more\n", n - 10);
    if (n == 0)
        printf("no rank comes late to collectives\n");
}

static void print_all(const struct comparison *c)
{
    printf("%s\n%d rank%s; %d run%s of each kind, in turns; medians\n\n", c->command, c->nranks,
           c->nranks == 1 ? "" : "s", c->turns, c->turns == 1 ? "" : "s");
    print_wall(c);
    if (c->nsites) {
        print_sites(c);
        print_late(c);
    }
    if (!c->nsites)
        printf("\nNo collective of the program was seen.\n");
    printf("\n%s\n", c->verdict);
}

/* --- JSON --- */

static void write_figure(struct nbc_json *j, const char *name, struct figure f)
{
    nbc_json_open(j, name, "{");
    nbc_json_real(j, "median", f.median, 9);
    nbc_json_real(j, "low", f.low, 9);
    nbc_json_real(j, "high", f.high, 9);
    nbc_json_close(j, "}");
}

static void write_hidden(struct nbc_json *j, double share)
{
    if (share < 0)
        nbc_json_string(j, "hidden", NULL);
    else
        nbc_json_real(j, "hidden", share, 4);
}

static void write_runs(struct nbc_json *j, const struct comparison *c, int v)
{
    nbc_json_open(j, "runs", "[");
    for (int i = 0; i < c->nruns; i++) {
        double wall = 0;
        for (int k = 0; k < c->nranks; k++)
            wall = c->runs[i].wall[k] > wall ? c->runs[i].wall[k] : wall;
        if ((int)c->runs[i].variant == v)
            nbc_json_real(j, NULL, wall, 9);
    }
    nbc_json_close(j, "]");
}

static void write_variants(struct nbc_json *j, const struct comparison *c)
{
    for (int v = 0; v < NVARIANTS; v++) {
        if (!c->have[v])
            continue;
        nbc_json_line(j, variant_names[v], "{");
        write_figure(j, "wall_seconds", c->wall[v]);
        write_runs(j, c, v);
        write_figure(j, "collective_seconds", c->seconds[v]);
        write_hidden(j, c->hidden[v]);
        nbc_json_open(j, "late_seconds", "[");
        for (int i = 0; i < c->nranks; i++)
            nbc_json_real(j, NULL, c->late[v][i], 6);
        nbc_json_close(j, "]}");
    }
}

static void write_site(struct nbc_json *j, const struct comparison *c, const struct site *s)
{
    char name[64];
    nbc_json_line(j, NULL, "{");
    nbc_json_string(j, "site", s->where);
    nbc_json_string(j, "file", s->key->frames[0].file);
    nbc_json_int(j, "address", (int64_t)s->key->frames[0].address);
    nbc_json_string(j, "function", function_name(s->key, name, sizeof name));
    nbc_json_real(j, "calls", s->calls, 12);
    if (s->bytes < 0)
        nbc_json_string(j, "bytes", NULL);
    else
        nbc_json_real(j, "bytes", s->bytes, 12);
    for (int v = 0; v < NVARIANTS; v++) {
        if (!c->have[v])
            continue;
        nbc_json_open(j, variant_names[v], "{");
        write_figure(j, "seconds", s->seconds[v]);
        write_hidden(j, s->hidden[v]);
        nbc_json_close(j, "}");
    }
    nbc_json_close(j, "}");
}

static void write_json(FILE *out, const struct comparison *c)
{
    struct nbc_json j = {.out = out};
    nbc_json_open(&j, NULL, "{");
    nbc_json_int(&j, "schema", 1);
    nbc_json_string(&j, "command", c->command);
    nbc_json_string(&j, "verdict", c->verdict);
    nbc_json_int(&j, "ranks", c->nranks);
    nbc_json_int(&j, "turns", c->turns);
    nbc_json_real(&j, "noise_seconds", c->noise, 6);
    nbc_json_open(&j, "hosts", "[");
    for (int i = 0; i < c->nranks; i++)
        nbc_json_string(&j, NULL, c->runs[0].host[i]);
    nbc_json_close(&j, "]");
    write_variants(&j, c);
    nbc_json_line(&j, "sites", "[");
    for (int i = 0; i < c->nsites; i++)
        write_site(&j, c, &c->sites[i]);
    nbc_json_close(&j, "\n]}\n");
}

/* --- the command line --- */

static bool write_to(const char *name, void (*write)(FILE *, const struct comparison *),
                     const struct comparison *c)
{
    FILE *out = name ? fopen(name, "w") : NULL;
    if (!name)
        return true;
    if (out)
        write(out, c);
    if (out && !ferror(out) && fclose(out) == 0)
        return true;
    fprintf(stderr, "nbcrun: cannot write %s: %s\n", name, strerror(errno));
    return false;
}

/* The value of an argument NAME=VALUE, or NULL. */
static const char *value_of(const char *argument, const char *name)
{
    size_t n = strlen(name);
    return strncmp(argument, name, n) == 0 && argument[n] == '=' ? argument + n + 1 : NULL;
}

static bool read_argument(struct comparison *c, const char *argument)
{
    for (int v = 0; v < NVARIANTS; v++) {
        const char *file = value_of(argument, variant_names[v]);
        if (file)
            return run_read(&c->runs[c->nruns++], v, file);
    }
    fprintf(stderr, "nbcrun: nbccompare: unexpected argument %s\n", argument);
    return false;
}

int main(int argc, char **argv)
{
    const char *json = NULL, *html = NULL;
    struct comparison c = {.runs = calloc(argc, sizeof *c.runs)};
    if (!c.runs)
        return 2;
    for (int i = 1; i < argc; i++) {
        if (value_of(argv[i], "--json"))
            json = value_of(argv[i], "--json");
        else if (value_of(argv[i], "--html"))
            html = value_of(argv[i], "--html");
        else if (!c.command)
            c.command = argv[i];
        else if (!read_argument(&c, argv[i]))
            return 2;
    }
    if (!c.command || !compare_runs(&c))
        return 2;
    print_all(&c);
    bool written = write_to(json, write_json, &c);
    written = write_to(html, page_write, &c) && written;
    return emit_status("nbcrun", written ? 0 : 2) ? 2 : 0;
}
