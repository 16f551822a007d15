/* SPDX-License-Identifier: MIT */
/* Everything that reads text from outside, for libFuzzer: files of tuning rules, variables, hints,
 * files that describe a network, lists of numbers; and the writer of JSON, whose strings may be
 * anything. The first byte of an input selects the reader, the rest is the text. Whatever the text
 * is, no reader crashes, and what it accepts is checked. test/text/run.sh builds and runs it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/lsan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hints.h"
#include "below/quirks.h"
#include "base/settings.h"
#include "base/state.h"

#include "json.h"
#include "list.h"
#include "network.h"
#include "rules.h"
#include "select.h"

static int complaints; /* standard error, which libFuzzer closes to what the readers write there */

#define FAILURES_TO complaints
#define IF_IT_FAILS abort()
#include "../expect.h"

/* --- the MPI, as far as hints need it: an info object is the text
 * --------------------------------- */

bool nbc_world_initialized;

static const char *info_text; /* "key=value" lines */
static char info_written[4]
                        [512]; /* what MPI_Info_set gets: algorithm, segment size, order, device */

/* Returns the value of a key, which ends with its line, and its length; NULL if there is none. */
static const char *info_find(const char *key, int *length)
{
    size_t n = strlen(key);
    for (const char *line = info_text; *line; line += strcspn(line, "\n") + 1) {
        if (strncmp(line, key, n) == 0 && line[n] == '=') {
            *length = (int)strcspn(line + n + 1, "\n");
            return line + n + 1;
        }
        if (!strchr(line, '\n'))
            break;
    }
    return NULL;
}

int PMPI_Info_get_valuelen(MPI_Info info, NBC_CONST char *key, int *length, int *found)
{
    (void)info;
    *found = info_find(key, length) != NULL;
    return MPI_SUCCESS;
}

int PMPI_Info_get(MPI_Info info, NBC_CONST char *key, int room, char *value, int *found)
{
    int length;
    const char *from = info_find(key, &length);
    (void)info;
    *found = from != NULL;
    if (!from)
        return MPI_SUCCESS;
    CHECK(length <= room);
    memcpy(value, from, (size_t)length);
    value[length] = '\0';
    return MPI_SUCCESS;
}

int PMPI_Info_set(MPI_Info info, NBC_CONST char *key, NBC_CONST char *value)
{
    char *to = info_written[strcmp(key, "nbcshim_segment_size") == 0      ? 1
                            : strcmp(key, "nbcshim_reduction_order") == 0 ? 2
                            : strcmp(key, "nbcshim_device") == 0          ? 3
                                                                          : 0];
    (void)info;
    CHECK(strlen(value) < sizeof info_written[0]);
    strcpy(to, value);
    return MPI_SUCCESS;
}

int PMPI_Info_delete(MPI_Info info, NBC_CONST char *key)
{
    (void)info, (void)key; /* its text in info_written is empty */
    return MPI_SUCCESS;
}

/* nbc_hints_check, which is not called here, needs these. */
void nbc_quirks_mute(MPI_Errhandler kept[2])
{
    (void)kept;
    abort();
}

void nbc_quirks_unmute(MPI_Errhandler kept[2])
{
    (void)kept;
    abort();
}

/* --- readers
 * ---------------------------------------------------------------------------------------- */

/* For collectives without arrays, on few and many ranks, with few and many bytes. */
static void same_selection(const struct nbc_rules *a, const struct nbc_rules *b)
{
    static const enum nbc_coll colls[] = {NBC_BARRIER, NBC_BCAST, NBC_ALLREDUCE, NBC_ALLTOALL};
    const struct nbc_type byte = {.size = 1, .extent = 1}, types[] = {byte, byte, byte};
    for (int i = 0; i < 4 * 4 * 3; i++) {
        int64_t bytes = 1 << i / 16 * 10, segments[2];
        struct nbc_side side = {.count = bytes, .type = NBC_TYPE_SEND};
        struct nbc_shape shape = {.coll = colls[i % 4],
                                  .size = 1 + (i / 4 % 4) * 5,
                                  .commutative = true,
                                  .local = i % 3 == 0,
                                  .types = types,
                                  .ntypes = 3,
                                  .send = side,
                                  .recv = side};
        CHECK(nbc_select(&shape, NULL, a, &segments[0]) ==
              nbc_select(&shape, NULL, b, &segments[1]));
        CHECK(segments[0] == segments[1]);
    }
}

/* Rules that are accepted can be printed, and read back as the same; sorted they select the same.
 */
static void try_rules(const char *text)
{
    struct nbc_rules_error error;
    struct nbc_rules *rules = nbc_rules_parse(text, NULL, &error), *again, *sorted;
    if (!rules) {
        CHECK(error.line > 0 && *error.what);
        return;
    }
    char *printed;
    size_t length;
    FILE *out = open_memstream(&printed, &length);
    if (rules->eager)
        fprintf(out, "eager %lld\n", (long long)rules->eager);
    for (int i = 0; i < rules->nrules; i++)
        nbc_rule_print(out, &rules->rule[i]);
    fclose(out);
    again = nbc_rules_parse(printed, NULL, &error);
    CHECK(again && again->nrules == rules->nrules && again->eager == rules->eager);
    CHECK(nbc_rules_hash(again) == nbc_rules_hash(rules));
    sorted = nbc_rules_sort(rules);
    CHECK(sorted && sorted->nrules == rules->nrules);
    same_selection(rules, sorted);
    nbc_rules_free(again);
    nbc_rules_free(sorted);
    nbc_rules_free(rules);
    free(printed);
}

/* NAME=VALUE lines become variables NBCSHIM_NAME, or NBCSHIM for an empty name. */
static void try_settings(char *text)
{
    enum { MOST = 20 };
    static char *environment[MOST + 1], words[MOST][300];
    extern char **environ;
    char **before = environ, *rest;
    int n = 0;
    for (char *line = strtok_r(text, "\n", &rest); line && n < MOST;
         line = strtok_r(NULL, "\n", &rest)) {
        snprintf(words[n], sizeof words[n], "NBCSHIM%s%s", *line == '=' ? "" : "_", line);
        environment[n] = words[n];
        n++;
    }
    environment[n] = NULL;
    nbc_settings = (struct nbc_settings){.dynamic = true, .test = nbc_test_defaults};
    environ = environment;
    __lsan_disable(); /* values without their blanks are kept until the process ends */
    nbc_settings_read(true);
    __lsan_enable();
    environ = before;
    CHECK(nbc_settings.mode <= NBC_MODE_OFF && nbc_settings.blocking <= NBC_BLOCKING_NATIVE);
    CHECK(nbc_settings.segment_size >= 0 && nbc_settings.timeout >= 0);
    CHECK(nbc_settings.init_timeout >= 0 && nbc_settings.init_timeout <= 1000000);
    CHECK(nbc_settings.test.tag_ub >= 3);
    CHECK(nbc_settings.test.trace_events >= 1 && nbc_settings.test.trace_events <= 16 << 20);
    for (int c = 0; c < NBC_NCOLLS; c++)
        CHECK(!nbc_settings.algorithm[c] || nbc_settings.algorithm[c]->coll == (enum nbc_coll)c);
}

/* Hints that were read can be written, and read back as the same, unless they are too long. */
static void try_hints(const char *text)
{
    static struct nbc_hints hints, again;
    MPI_Info info;
    static char back[sizeof info_written + 100];
    memset(&hints, 0, sizeof hints);
    memset(&again, 0, sizeof again);
    memset(info_written, 0, sizeof info_written);
    memset(&info, 1, sizeof info); /* not MPI_INFO_NULL */
    info_text = text;
    nbc_hints_read(info, &hints);
    nbc_hints_write(&hints, info);
    if (strlen(info_written[0]) > 250)
        return;
    snprintf(back, sizeof back,
             "nbcshim_algorithm=%s\nnbcshim_segment_size=%s\nnbcshim_reduction_order=%s\n"
             "nbcshim_device=%s\n",
             info_written[0], info_written[1], info_written[2], info_written[3]);
    info_text = back;
    nbc_hints_read(info, &again);
    CHECK(memcmp(&hints, &again, sizeof hints) == 0);
}

/* Reads a file with this text. */
static bool read_network(struct network *net, const char *text, size_t length)
{
    char name[32];
    int file = memfd_create("network", MFD_CLOEXEC);
    CHECK(file >= 0 && write(file, text, length) == (ssize_t)length);
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    bool good = network_read(net, name);
    close(file);
    return good;
}

static bool is_sound(const struct link *l)
{
    return isfinite(l->L) && isfinite(l->o) && isfinite(l->g) && isfinite(l->G) && l->L >= 0 &&
           l->o >= 0 && l->g >= 0 && l->G >= 0;
}

/* A network that was read can be written, and read back. */
static void try_network(const char *text)
{
    struct network net, again;
    char *written;
    size_t length;
    if (!read_network(&net, text, strlen(text)))
        return;
    CHECK(is_sound(&net.between) && is_sound(&net.within));
    CHECK(net.reduce >= 0 && net.copy >= 0 && net.noise >= 0 && net.ppn > 0 && net.eager >= 0);
    FILE *out = open_memstream(&written, &length);
    network_write(&net, out);
    fclose(out);
    CHECK(read_network(&again, written, length));
    CHECK(again.ppn == net.ppn && again.own_ports == net.own_ports);
    free(written);
}

static void try_list(const char *text)
{
    static struct list list;
    list.n = 0;
    if (!list_read(&list, text))
        return;
    CHECK(list.n >= 1 && list.n <= LIST_MOST);
    list_sort(&list);
    for (int i = 1; i < list.n; i++)
        CHECK(list.at[i - 1] < list.at[i]);
}

/* A quoted string is one string of JSON, and unquoted the same bytes. */
static void try_json(const char *text)
{
    char *written, *to;
    size_t length;
    FILE *out = open_memstream(&written, &length);
    nbc_json_quoted(out, text);
    fclose(out);
    CHECK(length >= 2 && written[0] == '"' && written[length - 1] == '"');
    to = written;
    for (const char *c = written + 1; c < written + length - 1; c++) {
        CHECK((unsigned char)*c >= ' ' && *c != '"');
        if (*c != '\\') {
            *to++ = *c;
            continue;
        }
        const char *escapes = "\"\\/bfnrt", *meant = "\"\\/\b\f\n\r\t",
                   *found = strchr(escapes, *++c);
        CHECK(c < written + length - 1 && (*c == 'u' || found));
        if (*c == 'u') {
            char digits[5] = {0};
            CHECK(written + length - 1 - c > 4);
            memcpy(digits, c + 1, 4);
            *to++ = (char)strtol(digits, NULL, 16);
            c += 4;
        } else {
            *to++ = meant[found - escapes];
        }
    }
    *to = '\0';
    CHECK(strcmp(written, text) == 0);
    free(written);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    complaints = dup(STDERR_FILENO);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[4096];
    if (size < 1 || size > sizeof text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0]) {
    case 'r':
        try_rules(text);
        break;
    case 's':
        try_settings(text);
        break;
    case 'h':
        try_hints(text);
        break;
    case 'n':
        try_network(text);
        break;
    case 'l':
        try_list(text);
        break;
    case 'j':
        try_json(text);
        break;
    default:
        return -1; /* not for the corpus */
    }
    return 0;
}
