/* SPDX-License-Identifier: MIT */
/* Lists of numbers in arguments: "3,8K,2..64". */
#ifndef NBCSIM_LIST_H
#define NBCSIM_LIST_H

#include <stdbool.h>
#include <stdint.h>

enum { LIST_MOST = 256 };

struct list {
    int n;
    int64_t at[LIST_MOST];
};

/* Parses numbers and ranges, "3,8K,2..64" (doubling) or "8..64M:8" (times 8), and adds them to the
 * list. Returns false on a syntax error. */
bool list_read(struct list *list, const char *text);

/* Sorts the list and removes duplicates. */
void list_sort(struct list *list);

#endif
