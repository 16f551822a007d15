/* SPDX-License-Identifier: MIT */
/* The names of call sites: source line and function where debugging symbols tell them, else the
 * function in which the address lies, else the file and the address. */
#ifndef NBC_COMPARE_NAMES_H
#define NBC_COMPARE_NAMES_H

#include "runs.h"

/* The name of a frame, whole, and so many of the callers into which the compiler has put the
 * function. *known: whether it names a function. Never freed. */
const char *frame_name(const struct frame *f, int callers, bool *known);

/* The function in a frame's name "object function"; NULL if it has a line, or no function. */
const char *name_in_object(const struct frame *f, const char *name);

/* A name, or several with " < " between them, in at most `most` characters, at least 40: of
 * each the line and the end remain. */
const char *name_shortened(const char *name, char *text, int most);

#endif
