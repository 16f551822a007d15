/* SPDX-License-Identifier: MIT */
#include "rules.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

static const struct {
    unsigned need;
    const char *word;
} needs[] = {{NBC_COMMUTATIVE, "commutative"},
             {NBC_POW2, "pow2"},
             {NBC_EVEN, "even"},
             {NBC_NODES, "nodes"},
             {NBC_EQUAL, "equal"},
             {NBC_LOCAL, "local"},
             {NBC_SPREAD, "spread"},
             {NBC_SOCKETS, "sockets"},
             {NBC_OVERSUBSCRIBED, "oversubscribed"},
             {NBC_HANDSHAKE, "handshake"},
             {NBC_RANKS, "order_ranks"},
             {NBC_TREE, "order_tree"}};

enum { NNEEDS = sizeof needs / sizeof *needs };

/* The words after the algorithm are a segment size and every condition once. */
enum { LEAST_WORDS = 4, MOST_WORDS = LEAST_WORDS + 1 + NNEEDS };

/* A copy of a line, divided into words. */
struct line {
    char text[256];
    char *word[MOST_WORDS + 1]; /* mutants: forget + 1: room to count one word too many */
    int n;
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct nbc_rules_error *error,
                                                        const char *format, ...)
{
    va_list args;
    int n = error->line ? snprintf(error->what, sizeof error->what, "line %d: ", error->line) : 0;
    va_start(args, format);
    vsnprintf(error->what + n, sizeof error->what - (size_t)n, format, args);
    va_end(args);
    return false;
}

/* --- words ------------------------------------------------------------------------------------*/

static bool cut(struct line *l, const char *text, size_t length, struct nbc_rules_error *error)
{
    const char *comment = memchr(text, '#', length);
    if (comment)
        length = (size_t)(comment - text);
    l->n = 0;
    if (length >= sizeof l->text)
        return wrong(error, "the line is too long");
    memcpy(l->text, text, length);
    l->text[length] = '\0';
    char *rest = l->text;
    for (char *w; (w = strtok_r(rest, " \t\r", &rest)) && l->n <= MOST_WORDS;)
        l->word[l->n++] = w;
    if (l->n == 2 && strcmp(l->word[0], "eager") == 0)
        return true;
    if (l->n != 0 && (l->n < LEAST_WORDS || l->n > MOST_WORDS))
        return wrong(error, "expected: COLLECTIVE RANKS BYTES ALGORITHM [SEGMENT] [CONDITION]...");
    return true;
}

bool nbc_number(const char **p, int64_t *n)
{
    static const char units[] = "KMG";
    if (!isdigit((unsigned char)**p))
        return false;
    for (*n = 0; isdigit((unsigned char)**p); ++*p) {
        int digit = **p - '0';
        if (*n > (INT64_MAX - digit) / 10)
            return false;
        *n = *n * 10 + digit;
    }
    const char *unit = **p ? strchr(units, toupper((unsigned char)**p)) : NULL;
    for (int i = 0; unit && i <= unit - units; i++) {
        if (*n > INT64_MAX / 1024)
            return false;
        *n *= 1024;
    }
    *p += unit != NULL;
    return true;
}

static bool range(const char *word, int64_t *least, int64_t *most)
{
    *least = 0;
    *most = INT64_MAX;
    if (strcmp(word, "*") == 0)
        return true;
    if (!nbc_number(&word, least))
        return false;
    *most = *least;
    if (*word == '\0')
        return true;
    *most = INT64_MAX;
    if (*word++ != '-')
        return false;
    return *word == '\0' || (nbc_number(&word, most) && *word == '\0' && *least <= *most);
}

/* Adds the condition of that name to *which. */
static bool read_need(const char *word, unsigned *which)
{
    for (int i = 0; i < NNEEDS; i++)
        if (strcmp(word, needs[i].word) == 0) {
            *which |= needs[i].need;
            return true;
        }
    return false;
}

/* Reads a word after the algorithm. */
static bool read_more(const char *word, struct nbc_rule *rule, struct nbc_rules_error *error)
{
    const char *end = word;
    int64_t segment;
    if (read_need(word, &rule->needs))
        return true;
    if (!nbc_number(&end, &segment) || *end || segment == 0 || rule->segment)
        return wrong(error, "%.40s is not a segment size or a condition", word);
    rule->segment = segment;
    return true;
}

static bool read_rule(const struct line *l, struct nbc_rule *rule, struct nbc_rules_error *error)
{
    int64_t least, most;
    enum nbc_coll coll = nbc_coll_by_name(l->word[0]);
    if (coll == NBC_NCOLLS)
        return wrong(error, "unknown collective %.40s", l->word[0]);
    if (!range(l->word[1], &least, &most))
        return wrong(error, "%.40s is not a range of ranks", l->word[1]);
    *rule = (struct nbc_rule){.coll = coll};
    rule->min_size = least > INT_MAX ? INT_MAX : (int)least; /* mutants: >= for >: the same value */
    rule->max_size = most > INT_MAX ? INT_MAX : (int)most;   /* mutants: >= for >: the same value */
    if (!range(l->word[2], &rule->min_bytes, &rule->max_bytes))
        return wrong(error, "%.40s is not a range of bytes", l->word[2]);
    rule->alg = nbc_alg_by_name(coll, l->word[3]);
    if (!rule->alg)
        return wrong(error, "%.40s has no algorithm %.40s", l->word[0], l->word[3]);
    for (int i = LEAST_WORDS; i < l->n; i++)
        if (!read_more(l->word[i], rule, error))
            return false;
    return true;
}

static bool read_eager(const struct line *l, int64_t *eager, struct nbc_rules_error *error)
{
    const char *end = l->word[1];
    if (nbc_number(&end, eager) && !*end && *eager > 0)
        return true;
    return wrong(error, "%.40s is not a number of bytes", l->word[1]);
}

/* --- texts ------------------------------------------------------------------------------------*/

static struct nbc_rules *rules_alloc(size_t room)
{
    struct nbc_rules *rules = malloc(sizeof *rules + room * sizeof *rules->rule);
    if (!rules)
        return NULL;
    *rules = (struct nbc_rules){.rule = (struct nbc_rule *)(rules + 1)};
    return rules;
}

/* Adds what a line says, which has been cut into words. */
static bool read_line(const struct line *l, struct nbc_rules *rules, struct nbc_rule *all,
                      struct nbc_rules_error *error)
{
    if (l->n == 0)
        return true;
    if (l->n == 2)
        return read_eager(l, &rules->eager, error);
    return read_rule(l, &all[rules->nrules++], error);
}

static size_t count_lines(const char *text)
{
    size_t n = 1;
    for (; *text; text++)
        n += *text == '\n'; /* mutants: != for ==: more memory */
    return n;
}

struct nbc_rules *nbc_rules_parse(const char *text, const struct nbc_rules *then,
                                  struct nbc_rules_error *error)
{
    int nthen = then ? then->nrules : 0;
    struct nbc_rules *rules = rules_alloc(count_lines(text) + (size_t)nthen);
    *error = (struct nbc_rules_error){0, "out of memory"};
    if (!rules)
        return NULL;
    struct nbc_rule *all = (struct nbc_rule *)(rules + 1);
    for (int line = 1; *text; line++) {
        size_t length = strcspn(text, "\n");
        struct line l;
        error->line = line;
        if (!cut(&l, text, length, error) || !read_line(&l, rules, all, error)) {
            nbc_rules_free(rules);
            return NULL;
        }
        text += length + (text[length] == '\n');
    }
    for (int i = 0; i < nthen; i++)
        all[rules->nrules++] = then->rule[i];
    if (then && !rules->eager)
        rules->eager = then->eager;
    return rules;
}

char *nbc_text_read(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *in = fopen(path, "r");
    if (in && getdelim(&text, &room, '\0', in) < 0) { /* an empty file, or an error */
        free(text);
        text = ferror(in) ? NULL : calloc(1, 1);
    }
    if (in)
        fclose(in);
    return text;
}

struct nbc_rules *nbc_rules_read(const char *path, const struct nbc_rules *then,
                                 struct nbc_rules_error *error)
{
    char *text = nbc_text_read(path);
    *error = (struct nbc_rules_error){0};
    if (!text)
        wrong(error, "%s", strerror(errno));
    struct nbc_rules *rules = text ? nbc_rules_parse(text, then, error) : NULL;
    free(text);
    return rules;
}

struct nbc_rules *nbc_rules_sort(const struct nbc_rules *rules)
{
    struct nbc_rules *sorted = rules_alloc((size_t)rules->nrules);
    if (!sorted)
        return NULL;
    struct nbc_rule *all = (struct nbc_rule *)(sorted + 1);
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++) {
        for (int i = 0; i < rules->nrules; i++)
            if (rules->rule[i].coll == coll)
                all[sorted->nrules++] = rules->rule[i];
        sorted->first[coll + 1] = sorted->nrules;
    }
    sorted->eager = rules->eager;
    return sorted;
}

void nbc_rules_free(struct nbc_rules *rules)
{
    free(rules);
}

static void print_range(FILE *out, int width, int64_t least, int64_t most, int64_t limit)
{
    char text[64];
    if (least == 0 && most >= limit)
        snprintf(text, sizeof text, "*");
    else if (most >= limit)
        snprintf(text, sizeof text, "%" PRId64 "-", least);
    else if (least == most)
        snprintf(text, sizeof text, "%" PRId64, least);
    else
        snprintf(text, sizeof text, "%" PRId64 "-%" PRId64, least, most);
    fprintf(out, " %-*s", width, text);
}

void nbc_rule_print(FILE *out, const struct nbc_rule *rule)
{
    fprintf(out, "%-20s", nbc_coll_name(rule->coll));
    print_range(out, 8, rule->min_size, rule->max_size, INT_MAX);
    print_range(out, 18, rule->min_bytes, rule->max_bytes, INT64_MAX);
    fprintf(out, " %s", rule->alg->name);
    if (rule->segment)
        fprintf(out, " %" PRId64, rule->segment);
    for (int i = 0; i < NNEEDS; i++)
        if (rule->needs & needs[i].need)
            fprintf(out, " %s", needs[i].word);
    fprintf(out, "\n");
}

int nbc_rules_hash(const struct nbc_rules *rules)
{
    uint64_t h = NBC_HASH_START + (uint64_t)rules->eager;
    for (int i = 0; i < rules->nrules; i++) {
        const struct nbc_rule *r = &rules->rule[i];
        const int64_t words[] = {r->coll,      r->min_size,       r->max_size, r->min_bytes,
                                 r->max_bytes, r->alg - nbc_algs, r->segment,  r->needs};
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            h = nbc_hash(h, (uint64_t)words[w]);
    }
    return (int)(h >> 33);
}
