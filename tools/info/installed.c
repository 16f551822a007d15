/* SPDX-License-Identifier: MIT */
/* nbcinfo: this installation: its MPI, functions, variables, algorithms and rules, and --cures. */
#define _GNU_SOURCE
#include "info/info.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "nbcshim.h"

#include "rules.h"

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
const char *info_accepted(const char *name)
{
    struct nbcshim_variable v;
    for (int i = 0; nbcshim_variable(i, &v); i++)
        if (strcmp(v.name, name) == 0)
            return v.accepted ? v.value : NULL;
    return NULL;
}

/* What becomes of buffers in it, and the runtimes that a program would find. */
static void gpu_memory(char *text, size_t size)
{
    const char *level_zero = info_accepted("NBCSHIM_LEVEL_ZERO");
    const char *const runtimes[] = {
        "libcuda.so.1", "libamdhip64.so",
        level_zero && nbc_same_word(level_zero, "1") ? "libze_loader.so.1" : NULL};
    const char *use = info_accepted("NBCSHIM_DEVICE"), *before = "; found ";
    size_t n = (size_t)snprintf(text, size, "%s",
                                use && nbc_same_word(use, "off") ? "taken for memory of the host"
                                : use && nbc_same_word(use, "stage")
                                    ? "copied to that of the host"
                                    : "given to an MPI that takes it, else copied to that "
                                      "of the host");
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes && n < size; i++)
        if (runtimes[i] && dlopen(runtimes[i], RTLD_LAZY)) {
            n += (size_t)snprintf(text + n, size - n, "%s%s", before, runtimes[i]);
            before = ", ";
        }
    if (n < size && *before == ';')
        snprintf(text + n, size - n, "; neither CUDA nor HIP is found");
}

void info_about(struct emit *e)
{
    char version[32], found[256], hook[160], memory[160];
    int hooked, n = nbcshim_version();
    const char *by = nbcshim_hook(&hooked);
    const char *wanted = info_accepted("NBCSHIM_HOOK");
    if (wanted && nbc_same_word(wanted, "off")) {
        hooked = 0;
        by = "NBCSHIM_HOOK=off";
    }
    snprintf(hook, sizeof hook,
             hooked ? "in all waits of the MPI, by %s" : "in nbcshim's calls (%s)", by);
    snprintf(version, sizeof version, "%d.%d.%d", n / 10000, n / 100 % 100, n % 100);
    library_version(found, sizeof found);
    gpu_memory(memory, sizeof memory);
    const struct {
        const char *name, *label, *value;
    } rows[] = {
        {"version", "nbcshim", version}, {"built_for", "built for", built_for},
        {"found", "found", found},       {"found_in", "in", library_file()},
        {"progress", "progress", hook},  {"gpu_memory", "GPU memory", memory},
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
        bool rare =
            strncmp(v.name, "NBCSHIM_ALGORITHM_", 18) == 0 || strcmp(v.name, "NBCSHIM_TEST") == 0;
        if (!e->json && rare && !v.value)
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
    {NBC_PATTERN, "a persistent operation"},
    {NBC_BY_MPI, "an operation of the MPI's own, which is not simulated"},
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
const char *info_lacks_text(const struct nbc_alg *alg, const struct nbc_shape *shape, char *text,
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

void info_range(char *text, size_t size, int64_t least, int64_t most, int64_t limit)
{
    if (most >= limit)
        snprintf(text, size, "%" PRId64 " or more", least);
    else
        snprintf(text, size, "%" PRId64 " to %" PRId64, least, most);
}

/* Returns the rules of the file that NBCSHIM_TUNING names, followed by the built-in ones; NULL if
 * it cannot be read, in which case the library ignores it too. */
static struct nbc_rules *read_rules(const char *name)
{
    struct nbc_rules_error error;
    struct nbc_rules *rules = nbc_rules_read(name, &nbc_default_rules, &error);
    if (!rules)
        fprintf(stderr, "nbcinfo: NBCSHIM_TUNING=%s ignored: %s; the built-in rules are in force\n",
                name, error.what);
    return rules;
}

const struct nbc_rules *info_in_force(void)
{
    static const struct nbc_rules *found;
    const char *name = info_accepted("NBCSHIM_TUNING");
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
    for (int i = 0; i < info_in_force()->nrules; i++) {
        const struct nbc_rule *r = &info_in_force()->rule[i];
        info_range(ranks, sizeof ranks, r->min_size, r->max_size, INT_MAX);
        info_range(bytes, sizeof bytes, r->min_bytes, r->max_bytes, INT64_MAX);
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

int info_show(struct emit *e)
{
    static const struct {
        int section;
        void (*print)(struct emit *);
    } table[] = {{ABOUT, info_about},
                 {FUNCTIONS, functions},
                 {VARIABLES, variables},
                 {ALGORITHMS, algorithms},
                 {RULES, rules}};
    emit_begin(e);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (info_options.sections & table[i].section)
            table[i].print(e);
    emit_end(e);
    return 0;
}

/* --- cures ------------------------------------------------------------------------------------ */

/* A row of test/cures/cures.list: what public reports say, and what came of its case on the MPIs
 * that have a column there. */
struct cure {
    const char *name, *reports, *symptom, *versions, *native[5];
};

static const struct cure cures_table[] = {
#include "cures_table.h"
};

/* The column of the MPI that this nbcshim was built for, and whose reports concern it. */
#if defined(OMPI_MAJOR_VERSION)
enum { CURES_COLUMN = OMPI_MAJOR_VERSION < 5 ? 1 : 3 };
static const char cures_family[] = "ompi";
#elif defined(I_MPI_VERSION)
enum { CURES_COLUMN = 4 };
static const char cures_family[] = "mpich#";
#elif defined(MPICH_NUMVERSION)
enum { CURES_COLUMN = MPICH_NUMVERSION < 50000000 ? 0 : 2 };
static const char cures_family[] = "mpich#";
#else
enum { CURES_COLUMN = 0 };
static const char cures_family[] = "";
#endif

static const char *const cures_on[] = {"MPICH 4.0.2", "Open MPI 4.1.4", "MPICH 5.0.2",
                                       "Open MPI 5.0.11", "Intel MPI 2021.18"};

/* What goes wrong comes first, then what the MPI lacks. */
static size_t place_of(const struct cure *c)
{
    const char *native = c->native[CURES_COLUMN];
    return strcmp(native, "right") == 0 ? 2 : strcmp(native, "lacks") == 0;
}

static bool concerns(const struct cure *c)
{
    return place_of(c) < 2 || strstr(c->reports, cures_family);
}

static void print_cure(struct emit *e, const struct cure *c)
{
    if (!e->json) {
        fprintf(e->writer.out, "  %-8s %s\n           %s; %s\n", c->native[CURES_COLUMN],
                c->symptom, c->versions, c->reports[0] == '-' ? "no report known" : c->reports);
        return;
    }
    emit_row(e, NULL);
    emit_string(e, "native", 0, c->native[CURES_COLUMN]);
    emit_string(e, "symptom", 0, c->symptom);
    emit_string(e, "versions", 0, c->versions);
    emit_string(e, "reports", 0, c->reports);
    emit_row_end(e);
}

int info_cures(struct emit *e)
{
    const size_t n = sizeof cures_table / sizeof *cures_table;
    char title[200];
    emit_begin(e);
    info_about(e);
    snprintf(
        title, sizeof title,
        "Reported faults that nbcshim mends, and what came of them without it, on one host, on\n"
        "%s. \"right\" says nothing about other versions and networks. See doc/cures.md",
        cures_on[CURES_COLUMN]);
    emit_list(e, "cures", title);
    for (size_t i = 0; i < 3 * n; i++) {
        const struct cure *c = &cures_table[i % n];
        if (concerns(c) && place_of(c) == i / n)
            print_cure(e, c);
    }
    emit_list_end(e);
    emit_end(e);
    return 0;
}
