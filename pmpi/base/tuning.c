/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/tuning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"

#include "select.h"

const struct nbc_rules *nbc_tuning = &nbc_default_rules;
const char *nbc_tuning_file;

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    if (!f)
        return NULL;
    if (getdelim(&text, &room, '\0', f) < 0) { /* an empty file, or an error */
        free(text);
        text = ferror(f) ? NULL : calloc(1, 1);
    }
    fclose(f);
    return text;
}

static struct nbc_rules *read_rules(const char *path, bool warn)
{
    struct nbc_rules_error error;
    char *text = read_file(path);
    if (!text) {
        if (warn)
            fprintf(stderr, "nbcshim: NBCSHIM_TUNING=%s ignored: %s\n", path, strerror(errno));
        return NULL;
    }
    struct nbc_rules *rules = nbc_rules_parse(text, &nbc_default_rules, &error);
    free(text);
    if (!rules && warn)
        fprintf(stderr, "nbcshim: NBCSHIM_TUNING=%s ignored: line %d: %s\n", path, error.line,
                error.what);
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
