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

#include "bytes.h"
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

/* An option, and what takes its value. */
enum kind { SECTION, FLAG, TEXT, NUMBER, BYTES, ORDER };

static bool help, version;

static const struct choice {
    const char *name;
    enum kind kind;
    void *out;
    int least;   /* of a number; a section's bit */
    bool detail; /* it describes a call or a schedule */
} choices[] = {
    {"functions", SECTION, &info_options.sections, FUNCTIONS, false},
    {"variables", SECTION, &info_options.sections, VARIABLES, false},
    {"algorithms", SECTION, &info_options.sections, ALGORITHMS, false},
    {"rules", SECTION, &info_options.sections, RULES, false},
    {"all", SECTION, &info_options.sections, EVERYTHING, false},
    {"json", FLAG, &info_options.json, 0, false},
    {"selftest", FLAG, &info_options.selftest, 0, false},
    {"threads", FLAG, &info_options.threads, 0, false},
    {"cures", FLAG, &info_options.cures, 0, false},
    {"help", FLAG, &help, 0, false},
    {"version", FLAG, &version, 0, false},
    {"choose", TEXT, &info_options.choose, 0, false},
    {"costs", TEXT, &info_options.costs, 0, false},
    {"schedule", TEXT, &info_options.schedule, 0, false},
    {"seconds", NUMBER, &info_options.seconds, 1, false},
    {"ranks", NUMBER, &info_options.call.size, 1, true},
    {"remote", NUMBER, &info_options.call.remote_size, 1, true},
    {"per-node", NUMBER, &info_options.call.per_node, 1, true},
    {"rank", NUMBER, &info_options.only, 0, true},
    {"bytes", BYTES, &info_options.call.bytes, 0, true},
    {"segment", BYTES, &info_options.call.segment, 0, true},
    {"order", ORDER, &info_options.call.order, 0, true},
    {"ordered", FLAG, &info_options.call.ordered, 0, true},
    {"sockets", FLAG, &info_options.call.sockets, 0, true},
    {"oversubscribed", FLAG, &info_options.call.oversubscribed, 0, true},
    {"dot", FLAG, &info_options.dot, 0, true},
    {"svg", FLAG, &info_options.svg, 0, true},
};

enum { NCHOICES = sizeof choices / sizeof *choices };

static bool take(const struct choice *c, const char *value)
{
    int64_t n;
    switch (c->kind) {
    case SECTION:
        *(int *)c->out |= c->least;
        return true;
    case FLAG:
        *(bool *)c->out = true;
        return true;
    case TEXT:
        *(const char **)c->out = value;
        return true;
    case NUMBER:
        if (!info_read_number(value, INT_MAX / 2, &n) || n < c->least)
            return false;
        *(int *)c->out = (int)n;
        return true;
    case BYTES:
        return info_read_number(value, INT64_MAX >> 24, c->out);
    default:
        return nbc_order_by_name(value, c->out);
    }
}

/* Reads the options. Sets detail to the last one that describes a call. Returns false after a
 * message on standard error. */
static bool take_all(int argc, char **argv, char detail[32])
{
    struct option longs[NCHOICES + 1] = {0};
    int i;
    for (i = 0; i < NCHOICES; i++)
        longs[i] = (struct option){choices[i].name, choices[i].kind > FLAG, NULL, i};
    while ((i = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        bool known = i < NCHOICES;
        if (known && take(&choices[i], optarg)) {
            if (choices[i].detail)
                snprintf(detail, 32, "--%s", choices[i].name);
            continue;
        }
        if (known) /* else getopt_long has said why */
            fprintf(stderr, "nbcinfo: --%s %s: no such value, or out of range; ", choices[i].name,
                    optarg);
        fputs("see nbcinfo --help\n", stderr);
        return false;
    }
    return true;
}

/* All ranks together have no more bytes than numbers can hold; in a reduce_scatter between two
 * groups a vector has the blocks of both. */
static bool is_too_large(const struct tool_call *call)
{
    int64_t ranks = tool_call_ranks(call), most = INT64_MAX / 64 / ranks;
    return call->bytes > (call->remote_size ? most / ranks : most);
}

/* Returns −1 to continue, else the exit status. */
static int read_options(int argc, char **argv)
{
    struct info_options *o = &info_options;
    char detail[32] = "";
    if (!take_all(argc, argv, detail))
        return 2;
#ifdef OPEN_MPI
    o->call.handshake = true; /* as in pmpi/op/nodemap.c */
#endif
    if (help)
        return fputs(usage, stdout), 0;
    if (version)
        return printf("nbcinfo (nbcshim) %s\n", PACKAGE_VERSION), 0;
    if (optind < argc)
        return info_fail(argv[optind], "not an option; see nbcinfo --help");
    if (*detail && !o->choose && !o->costs && !o->schedule)
        return info_fail(detail, "needs --choose, --costs or --schedule; see nbcinfo --help");
    if ((o->threads || o->seconds) && !o->selftest)
        return info_fail(o->threads ? "--threads" : "--seconds",
                         "needs --selftest; see nbcinfo --help");
    int wishes = (o->sections != 0) + o->selftest + o->cures + (o->choose != NULL) +
                 (o->costs != NULL) + (o->schedule != NULL);
    if (wishes > 1)
        return info_fail("only one of these is possible",
                         "a list, --choose, --costs, --schedule, --selftest, --cures");
    if (is_too_large(&o->call))
        return info_fail("--bytes", "too many for all ranks together");
    if (!o->sections)
        o->sections = o->json ? EVERYTHING : ABOUT | VARIABLES;
    o->sections |= ABOUT;
    return -1;
}

static int run(int argc, char **argv)
{
    int status = read_options(argc, argv);
    struct emit e = {.writer.out = stdout, .json = info_options.json};
    if (status >= 0)
        return status;
    nbc_sockets_eager = NBC_SOCKETS_EAGER;
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
