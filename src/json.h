/* SPDX-License-Identifier: MIT */
/* Writes JSON to a file. Names and values are separated and escaped here; numbers have a decimal
 * point whatever the locale of the program is. Errors stay in the FILE: ferror, fclose. */
#ifndef NBC_JSON_H
#define NBC_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct nbc_json {
    FILE *out;
    bool again; /* a comma is due before the next value */
};

/* Opens an object ("{") or an array ("["): on the same line, or on a line of its own. name: NULL in
 * an array and at the top. */
void nbc_json_open(struct nbc_json *j, const char *name, const char *bracket);
void nbc_json_line(struct nbc_json *j, const char *name, const char *bracket);
void nbc_json_close(struct nbc_json *j, const char *bracket);

/* One value, of that name, or NULL in an array. A string that is NULL is written as null. */
void nbc_json_string(struct nbc_json *j, const char *name, const char *value);
void nbc_json_int(struct nbc_json *j, const char *name, int64_t value);
void nbc_json_bool(struct nbc_json *j, const char *name, bool value);

/* value / 10^digits, with all its digits. */
void nbc_json_fixed(struct nbc_json *j, const char *name, int64_t value, int digits);

/* A number in so many significant digits, in the locale of the program: for programs of nbcshim,
 * which keep that of C. */
void nbc_json_real(struct nbc_json *j, const char *name, double value, int digits);

/* A string in quotes, with what JSON needs escaped. A byte that is not UTF-8 is taken for Latin-1.
 */
void nbc_json_quoted(FILE *out, const char *value);

#endif
