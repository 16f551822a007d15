/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tuning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

const struct nbc_rules *nbc_tuning = &nbc_default_rules;

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    if (!f)
        return NULL;
    if (getdelim(&text, &room, '\0', f) < 0) { /* nothing there, or an error */
        free(text);
        text = ferror(f) ? NULL : calloc(1, 1);
    }
    fclose(f);
    return text;
}

void nbc_tuning_read(bool warn)
{
    const char *path = nbc_settings.tuning;
    struct nbc_rules_error error;
    if (!path || nbc_tuning != &nbc_default_rules)
        return;
    char *text = read_all(path);
    if (!text) {
        if (warn)
            fprintf(stderr, "nbcshim: NBCSHIM_TUNING=%s ignored: %s\n", path, strerror(errno));
        return;
    }
    const struct nbc_rules *rules = nbc_rules_parse(text, &nbc_default_rules, &error);
    free(text);
    if (rules)
        nbc_tuning = rules;
    else if (warn)
        fprintf(stderr, "nbcshim: NBCSHIM_TUNING=%s ignored: line %d: %s\n", path, error.line,
                error.what);
}

void nbc_tuning_drop(bool warn)
{
    if (warn)
        fprintf(stderr, "nbcshim: NBCSHIM_TUNING=%s ignored: the ranks have read different rules\n",
                nbc_settings.tuning ? nbc_settings.tuning : "");
    if (nbc_tuning != &nbc_default_rules)
        nbc_rules_free((struct nbc_rules *)(uintptr_t)nbc_tuning);
    nbc_tuning = &nbc_default_rules;
}
