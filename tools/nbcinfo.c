/* SPDX-License-Identifier: MIT */
/* nbcinfo: shows this installation, which algorithms it would select, and their schedules. It runs
 * without a launcher and never calls MPI_Init, except for --selftest. */
#define _GNU_SOURCE
#include "info/info.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "nbcshim.h"

#include "rules.h"

#ifdef NBC_SELFTEST
#include "selftest/selftest.h"
#endif

struct info_options info_options = {.call = {.size = 4, .bytes = 1024}, .only = -1};

int info_fail(const char *what, const char *why)
{
    fprintf(stderr, "nbcinfo: %s%s%s\n", what, why ? ": " : "", why ? why : "");
    return 2;
}

bool info_read_number(const char *word, int64_t most, int64_t *number)
{
    return nbc_number(&word, number) && !*word && *number <= most;
}

/* --- the command line ------------------------------------------------------------------------- */

static const char usage[] =
    "Usage: nbcinfo [OPTION]...\n"
    "Describe this installation of nbcshim and predict what it does. No launcher is needed.\n"
    "\n"
    "  --functions    list the MPI functions that nbcshim adds, replaces or intercepts\n"
    "  --variables    list the environment variables\n"
    "  --algorithms   list the algorithms of all collectives\n"
    "  --rules        list the tuning rules in force\n"
    "  --all          list all of the above\n"
    "  --json         write JSON\n"
    "  --cures        list the reported faults of this MPI that nbcshim mends (doc/cures.md)\n"
    "  --selftest     run by a launcher (mpiexec -n 4 nbcinfo --selftest): test results and times "
    "on\n"
    "                 these ranks, in a minute; the exit status is 0 if all results are right\n"
    "    --threads    two threads of each rank call, with MPI_THREAD_MULTIPLE\n"
    "    --seconds N  take N seconds at most (default 50)\n"
    "\n"
    "  --choose COLLECTIVE               show which algorithm would run, and why\n"
    "  --costs COLLECTIVE                list the algorithms that apply, with costs; all: of all\n"
    "  --schedule COLLECTIVE:ALGORITHM   show what each rank does\n"
    "    --ranks N        number of ranks (default 4)\n"
    "    --remote N       number of ranks in the remote group of an intercommunicator\n"
    "    --per-node N     number of consecutive ranks that share each node\n"
    "    --sockets        nodes have no network faster than sockets\n"
    "    --oversubscribed the ranks share one node that has fewer processors than ranks\n"
    "    --bytes N        bytes of the vector or of a block, with K, M or G (default 1024)\n"
    "    --segment N      segment size of a pipelined algorithm, in bytes\n"
    "    --ordered        the operator is not commutative\n"
    "    --order ORDER    the ranks are combined in this order: any, ranks or tree\n"
    "    --rank N         show the schedule of this rank only\n"
    "    --dot            draw the schedule in the language of Graphviz\n"
    "    --svg            draw the schedule as SVG, with Graphviz\n"
    "\n"
    "  --help         show this help and exit\n"
    "  --version      show the version and exit\n";

static bool read_int(const char *word, int least, int *number)
{
    int64_t n;
    if (!info_read_number(word, INT_MAX / 2, &n) || n < least)
        return false;
    *number = (int)n;
    return true;
}

enum word {
    WORD_JSON,
    WORD_DOT,
    WORD_SVG,
    WORD_ORDERED,
    WORD_SOCKETS,
    WORD_OVERSUBSCRIBED,
    WORD_CROWDED, /* its former name */
    WORD_SELFTEST,
    WORD_THREADS,
    WORD_CURES,
    WORD_HELP,
    WORD_VERSION,
    NWORDS
};

/* Options that describe a call or a schedule, and the first of them that was given. */
static const char *detail;

static void note_detail(int option, int word)
{
    static const struct {
        int option, word;
        const char *name;
    } details[] = {
        {'n', NWORDS, "--ranks"},
        {'m', NWORDS, "--remote"},
        {'p', NWORDS, "--per-node"},
        {'r', NWORDS, "--rank"},
        {'b', NWORDS, "--bytes"},
        {'g', NWORDS, "--segment"},
        {'o', NWORDS, "--order"},
        {0, WORD_ORDERED, "--ordered"},
        {0, WORD_SOCKETS, "--sockets"},
        {0, WORD_OVERSUBSCRIBED, "--oversubscribed"},
        {0, WORD_CROWDED, "--oversubscribed"},
        {0, WORD_DOT, "--dot"},
        {0, WORD_SVG, "--svg"},
    };
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (!detail && option == details[i].option && word == details[i].word)
            detail = details[i].name;
}

static bool read_option(int option)
{
    struct tool_call *call = &info_options.call;
    switch (option) {
    case 'c':
        info_options.choose = optarg;
        return true;
    case 'k':
        info_options.costs = optarg;
        return true;
    case 's':
        info_options.schedule = optarg;
        return true;
    case 'n':
        return read_int(optarg, 1, &call->size);
    case 'm':
        return read_int(optarg, 1, &call->remote_size);
    case 'p':
        return read_int(optarg, 1, &call->per_node);
    case 'r':
        return read_int(optarg, 0, &info_options.only);
    case 'b':
        return info_read_number(optarg, INT64_MAX >> 24, &call->bytes);
    case 't':
        return read_int(optarg, 1, &info_options.seconds) && info_options.seconds <= 86400;
    case 'o':
        return nbc_order_by_name(optarg, &call->order);
    case 'g':
        return info_read_number(optarg, INT64_MAX >> 24, &call->segment);
    default:
        return option == 0;
    }
}

static const struct option *long_options(int *section, int *word)
{
    static struct option longs[] = {
        {"functions", 0, NULL, FUNCTIONS},
        {"variables", 0, NULL, VARIABLES},
        {"algorithms", 0, NULL, ALGORITHMS},
        {"rules", 0, NULL, RULES},
        {"all", 0, NULL, EVERYTHING},
        {"json", 0, NULL, WORD_JSON},
        {"dot", 0, NULL, WORD_DOT},
        {"svg", 0, NULL, WORD_SVG},
        {"ordered", 0, NULL, WORD_ORDERED},
        {"sockets", 0, NULL, WORD_SOCKETS},
        {"oversubscribed", 0, NULL, WORD_OVERSUBSCRIBED},
        {"crowded", 0, NULL, WORD_CROWDED},
        {"selftest", 0, NULL, WORD_SELFTEST},
        {"threads", 0, NULL, WORD_THREADS},
        {"cures", 0, NULL, WORD_CURES},
        {"help", 0, NULL, WORD_HELP},
        {"version", 0, NULL, WORD_VERSION},
        {"choose", 1, NULL, 'c'},
        {"costs", 1, NULL, 'k'},
        {"schedule", 1, NULL, 's'},
        {"ranks", 1, NULL, 'n'},
        {"remote", 1, NULL, 'm'},
        {"per-node", 1, NULL, 'p'},
        {"rank", 1, NULL, 'r'},
        {"bytes", 1, NULL, 'b'},
        {"segment", 1, NULL, 'g'},
        {"seconds", 1, NULL, 't'},
        {"order", 1, NULL, 'o'},
        {0},
    };
    for (int i = 0; i < 5; i++)
        longs[i].flag = section;
    for (int i = 5; i < 5 + NWORDS; i++)
        longs[i].flag = word;
    return longs;
}

/* All ranks together have no more bytes than numbers can hold; in a reduce_scatter between two
 * groups a vector has the blocks of both. */
static bool is_too_large(const struct tool_call *call)
{
    int64_t ranks = tool_call_ranks(call), most = INT64_MAX / 64 / ranks;
    return call->bytes > (call->remote_size ? most / ranks : most);
}

static int refuse_option(int option, const struct option *longs)
{
    while (longs->name && longs->val != option)
        longs++;
    if (longs->name)
        fprintf(stderr, "nbcinfo: --%s %s: no such value, or out of range; ", longs->name, optarg);
    fputs("see nbcinfo --help\n", stderr);
    return 2;
}

/* Returns −1 to continue, else the exit status. */
static int read_options(int argc, char **argv)
{
    int option, section = 0, word = NWORDS;
    bool given[NWORDS + 1] = {0};
    const struct option *longs = long_options(&section, &word);
    while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (!read_option(option))
            return refuse_option(option, longs);
        note_detail(option, word);
        info_options.sections |= section;
        given[word] = true;
        section = 0;
        word = NWORDS;
    }
    info_options.json = given[WORD_JSON];
    info_options.dot = given[WORD_DOT];
    info_options.svg = given[WORD_SVG];
    info_options.selftest = given[WORD_SELFTEST];
    info_options.threads = given[WORD_THREADS];
    info_options.cures = given[WORD_CURES];
    info_options.call.ordered = given[WORD_ORDERED];
    info_options.call.sockets = given[WORD_SOCKETS];
    info_options.call.oversubscribed = given[WORD_OVERSUBSCRIBED] || given[WORD_CROWDED];
#ifdef OPEN_MPI
    info_options.call.handshake = true; /* as in pmpi/op/nodemap.c */
#endif
    if (given[WORD_HELP])
        return fputs(usage, stdout), 0;
    if (given[WORD_VERSION])
        return printf("nbcinfo (nbcshim) %s\n", PACKAGE_VERSION), 0;
    if (optind < argc)
        return info_fail(argv[optind], "not an option; see nbcinfo --help");
    if (detail && !info_options.choose && !info_options.costs && !info_options.schedule)
        return info_fail(detail, "needs --choose, --costs or --schedule; see nbcinfo --help");
    if ((info_options.threads || info_options.seconds) && !info_options.selftest)
        return info_fail(info_options.threads ? "--threads" : "--seconds",
                         "needs --selftest; see nbcinfo --help");
    int wishes = (info_options.sections != 0) + info_options.selftest + info_options.cures +
                 (info_options.choose != NULL) + (info_options.costs != NULL) +
                 (info_options.schedule != NULL);
    if (wishes > 1)
        return info_fail("only one of these is possible",
                         "a list, --choose, --costs, --schedule, --selftest, --cures");
    if (is_too_large(&info_options.call))
        return info_fail("--bytes", "too many for all ranks together");
    if (!info_options.sections)
        info_options.sections = info_options.json ? EVERYTHING : ABOUT | VARIABLES;
    info_options.sections |= ABOUT;
    return -1;
}

static int run(int argc, char **argv)
{
    int status = read_options(argc, argv);
    struct emit e = {.writer.out = stdout, .json = info_options.json};
    if (status >= 0)
        return status;
    if (info_options.selftest)
#ifdef NBC_SELFTEST
        return selftest(argc, argv, &e, info_about,
                        &(struct selftest_options){info_options.threads, info_options.seconds});
#else
        return info_fail("--selftest", "not over a simulated MPI");
#endif
    if (info_options.cures)
        return info_cures(&e);
    if (info_options.choose)
        return info_choose(&e);
    if (info_options.costs)
        return info_costs(&e);
    if (info_options.schedule)
        return info_schedule();
    return info_show(&e);
}

int main(int argc, char **argv)
{
    return emit_status("nbcinfo", run(argc, argv));
}
