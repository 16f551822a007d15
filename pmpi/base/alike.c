/* SPDX-License-Identifier: MIT */
#include "base/alike.h"

#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "base/tuning.h"

#include "hash.h"
#include "rules.h"
#include "select.h"

/* What all ranks take where they differ: the largest value, the smallest, or the value 0, with
 * which the variable is as if it were not set. */
enum rule { LARGEST, SMALLEST, NONE };

/* A field of nbc_settings whose value is the number itself. */
#define FIELD(field)                                                \
    static int64_t get_##field(void)                                \
    {                                                               \
        return (int64_t)nbc_settings.field;                         \
    }                                                               \
    static void put_##field(int64_t value)                          \
    {                                                               \
        nbc_settings.field = (__typeof__(nbc_settings.field))value; \
    }

FIELD(blocking)
FIELD(check)
FIELD(dynamic)
FIELD(hook)
FIELD(nodes)
FIELD(order)
FIELD(segment_size)
FIELD(trace_events)

/* "auto" and "on" differ only in a program that does not refer to a collective, and there they go
 * together. */
static int64_t get_mode(void)
{
    return nbc_settings.mode == NBC_MODE_OFF;
}

static void put_mode(int64_t value)
{
    (void)value; /* the program has it decided: see nbc_enabled */
}

/* So that the smallest one is a limit that somebody has set. */
static int64_t get_tag_ub(void)
{
    return nbc_settings.tag_ub ? nbc_settings.tag_ub : INT64_MAX;
}

static void put_tag_ub(int64_t value)
{
    nbc_settings.tag_ub = value;
}

static int64_t get_trace(void)
{
    return nbc_settings.trace != NULL;
}

static void put_trace(int64_t value)
{
    (void)value; /* 0, the smallest */
    nbc_settings.trace = NULL;
}

static int64_t get_tuning(void)
{
    return nbc_rules_hash(nbc_tuning);
}

static void put_tuning(int64_t value)
{
    (void)value;
    nbc_tuning_drop();
}

static const char ignored[] = "all ranks ignore it";

/* outcome: what the line says that reports a difference; NULL: "all ranks take" the value. */
static const struct setting {
    const char *variable;
    enum rule rule;
    const char *outcome;
    int64_t (*get)(void);
    void (*put)(int64_t value);
} settings[] = {
    {"NBCSHIM", SMALLEST, "nbcshim is active on all ranks", get_mode, put_mode},
    {"NBCSHIM_BLOCKING", LARGEST, NULL, get_blocking, put_blocking},
    {"NBCSHIM_CHECK", LARGEST, NULL, get_check, put_check},
    {"NBCSHIM_DYNAMIC", SMALLEST, NULL, get_dynamic, put_dynamic},
    {"NBCSHIM_HOOK", LARGEST, NULL, get_hook, put_hook},
    {"NBCSHIM_NODES", LARGEST, NULL, get_nodes, put_nodes},
    {"NBCSHIM_REDUCTION_ORDER", LARGEST, NULL, get_order, put_order},
    {"NBCSHIM_SEGMENT_SIZE", NONE, ignored, get_segment_size, put_segment_size},
    {"NBCSHIM_TAG_UB", SMALLEST, NULL, get_tag_ub, put_tag_ub},
    {"NBCSHIM_TRACE", SMALLEST, ignored, get_trace, put_trace},
    {"NBCSHIM_TRACE_EVENTS", SMALLEST, "all ranks take the smallest number", get_trace_events,
     put_trace_events},
    {"NBCSHIM_TUNING", NONE, "all ranks ignore it, since they have read different rules",
     get_tuning, put_tuning},
};

_Static_assert(sizeof settings / sizeof *settings == NBC_ALIKE_VARIABLES, "one row each");

void nbc_alike_describe(struct nbc_alike *mine)
{
    int64_t *value = mine->value;
    for (int i = 0; i < NBC_ALIKE_VARIABLES; i++)
        *value++ = settings[i].get();
    for (int i = 0; i < NBC_NCOLLS; i++) {
        const struct nbc_alg *forced = nbc_settings.algorithm[i];
        *value++ = forced ? forced - nbc_algs + 1 : 0;
    }
}

uint64_t nbc_alike_digest(const struct nbc_alike *mine)
{
    const unsigned char *byte = (const unsigned char *)mine->value;
    uint64_t h = NBC_HASH_START;
    for (size_t i = 0; i < sizeof mine->value; i++)
        h = nbc_hash(h, byte[i]);
    return h;
}

const char *nbc_alike_variable(int setting, struct nbc_alike_name *room)
{
    if (setting < NBC_ALIKE_VARIABLES)
        return settings[setting].variable;
    const char *name = nbc_coll_name(setting - NBC_ALIKE_VARIABLES);
    size_t n = (size_t)snprintf(room->room, sizeof room->room, "NBCSHIM_ALGORITHM_");
    for (; *name && n < sizeof room->room - 1; n++)
        room->room[n] = nbc_upper(*name++);
    room->room[n] = '\0';
    return room->room;
}

/* The rank with the largest or the smallest value. */
static int rank_of(enum rule rule, int setting, int size, const struct nbc_alike *all)
{
    int found = 0;
    for (int rank = 1; rank < size; rank++) {
        int64_t value = all[rank].value[setting], best = all[found].value[setting];
        if (rule == LARGEST ? value > best : value < best)
            found = rank;
    }
    return found;
}

int nbc_alike_settle(int setting, int size, const struct nbc_alike *all, const char **outcome)
{
    *outcome = ignored;
    if (setting >= NBC_ALIKE_VARIABLES) {
        nbc_settings.algorithm[setting - NBC_ALIKE_VARIABLES] = NULL;
        return 0;
    }
    const struct setting *s = &settings[setting];
    int rank = rank_of(s->rule, setting, size, all);
    s->put(s->rule == NONE ? 0 : all[rank].value[setting]);
    *outcome = s->outcome;
    return rank;
}
