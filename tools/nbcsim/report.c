/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plot.h"

/* The one with the least time that is known, or NULL. */
static const struct entry *best_of(const struct cell *cell)
{
    const struct entry *best = NULL;
    for (int i = 0; i < cell->n; i++) {
        const struct entry *e = &cell->entry[i];
        if (e->result.time > 0 && (!best || e->result.time < best->result.time))
            best = e;
    }
    return best;
}

static const struct entry *chosen_of(const struct cell *cell)
{
    for (int i = 0; i < cell->n; i++)
        if (cell->entry[i].chosen)
            return &cell->entry[i];
    return NULL;
}

double cell_best(const struct cell *cell)
{
    const struct entry *best = best_of(cell);
    return best ? best->result.time : 0;
}

static void nothing(struct report *r)
{
    (void)r;
}

/* --- a table ---------------------------------------------------------------------------------- */

static void table_begin(struct report *r)
{
    const struct link *l[2] = {&r->net->between, &r->net->within};
    const char *where[2] = {"between nodes", "within nodes "};
    for (int i = 0; i < 2; i++)
        fprintf(r->out, "%s  L %.0f  o %.0f  g %.0f ns  G %.3f ns/B\n", where[i], l[i]->L * 1e9,
                l[i]->o * 1e9, l[i]->g * 1e9, l[i]->G * 1e9);
    fprintf(r->out, "%s, %d ranks per node, reduce %.3f, copy %.3f ns/B\n", r->net->name,
            r->net->ppn, r->net->reduce * 1e9, r->net->copy * 1e9);
}

static void table_row(struct report *r, const struct cell *cell, const struct entry *e)
{
    const struct result *x = &e->result;
    double bound = bounds_most(&cell->bounds), best = cell_best(cell);
    fprintf(r->out, "%c %-23s", e->chosen ? '*' : ' ', e->alg->name);
    if (!e->simulated) {
        bool estimate = x->time > 0;
        fprintf(r->out,
                estimate       ? " about %.2f us\n"
                : e->least > 0 ? " more than %.2f us\n"
                               : " too large\n",
                (estimate ? x->time : e->least) * 1e6);
        return;
    }
    fprintf(r->out, " %12.2f %7.2f %7.2f %12" PRId64 " %15.0f %12" PRId64 " %12" PRId64,
            x->time * 1e6, best > 0 ? x->time / best : 1, bound > 0 ? x->time / bound : 1,
            x->messages, x->bytes, x->most_bytes, x->temp);
    if (r->path)
        fprintf(r->out, " %6" PRId64 " %12" PRId64 " %12" PRId64 " %12" PRId64 " %10.2f",
                x->path.messages, x->path.bytes, x->path.reduced, x->path.copied, x->waited * 1e6);
    fprintf(r->out, "\n");
}

static void table_cell(struct report *r, const struct cell *cell)
{
    const struct bounds *b = &cell->bounds;
    fprintf(r->out, "\n%s, %d ranks, %" PRId64 " bytes\n", nbc_coll_name(cell->call.coll),
            cell->call.size, cell->call.bytes);
    fprintf(r->out, "lower bounds: latency %.2f, bytes %.2f, reductions %.2f us", b->latency * 1e6,
            b->bytes * 1e6, b->work * 1e6);
    fprintf(r->out, "; rounds of one message %.2f us\n", b->rounds * 1e6);
    fprintf(r->out, "  %-23s %12s %7s %7s %12s %15s %12s %12s", "algorithm", "us", "/best",
            "/bound", "messages", "bytes", "of one rank", "temporary");
    if (r->path)
        fprintf(r->out, " %6s %12s %12s %12s %10s", "path:", "bytes", "reduced", "copied",
                "waited");
    fprintf(r->out, "\n");
    for (int i = 0; i < cell->n; i++)
        table_row(r, cell, &cell->entry[i]);
}

const struct format format_table = {table_begin, table_cell, nothing};

/* --- JSON ------------------------------------------------------------------------------------- */

/* Significant digits: of times; of numbers of bytes that are double because of their range. */
enum { DIGITS = 9, EXACT = 17 };

static void emit_link(struct emit *e, const char *name, const struct link *l)
{
    emit_object(e, name);
    emit_real(e, "L", DIGITS, l->L);
    emit_real(e, "o", DIGITS, l->o);
    emit_real(e, "g", DIGITS, l->g);
    emit_real(e, "G", DIGITS, l->G);
    emit_object_end(e);
}

static void json_begin(struct report *r)
{
    const struct network *n = r->net;
    struct emit *e = &r->json;
    *e = (struct emit){.writer.out = r->out, .json = true};
    emit_begin(e);
    emit_row(e, "network");
    emit_string(e, "name", 0, n->name);
    emit_number(e, "ppn", 0, n->ppn);
    emit_link(e, "between", &n->between);
    emit_link(e, "within", &n->within);
    emit_real(e, "reduce", DIGITS, n->reduce);
    emit_real(e, "copy", DIGITS, n->copy);
    emit_real(e, "noise", DIGITS, n->noise);
    emit_row_end(e);
    emit_list(e, "cells", NULL);
}

static void json_path(struct emit *e, const struct result *x)
{
    emit_object(e, "path");
    emit_number(e, "messages", 0, x->path.messages);
    emit_number(e, "bytes", 0, x->path.bytes);
    emit_number(e, "reduced", 0, x->path.reduced);
    emit_number(e, "copied", 0, x->path.copied);
    emit_real(e, "waited", DIGITS, x->waited);
    emit_object_end(e);
}

static void json_entry(struct report *r, const struct entry *entry)
{
    const struct result *x = &entry->result;
    struct emit *e = &r->json;
    emit_row(e, NULL);
    emit_string(e, "name", 0, entry->alg->name);
    emit_bool(e, "chosen", 0, entry->chosen);
    if (entry->simulated) {
        emit_real(e, "seconds", DIGITS, x->time);
        emit_number(e, "messages", 0, x->messages);
        emit_real(e, "bytes", EXACT, x->bytes);
        emit_number(e, "rank_bytes", 0, x->most_bytes);
        emit_number(e, "temporary", 0, x->temp);
        if (r->path)
            json_path(e, x);
    } else {
        emit_real(e, "more_than", DIGITS, entry->least);
        if (x->time > 0)
            emit_real(e, "estimate", DIGITS, x->time);
    }
    emit_row_end(e);
}

static void json_cell(struct report *r, const struct cell *cell)
{
    const struct bounds *b = &cell->bounds;
    struct emit *e = &r->json;
    emit_row(e, NULL);
    emit_string(e, "collective", 0, nbc_coll_name(cell->call.coll));
    emit_number(e, "ranks", 0, cell->call.size);
    emit_number(e, "bytes", 0, cell->call.bytes);
    emit_object(e, "bounds");
    emit_real(e, "latency", DIGITS, b->latency);
    emit_real(e, "bytes", DIGITS, b->bytes);
    emit_real(e, "work", DIGITS, b->work);
    emit_real(e, "rounds", DIGITS, b->rounds);
    emit_object_end(e);
    emit_list(e, "algorithms", NULL);
    for (int i = 0; i < cell->n; i++)
        json_entry(r, &cell->entry[i]);
    emit_list_end(e);
    emit_row_end(e);
}

static void json_end(struct report *r)
{
    emit_list_end(&r->json);
    emit_end(&r->json);
}

const struct format format_json = {json_begin, json_cell, json_end};

/* --- where the rules choose badly ------------------------------------------------------------- */

static void regret_begin(struct report *r)
{
    fprintf(r->out, "%-22s %8s %12s %-23s %12s %-23s %12s %8s\n", "collective", "ranks", "bytes",
            "chosen", "us", "best", "us", "worse");
}

enum { TOLERATED = 10 }; /* per cent */

/* The relative excess of the time of the selected algorithm over the best; negative: unknown. */
static double regret_of(const struct cell *cell, const struct entry *chosen, double best)
{
    if (!chosen || chosen->result.time == 0)
        return -1;
    for (int i = 0; i < cell->n; i++)
        if (cell->entry[i].result.time == 0 && cell->entry[i].least < best)
            return -1; /* it might be better */
    return chosen->result.time / best - 1;
}

static void regret_cell(struct report *r, const struct cell *cell)
{
    const struct entry *chosen = chosen_of(cell), *best = best_of(cell);
    double regret = regret_of(cell, chosen, cell_best(cell));
    bool over = regret > TOLERATED / 100.0;
    bool estimated = (chosen && !chosen->simulated) || (best && !best->simulated);
    r->cells++;
    if (regret >= 0) {
        r->judged++;
        r->estimated += estimated;
        r->log_sum += log1p(regret);
        r->worst = regret > r->worst ? regret : r->worst;
    } else {
        r->unknown++;
    }
    r->over += over;
    if (regret >= 0 && !over)
        return;
    fprintf(r->out, "%-22s %8d %12" PRId64 " %-23s %12.2f %-23s %12.2f",
            nbc_coll_name(cell->call.coll), cell->call.size, cell->call.bytes,
            chosen ? chosen->alg->name : "?", chosen ? chosen->result.time * 1e6 : 0,
            best ? best->alg->name : "?", cell_best(cell) * 1e6);
    if (over)
        fprintf(r->out, " %7.0f%%%s\n", 100 * regret, estimated ? " estimated" : "");
    else
        fprintf(r->out, " %8s\n", "?");
}

static void regret_end(struct report *r)
{
    fprintf(r->out,
            "%" PRId64 " calls, %" PRId64 " judged: %" PRId64 " more than %d%% worse than the best,"
            " worst %.0f%%, mean %.1f%%; %" PRId64 " estimated, %" PRId64 " not known\n",
            r->cells, r->judged, r->over, TOLERATED, 100 * r->worst,
            r->judged ? 100 * expm1(r->log_sum / (double)r->judged) : 0.0, r->estimated,
            r->unknown);
}

const struct format format_regret = {regret_begin, regret_cell, regret_end};

/* --- a picture -------------------------------------------------------------------------------- */

static void plot_cell(struct report *r, const struct cell *cell)
{
    const char *picture = r->by_ranks ? "by ranks" : "by bytes";
    double x = r->by_ranks ? cell->call.size : (double)cell->call.bytes;
    for (int i = 0; i < cell->n; i++) {
        const struct entry *e = &cell->entry[i];
        double us = e->result.time * 1e6;
        if (e->simulated)
            plot_add(picture, e->alg->name, x, us, us, us);
        if (e->simulated && e->chosen)
            plot_add_ring(picture, "selected by the rules", x, us);
    }
}

const struct format format_plot = {nothing, plot_cell, nothing};
