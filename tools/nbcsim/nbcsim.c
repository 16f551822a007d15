/* SPDX-License-Identifier: MIT */
/* nbcsim: predicts the time of the collectives on other machines. The builders make the schedules
 * of all ranks; a simulation in the LogGP model runs them. See doc/nbcsim.1 and doc/scaling.md. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "advice.h"
#include "buildcost.h"
#include "cells.h"
#include "config.h"
#include "emit.h"
#include "gnuplot.h"
#include "goal.h"
#include "meter.h"
#include "plot.h"
#include "rules.h"

struct options {
    struct network net;
    struct list ranks, bytes;
    int root;
    int64_t segment;
    struct limits limits;
    const struct format *format;
    const struct nbc_rules *rules;
    int noutputs; /* number of options that select the output */
    bool path, build_cost, advice, estimate;
    const char *goal, *plot;
};

static const char usage[] =
    "Usage: nbcsim [OPTION]... COLLECTIVE[:ALGORITHM]... | all\n"
    "Simulate collectives on a network model, without MPI.\n"
    "\n"
    "  -n, --ranks LIST      numbers of ranks: 3,8,2..64 (doubling), 8..4096:8 (times 8);\n"
    "                        default 64\n"
    "  -b, --bytes LIST      bytes of the vector or of a block, with K, M or G; default 8\n"
    "      --network NAME    use a network that --networks lists, or a file (nbctune --loggp)\n"
    "      --networks        list the known networks and exit\n"
    "      --set KEY=VALUE   set a parameter of the network\n"
    "      --ppn N           set the number of ranks per node\n"
    "      --noise X         lengthen each time by a random share, X on average\n"
    "      --seed N          set the seed of the noise\n"
    "      --root R          set the root\n"
    "      --segment BYTES   set the segment size of pipelined algorithms\n"
    "      --path            show what the critical path consists of\n"
    "      --json            write JSON\n"
    "      --plot FILE       draw a figure (.png, .svg or .pdf) with gnuplot\n"
    "      --regret          show the calls for which the rules choose badly, and a summary\n"
    "      --tuning FILE     read tuning rules that precede the built-in ones\n"
    "      --rules           write tuning rules for this network, for NBCSHIM_TUNING\n"
    "      --estimate        estimate the time of a simulation that is too large\n"
    "      --goal FILE       write the schedules of one call in GOAL, for LogGOPSim\n"
    "      --build-cost      measure the cost of building and starting a schedule\n"
    "      --limit N         skip simulations of more than N operations; default 50M\n"
    "      --every-rank      simulate every rank, even if one can represent all\n"
    "  -h, --help            show this help and exit\n"
    "      --version         show the version and exit\n";

/* --- one call --------------------------------------------------------------------------------- */

/* What rules for this network say: 0 if it has no limit. */
static int64_t known_eager(const struct network *net)
{
    return net->eager < INT64_MAX ? net->eager : 0;
}

static struct call make_call(const struct options *o, enum nbc_coll coll, int size, int64_t bytes)
{
    return (struct call){.coll = coll,
                         .size = size,
                         .root = o->root < size ? o->root : 0,
                         .bytes = coll == NBC_BARRIER ? 0 : bytes,
                         .segment = o->segment,
                         .sockets = o->net.sockets,
                         .eager = o->advice ? known_eager(&o->net) : o->rules->eager,
                         .ppn = o->net.ppn};
}

static void no_memory(void)
{
    fprintf(stderr, "nbcsim: out of memory\n");
    exit(1);
}

static bool applies(const struct arguments *a, const struct nbc_alg *alg)
{
    struct own own;
    arguments_shape(a, 0, &own);
    return nbc_alg_applies(alg, &own.shape);
}

static void tell_inapplicable(const struct nbc_alg *alg)
{
    meter_clear();
    fprintf(stderr, "nbcsim: %s:%s %s\n", nbc_coll_name(alg->coll), alg->name,
            alg->needs & NBC_BY_MPI ? "is the MPI's own operation, which is not simulated"
                                    : "does not apply to this call");
}

static void write_goal(const struct options *o, const struct call *call, const struct nbc_alg *alg)
{
    struct arguments a;
    const char *wrong = "out of memory";
    const struct limits every = {.no_symmetry = true};
    FILE *out = strcmp(o->goal, "-") == 0 ? stdout : fopen(o->goal, "w");
    if (!out) {
        perror(o->goal);
        exit(1);
    }
    if (!arguments_make(&a, call))
        no_memory();
    if (!alg)
        alg = call_choice(&a, o->rules, &a.call.segment);
    else if (!applies(&a, alg)) {
        tell_inapplicable(alg);
        exit(2);
    }
    struct program *p = call_program(&a, alg, &every, &wrong);
    if (!p) {
        fprintf(stderr, "nbcsim: %s\n", wrong);
        exit(1);
    }
    goal_write(p, &o->net, out);
    program_free(p);
    arguments_free(&a);
    bool lost = ferror(out);
    if (out != stdout && (fclose(out) || lost)) {
        perror(o->goal);
        exit(1);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

static void show_progress(const struct call *call)
{
    meter_step("%s, %d ranks, %" PRId64 " bytes", nbc_coll_name(call->coll), call->size,
               call->bytes);
}

/* A large simulation takes seconds with each algorithm. */
static void show_algorithm(const struct call *call, const struct nbc_alg *alg)
{
    if (call->size > 4096)
        meter_say("%s:%s, %d ranks, %" PRId64 " bytes", nbc_coll_name(call->coll), alg->name,
                  call->size, call->bytes);
}

static struct runner make_runner(const struct options *o)
{
    struct runner r = {.net = &o->net,
                       .rules = o->rules,
                       .limits = o->limits,
                       .path = o->path,
                       .begins = show_algorithm,
                       .estimate = o->estimate};
    if (!runner_begin(&r))
        no_memory();
    return r;
}

static void must(const char *wrong, const struct call *call)
{
    if (!wrong)
        return;
    meter_clear();
    fprintf(stderr, "nbcsim: %s on %d ranks: %s\n", nbc_coll_name(call->coll), call->size, wrong);
    exit(1);
}

/* Ranks ascend in the inner loop, so that calls that are too large have smaller ones before them.
 * Returns whether there were results. */
static bool run_collective(const struct options *o, enum nbc_coll coll, const struct nbc_alg *only,
                           struct report *report)
{
    struct runner runner = make_runner(o);
    bool any = false;
    for (int b = 0; b < (coll == NBC_BARRIER ? 1 : o->bytes.n); b++) {
        runner_forget(&runner);
        for (int i = 0; i < o->ranks.n; i++) {
            struct cell cell;
            struct call call = make_call(o, coll, (int)o->ranks.at[i], o->bytes.at[b]);
            show_progress(&call);
            must(runner_cell(&runner, &call, only, &cell), &call);
            meter_clear(); /* the report may be on the same terminal */
            if (cell.n > 0)
                o->format->cell(report, &cell);
            any |= cell.n > 0;
            fflush(report->out);
        }
    }
    runner_end(&runner);
    return any;
}

/* Simulates the same cells for advice. */
static void run_advice(const struct options *o, enum nbc_coll coll)
{
    struct runner runner = make_runner(o);
    struct advice *advice = advice_new(coll, &o->ranks, &o->bytes);
    if (!advice)
        no_memory();
    for (int b = 0; b < (coll == NBC_BARRIER ? 1 : o->bytes.n); b++) {
        runner_forget(&runner);
        for (int i = 0; i < o->ranks.n; i++) {
            struct call call = make_call(o, coll, (int)o->ranks.at[i], o->bytes.at[b]);
            show_progress(&call);
            must(runner_cell(&runner, &call, NULL, advice_cell(advice, i, b)), &call);
        }
    }
    meter_clear();
    advice_print(advice, stdout);
    advice_free(advice);
    runner_end(&runner);
}

static void run_build_cost(const struct options *o, enum nbc_coll coll, const struct nbc_alg *only)
{
    for (int b = 0; b < (coll == NBC_BARRIER ? 1 : o->bytes.n); b++)
        for (int i = 0; i < o->ranks.n; i++)
            for (int k = 0; k < nbc_nalgs; k++) {
                const struct nbc_alg *alg = &nbc_algs[k];
                struct call call = make_call(o, coll, (int)o->ranks.at[i], o->bytes.at[b]);
                struct arguments a;
                if (alg->coll != coll || (only && alg != only) || !arguments_make(&a, &call))
                    continue;
                bool possible = applies(&a, alg);
                arguments_free(&a);
                if (possible)
                    buildcost_line(&call, alg, stdout);
            }
}

/* Parses "allreduce:ring", "allreduce" or "all" to the first collective, the one after the last,
 * and an algorithm or NULL. */
static bool parse_what(const char *text, int *first, int *end, const struct nbc_alg **only)
{
    char coll[64];
    const char *colon = strchr(text, ':');
    *only = NULL;
    *first = 0;
    *end = NBC_NCOLLS;
    if (strcmp(text, "all") == 0)
        return true;
    snprintf(coll, sizeof coll, "%.*s", (int)(colon ? colon - text : (long)strlen(text)), text);
    *first = nbc_coll_by_name(coll);
    *end = *first + 1;
    if (*first == NBC_NCOLLS)
        return false;
    if (colon)
        *only = nbc_alg_by_name((enum nbc_coll) * first, colon + 1);
    return !colon || *only;
}

/* The simulations of all arguments, for the meter. */
static int count_calls(const struct options *o, int n, char **what)
{
    int calls = 0;
    for (int i = 0; i < n; i++) {
        int first, end;
        const struct nbc_alg *only;
        parse_what(what[i], &first, &end, &only);
        for (int coll = first; coll < end; coll++)
            if (!o->advice || advice_possible((enum nbc_coll)coll))
                calls += o->ranks.n * (coll == NBC_BARRIER ? 1 : o->bytes.n);
    }
    return calls;
}

/* Returns false if a requested algorithm applies to none of the calls. */
static bool run_all(const struct options *o, struct report *report, int n, char **what)
{
    bool good = true;
    for (int i = 0; i < n; i++) {
        int first, end;
        const struct nbc_alg *only;
        parse_what(what[i], &first, &end, &only);
        for (int coll = first; coll < end; coll++) {
            struct call call =
                make_call(o, (enum nbc_coll)coll, (int)o->ranks.at[0], o->bytes.at[0]);
            if (o->goal)
                write_goal(o, &call, only);
            else if (o->advice && !advice_possible((enum nbc_coll)coll))
                continue;
            else if (o->advice)
                run_advice(o, (enum nbc_coll)coll);
            else if (o->build_cost)
                run_build_cost(o, (enum nbc_coll)coll, only);
            else if (!run_collective(o, (enum nbc_coll)coll, only, report) && only) {
                tell_inapplicable(only);
                good = false;
            }
        }
    }
    return good;
}

/* --- a picture -------------------------------------------------------------------------------- */

/* gnuplot would continue and draw on standard output. */
static bool writable(const char *path)
{
    FILE *out = fopen(path, "a");
    if (!out)
        perror(path);
    else
        fclose(out);
    return out;
}

/* One collective: time against what varies. */
static bool draw(const struct options *o, enum nbc_coll coll)
{
    char title[512], of[64], size[32] = "no data";
    if (coll != NBC_BARRIER)
        gnuplot_size((double)o->bytes.at[0], size, sizeof size);
    if (o->ranks.n > 1)
        snprintf(of, sizeof of, "%s%s", size, coll == NBC_BARRIER ? "" : " bytes");
    else
        snprintf(of, sizeof of, "%" PRId64 " ranks", o->ranks.at[0]);
    snprintf(title, sizeof title, "%s, %s, simulated on %.300s, %d %s per node",
             nbc_coll_name(coll), of, o->net.name, o->net.ppn, o->net.ppn == 1 ? "rank" : "ranks");
    return plot_draw_file(o->plot, title);
}

/* --- options ---------------------------------------------------------------------------------- */

/* OPTION(NAME, name, whether it has a value): those without a letter. */
#define OPTIONS(OPTION)                     \
    OPTION(NETWORK, "network", true)        \
    OPTION(NETWORKS, "networks", false)     \
    OPTION(SET, "set", true)                \
    OPTION(PPN, "ppn", true)                \
    OPTION(NOISE, "noise", true)            \
    OPTION(SEED, "seed", true)              \
    OPTION(ROOT, "root", true)              \
    OPTION(SEGMENT, "segment", true)        \
    OPTION(PATH, "path", false)             \
    OPTION(JSON, "json", false)             \
    OPTION(PLOT, "plot", true)              \
    OPTION(REGRET, "regret", false)         \
    OPTION(TUNING, "tuning", true)          \
    OPTION(RULES, "rules", false)           \
    OPTION(ESTIMATE, "estimate", false)     \
    OPTION(GOAL, "goal", true)              \
    OPTION(BUILD_COST, "build-cost", false) \
    OPTION(LIMIT, "limit", true)            \
    OPTION(EVERY_RANK, "every-rank", false) \
    OPTION(VERSION, "version", false)

enum {
    OPT_BEFORE = 256,
#define NAMED(NAME, name, has_value) OPT_##NAME,
    OPTIONS(NAMED)
};

#define ROW(NAME, name, has_value) {name, has_value, NULL, OPT_##NAME},
static const struct option long_options[] = {{"ranks", true, NULL, 'n'},
                                             {"bytes", true, NULL, 'b'},
                                             {"help", false, NULL, 'h'},
                                             OPTIONS(ROW){0}};

/* Reads a number that is not less than `least`. */
static bool one_number(const char *text, int64_t least, int64_t most, int64_t *number)
{
    struct list list = {0};
    if (!list_read(&list, text) || list.n != 1 || list.at[0] < least || list.at[0] > most)
        return false;
    *number = list.at[0];
    return true;
}

static bool set_key(struct network *net, const char *key, const char *value)
{
    char line[128];
    snprintf(line, sizeof line, "%s=%s", key, value);
    return network_set(net, line);
}

static bool read_rules(struct options *o, const char *path)
{
    struct nbc_rules_error error;
    o->rules = nbc_rules_read(path, &nbc_default_rules, &error);
    if (!o->rules)
        fprintf(stderr, "%s: %s\n", path, error.what);
    return o->rules;
}

/* Whether an option selects the output. At most one of these may be given. */
static bool is_output(int option)
{
    return option == OPT_JSON || option == OPT_PLOT || option == OPT_REGRET ||
           option == OPT_RULES || option == OPT_GOAL || option == OPT_BUILD_COST;
}

static bool take_option(struct options *o, int option, const char *value)
{
    int64_t n = 0;
    bool good = true;
    o->noutputs += is_output(option);
    switch (option) {
    case 'n':
        return list_read(&o->ranks, value);
    case 'b':
        return list_read(&o->bytes, value);
    case OPT_NETWORK:
        return true; /* was read before */
    case OPT_SET:
        return network_set(&o->net, value);
    case OPT_PPN:
        return set_key(&o->net, "ppn", value);
    case OPT_NOISE:
        return set_key(&o->net, "noise", value);
    case OPT_SEED:
        good = one_number(value, 0, INT64_MAX, &n);
        o->net.seed = (uint64_t)n;
        return good;
    case OPT_ROOT:
        good = one_number(value, 0, INT32_MAX, &n);
        o->root = (int)n;
        return good;
    case OPT_SEGMENT:
        return one_number(value, 1, INT64_MAX, &o->segment);
    case OPT_LIMIT:
        return one_number(value, 1, INT64_MAX, &o->limits.ops);
    case OPT_PATH:
        o->path = true;
        return true;
    case OPT_JSON:
        o->format = &format_json;
        return true;
    case OPT_REGRET:
        o->format = &format_regret;
        return true;
    case OPT_TUNING:
        return read_rules(o, value);
    case OPT_RULES:
        o->advice = o->estimate = true;
        return true;
    case OPT_ESTIMATE:
        o->estimate = true;
        return true;
    case OPT_PLOT:
        o->format = &format_plot;
        o->plot = value;
        return true;
    case OPT_GOAL:
        o->goal = value;
        return true;
    case OPT_BUILD_COST:
        o->build_cost = true;
        return true;
    case OPT_EVERY_RANK:
        o->limits.no_symmetry = true;
        return true;
    default:
        return false;
    }
}

static const char *option_name(int option)
{
    static char name[32];
    for (const struct option *l = long_options; l->name; l++)
        if (l->val == option)
            snprintf(name, sizeof name, "--%s", l->name);
    return name;
}

static int refuse(const char *what, const char *value)
{
    fprintf(stderr, "nbcsim: invalid arguments: %s%s%s; see nbcsim --help\n", what,
            *value ? " " : "", value);
    return 2;
}

/* Other options change parameters of the network, so --network is read first, wherever it is. */
static bool read_network(struct options *o, int argc, char **argv)
{
    int option;
    while ((option = getopt_long(argc, argv, "n:b:h", long_options, NULL)) != -1)
        if (option == '?' || (option == OPT_NETWORK && !network_read(&o->net, optarg)))
            return false; /* getopt_long, or network_read, has said why */
    optind = 0;           /* from the start */
    return true;
}

/* Returns 0 to continue, else the exit status + 1. */
static int read_options(struct options *o, int argc, char **argv)
{
    int option;
    if (!read_network(o, argc, argv)) {
        fprintf(stderr, "see nbcsim --help\n");
        return 1 + 2;
    }
    while ((option = getopt_long(argc, argv, "n:b:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (option == OPT_VERSION) {
            printf("nbcsim (nbcshim) %s\n", PACKAGE_VERSION);
            return 1;
        }
        if (option == OPT_NETWORKS) {
            network_list(stdout);
            return 1;
        }
        if (!take_option(o, option, optarg))
            return 1 + refuse(option_name(option), optarg);
    }
    for (int i = optind; i < argc; i++) {
        int first, end;
        const struct nbc_alg *only;
        if (!parse_what(argv[i], &first, &end, &only))
            return 1 + refuse("unknown collective or algorithm", argv[i]);
    }
    return optind == argc ? 1 + refuse("no collective given", "") : 0;
}

/* Another algorithm may be best from the first message with a handshake on. */
static void add_eager(struct options *o)
{
    char both[64];
    if (o->net.handshake <= 0 || !known_eager(&o->net) || known_eager(&o->net) > 1 << 30)
        return;
    snprintf(both, sizeof both, "%" PRId64 ",%" PRId64, o->net.eager, o->net.eager + 64);
    list_read(&o->bytes, both);
}

/* In all ranks together: a rank may handle the data of all, and some algorithms do so repeatedly.
 */
static const int64_t most_bytes = INT64_MAX / 64;

/* The lists are ascending. */
static const char *contradiction(const struct options *o, int nwhat, char **what)
{
    bool all = strcmp(what[0], "all") == 0;
    for (int i = 0; i < o->ranks.n; i++)
        if (o->ranks.at[i] < 1 || o->ranks.at[i] > 1 << 24)
            return "a number of ranks must be from 1 to 16777216";
    if (o->bytes.at[o->bytes.n - 1] > most_bytes / o->ranks.at[o->ranks.n - 1])
        return "bytes times ranks must be at most 144115188075855871";
    if (o->noutputs > 1)
        return "only one of --json, --plot, --regret, --rules, --goal and --build-cost is possible";
    if (o->goal && (all || nwhat > 1 || o->ranks.n > 1 || o->bytes.n > 1))
        return "--goal takes one call";
    if (o->root >= o->ranks.at[o->ranks.n - 1])
        return "--root is not less than the number of ranks";
    if (o->plot && !plot_kind_is_known(o->plot))
        return "the name of --plot ends in .png, .svg or .pdf";
    if (o->plot && (all || nwhat > 1 || (o->ranks.n > 1 && o->bytes.n > 1)))
        return "--plot takes one collective, with one number of ranks or one of bytes";
    return NULL;
}

/* The collective that --plot draws. */
static enum nbc_coll plotted(const char *what)
{
    int first, end;
    const struct nbc_alg *only;
    parse_what(what, &first, &end, &only);
    return (enum nbc_coll)first;
}

/* The default numbers of ranks for rules: powers of two, and others. */
#define RULE_RANKS "2..64,256..4096:4,3..48,96..6144:4"

static int run(int argc, char **argv)
{
    struct options o = {
        .format = &format_table, .rules = &nbc_default_rules, .limits = {.ops = 50000000}};
    network_read(&o.net, "infiniband");
    int status = read_options(&o, argc, argv);
    if (status)
        return status - 1;
    if (o.ranks.n == 0)
        list_read(&o.ranks, o.build_cost ? "1048576" : o.advice ? RULE_RANKS : "64");
    if (o.bytes.n == 0)
        list_read(&o.bytes, o.advice ? "8..64M:4,64M" : "8");
    if (o.advice)
        add_eager(&o);
    list_sort(&o.ranks);
    list_sort(&o.bytes);
    const char *wrong = contradiction(&o, argc - optind, argv + optind);
    if (wrong)
        return refuse(wrong, "");
    if (o.plot && !writable(o.plot))
        return 1;
    struct report report = {
        .out = stdout, .net = &o.net, .path = o.path, .by_ranks = o.ranks.n > 1};
    bool reports = !o.goal && !o.build_cost && !o.advice;
    if (o.build_cost)
        buildcost_head(stdout);
    if (reports)
        o.format->begin(&report);
    if (o.advice && known_eager(&o.net))
        printf("eager %" PRId64 "\n", known_eager(&o.net));
    meter_begin(count_calls(&o, argc - optind, argv + optind), false);
    bool good = run_all(&o, &report, argc - optind, argv + optind);
    meter_end();
    if (reports)
        o.format->end(&report);
    if (o.plot && !draw(&o, plotted(argv[optind])))
        return 1;
    return good ? 0 : 2;
}

int main(int argc, char **argv)
{
    return emit_status("nbcsim", run(argc, argv));
}
