/* SPDX-License-Identifier: MIT */
/* The comparison as one page of HTML, with plots, that refers to nothing else. */
#ifndef NBC_COMPARE_PAGE_H
#define NBC_COMPARE_PAGE_H

#include <stdio.h>

#include "figures.h"

void page_write(FILE *out, const struct comparison *c);

#endif
