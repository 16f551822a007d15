/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fail(const char *file, const char *why)
{
    fprintf(stderr, "nbcrun: %s: %s\n", file, why);
    return false;
}

static bool read_rank(struct run *run, char *line)
{
    long long wall;
    int rank, at = 0;
    if (sscanf(line, "rank %d %lld %n", &rank, &wall, &at) < 2 || !at || rank < 0 ||
        rank >= run->nranks)
        return false;
    run->wall[rank] = (double)wall / 1e9;
    free(run->host[rank]);
    run->host[rank] = strdup(line + at);
    return run->host[rank] != NULL;
}

/* Sums of such numbers are numbers. */
static bool is_plain(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(x[i]) < 1e30))
            return false;
    return true;
}

bool is_python(const struct frame *f)
{
    return *f->symbol == ':';
}

/* "\tADDRESS SYMBOL FILE" for each frame. */
static bool read_frames(struct row *r, const char *text)
{
    char *rest = r->text = strdup(text), *one;
    while (rest && (one = strsep(&rest, "\t"))) {
        char *end, *file;
        if (!*one)
            continue;
        struct frame *f = &r->frames[r->nframes];
        unsigned long address = strtoul(one, &end, 16);
        if (r->nframes == MOST_FRAMES || end == one || *end != ' ' ||
            !(file = strchr(end + 1, ' ')))
            return false;
        *file = '\0';
        *f = (struct frame){address, end + 1, file + 1};
        r->nframes++;
    }
    return r->nframes > 0;
}

static bool read_row(struct run *run, const char *line)
{
    struct row r = {0};
    int at = 0;
    if (sscanf(line, "call %d %31s %d %d %lf %lf %lf %lf %lf %lf %lf%n", &r.rank, r.coll, &r.kind,
               &r.size, &r.calls, &r.bytes, &r.inside, &r.waiting, &r.flight, &r.shown, &r.arrival,
               &at) < 11 ||
        !at || r.rank < 0 || r.rank >= run->nranks)
        return false;
    const double numbers[] = {r.calls, r.bytes, r.inside, r.waiting, r.flight, r.shown, r.arrival};
    if (!is_plain(numbers, sizeof numbers / sizeof *numbers))
        return false;
    r.inside /= 1e9;
    r.waiting /= 1e9;
    r.flight /= 1e9;
    r.shown /= 1e9;
    r.arrival /= 1e9;
    if (!read_frames(&r, line + at)) {
        free(r.text);
        return false;
    }
    struct row *rows = realloc(run->rows, (run->nrows + 1) * sizeof *rows);
    if (!rows)
        return false;
    run->rows = rows;
    run->rows[run->nrows++] = r;
    return true;
}

static bool read_lines(struct run *run, FILE *in)
{
    char *line = NULL;
    size_t room = 0;
    bool whole = false, good = true;
    while (good && !whole && getline(&line, &room, in) > 0) {
        line[strcspn(line, "\n")] = '\0';
        whole = strcmp(line, "end") == 0;
        bool inactive = strcmp(line, "inactive") == 0;
        run->inactive = run->inactive || inactive;
        good = whole || inactive || read_rank(run, line) || read_row(run, line);
    }
    free(line);
    return good && whole;
}

/* There is a line for each rank, so that a file has no more ranks than bytes. */
static bool read_head(struct run *run, FILE *in)
{
    if (fseek(in, 0, SEEK_END))
        return false;
    long bytes = ftell(in);
    rewind(in);
    return fscanf(in, "nbcprofile 2 %d\n", &run->nranks) == 1 && run->nranks > 0 &&
           run->nranks < bytes;
}

bool run_read(struct run *run, enum variant variant, const char *file)
{
    FILE *in = fopen(file, "r");
    *run = (struct run){.variant = variant};
    if (!in)
        return fail(file, strerror(errno));
    bool good = read_head(run, in);
    if (good) {
        run->wall = calloc(run->nranks, sizeof *run->wall);
        run->host = calloc(run->nranks, sizeof *run->host);
        good = run->wall && run->host && read_lines(run, in);
    }
    for (int i = 0; good && i < run->nranks; i++)
        good = run->host[i] != NULL;
    fclose(in);
    return good || fail(file, "is not a complete record of a run");
}
