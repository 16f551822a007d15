/* SPDX-License-Identifier: MIT */
#include "advice.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

/* The tolerated excess over the best algorithm, for one that serves several calls. */
static const double tolerance = 0.04;

struct advice {
    enum nbc_coll coll;
    const struct list *ranks, *bytes;
    int nbytes;
    struct cell *cells; /* by ranks, then bytes */
};

bool advice_possible(enum nbc_coll coll)
{
    const struct call call = {.coll = coll, .size = 2, .bytes = 8, .ppn = 1};
    struct arguments a;
    struct own own;
    if (!arguments_make(&a, &call))
        return false;
    arguments_shape(&a, 0, &own);
    bool known = nbc_shape_bytes(&own.shape) >= 0;
    arguments_free(&a);
    return known;
}

struct advice *advice_new(enum nbc_coll coll, const struct list *ranks, const struct list *bytes)
{
    struct advice *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->coll = coll;
    a->ranks = ranks;
    a->bytes = bytes;
    a->nbytes = coll == NBC_BARRIER ? 1 : bytes->n;
    a->cells = calloc((size_t)ranks->n * (size_t)a->nbytes, sizeof *a->cells);
    if (a->cells)
        return a;
    free(a);
    return NULL;
}

void advice_free(struct advice *a)
{
    if (a)
        free(a->cells);
    free(a);
}

struct cell *advice_cell(struct advice *a, int i, int b)
{
    return &a->cells[i * a->nbytes + b];
}

static const struct cell *cell_at(const struct advice *a, int i, int b)
{
    return &a->cells[i * a->nbytes + b];
}

/* --- columns of calls on one number of ranks ---------------------------------------------------
 */

/* The columns of powers of two, or of other numbers; all ranks on one node, or not. */
struct columns {
    const struct advice *a;
    bool powers, local;
    int n;
    int at[LIST_MOST]; /* in the list of ranks */
};

static struct columns columns_of(const struct advice *a, bool powers, bool local)
{
    struct columns c = {.a = a, .powers = powers, .local = local};
    for (int i = 0; i < a->ranks->n; i++) {
        int64_t ranks = a->ranks->at[i];
        if (((ranks & (ranks - 1)) == 0) == powers &&
            (ranks <= cell_at(a, i, 0)->call.ppn) == local)
            c.at[c.n++] = i;
    }
    return c;
}

static int ranks_of(const struct columns *c, int i)
{
    return (int)c->a->ranks->at[c->at[i]];
}

/* A set of algorithms: bit k is the k-th row of the collective. */
typedef uint64_t algs;

static const struct nbc_alg *first_row(enum nbc_coll coll)
{
    const struct nbc_alg *alg = nbc_algs;
    while (alg->coll != coll)
        alg++;
    return alg;
}

/* Returns the relative excess over the best; a large number if it is unknown. */
static double regret_of(const struct cell *cell, const struct nbc_alg *alg)
{
    for (int i = 0; i < cell->n; i++)
        if (cell->entry[i].alg == alg && cell->entry[i].result.time > 0)
            return cell->entry[i].result.time / cell_best(cell) - 1;
    return 1e9;
}

/* Returns the algorithms within the tolerance. */
static algs good_ones(const struct cell *cell)
{
    const struct nbc_alg *first = first_row(cell->call.coll);
    algs good = 0;
    for (int i = 0; i < cell->n; i++)
        if (regret_of(cell, cell->entry[i].alg) <= tolerance)
            good |= UINT64_C(1) << (cell->entry[i].alg - first);
    return good;
}

/* --- rules -------------------------------------------------------------------------------------*/

/* Columns i … end − 1 and bytes from … to − 1. */
struct block {
    int i, end, from, to;
};

static double sum_of_regrets(const struct columns *c, struct block b, const struct nbc_alg *alg)
{
    double sum = 0;
    for (int i = b.i; i < b.end; i++)
        for (int k = b.from; k < b.to; k++)
            sum += regret_of(cell_at(c->a, c->at[i], k), alg);
    return sum;
}

/* Returns the best of a set for a block, among those without preconditions beyond `needs`. */
static const struct nbc_alg *best_for(const struct columns *c, struct block b, algs set,
                                      unsigned needs)
{
    const struct nbc_alg *first = first_row(c->a->coll), *best = NULL;
    double least = 0;
    for (const struct nbc_alg *alg = first; alg < nbc_algs + nbc_nalgs && alg->coll == first->coll;
         alg++) {
        if (!(set >> (alg - first) & 1) || alg->needs & ~needs)
            continue;
        double sum = sum_of_regrets(c, b, alg);
        if (!best || sum < least) {
            best = alg;
            least = sum;
        }
    }
    return best;
}

/* Returns a number half-way between two on a logarithmic scale. */
static int64_t between(int64_t x, int64_t y)
{
    return (int64_t)sqrt((double)x * (double)y);
}

/* Sets a range from the first number to the last, given their neighbors in the list; 0: no
 * neighbor. */
static void range(int64_t before, int64_t first, int64_t last, int64_t behind, int64_t *min,
                  int64_t *max, bool exact)
{
    *min = !before ? 0 : exact ? first : between(before, first) + 1;
    *max = !behind ? INT64_MAX : exact ? behind - 1 : between(last, behind);
}

static double time_of(const struct columns *c, int i, int b, const struct nbc_alg *alg)
{
    const struct cell *cell = cell_at(c->a, c->at[i], b);
    return (1 + regret_of(cell, alg)) * cell_best(cell);
}

/* Returns the bytes, between those at b and b + 1, from which `next` is faster than `alg` in the
 * middle column. Between them both times are interpolated. */
static int64_t crossing(const struct columns *c, int i, int end, int b, const struct nbc_alg *alg,
                        const struct nbc_alg *next)
{
    int middle = (i + end) / 2;
    int64_t from = c->a->bytes->at[b], to = c->a->bytes->at[b + 1];
    double early = time_of(c, middle, b, next) - time_of(c, middle, b, alg);
    double late = time_of(c, middle, b + 1, alg) - time_of(c, middle, b + 1, next);
    if (early > 1e6 || late > 1e6 || (early <= 0 && late <= 0))
        return between(from, to);
    if (early <= 0)
        return from;
    if (late <= 0)
        return to - 1;
    return from + (int64_t)((double)(to - from) * early / (early + late));
}

/* Writes the rules of a block for these bytes. */
static void print_block(const struct columns *c, struct block b, int64_t min_bytes,
                        int64_t max_bytes, const struct nbc_alg *alg, FILE *out)
{
    int64_t min, max;
    struct nbc_rule rule = {
        .coll = c->a->coll, .min_bytes = min_bytes, .max_bytes = max_bytes, .alg = alg};
    range(b.i ? ranks_of(c, b.i - 1) : 0, ranks_of(c, b.i), ranks_of(c, b.end - 1),
          b.end < c->n ? ranks_of(c, b.end) : 0, &min, &max, c->powers);
    rule.min_size = (int)min;
    rule.max_size = max < INT_MAX ? (int)max : INT_MAX;
    rule.needs = c->powers ? NBC_POW2 : NBC_ANY;
    rule.needs |= c->local ? NBC_LOCAL : cell_at(c->a, 0, 0)->call.ppn > 1 ? NBC_NODES : NBC_SPREAD;
    unsigned has = rule.needs | (c->powers ? NBC_EVEN : NBC_ANY);
    nbc_rule_print(out, &rule);
    if (!(rule.alg->needs & ~has))
        return;
    rule.alg = best_for(c, b, ~UINT64_C(0), has); /* for calls that it does not apply to */
    if (rule.alg)
        nbc_rule_print(out, &rule);
}

/* Divides the bytes into runs, as long as possible, for which one algorithm is good enough. */
static void print_group(const struct columns *c, int i, int end, const algs *good, FILE *out)
{
    struct block block[LIST_MOST];
    const struct nbc_alg *alg[LIST_MOST];
    int n = 0;
    for (int from = 0, to; from < c->a->nbytes; from = to, n++) {
        algs set = good[from];
        for (to = from + 1; to < c->a->nbytes && (set & good[to]); to++)
            set &= good[to];
        block[n] = (struct block){i, end, from, to};
        alg[n] = best_for(c, block[n], set, ~0u);
    }
    for (int64_t k = 0, min = 0, max; k < n; k++, min = max + 1) {
        max = k + 1 < n ? crossing(c, i, end, block[k].to - 1, alg[k], alg[k + 1]) : INT64_MAX;
        print_block(c, block[k], min, max, alg[k], out);
        if (max == INT64_MAX)
            return;
    }
}

/* Adds a column to a block. Returns false if no algorithm would be good enough for some bytes. */
static bool join(const struct columns *c, int i, algs *good)
{
    algs both[LIST_MOST];
    for (int b = 0; b < c->a->nbytes; b++) {
        both[b] = good[b] & good_ones(cell_at(c->a, c->at[i], b));
        if (!both[b])
            return false;
    }
    memcpy(good, both, (size_t)c->a->nbytes * sizeof *good);
    return true;
}

static void print_columns(const struct columns *c, FILE *out)
{
    algs good[LIST_MOST];
    for (int i = 0, end; i < c->n; i = end) {
        memset(good, -1, sizeof good);
        for (end = i; end < c->n && join(c, end, good); end++)
            ;
        if (end == i)
            return; /* no algorithm applies, or no result is known */
        print_group(c, i, end, good, out);
    }
}

void advice_print(const struct advice *a, FILE *out)
{
    for (int local = 1; local >= 0; local--)
        for (int powers = 1; powers >= 0; powers--) {
            struct columns c = columns_of(a, powers, local);
            print_columns(&c, out);
        }
}
