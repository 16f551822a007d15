/* SPDX-License-Identifier: MIT */
#ifndef NBCSIM_LIST_H
#define NBCSIM_LIST_H

#include <stdbool.h>
#include <stdint.h>

enum { LIST_MOST = 256 };

struct list {
    int n;
    int64_t at[LIST_MOST];
};

/* "3,8K,2..64" (doubling), "8..64M:8" (times 8). Adds to the list; false: not understood. */
bool list_read(struct list *list, const char *text);

/* Ascending, each once. */
void list_sort(struct list *list);

#endif
