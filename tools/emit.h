/* SPDX-License-Identifier: MIT */
/* Lists of rows of named fields, as columns to read or as JSON. */
#ifndef NBC_TOOLS_EMIT_H
#define NBC_TOOLS_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"

struct emit {
    struct nbc_json writer;
    bool json; /* else text */
};

void emit_begin(struct emit *e);
void emit_end(struct emit *e);

/* A list of rows, under a heading; without rows to come it may be a single row (emit_row alone). */
void emit_list(struct emit *e, const char *name, const char *heading);
void emit_list_end(struct emit *e);
void emit_row(struct emit *e, const char *name);
void emit_row_end(struct emit *e);

/* Fields of a row. width: of the column, when read as text; below 0: in JSON only. */
void emit_string(struct emit *e, const char *name, int width, const char *value);
void emit_number(struct emit *e, const char *name, int width, int64_t value);
void emit_bool(struct emit *e, const char *name, int width, bool value);

/* Fields of a row in JSON only: a number with so many significant digits; an object, whose fields
 * are emitted between the two calls. */
void emit_real(struct emit *e, const char *name, int digits, double value);
void emit_object(struct emit *e, const char *name);
void emit_object_end(struct emit *e);

/* The exit status of a program that would end with `status`, or 1, telling why, where standard
 * output has not taken all. */
int emit_status(const char *program, int status);

#endif
