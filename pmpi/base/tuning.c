/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/tuning.h"

#include <stdio.h>

#include "base/settings.h"

#include "select.h"

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
