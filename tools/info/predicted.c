/* SPDX-License-Identifier: MIT */
/* nbcinfo: what nbcshim would do in a call: --choose, --schedule and --costs. */
#define _GNU_SOURCE
#include "info/info.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "nbcshim.h"

#include "picture.h"
#include "sched_print.h"

/* --- which algorithm would run ---------------------------------------------------------------- */

/* Sets from the environment the properties of a call that no option sets. */
static void ask_environment(struct tool_call *call)
{
    const char *segment = info_accepted("NBCSHIM_SEGMENT_SIZE");
    call->eager = info_in_force()->eager;
    if (segment && !call->segment)
        info_read_number(segment, INT64_MAX, &call->segment);
}

static bool variable_of(enum nbc_coll coll, struct nbcshim_variable *v)
{
    char name[64] = "NBCSHIM_ALGORITHM_";
    size_t n = strlen(name);
    for (const char *c = nbc_coll_name(coll); *c && n < sizeof name - 1; c++)
        name[n++] = (char)toupper((unsigned char)*c);
    name[n] = '\0';
    for (int i = 0; nbcshim_variable(i, v); i++)
        if (strcmp(v->name, name) == 0)
            return v->value != NULL;
    return false;
}

/* Explains why an algorithm was selected, or why not the one that the environment requests. */
static void explain(const struct nbc_shape *shape, const struct nbc_alg *override,
                    const char *asked, char *text, size_t size)
{
    char needs[256], ranks[64], bytes[64];
    size_t n = 0;
    if (override && nbc_alg_applies(override, shape)) {
        snprintf(text, size, "requested by %s", asked);
        return;
    }
    if (override)
        n = (size_t)snprintf(text, size, "%s requests %s, which requires %s; ", asked,
                             override->name, info_lacks_text(override, shape, needs, sizeof needs));
    const struct nbc_rule *rule = nbc_rule_find(shape, info_in_force());
    if (!rule) {
        snprintf(text + n, size - n,
                 "no tuning rule matches, and this is the first algorithm that applies");
        return;
    }
    info_range(ranks, sizeof ranks, rule->min_size, rule->max_size, INT_MAX);
    info_range(bytes, sizeof bytes, rule->min_bytes, rule->max_bytes, INT64_MAX);
    snprintf(text + n, size - n, "tuning rule %d: ranks %s, bytes %s",
             (int)(rule - info_in_force()->rule) + 1, ranks, bytes);
}

/* Scans and neighborhood collectives are not defined on intercommunicators. */
static bool is_possible(const struct nbc_shape *shape)
{
    for (int i = 0; i < nbc_nalgs; i++)
        if (nbc_algs[i].coll == shape->coll && nbc_alg_applies(&nbc_algs[i], shape))
            return true;
    return false;
}

int info_choose(struct emit *e)
{
    struct tool_rank rank;
    struct nbcshim_variable v;
    const struct nbc_alg *override = NULL;
    char why[512];
    int64_t segment;
    info_options.call.coll = nbc_coll_by_name(info_options.choose);
    if (info_options.call.coll == NBC_NCOLLS)
        return info_fail(info_options.choose, "no such collective; see nbcinfo --algorithms");
    ask_environment(&info_options.call);
    if (!tool_rank_make(&rank, &info_options.call, 0))
        return info_fail("out of memory", NULL);
    if (!is_possible(&rank.shape)) {
        tool_rank_free(&rank);
        return info_fail(info_options.choose, "not defined on intercommunicators");
    }
    if (variable_of(info_options.call.coll, &v) && v.accepted)
        override = nbc_alg_by_name(info_options.call.coll, v.value);
    const struct nbc_alg *alg = nbc_select(&rank.shape, override, info_in_force(), &segment);
    if (info_options.call.segment)
        segment = info_options.call.segment;
    explain(&rank.shape, override, v.name, why, sizeof why);
    if (!e->json) {
        fprintf(e->writer.out, "%s: %s\n", alg->name, why);
    } else {
        emit_begin(e);
        emit_string(e, "collective", 0, nbc_coll_name(info_options.call.coll));
        emit_number(e, "ranks", 0, tool_call_ranks(&info_options.call));
        emit_number(e, "bytes", 0, nbc_shape_bytes(&rank.shape));
        emit_string(e, "algorithm", 0, alg->name);
        emit_number(e, "segment", 0, segment);
        emit_string(e, "why", 0, why);
        emit_end(e);
    }
    tool_rank_free(&rank);
    return 0;
}

/* --- schedules -------------------------------------------------------------------------------- */

static void print_schedules(const struct picture *p, const char *title)
{
    printf("%s: %d rounds, %d messages, %" PRId64 " bytes, at most %" PRId64 " from one rank\n",
           title, p->rounds, p->messages, p->bytes, p->most);
    for (int id = 0; id < p->nranks; id++) {
        if (info_options.only >= 0 && info_options.only != id)
            continue;
        printf("\nrank %d: ", id);
        nbc_sched_print(p->ranks[id].sched, stdout);
    }
}

static int draw(const struct picture *p, const char *title)
{
    if (!info_options.svg) {
        picture_dot(p, title, stdout);
        return 0;
    }
    fflush(stdout);
    signal(SIGPIPE, SIG_IGN); /* if dot does not exist, writing to it fails */
    FILE *dot = popen("dot -Tsvg", "w");
    if (!dot)
        return info_fail("cannot start Graphviz's dot", NULL);
    picture_dot(p, title, dot);
    return pclose(dot) ? info_fail("Graphviz's dot failed; is it installed?", NULL) : 0;
}

static void emit_costs(struct emit *e, const struct picture *p)
{
    emit_number(e, "rounds", 8, p->rounds);
    emit_number(e, "messages", 10, p->messages);
    emit_number(e, "bytes", 14, p->bytes);
    emit_number(e, "most_bytes", 0, p->most);
}

static void print_costs(const struct picture *p, const struct nbc_alg *alg)
{
    struct emit e = {.writer.out = stdout, .json = true};
    emit_begin(&e);
    emit_string(&e, "collective", 0, nbc_coll_name(alg->coll));
    emit_string(&e, "algorithm", 0, alg->name);
    emit_number(&e, "ranks", 0, p->nranks);
    emit_costs(&e, p);
    emit_end(&e);
}

static int present(const struct tool_rank *ranks, const struct nbc_alg *alg)
{
    struct picture p;
    char title[128];
    const char *wrong = picture_make(&p, &info_options.call, ranks);
    if (wrong)
        return info_fail("internal error in the schedules", wrong);
    snprintf(title, sizeof title, "%s:%s, %d ranks", nbc_coll_name(alg->coll), alg->name, p.nranks);
    int status = 0;
    if (info_options.json)
        print_costs(&p, alg);
    else if (info_options.dot || info_options.svg)
        status = draw(&p, title);
    else
        print_schedules(&p, title);
    picture_free(&p);
    return status;
}

/* Sets what an algorithm requires and no option says: nodes. */
static void call_suit(struct tool_call *call, const struct nbc_alg *alg)
{
    call->coll = alg->coll;
    if ((alg->needs & NBC_NODES) && !call->per_node)
        call->per_node = (call->size + 1) / 2;
}

/* Sets *lacks to what an algorithm requires of a call in vain, or to NULL. text is room for it.
 * Returns false if memory ran out. */
static bool call_lacks(const struct tool_call *call, const struct nbc_alg *alg, char *text,
                       size_t size, const char **lacks)
{
    struct tool_rank first;
    if (!tool_rank_make(&first, call, 0))
        return false;
    *lacks =
        nbc_alg_applies(alg, &first.shape) ? NULL : info_lacks_text(alg, &first.shape, text, size);
    tool_rank_free(&first);
    return true;
}

static bool has_too_many_ranks(void)
{
    enum { MOST_RANKS = 1024 };
    return tool_call_ranks(&info_options.call) > MOST_RANKS;
}

int info_schedule(void)
{
    char name[128], needs[256];
    const char *lacks;
    snprintf(name, sizeof name, "%s", info_options.schedule);
    char *colon = strchr(name, ':');
    if (!colon)
        return info_fail(name, "expected COLLECTIVE:ALGORITHM");
    *colon = '\0';
    info_options.call.coll = nbc_coll_by_name(name);
    if (info_options.call.coll == NBC_NCOLLS)
        return info_fail(name, "no such collective; see nbcinfo --algorithms");
    const struct nbc_alg *alg = nbc_alg_by_name(info_options.call.coll, colon + 1);
    if (!alg)
        return info_fail(colon + 1,
                         "this collective has no such algorithm; see nbcinfo --algorithms");
    if (has_too_many_ranks())
        return info_fail("--ranks", "a schedule is limited to 1024 ranks");
    if ((alg->needs & NBC_INTER) && !info_options.call.remote_size)
        info_options.call.remote_size = info_options.call.size;
    if (info_options.only >= tool_call_ranks(&info_options.call))
        return info_fail("--rank", "no such rank");
    call_suit(&info_options.call, alg);
    if (!call_lacks(&info_options.call, alg, needs, sizeof needs, &lacks))
        return info_fail("out of memory", NULL);
    if (lacks)
        return info_fail("the algorithm does not apply to this call: it requires", lacks);
    struct tool_rank *ranks = tool_ranks_make(&info_options.call, alg);
    if (!ranks)
        return info_fail("out of memory", NULL);
    int status = present(ranks, alg);
    tool_ranks_free(ranks, &info_options.call);
    return status;
}

/* --- costs ------------------------------------------------------------------------------------ */

static void cost_row(struct emit *e, const struct picture *p, const struct nbc_alg *alg)
{
    emit_row(e, NULL);
    emit_string(e, "collective", 22, nbc_coll_name(alg->coll));
    emit_string(e, "algorithm", 24, alg->name);
    emit_costs(e, p);
    emit_row_end(e);
}

/* Emits the costs of an algorithm if it applies to the call. */
static int cost_of(struct emit *e, const struct nbc_alg *alg)
{
    struct tool_call call = info_options.call;
    struct picture p;
    char needs[256];
    const char *lacks;
    call_suit(&call, alg);
    if (!call_lacks(&call, alg, needs, sizeof needs, &lacks))
        return info_fail("out of memory", NULL);
    if (lacks)
        return 0;
    struct tool_rank *ranks = tool_ranks_make(&call, alg);
    if (!ranks)
        return info_fail("out of memory", NULL);
    const char *wrong = picture_make(&p, &call, ranks);
    if (!wrong) {
        cost_row(e, &p, alg);
        picture_free(&p);
    }
    tool_ranks_free(ranks, &call);
    return wrong ? info_fail(alg->name, wrong) : 0;
}

int info_costs(struct emit *e)
{
    enum nbc_coll coll = nbc_coll_by_name(info_options.costs);
    int status = 0;
    if (coll == NBC_NCOLLS && strcmp(info_options.costs, "all") != 0)
        return info_fail(info_options.costs, "no such collective; see nbcinfo --algorithms");
    if (has_too_many_ranks())
        return info_fail("--ranks", "costs are limited to 1024 ranks");
    emit_begin(e);
    emit_list(e, "costs", "Costs: rounds, messages, bytes, bytes of the rank that sends most");
    for (int i = 0; i < nbc_nalgs && !status; i++)
        if (coll == NBC_NCOLLS || nbc_algs[i].coll == coll)
            status = cost_of(e, &nbc_algs[i]);
    emit_list_end(e);
    emit_end(e);
    return status;
}
