/* SPDX-License-Identifier: MIT */
#include "network.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

static const struct origin {
    struct network net;
    const char *from;
} known[] = {
    {{.name = "infiniband",
      .between = {2500e-9, 1500e-9, 1000e-9, 6e-9},
      .within = {300e-9, 150e-9, 100e-9, 0.2e-9},
      .reduce = 0.25e-9,
      .copy = 0.1e-9,
      .eager = 65535},
     "the defaults of LogGOPSim: Hoefler, Schneider, Lumsdaine, \"LogGOPSim: simulating "
     "large-scale applications in the LogGOPS model\", 2010, doi:10.1145/1851476.1851564"},
    {{.name = "slingshot",
      .between = {3700e-9, 200e-9, 5e-9, 0.04e-9},
      .within = {300e-9, 150e-9, 100e-9, 0.04e-9},
      .reduce = 0.1e-9,
      .copy = 0.04e-9,
      .eager = INT64_MAX},
     "the Alps system in Shen et al., \"ATLAHS: an application-centric network simulator toolchain "
     "for AI, HPC, and distributed storage\", 2025, arXiv:2505.08936"},
    {{.name = "ethernet",
      .between = {16000e-9, 3700e-9, 0, 1.5e-9},
      .within = {300e-9, 150e-9, 100e-9, 0.2e-9},
      .reduce = 0.25e-9,
      .copy = 0.1e-9,
      .eager = 65536,
      .sockets = true},
     "the cluster Taurus of Grid'5000, TCP over 10 Gbit/s: the SimGrid calibration of July 2016 in "
     "https://github.com/Ezibenroc/platform-calibration"},
};

enum { NKNOWN = sizeof known / sizeof *known };

/* Keys of a file. Times are nanoseconds there. */
static const struct key {
    const char *name;
    size_t at;
    enum { NANOSECONDS, PLAIN, BYTES, SMALL, TRUTH } kind;
    const char *meaning;
} keys[] = {
    {"L", offsetof(struct network, between.L), NANOSECONDS, "latency between nodes"},
    {"o", offsetof(struct network, between.o), NANOSECONDS, "overhead of a message at each end"},
    {"g", offsetof(struct network, between.g), NANOSECONDS, "gap between messages"},
    {"G", offsetof(struct network, between.G), NANOSECONDS, "gap per byte"},
    {"within.L", offsetof(struct network, within.L), NANOSECONDS,
     "latency within a node; likewise o, g, G"},
    {"within.o", offsetof(struct network, within.o), NANOSECONDS, NULL},
    {"within.g", offsetof(struct network, within.g), NANOSECONDS, NULL},
    {"within.G", offsetof(struct network, within.G), NANOSECONDS, NULL},
    {"reduce", offsetof(struct network, reduce), NANOSECONDS, "reduction, per byte"},
    {"copy", offsetof(struct network, copy), NANOSECONDS, "copy, per byte"},
    {"noise", offsetof(struct network, noise), PLAIN,
     "mean of the random delay, relative to each time"},
    {"eager", offsetof(struct network, eager), BYTES,
     "longer messages wait for their receive to be posted"},
    {"handshake", offsetof(struct network, handshake), NANOSECONDS,
     "additional time of such a message between nodes; 0: 2 L"},
    {"ppn", offsetof(struct network, ppn), SMALL, "ranks per node"},
    {"sockets", offsetof(struct network, sockets), TRUTH, "1: nodes have no network but sockets"},
    {"own_ports", offsetof(struct network, own_ports), TRUTH, "1: each rank has its own port"},
};

enum { NKEYS = sizeof keys / sizeof *keys };

static bool set_value(struct network *net, const struct key *key, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    void *place = (char *)net + key->at;
    while (isspace((unsigned char)*end))
        end++;
    if (end == text || *end || !(value >= 0))
        return false;
    switch (key->kind) {
    case NANOSECONDS:
        *(double *)place = value * 1e-9;
        return isfinite(value);
    case PLAIN:
        *(double *)place = value;
        return isfinite(value);
    case BYTES:
        *(int64_t *)place = value < 9e18 ? (int64_t)value : INT64_MAX;
        return true;
    case SMALL:
        *(int *)place = value < 1e9 ? (int)value : 0;
        return *(int *)place > 0;
    case TRUTH:
        *(bool *)place = value != 0;
        return true;
    }
    return false;
}

bool network_set(struct network *net, const char *line)
{
    const char *equals = strchr(line, '=');
    size_t n;
    if (!equals)
        return false;
    for (n = (size_t)(equals - line); n > 0 && isspace((unsigned char)line[n - 1]);)
        n--;
    for (int i = 0; i < NKEYS; i++)
        if (strlen(keys[i].name) == n && strncmp(keys[i].name, line, n) == 0)
            return set_value(net, &keys[i], equals + 1);
    return false;
}

static bool read_lines(struct network *net, const char *path, char *text)
{
    bool good = true, any = false;
    for (int number = 1; good && text; number++) {
        char *line = strsep(&text, "\n");
        line[strcspn(line, "#")] = 0;
        while (isspace((unsigned char)*line))
            line++;
        if (!*line)
            continue;
        good = network_set(net, line);
        any |= good;
        if (!good)
            fprintf(stderr, "%s:%d: not a network parameter: %s\n", path, number, line);
    }
    if (good && !any)
        fprintf(stderr, "%s: no network parameters found\n", path);
    return good && any;
}

bool network_read(struct network *net, const char *name_or_file)
{
    *net = (struct network){.eager = INT64_MAX, .ppn = 1};
    for (int i = 0; i < NKNOWN; i++)
        if (strcmp(known[i].net.name, name_or_file) == 0) {
            *net = known[i].net;
            net->ppn = 1;
            return true;
        }
    char *text = nbc_text_read(name_or_file);
    if (!text && errno == ENOENT)
        fprintf(stderr, "%s: neither a file nor a network of nbcsim --networks\n", name_or_file);
    else if (!text)
        perror(name_or_file);
    snprintf(net->name, sizeof net->name, "%s", name_or_file);
    bool good = text && read_lines(net, name_or_file, text);
    free(text);
    return good;
}

void network_write(const struct network *net, FILE *out)
{
    for (int i = 0; i < NKEYS; i++) {
        const void *place = (const char *)net + keys[i].at;
        fprintf(out, "%s = ", keys[i].name);
        switch (keys[i].kind) {
        case NANOSECONDS:
            fprintf(out, "%.6g", *(const double *)place * 1e9);
            break;
        case PLAIN:
            fprintf(out, "%.6g", *(const double *)place);
            break;
        case BYTES:
            fprintf(out, "%.19g", (double)*(const int64_t *)place);
            break;
        case SMALL:
            fprintf(out, "%d", *(const int *)place);
            break;
        case TRUTH:
            fprintf(out, "%d", *(const bool *)place);
            break;
        }
        bool time = keys[i].kind == NANOSECONDS;
        fprintf(out, keys[i].meaning ? "\t# %s%s\n" : "\n", keys[i].meaning, time ? ", ns" : "");
    }
}

void network_list(FILE *out)
{
    for (int i = 0; i < NKNOWN; i++) {
        fprintf(out, "# %s: %s\n", known[i].net.name, known[i].from);
        struct network net = known[i].net;
        net.ppn = 1;
        network_write(&net, out);
    }
}
