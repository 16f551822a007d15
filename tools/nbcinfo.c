/* SPDX-License-Identifier: MIT */
/* nbcinfo: shows this installation, which algorithms it would select, and their schedules. It runs
 * without a launcher and never calls MPI_Init. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "nbcshim.h"

#include "call.h"
#include "emit.h"
#include "picture.h"
#include "rules.h"

enum section {
    ABOUT = 1,
    FUNCTIONS = 2,
    VARIABLES = 4,
    ALGORITHMS = 8,
    RULES = 16,
    EVERYTHING = ABOUT | FUNCTIONS | VARIABLES | ALGORITHMS | RULES
};

static struct options {
    int sections;
    bool json, dot, svg;
    const char *choose, *costs, *schedule;
    struct tool_call call;
    int only; /* rank; −1: all */
} options = {.call = {.size = 4, .bytes = 1024}, .only = -1};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "nbcinfo: %s%s%s\n", what, why ? ": " : "", why ? why : "");
    return 2;
}

/* --- what there is ---------------------------------------------------------------------------- */

#define TEXT(x) #x
#define NUMBER(x) TEXT(x)

static const char built_for[] =
#if defined(OMPI_MAJOR_VERSION)
    "Open MPI " NUMBER(OMPI_MAJOR_VERSION) "." NUMBER(OMPI_MINOR_VERSION) "." NUMBER(
        OMPI_RELEASE_VERSION)
#elif defined(MVAPICH2_VERSION)
    "MVAPICH2 " MVAPICH2_VERSION
#elif defined(MPICH_VERSION)
    "MPICH " MPICH_VERSION
#elif defined(MPICH2_VERSION)
    "MPICH2 " MPICH2_VERSION
#elif defined(NBC_SIMULATED)
    "SMPI"
#elif defined(MPI_ABI_VERSION)
    "the ABI of MPI-5, version " NUMBER(MPI_ABI_VERSION) "." NUMBER(MPI_ABI_SUBVERSION)
#else
    "an MPI"
#endif
        ", which reports MPI-" NUMBER(MPI_VERSION) "." NUMBER(MPI_SUBVERSION);

/* MPI_Get_library_version came with MPI-3; it may be called at any time. */
static void library_version(char *text, size_t size)
{
    int (*ask)(char *, int *);
    void *object = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    char answer[16384] = ""; /* twice the longest of any MPI */
    int length;
    snprintf(text, size, "unknown (the MPI has no MPI_Get_library_version)");
    memcpy(&ask, &object, sizeof ask);
    if (!object || ask(answer, &length))
        return;
    char *c = answer;
    for (; *c && *c != '\n'; c++)
        if (*c == '\t')
            *c = ' ';
    *c = '\0';
    snprintf(text, size, "%.*s", (int)size - 1, answer);
}

/* Returns the file in which a function of the MPI is found. */
static const char *library_file(void)
{
    Dl_info info;
    void *object = dlsym(RTLD_DEFAULT, "MPI_Get_processor_name");
    return object && dladdr(object, &info) ? info.dli_fname : "unknown";
}

/* Returns the value of a variable; NULL if it is not set or not accepted. */
static const char *accepted(const char *name)
{
    struct nbcshim_variable v;
    for (int i = 0; nbcshim_variable(i, &v); i++)
        if (strcmp(v.name, name) == 0)
            return v.accepted ? v.value : NULL;
    return NULL;
}

static void about(struct emit *e)
{
    char version[32], found[256], hook[160];
    int hooked, n = nbcshim_version();
    const char *by = nbcshim_hook(&hooked);
    const char *wanted = accepted("NBCSHIM_HOOK");
    if (wanted && nbc_same_word(wanted, "off")) {
        hooked = 0;
        by = "NBCSHIM_HOOK=off";
    }
    snprintf(hook, sizeof hook,
             hooked ? "in all waits of the MPI, by %s" : "in nbcshim's calls (%s)", by);
    snprintf(version, sizeof version, "%d.%d.%d", n / 10000, n / 100 % 100, n % 100);
    library_version(found, sizeof found);
    const struct {
        const char *name, *label, *value;
    } rows[] = {
        {"version", "nbcshim", version}, {"built_for", "built for", built_for},
        {"found", "found", found},       {"found_in", "in", library_file()},
        {"progress", "progress", hook},
    };
    if (e->json)
        emit_row(e, "about");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (e->json)
            emit_string(e, rows[i].name, 0, rows[i].value);
        else
            fprintf(e->writer.out, "%-10s %s\n", rows[i].label, rows[i].value);
    if (e->json)
        emit_row_end(e);
    e->writer.again = true;
}

/* Prints the names of the functions that the MPI has, or lacks, in lines of limited width. */
static void print_names(FILE *out, bool has)
{
    const char *name;
    int below, column = 0;
    for (int i = 0; (name = nbcshim_function(i, &below)); i++) {
        if (!!below != has)
            continue;
        if (column + strlen(name) > 92) {
            fputc('\n', out);
            column = 0;
        }
        column += fprintf(out, "%s%s", column ? " " : "  ", name);
    }
    fprintf(out, "%s", column ? "\n" : "");
}

static void functions(struct emit *e)
{
    const char *name;
    int below, has = 0, lacks = 0;
    for (int i = 0; nbcshim_function(i, &below); i++)
        below ? has++ : lacks++;
    if (!e->json) {
        fprintf(e->writer.out, "\n%d functions that this MPI lacks and nbcshim adds (MPI_...):\n",
                lacks);
        print_names(e->writer.out, false);
        fprintf(e->writer.out, "\n%d functions of this MPI that nbcshim replaces or intercepts:\n",
                has);
        print_names(e->writer.out, true);
        return;
    }
    emit_list(e, "functions", "");
    for (int i = 0; (name = nbcshim_function(i, &below)); i++) {
        char full[80];
        snprintf(full, sizeof full, "MPI_%s", name);
        emit_row(e, NULL);
        emit_string(e, "name", 0, full);
        emit_bool(e, "mpi_has", 0, below);
        emit_row_end(e);
    }
    emit_list_end(e);
}

static void variables(struct emit *e)
{
    struct nbcshim_variable v;
    emit_list(e, "variables", "Environment variables: value, origin, meaning");
    for (int i = 0; nbcshim_variable(i, &v); i++) {
        bool algorithm = strncmp(v.name, "NBCSHIM_ALGORITHM_", 18) == 0;
        if (!e->json && algorithm && !v.value)
            continue;
        emit_row(e, NULL);
        emit_string(e, "name", 24, v.name);
        emit_string(e, "value", 18, v.accepted ? v.value : v.fallback);
        emit_string(e, "origin", 11,
                    v.accepted ? "environment"
                    : v.value  ? "not taken"
                               : "default");
        emit_string(e, "environment", -1, v.value);
        emit_string(e, "default", -1, v.fallback);
        emit_string(e, "accepts", -1, v.accepts);
        emit_string(e, "meaning", 0, v.meaning);
        if (!e->json && v.value && !v.accepted)
            fprintf(e->writer.out, " (%s ignored: expected %s)", v.value, v.accepts);
        emit_row_end(e);
    }
    emit_list_end(e);
    if (!e->json)
        fprintf(e->writer.out,
                "  NBCSHIM_ALGORITHM_<COLLECTIVE> forces an algorithm; listed only if set\n");
}

static const struct {
    unsigned need;
    const char *word;
} needs_words[] = {
    {NBC_COMMUTATIVE, "a commutative operator"},
    {NBC_POW2, "a power-of-two number of ranks"},
    {NBC_EVEN, "an even number of ranks"},
    {NBC_INTER, "an intercommunicator"},
    {NBC_NODES, "several nodes"},
    {NBC_MULTI, "several ranks"},
    {NBC_EQUAL, "nodes with equal blocks of ranks"},
    {NBC_LOCAL, "all ranks on one node"},
    {NBC_SPREAD, "ranks on several nodes"},
    {NBC_SOCKETS, "no network but sockets"},
    {NBC_OVERSUBSCRIBED, "more ranks than processors"},
    {NBC_HANDSHAKE, "a handshake before messages over 4 KiB"},
    {NBC_REGROUPS, "any order"},
    {NBC_FOLDS, "any order or that of ranks"},
    {NBC_DOUBLES, "any order or that of a tree"},
    {NBC_RANKS, "the order of ranks"},
    {NBC_TREE, "the order of a tree"},
};

static const char *needs_text(unsigned needs, char *text, size_t size)
{
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; i < sizeof needs_words / sizeof *needs_words; i++) {
        unsigned need = needs_words[i].need;
        if ((needs & need) != need || n >= size)
            continue;
        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", needs_words[i].word);
        needs &= ~need;
    }
    return *text ? text : "nothing";
}

/* Returns the preconditions of an algorithm that a call does not meet, including that of a single
 * group. */
static const char *lacks_text(const struct nbc_alg *alg, const struct nbc_shape *shape, char *text,
                              size_t size)
{
    if (shape->remote_size && !(alg->needs & NBC_INTER))
        return "an intracommunicator";
    return needs_text(alg->needs, text, size);
}

static void algorithms(struct emit *e)
{
    char needs[256];
    emit_list(e, "algorithms", "Algorithms: purpose and requirements");
    for (int i = 0; i < nbc_nalgs; i++) {
        const struct nbc_alg *a = &nbc_algs[i];
        emit_row(e, NULL);
        emit_string(e, "collective", 22, nbc_coll_name(a->coll));
        emit_string(e, "name", 24, a->name);
        emit_string(e, "purpose", 56, a->purpose);
        emit_string(e, "needs", 0, needs_text(a->needs, needs, sizeof needs));
        emit_row_end(e);
    }
    emit_list_end(e);
}

static void range(char *text, size_t size, int64_t least, int64_t most, int64_t limit)
{
    if (most >= limit)
        snprintf(text, size, "%" PRId64 " or more", least);
    else
        snprintf(text, size, "%" PRId64 " to %" PRId64, least, most);
}

/* Reads a file up to the first null character, which no text has. It may be empty, as for the
 * library. */
static char *read_text(FILE *in)
{
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, '\0', in) >= 0)
        return text;
    free(text);
    return ferror(in) ? NULL : calloc(1, 1);
}

/* Returns the rules of the file that NBCSHIM_TUNING names, followed by the built-in ones; NULL if
 * it cannot be read, in which case the library ignores it too. */
static struct nbc_rules *read_rules(const char *name)
{
    struct nbc_rules_error error;
    struct nbc_rules *rules = NULL;
    FILE *in = fopen(name, "r");
    char *text = in ? read_text(in) : NULL;
    if (text)
        rules = nbc_rules_parse(text, &nbc_default_rules, &error);
    if (!rules)
        fprintf(stderr,
                "nbcinfo: NBCSHIM_TUNING=%s ignored: the file cannot be read or is not a tuning "
                "file; the built-in rules are in force\n",
                name);
    free(text);
    if (in)
        fclose(in);
    return rules;
}

static const struct nbc_rules *in_force(void)
{
    static const struct nbc_rules *found;
    const char *name = accepted("NBCSHIM_TUNING");
    if (!found && name)
        found = read_rules(name);
    if (!found)
        found = &nbc_default_rules;
    return found;
}

static void rules(struct emit *e)
{
    char ranks[64], bytes[64], needs[256];
    emit_list(e, "rules",
              "Tuning rules: the first one that matches and whose algorithm applies is used");
    for (int i = 0; i < in_force()->nrules; i++) {
        const struct nbc_rule *r = &in_force()->rule[i];
        range(ranks, sizeof ranks, r->min_size, r->max_size, INT_MAX);
        range(bytes, sizeof bytes, r->min_bytes, r->max_bytes, INT64_MAX);
        emit_row(e, NULL);
        emit_string(e, "collective", 22, nbc_coll_name(r->coll));
        if (!e->json)
            fprintf(e->writer.out, "ranks %-12s bytes %-18s ", ranks, bytes);
        emit_number(e, "min_ranks", -1, r->min_size);
        emit_number(e, "max_ranks", -1, r->max_size);
        emit_number(e, "min_bytes", -1, r->min_bytes);
        emit_number(e, "max_bytes", -1, r->max_bytes);
        emit_string(e, "algorithm", 0, r->alg->name);
        emit_number(e, "segment", -1, r->segment);
        emit_string(e, "needs", -1, needs_text(r->needs, needs, sizeof needs));
        if (!e->json && r->needs)
            fprintf(e->writer.out, ", requires %s", needs_text(r->needs, needs, sizeof needs));
        if (!e->json && r->segment)
            fprintf(e->writer.out, ", segments of %" PRId64 " bytes", r->segment);
        emit_row_end(e);
    }
    emit_list_end(e);
}

static int show(struct emit *e)
{
    static const struct {
        int section;
        void (*print)(struct emit *);
    } table[] = {{ABOUT, about},
                 {FUNCTIONS, functions},
                 {VARIABLES, variables},
                 {ALGORITHMS, algorithms},
                 {RULES, rules}};
    emit_begin(e);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (options.sections & table[i].section)
            table[i].print(e);
    emit_end(e);
    return 0;
}

/* Reads a number with an optional suffix K, M or G. */
static bool read_number(const char *word, int64_t most, int64_t *number)
{
    static const char units[] = "KMG";
    char *end;
    long long n = strtoll(word, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (end == word || n < 0 || (*end && (!unit || end[1])))
        return false;
    for (int i = 0; unit && i <= unit - units; i++) {
        if (n > LLONG_MAX / 1024)
            return false;
        n *= 1024;
    }
    *number = n;
    return n <= most;
}

/* --- which algorithm would run ---------------------------------------------------------------- */

/* Sets from the environment the properties of a call that no option sets. */
static void ask_environment(struct tool_call *call)
{
    const char *nodes = accepted("NBCSHIM_NODES"), *segment = accepted("NBCSHIM_SEGMENT_SIZE");
    if (nodes && !call->per_node)
        call->per_node = atoi(nodes);
    call->eager = in_force()->eager;
    if (segment && !call->segment)
        read_number(segment, INT64_MAX, &call->segment);
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
                             override->name, lacks_text(override, shape, needs, sizeof needs));
    const struct nbc_rule *rule = nbc_rule_find(shape, in_force());
    if (!rule) {
        snprintf(text + n, size - n,
                 "no tuning rule matches, and this is the first algorithm that applies");
        return;
    }
    range(ranks, sizeof ranks, rule->min_size, rule->max_size, INT_MAX);
    range(bytes, sizeof bytes, rule->min_bytes, rule->max_bytes, INT64_MAX);
    snprintf(text + n, size - n, "tuning rule %d: ranks %s, bytes %s",
             (int)(rule - in_force()->rule) + 1, ranks, bytes);
}

/* Scans and neighborhood collectives are not defined on intercommunicators. */
static bool is_possible(const struct nbc_shape *shape)
{
    for (int i = 0; i < nbc_nalgs; i++)
        if (nbc_algs[i].coll == shape->coll && nbc_alg_applies(&nbc_algs[i], shape))
            return true;
    return false;
}

static int choose(struct emit *e)
{
    struct tool_rank rank;
    struct nbcshim_variable v;
    const struct nbc_alg *override = NULL;
    char why[512];
    int64_t segment;
    options.call.coll = nbc_coll_by_name(options.choose);
    if (options.call.coll == NBC_NCOLLS)
        return fail(options.choose, "no such collective");
    ask_environment(&options.call);
    if (!tool_rank_make(&rank, &options.call, 0))
        return fail("out of memory", NULL);
    if (!is_possible(&rank.shape)) {
        tool_rank_free(&rank);
        return fail(options.choose, "not defined on intercommunicators");
    }
    if (variable_of(options.call.coll, &v) && v.accepted)
        override = nbc_alg_by_name(options.call.coll, v.value);
    const struct nbc_alg *alg = nbc_select(&rank.shape, override, in_force(), &segment);
    if (options.call.segment)
        segment = options.call.segment;
    explain(&rank.shape, override, v.name, why, sizeof why);
    if (!e->json) {
        fprintf(e->writer.out, "%s: %s\n", alg->name, why);
    } else {
        emit_begin(e);
        emit_string(e, "collective", 0, nbc_coll_name(options.call.coll));
        emit_number(e, "ranks", 0, tool_call_ranks(&options.call));
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
        if (options.only >= 0 && options.only != id)
            continue;
        printf("\nrank %d: ", id);
        nbc_sched_print(p->ranks[id].sched, stdout);
    }
}

static int draw(const struct picture *p, const char *title)
{
    if (!options.svg) {
        picture_dot(p, title, stdout);
        return 0;
    }
    fflush(stdout);
    signal(SIGPIPE, SIG_IGN); /* if dot does not exist, writing to it fails */
    FILE *dot = popen("dot -Tsvg", "w");
    if (!dot)
        return fail("cannot start Graphviz's dot", NULL);
    picture_dot(p, title, dot);
    return pclose(dot) ? fail("Graphviz's dot failed; is it installed?", NULL) : 0;
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
    const char *wrong = picture_make(&p, &options.call, ranks);
    if (wrong)
        return fail("internal error in the schedules", wrong);
    snprintf(title, sizeof title, "%s:%s, %d ranks", nbc_coll_name(alg->coll), alg->name, p.nranks);
    int status = 0;
    if (options.json)
        print_costs(&p, alg);
    else if (options.dot || options.svg)
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
    *lacks = nbc_alg_applies(alg, &first.shape) ? NULL : lacks_text(alg, &first.shape, text, size);
    tool_rank_free(&first);
    return true;
}

static bool has_too_many_ranks(void)
{
    enum { MOST_RANKS = 1024 };
    return tool_call_ranks(&options.call) > MOST_RANKS;
}

static int schedule(void)
{
    char name[128], needs[256];
    const char *lacks;
    snprintf(name, sizeof name, "%s", options.schedule);
    char *colon = strchr(name, ':');
    if (!colon)
        return fail(name, "expected COLLECTIVE:ALGORITHM");
    *colon = '\0';
    options.call.coll = nbc_coll_by_name(name);
    if (options.call.coll == NBC_NCOLLS)
        return fail(name, "no such collective");
    const struct nbc_alg *alg = nbc_alg_by_name(options.call.coll, colon + 1);
    if (!alg)
        return fail(colon + 1, "this collective has no such algorithm; see nbcinfo --algorithms");
    if (has_too_many_ranks())
        return fail("--ranks", "a schedule is limited to 1024 ranks");
    if ((alg->needs & NBC_INTER) && !options.call.remote_size)
        options.call.remote_size = options.call.size;
    if (options.only >= tool_call_ranks(&options.call))
        return fail("--rank", "no such rank");
    call_suit(&options.call, alg);
    if (!call_lacks(&options.call, alg, needs, sizeof needs, &lacks))
        return fail("out of memory", NULL);
    if (lacks)
        return fail("the algorithm does not apply to this call: it requires", lacks);
    struct tool_rank *ranks = tool_ranks_make(&options.call, alg);
    if (!ranks)
        return fail("out of memory", NULL);
    int status = present(ranks, alg);
    tool_ranks_free(ranks, &options.call);
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
    struct tool_call call = options.call;
    struct picture p;
    char needs[256];
    const char *lacks;
    call_suit(&call, alg);
    if (!call_lacks(&call, alg, needs, sizeof needs, &lacks))
        return fail("out of memory", NULL);
    if (lacks)
        return 0;
    struct tool_rank *ranks = tool_ranks_make(&call, alg);
    if (!ranks)
        return fail("out of memory", NULL);
    const char *wrong = picture_make(&p, &call, ranks);
    if (!wrong) {
        cost_row(e, &p, alg);
        picture_free(&p);
    }
    tool_ranks_free(ranks, &call);
    return wrong ? fail(alg->name, wrong) : 0;
}

static int costs(struct emit *e)
{
    enum nbc_coll coll = nbc_coll_by_name(options.costs);
    int status = 0;
    if (coll == NBC_NCOLLS && strcmp(options.costs, "all") != 0)
        return fail(options.costs, "no such collective");
    if (has_too_many_ranks())
        return fail("--ranks", "costs are limited to 1024 ranks");
    emit_begin(e);
    emit_list(e, "costs", "Costs: rounds, messages, bytes, bytes of the rank that sends most");
    for (int i = 0; i < nbc_nalgs && !status; i++)
        if (coll == NBC_NCOLLS || nbc_algs[i].coll == coll)
            status = cost_of(e, &nbc_algs[i]);
    emit_list_end(e);
    emit_end(e);
    return status;
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
    if (!read_number(word, INT_MAX / 2, &n) || n < least)
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
    struct tool_call *call = &options.call;
    switch (option) {
    case 'c':
        options.choose = optarg;
        return true;
    case 'k':
        options.costs = optarg;
        return true;
    case 's':
        options.schedule = optarg;
        return true;
    case 'n':
        return read_int(optarg, 1, &call->size);
    case 'm':
        return read_int(optarg, 1, &call->remote_size);
    case 'p':
        return read_int(optarg, 1, &call->per_node);
    case 'r':
        return read_int(optarg, 0, &options.only);
    case 'b':
        return read_number(optarg, INT64_MAX >> 24, &call->bytes);
    case 'o':
        return nbc_order_by_name(optarg, &call->order);
    case 'g':
        return read_number(optarg, INT64_MAX >> 24, &call->segment);
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

/* Returns −1 to continue, else the exit status. */
static int read_options(int argc, char **argv)
{
    int option, section = 0, word = NWORDS;
    bool given[NWORDS + 1] = {0};
    const struct option *longs = long_options(&section, &word);
    while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (!read_option(option)) {
            fprintf(stderr, "%ssee nbcinfo --help\n",
                    option == '?' ? "" : "nbcinfo: the value of an option is out of range; ");
            return 2;
        }
        note_detail(option, word);
        options.sections |= section;
        given[word] = true;
        section = 0;
        word = NWORDS;
    }
    options.json = given[WORD_JSON];
    options.dot = given[WORD_DOT];
    options.svg = given[WORD_SVG];
    options.call.ordered = given[WORD_ORDERED];
    options.call.sockets = given[WORD_SOCKETS];
    options.call.oversubscribed = given[WORD_OVERSUBSCRIBED] || given[WORD_CROWDED];
#ifdef OPEN_MPI
    options.call.handshake = true; /* as in pmpi/op/nodemap.c */
#endif
    if (given[WORD_HELP])
        return fputs(usage, stdout), 0;
    if (given[WORD_VERSION])
        return printf("nbcinfo (nbcshim) %s\n", PACKAGE_VERSION), 0;
    if (optind < argc)
        return fail(argv[optind], "not an option; see nbcinfo --help");
    if (detail && !options.choose && !options.costs && !options.schedule)
        return fail(detail, "needs --choose, --costs or --schedule; see nbcinfo --help");
    if (is_too_large(&options.call))
        return fail("--bytes", "too many for all ranks together");
    if (!options.sections)
        options.sections = options.json ? EVERYTHING : ABOUT | VARIABLES;
    options.sections |= ABOUT;
    return -1;
}

static int run(int argc, char **argv)
{
    int status = read_options(argc, argv);
    struct emit e = {.writer.out = stdout, .json = options.json};
    if (status >= 0)
        return status;
    if (options.choose)
        return choose(&e);
    if (options.costs)
        return costs(&e);
    if (options.schedule)
        return schedule();
    return show(&e);
}

int main(int argc, char **argv)
{
    return emit_status("nbcinfo", run(argc, argv));
}
