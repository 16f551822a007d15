/* SPDX-License-Identifier: MIT */
#include "list.h"

#include <stdlib.h>
#include <string.h>

#include "rules.h"

static bool list_add(struct list *list, int64_t number)
{
    if (list->n == LIST_MOST)
        return false;
    list->at[list->n++] = number;
    return true;
}

static bool add_range(struct list *list, int64_t from, int64_t to, int64_t factor)
{
    if (factor < 2 || from < 1 || to < from)
        return false;
    for (int64_t i = from; i <= to; i *= factor) {
        if (!list_add(list, i))
            return false;
        if (i > to / factor)
            break;
    }
    return true;
}

bool list_read(struct list *list, const char *text)
{
    for (;; text++) {
        int64_t from, to, factor = 2;
        if (!nbc_number(&text, &from))
            return false;
        if (strncmp(text, "..", 2) == 0) {
            text += 2;
            if (!nbc_number(&text, &to))
                return false;
            if (*text == ':' && (text++, !nbc_number(&text, &factor)))
                return false;
            if (!add_range(list, from, to, factor))
                return false;
        } else if (!list_add(list, from)) {
            return false;
        }
        if (*text != ',')
            return *text == '\0';
    }
}

static int ascending(const void *x, const void *y)
{
    const int64_t *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

void list_sort(struct list *list)
{
    int n = 0;
    qsort(list->at, (size_t)list->n, sizeof *list->at, ascending);
    for (int i = 0; i < list->n; i++)
        if (i == 0 || list->at[i] != list->at[n - 1])
            list->at[n++] = list->at[i];
    list->n = n;
}
