/* SPDX-License-Identifier: MIT */
/* Output of lists of rows of named fields: as columns of text, or as JSON. */
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

/* Begin and end the output, which in JSON is an object. */
void emit_begin(struct emit *e);
void emit_end(struct emit *e);

/* Begin and end a list of rows. name: NULL for a list that is not a field; heading: in text only. A
 * single row needs no list. */
void emit_list(struct emit *e, const char *name, const char *heading);
void emit_list_end(struct emit *e);
void emit_row(struct emit *e, const char *name);
void emit_row_end(struct emit *e);

/* Emit a field of a row. width: of its column in text; negative: the field is in JSON only. */
void emit_string(struct emit *e, const char *name, int width, const char *value);
void emit_number(struct emit *e, const char *name, int width, int64_t value);
void emit_bool(struct emit *e, const char *name, int width, bool value);

/* Emit fields in JSON only: a number with the given significant digits; an object, whose fields are
 * emitted between the two calls. */
void emit_real(struct emit *e, const char *name, int digits, double value);
void emit_object(struct emit *e, const char *name);
void emit_object_end(struct emit *e);

/* Flushes standard output. Returns `status`, or 1 after a message on standard error if the output
 * could not be written. For the exit status of a program. */
int emit_status(const char *program, int status);

#endif
