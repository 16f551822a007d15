/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- text --------------------------------------------------------------------------------------*/

static const char *const verbs[NVERBS] = {
    "dup",     "idup",  "split", "split_type", "create",       "topology",  "sub",
    "inter",   "merge", "free",  "disconnect", "hint",         "attribute", "call",
    "run",     "init",  "burst", "message",    "message_init", "sendrecv",  "probe",
    "give_up", "other", "start", "release",    "complete",     "drain",
};

static const char *const algorithms[] = {
    "none",
#define ALG(coll, name, needs, builder, purpose) #name,
#include "algs.def"
#undef ALG
};
enum { NALGORITHMS = sizeof algorithms / sizeof *algorithms };

const char *algorithm_name(int64_t i)
{
    return i >= 0 && i < NALGORITHMS ? algorithms[i] : NULL;
}

static int64_t by_name(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static int64_t number(const char *text)
{
    char *end;
    int64_t value = strtoll(text, &end, 10);
    return *text && !*end && value >= 0 ? value : -1;
}

static int64_t read_coll(const char *text)
{
    enum coll coll = coll_by_name(text);
    return coll == NCOLLS ? -1 : (int64_t)coll;
}

static int64_t read_algorithm(const char *text)
{
    return by_name(text, algorithms, NALGORITHMS);
}

static const char *write_coll(int64_t value)
{
    return coll_name((enum coll)value);
}

/* The fields of a line; -1 is what a reader does not understand. Zeros are not written. */
static const struct field {
    const char *name;
    size_t at;
    int64_t (*read)(const char *text);
    const char *(*write)(int64_t value); /* NULL: a number */
} fields[] = {
    {"thread", offsetof(struct line, thread), number, NULL},
    {"id", offsetof(struct line, id), number, NULL},
    {"on", offsetof(struct line, on), number, NULL},
    {"coll", offsetof(struct line, coll), read_coll, write_coll},
    {"most", offsetof(struct line, most), number, NULL},
    {"plain", offsetof(struct line, plain), number, NULL},
    {"apart", offsetof(struct line, apart), number, NULL},
    {"algorithm", offsetof(struct line, algorithm), read_algorithm, algorithm_name},
    {"segment", offsetof(struct line, segment), number, NULL},
    {"bytes", offsetof(struct line, bytes), number, NULL},
    {"shift", offsetof(struct line, shift), number, NULL},
    {"tag", offsetof(struct line, tag), number, NULL},
    {"way", offsetof(struct line, way), number, NULL},
    {"times", offsetof(struct line, times), number, NULL},
    {"wild", offsetof(struct line, wild), number, NULL},
    {"seed", offsetof(struct line, seed), number, NULL},
};
enum { NFIELDS = sizeof fields / sizeof *fields };

static int64_t *field_of(struct line *line, int f)
{
    return (int64_t *)((char *)line + fields[f].at);
}

static bool names_collective(int64_t verb)
{
    return verb == CALL || verb == RUN || verb == INIT || verb == BURST;
}

void line_print(const struct line *line, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s", verbs[line->verb]);

    for (int i = 0; i < line->nof && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, " of=%" PRId64, line->of[i]);
    for (int f = 0; f < NFIELDS && n < size; f++) {
        int64_t value = *field_of((struct line *)(uintptr_t)line, f);
        if (fields[f].write &&
            (value != 0 || (fields[f].write == write_coll && names_collective(line->verb))))
            n += (size_t)snprintf(text + n, size - n, " %s=%s", fields[f].name,
                                  fields[f].write(value));
        else if (!fields[f].write && value != 0)
            n += (size_t)snprintf(text + n, size - n, " %s=%" PRId64, fields[f].name, value);
    }
}

static bool read_word(struct line *line, char *word)
{
    char *value = strchr(word, '=');

    if (!value)
        return false;
    *value++ = '\0';
    if (strcmp(word, "of") == 0 && line->nof < MAX_OF)
        return (line->of[line->nof++] = number(value)) >= 0;
    for (int f = 0; f < NFIELDS; f++)
        if (strcmp(word, fields[f].name) == 0)
            return (*field_of(line, f) = fields[f].read(value)) >= 0;
    return false;
}

static bool read_line(struct line *line, char *text)
{
    char *rest, *word = strtok_r(text, " \t\n", &rest);

    *line = (struct line){.verb = by_name(word, verbs, NVERBS)};
    if (line->verb < 0)
        return false;
    while ((word = strtok_r(NULL, " \t\n", &rest)))
        if (!read_word(line, word))
            return false;
    return true;
}

static void add_line(struct program *p, const struct line *line)
{
    p->line = realloc(p->line, (size_t)(p->n + 1) * sizeof *p->line);
    if (!p->line)
        abort();
    p->line[p->n++] = *line;
}

static void refuse(const char *path, int at, const char *why)
{
    fprintf(stderr, "%s:%d: %s\n", path, at, why);
    exit(2);
}

struct program program_read(const char *path)
{
    struct program p = {0, NULL};
    FILE *f = fopen(path, "r");
    char text[1000];

    if (!f)
        refuse(path, 0, "cannot be read");
    for (int at = 1; fgets(text, sizeof text, f); at++) {
        struct line line;
        if (text[strspn(text, " \t\n")] == '\0' || text[0] == '#')
            continue;
        if (!read_line(&line, text))
            refuse(path, at, "not understood");
        add_line(&p, &line);
    }
    fclose(f);
    return p;
}

void program_free(struct program *p)
{
    free(p->line);
    *p = (struct program){0, NULL};
}

/* --- making one up -----------------------------------------------------------------------------*/

enum { MOST_COMMS = 7, MOST_HELD = 20, LARGE = 100000 };

/* What the generator knows of the communicators and persistent requests that there are. */
struct draft {
    struct rng rng;
    struct program program;
    int64_t next_id;
    struct {
        int64_t id;
        bool topology, inter;
    } comm[MOST_COMMS];
    int ncomms;
    int64_t held[MOST_HELD];
    int nheld;
    int ways; /* of other requests */
    bool large;
};

static const int weights[NVERBS] = {
    [DUP] = 2,      [IDUP] = 2,         [SPLIT] = 2,   [SPLIT_TYPE] = 1, [CREATE] = 1,
    [TOPOLOGY] = 5, [SUB] = 2,          [INTER] = 3,   [MERGE] = 1,      [FREE] = 3,
    [HINT] = 4,     [DISCONNECT] = 2,   [CALL] = 40,   [RUN] = 5,        [INIT] = 15,
    [BURST] = 1,    [MESSAGE] = 10,     [PROBE] = 2,   [SENDRECV] = 3,   [START] = 25,
    [RELEASE] = 6,  [MESSAGE_INIT] = 4, [GIVE_UP] = 3, [COMPLETE] = 20,  [DRAIN] = 2,
    [OTHER] = 6,    [ATTRIBUTE] = 3,
};

static enum verb draw_verb(struct rng *r)
{
    int sum = 0, k;

    for (int i = 0; i < NVERBS; i++)
        sum += weights[i];
    k = rng_below(r, sum);
    for (int i = 0; i < NVERBS; i++) {
        if (k < weights[i])
            return (enum verb)i;
        k -= weights[i];
    }
    return CALL;
}

/* Elements. What is large takes its time, so only some programs have such lines, and few. */
static int64_t draw_most(struct draft *d)
{
    struct rng *r = &d->rng;
    int k = rng_below(r, 100);

    if (d->large && rng_chance(r, 8))
        return LARGE + rng_below(r, 500000);
    return k < 60 ? 12 : k < 90 ? 80 : k < 98 ? 2000 : 12000;
}

static int64_t draw_bytes(struct draft *d)
{
    struct rng *r = &d->rng;

    if (d->large && rng_chance(r, 8))
        return (1 << 20) + rng_below(r, 5 << 20);
    return rng_chance(r, 85) ? rng_below(r, 500) : rng_below(r, 100000);
}

/* Small ones would make too many of what is large. */
static int64_t draw_segment(struct rng *r, int64_t most)
{
    return most < LARGE ? 1 + rng_below(r, 300) : 4096 + rng_below(r, 300000);
}

/* A new communicator; intercommunicators give others of the same kind, or intracommunicators. */
static bool draft_comm(struct draft *d, struct line *line, int from)
{
    bool inter = d->comm[from].inter, kept = line->verb == DUP || line->verb == IDUP;

    if (d->ncomms == MOST_COMMS || (inter && !kept && line->verb != MERGE))
        return false;
    if (line->verb == MERGE && !inter)
        return false;
    line->id = ++d->next_id;
    line->wild = rng_below(&d->rng, 3);
    if (kept && rng_chance(&d->rng, 30)) {
        line->algorithm = rng_below(&d->rng, NALGORITHMS);
        line->segment = rng_chance(&d->rng, 30) ? draw_segment(&d->rng, 0) : 0;
    }
    d->comm[d->ncomms].id = line->id;
    d->comm[d->ncomms].inter = line->verb == INTER || (kept && inter);
    d->comm[d->ncomms].topology =
        line->verb == TOPOLOGY || line->verb == SUB || (kept && d->comm[from].topology && !inter);
    d->ncomms++;
    return true;
}

static bool draft_free(struct draft *d, struct line *line, int which)
{
    if (which == 0)
        return false;
    line->on = d->comm[which].id;
    d->comm[which] = d->comm[--d->ncomms];
    return true;
}

static bool draft_collective(struct draft *d, struct line *line, int which)
{
    struct rng *r = &d->rng;

    if (d->comm[which].inter)
        line->coll = rng_below(r, SCAN);
    else
        line->coll = rng_below(r, d->comm[which].topology ? NCOLLS : NINTRA);
    line->most = draw_most(d);
    line->way = rng_chance(r, 10);
    if (line->verb == BURST) {
        line->most = 1 + rng_below(r, 12);
        line->times = 20 + rng_below(r, 120);
    }
    if (line->verb == RUN && line->most < LARGE && line->most > 2000)
        line->most = 2000;
    if (line->verb != INIT)
        return true;
    if (d->nheld == MOST_HELD)
        return false;
    line->algorithm = rng_chance(r, 50) ? rng_below(r, NALGORITHMS) : 0;
    line->segment = rng_chance(r, 20) ? draw_segment(r, line->most) : 0;
    line->id = d->held[d->nheld++] = ++d->next_id;
    return true;
}

static bool draft_message(struct draft *d, struct line *line)
{
    line->bytes = draw_bytes(d);
    line->shift = rng_below(&d->rng, 16);
    line->tag = d->program.n;
    line->way = line->verb == GIVE_UP || rng_chance(&d->rng, 50) ? rng_below(&d->rng, 5) : 0;
    if (line->verb != MESSAGE_INIT)
        return true;
    if (d->nheld == MOST_HELD)
        return false;
    line->id = d->held[d->nheld++] = ++d->next_id;
    return true;
}

/* Some persistent requests, each once; taken off the list or not. */
static bool draft_requests(struct draft *d, struct line *line)
{
    int want = 1 + rng_below(&d->rng, line->verb == START ? MAX_OF : 3);

    for (int i = 0; i < want && d->nheld > 0; i++) {
        int k = rng_below(&d->rng, d->nheld);
        bool again = false;
        for (int j = 0; j < line->nof; j++)
            again = again || line->of[j] == d->held[k];
        if (again)
            continue;
        line->of[line->nof++] = d->held[k];
        if (line->verb == RELEASE)
            d->held[k] = d->held[--d->nheld];
    }
    return line->nof > 0;
}

static bool draft_line(struct draft *d, struct line *line)
{
    struct rng *r = &d->rng;
    int which = rng_below(r, d->ncomms);

    line->on = d->comm[which].id;
    line->seed = (int64_t)(rng_next(r) % 1000000);
    switch (line->verb) {
    case FREE:
    case DISCONNECT:
        return draft_free(d, line, which);
    case HINT:
        line->algorithm = rng_below(r, NALGORITHMS);
        line->segment = rng_chance(r, 30) ? draw_segment(r, 0) : 0;
        return true;
    case ATTRIBUTE:
        line->way = rng_below(r, 4);
        return true;
    case CALL:
    case RUN:
    case INIT:
    case BURST:
        return draft_collective(d, line, which);
    case MESSAGE:
    case MESSAGE_INIT:
    case SENDRECV:
    case PROBE:
    case GIVE_UP:
        return draft_message(d, line);
    case OTHER:
        line->on = 0;
        line->way = d->ways > 0 ? rng_below(r, d->ways) : 0;
        line->bytes = rng_below(r, 300);
        line->shift = rng_below(r, 16);
        return d->ways > 0;
    case START:
    case RELEASE:
        line->on = 0;
        return draft_requests(d, line);
    case COMPLETE:
        line->on = 0;
        line->times = 1 + rng_below(r, 6);
        return true;
    case DRAIN:
        line->on = 0;
        line->times = rng_below(r, 10);
        return true;
    default:
        return draft_comm(d, line, which);
    }
}

static void draft_thread(struct program *p, uint64_t seed, int nlines, int thread)
{
    struct draft d = {.rng = {mix_in(seed, 77 + thread)}, .program = *p, .ncomms = 1};

    d.next_id = thread * nlines;
    d.large = rng_chance(&d.rng, 10);
    d.ways = rng_chance(&d.rng, 30) ? 1 + rng_below(&d.rng, 6) : 0;
    while (d.program.n < p->n + nlines) {
        struct line line = {.verb = draw_verb(&d.rng), .thread = thread};
        if (draft_line(&d, &line))
            add_line(&d.program, &line);
    }
    *p = d.program;
}

struct program program_random(uint64_t seed, int nlines, int threads)
{
    struct program p = {0, NULL};

    for (int i = 0; i < threads; i++)
        draft_thread(&p, seed, nlines, i);
    return p;
}

int program_threads(const struct program *p)
{
    int64_t last = 0;

    for (int i = 0; i < p->n; i++)
        if (p->line[i].thread > last)
            last = p->line[i].thread;
    return (int)last + 1;
}
