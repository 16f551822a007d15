/* SPDX-License-Identifier: MIT */
#include "base/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nbcshim.h"

#include "coll.h"
#include "rules.h"

#define TEST_DEFAULTS                             \
    {                                             \
        .tag_ub = INT_MAX, .trace_events = 100000 \
    }

const struct nbc_test_settings nbc_test_defaults = TEST_DEFAULTS;

struct nbc_settings nbc_settings = {
    .dynamic = true, .shared_memory = true, .init_timeout = 300, .test = TEST_DEFAULTS};

extern char **environ;

/* Finds a word in a list that NULL terminates: *out is its place. Settings that take one of several
 * words are enumerations, numbered in their order. */
static bool parse_word(const char *value, const char *const words[], void *out)
{
    int i = 0;
    while (words[i] && !nbc_same_word(value, words[i]))
        i++;
    if (words[i])
        memcpy(out, &i, sizeof i);
    return words[i];
}

#define WORDS(name, ...)                                           \
    static const char *const name##_words[] = {__VA_ARGS__, NULL}; \
    static bool name(const char *value, void *out)                 \
    {                                                              \
        return parse_word(value, name##_words, out);               \
    }

WORDS(parse_mode, "auto", "on", "off")
WORDS(parse_blocking, "auto", "own", "native")
WORDS(parse_hook, "auto", "on", "off")
WORDS(parse_progress, "calls", "thread")
WORDS(parse_device, "auto", "stage", "direct", "off")

bool nbc_device_by_name(const char *name, void *use)
{
    return parse_device(name, use);
}

const char *nbc_device_name(enum nbc_device_use use)
{
    return parse_device_words[use];
}

static bool parse_switch(const char *value, void *out)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return false;
    *(bool *)out = *value == '1';
    return true;
}

bool nbc_parse_size(const char *value, int64_t *size)
{
    int64_t n;
    if (!nbc_number(&value, &n) || *value || n == 0)
        return false;
    *size = n;
    return true;
}

static bool parse_file(const char *value, void *out)
{
    *(const char **)out = *value ? value : NULL;
    return true;
}

static bool parse_stats(const char *value, void *out)
{
    static const char suffix[] = ".json";
    size_t n = strlen(value);
    bool known = strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
    if (nbc_same_word(value, "verbose"))
        return parse_file("verbose", out);
    if (!known && (n < sizeof suffix || !nbc_same_word(value + n - sizeof suffix + 1, suffix)))
        return false;
    return parse_file(*value == '0' && !value[1] ? "" : value, out);
}

static bool parse_plain(const char *value, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(value, &end, 10);
    return end != value && !*end && !errno;
}

/* Parses a number from least to most; if it is a size, with K, M or G. */
static bool parse_number(const char *value, bool size, int64_t least, int64_t most, int64_t *out)
{
    int64_t n;
    bool ok = size ? nbc_parse_size(value, &n) : parse_plain(value, &n);
    if (!ok || n < least || n > most)
        return false;
    *out = n;
    return true;
}

#define NUMBER(name, size, least, most)                     \
    static bool name(const char *value, void *out)          \
    {                                                       \
        return parse_number(value, size, least, most, out); \
    }

NUMBER(parse_size, true, 1, INT64_MAX)
NUMBER(parse_tag_ub, true, 3, INT_MAX)
NUMBER(parse_events, true, 1, 16 << 20)
NUMBER(parse_million, false, 1, 1000000)
NUMBER(parse_limit, false, 0, 1000000)

/* "tag_ub=30,nodes=2": sets all or nothing. */
static bool parse_test(const char *value, void *out)
{
    struct nbc_test_settings test = nbc_test_defaults;
    const struct {
        const char *name;
        bool (*parse)(const char *value, void *out);
        void *out;
    } options[] = {
        {"tag_ub=", parse_tag_ub, &test.tag_ub},
        {"nodes=", parse_million, &test.nodes},
        {"trace_events=", parse_events, &test.trace_events},
        {"same_form=", parse_million, &test.same_form},
    };
    enum { NOPTIONS = sizeof options / sizeof *options };
    char word[64];
    for (int n = 0; *value; value += n + (value[n] == ',')) {
        int i = 0;
        n = (int)strcspn(value, ",");
        snprintf(word, sizeof word, "%.*s", n, value);
        while (i < NOPTIONS && strncmp(word, options[i].name, strlen(options[i].name)) != 0)
            i++;
        if (i == NOPTIONS || !options[i].parse(word + strlen(options[i].name), options[i].out))
            return false;
    }
    memcpy(out, &test, sizeof test);
    return true;
}

/* The variables. nbcinfo prints this table, and a test compares the list of the guide with it. */
static const struct variable {
    const char *name;
    bool (*parse)(const char *value, void *out);
    void *out;
    const char *accepts, *fallback, *meaning;
} variables[] = {
    {"NBCSHIM", parse_mode, &nbc_settings.mode, "auto, on or off", "auto",
     "activate nbcshim; auto: if the program references nonblocking or persistent collectives, or "
     "a variable asks for what nbcshim does in blocking ones"},
    {"NBCSHIM_BLOCKING", parse_blocking, &nbc_settings.blocking, "auto, own or native", "auto",
     "run blocking collectives in nbcshim (own) or in the MPI (native); auto: in an MPI that calls "
     "nbcshim in its progress loop"},
    {"NBCSHIM_CHECK", parse_switch, &nbc_settings.check, "0 or 1", "0",
     "check that the collective calls of all ranks match"},
    {"NBCSHIM_DEVICE", nbc_device_by_name, &nbc_settings.device, "auto, stage, direct or off",
     "auto",
     "copy buffers in the memory of a GPU to that of the host (stage), or give them to an MPI that "
     "takes them (direct); auto: what is better; off: all buffers are taken for memory of the "
     "host"},
    {"NBCSHIM_DYNAMIC", parse_switch, &nbc_settings.dynamic, "0 or 1", "1",
     "run collectives on communicators between jobs too"},
    {"NBCSHIM_HOOK", parse_hook, &nbc_settings.hook, "auto, on or off", "auto",
     "let the MPI call nbcshim in its progress loop; on: also in versions of Open MPI that nbcshim "
     "does not know"},
    {"NBCSHIM_INIT_TIMEOUT", parse_limit, &nbc_settings.init_timeout,
     "a number of seconds up to 1000000", "300",
     "end the job if a rank does not answer at MPI_Init within this time; 0: never"},
    {"NBCSHIM_LEVEL_ZERO", parse_switch, &nbc_settings.level_zero, "0 or 1", "0",
     "copy buffers in the memory of GPUs with Level Zero, too: this was not run on hardware"},
    {"NBCSHIM_PROGRESS", parse_progress, &nbc_settings.progress, "calls or thread", "calls",
     "progress operations in MPI calls only, or in a thread as well"},
    {"NBCSHIM_REDUCTION_ORDER", nbc_order_by_name, &nbc_settings.order, "any, ranks or tree", "any",
     "combine the ranks of a reduction in a given order, for reproducible digits"},
    {"NBCSHIM_SEGMENT_SIZE", parse_size, &nbc_settings.segment_size,
     "a positive number of bytes, with K, M or G", "per algorithm",
     "segment size of pipelined algorithms"},
    {"NBCSHIM_SHARED_MEMORY", parse_switch, &nbc_settings.shared_memory, "0 or 1", "1",
     "send short messages between ranks of a node through memory that they share"},
    {"NBCSHIM_STATS", parse_stats, &nbc_settings.stats,
     "0, 1, verbose or a file name ending in .json", "0",
     "report at the end which collectives ran, by which algorithm, and for how long; verbose: over "
     "all ranks, and at init what nbcshim does"},
    {"NBCSHIM_TEST", parse_test, &nbc_settings.test, "options of doc/testing.md", "none",
     "what nbcshim's own tests need"},
    {"NBCSHIM_TIMEOUT", parse_million, &nbc_settings.timeout,
     "a number of seconds from 1 to 1000000", "none",
     "report operations pending longer than this, and which ranks they wait for"},
    {"NBCSHIM_TRACE", parse_file, &nbc_settings.trace, "a file name", "none",
     "write a trace of every rank's operations for about://tracing or Perfetto"},
    {"NBCSHIM_TUNING", parse_file, &nbc_settings.tuning, "a file name", "built-in rules",
     "tuning rules that precede the built-in rules; see nbctune(1)"},
};

enum { NVARIABLES = sizeof variables / sizeof *variables };

static const char algorithm_prefix[] = "NBCSHIM_ALGORITHM_";
static const char blanks[] = " \t\r\n";

/* Returns the length of a value without the blanks at its end. */
static size_t length_without_blanks(const char *value)
{
    size_t n = strlen(value);
    while (n > 0 && strchr(blanks, value[n - 1]))
        n--;
    return n;
}

/* Returns the value of a variable without the blanks around it, NULL if nothing is left. The result
 * remains valid: it is in the environment, or a copy, which is replaced, but not freed, when the
 * environment changes. By any thread. */
static const char *stripped(int index, const char *value)
{
    static char *copies[NVARIABLES + NBC_NCOLLS];
    value += value ? strspn(value, blanks) : 0;
    if (!value || !*value)
        return NULL;
    size_t n = length_without_blanks(value);
    if (!value[n])
        return value;
    char *copy = __atomic_load_n(&copies[index], __ATOMIC_ACQUIRE);
    if (copy && strlen(copy) == n && memcmp(copy, value, n) == 0)
        return copy;
    copy = strndup(value, n);
    __atomic_store_n(&copies[index], copy, __ATOMIC_RELEASE);
    return copy;
}

static void warn_ignored(const char *name, const char *value, const char *accepts)
{
    fprintf(stderr, "nbcshim: %s=%s ignored: expected %s\n", name, value, accepts);
}

static void warn_algorithm_ignored(const char *name, const char *value, enum nbc_coll coll)
{
    fprintf(stderr, "nbcshim: %s=%s ignored: expected one of", name, value);
    for (int i = 0, n = 0; i < nbc_nalgs; i++)
        if (nbc_algs[i].coll == coll)
            fprintf(stderr, "%s %s", n++ ? "," : "", nbc_algs[i].name);
    fprintf(stderr, "\n");
}

static void read_algorithm(const char *name, const char *value, bool warn)
{
    enum nbc_coll coll = nbc_coll_by_name(name + sizeof algorithm_prefix - 1);
    if (coll == NBC_NCOLLS) {
        if (warn)
            warn_ignored(name, value, "the name of a collective after NBCSHIM_ALGORITHM_");
        return;
    }
    value = stripped(NVARIABLES + coll, value);
    nbc_settings.algorithm[coll] = value ? nbc_alg_by_name(coll, value) : NULL;
    if (!nbc_settings.algorithm[coll] && warn)
        warn_algorithm_ignored(name, value, coll);
}

static void read_variable(const char *name, const char *value, bool warn)
{
    if (!value[strspn(value, blanks)])
        return; /* an empty variable is like one that is not set */
    if (strncmp(name, algorithm_prefix, sizeof algorithm_prefix - 1) == 0) {
        read_algorithm(name, value, warn);
        return;
    }
    for (int i = 0; i < NVARIABLES; i++) {
        const struct variable *v = &variables[i];
        if (strcmp(name, v->name) != 0)
            continue;
        value = stripped(i, value);
        if (value && !v->parse(value, v->out) && warn)
            warn_ignored(name, value, v->accepts);
        return;
    }
    if (warn)
        fprintf(stderr, "nbcshim: %s=%s ignored: unknown variable; nbcinfo lists the known ones\n",
                name, value);
}

void nbc_settings_read(bool warn)
{
    static const char prefix[] = "NBCSHIM";
    for (char **e = environ; e && *e; e++) {
        const char *equals = strchr(*e, '=');
        char name[128];
        if (strncmp(*e, prefix, sizeof prefix - 1) != 0 || !equals)
            continue;
        char next = (*e)[sizeof prefix - 1];
        if ((next != '=' && next != '_') || equals - *e >= (ptrdiff_t)sizeof name)
            continue;
        memcpy(name, *e, equals - *e);
        name[equals - *e] = '\0';
        read_variable(name, equals + 1, warn);
    }
    bool asks = nbc_settings.check || nbc_settings.order != NBC_ORDER_ANY;
    nbc_settings.for_blocking = nbc_settings.blocking == NBC_BLOCKING_OWN ||
                                (asks && nbc_settings.blocking != NBC_BLOCKING_NATIVE);
}

const char *nbc_algorithm_variable(enum nbc_coll coll, char room[NBC_VARIABLE_LENGTH])
{
    const char *name = nbc_coll_name(coll);
    size_t n = sizeof algorithm_prefix - 1;
    memcpy(room, algorithm_prefix, n);
    for (; *name && n < NBC_VARIABLE_LENGTH - 1; n++)
        room[n] = nbc_upper(*name++);
    room[n] = '\0';
    return room;
}

/* Describes one of the NBCSHIM_ALGORITHM_... variables. */
static void describe_algorithm_variable(enum nbc_coll coll, struct nbcshim_variable *v)
{
    nbc_algorithm_variable(coll, v->name);
    v->accepts = "an algorithm name";
    v->fallback = "tuning rules";
    v->meaning = "run this algorithm where it applies";
    v->value = stripped(NVARIABLES + coll, getenv(v->name));
    v->accepted = v->value && nbc_alg_by_name(coll, v->value);
}

static void describe_variable(int index, struct nbcshim_variable *v)
{
    const struct variable *from = &variables[index];
    _Alignas(16) char room[64]; /* receives the parsed value; no setting changes */
    snprintf(v->name, sizeof v->name, "%s", from->name);
    v->accepts = from->accepts;
    v->fallback = from->fallback;
    v->meaning = from->meaning;
    v->value = stripped(index, getenv(from->name));
    v->accepted = v->value && from->parse(v->value, room);
}

int nbcshim_variable(int index, struct nbcshim_variable *variable)
{
    if (index < 0 || index >= NVARIABLES + NBC_NCOLLS)
        return 0;
    if (index < NVARIABLES)
        describe_variable(index, variable);
    else
        describe_algorithm_variable(index - NVARIABLES, variable);
    return 1;
}

/* The name of a file that this process writes. */
static const char *own_name(const char *name, char *room, size_t size)
{
    if (!nbc_settings.spawned)
        return name;
    snprintf(room, size, "%s.%ld", name, (long)getpid());
    return room;
}

/* Returns 0, or the error with which a file cannot be written. A file that is there keeps its
 * contents, and one that is not is not left behind. Pipes and devices are not opened: that could
 * block, or tell the reader of the end. */
static int write_error(const char *name)
{
    struct stat s;
    bool is_there = stat(name, &s) == 0;
    if (is_there && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode))
        return 0;
    int file = open(name, O_WRONLY | O_CLOEXEC | (is_there ? 0 : O_CREAT | O_EXCL), 0666);
    if (file < 0)
        return !is_there && errno == EEXIST ? 0 : errno;
    close(file);
    if (!is_there)
        unlink(name);
    return 0;
}

bool nbc_settings_try_file(const char *variable, const char *name)
{
    char room[4096];
    int error = write_error(own_name(name, room, sizeof room));
    if (error)
        fprintf(stderr, "nbcshim: %s=%s ignored: cannot write the file: %s\n", variable, name,
                strerror(error));
    return !error;
}

FILE *nbc_settings_open_file(const char *variable, const char *name)
{
    char room[4096];
    FILE *out = fopen(own_name(name, room, sizeof room), "w");
    if (!out)
        fprintf(stderr, "nbcshim: %s: cannot write %s: %s\n", variable, name, strerror(errno));
    return out;
}

void nbc_settings_close_file(FILE *out, const char *variable, const char *name)
{
    int error = ferror(out) ? EIO : 0; /* of what was written earlier the cause is not known */
    if (fclose(out))
        error = errno;
    if (error)
        fprintf(stderr, "nbcshim: %s: cannot write %s: %s\n", variable, name, strerror(error));
}

/* --- the tuning rules ------------------------------------------------------------------------- */

const struct nbc_rules *nbc_tuning = &nbc_default_rules;
const char *nbc_tuning_file;

static struct nbc_rules *read_rules(const char *path, bool warn)
{
    struct nbc_rules_error error;
    struct nbc_rules *rules = nbc_rules_read(path, &nbc_default_rules, &error);
    if (!rules && warn)
        fprintf(stderr, "nbcshim: NBCSHIM_TUNING=%s ignored: %s\n", path, error.what);
    return rules;
}

/* Makes these rules those in force, NULL for the built-in rules. They are sorted if there is
 * memory. */
static void put_in_force(struct nbc_rules *rules)
{
    nbc_tuning_file = rules ? nbc_settings.tuning : NULL;
    struct nbc_rules *sorted = nbc_rules_sort(rules ? rules : &nbc_default_rules);
    if (sorted)
        nbc_rules_free(rules);
    else
        sorted = rules;
    nbc_tuning = sorted ? sorted : &nbc_default_rules;
}

void nbc_tuning_read(bool warn)
{
    const char *path = nbc_settings.tuning;
    if (nbc_tuning == &nbc_default_rules)
        put_in_force(path ? read_rules(path, warn) : NULL);
}

void nbc_tuning_drop(void)
{
    if (nbc_tuning != &nbc_default_rules)
        nbc_rules_free((struct nbc_rules *)(uintptr_t)nbc_tuning);
    put_in_force(NULL);
}
