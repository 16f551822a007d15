/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <inttypes.h>

/* The bytes of the character of UTF-8 that begins here, if it has more than one; 0 if none does. */
static int utf8_length(const unsigned char *c)
{
    int n = *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
    const bool too_long = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
    const bool none = (*c == 0xed && c[1] > 0x9f) || (*c == 0xf4 && c[1] > 0x8f);
    for (int i = 1; i < n; i++)
        if (c[i] >> 6 != 2)
            return 0;
    return too_long || none ? 0 : n;
}

void nbc_json_quoted(FILE *out, const char *value)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
        const int n = utf8_length(c);
        if (n) {
            fwrite(c, 1, n, out);
            c += n - 1;
        } else if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < ' ' || *c > '~') /* or a byte that is not UTF-8 */
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void json_next(struct nbc_json *j, const char *separator, const char *name)
{
    fputs(j->again ? "," : "", j->out);
    fputs(separator, j->out);
    if (name) {
        nbc_json_quoted(j->out, name);
        fputs(": ", j->out);
    }
    j->again = true;
}

static void json_value(struct nbc_json *j, const char *name)
{
    json_next(j, j->again ? " " : "", name);
}

void nbc_json_open(struct nbc_json *j, const char *name, const char *bracket)
{
    json_value(j, name);
    fputs(bracket, j->out);
    j->again = false;
}

void nbc_json_line(struct nbc_json *j, const char *name, const char *bracket)
{
    json_next(j, "\n", name);
    fputs(bracket, j->out);
    j->again = false;
}

void nbc_json_close(struct nbc_json *j, const char *bracket)
{
    fputs(bracket, j->out);
    j->again = true;
}

void nbc_json_string(struct nbc_json *j, const char *name, const char *value)
{
    json_value(j, name);
    if (value)
        nbc_json_quoted(j->out, value);
    else
        fputs("null", j->out);
}

void nbc_json_int(struct nbc_json *j, const char *name, int64_t value)
{
    json_value(j, name);
    fprintf(j->out, "%" PRId64, value);
}

void nbc_json_bool(struct nbc_json *j, const char *name, bool value)
{
    json_value(j, name);
    fputs(value ? "true" : "false", j->out);
}

void nbc_json_fixed(struct nbc_json *j, const char *name, int64_t value, int digits)
{
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value, unit = 1;
    for (int i = 0; i < digits; i++)
        unit *= 10;
    json_value(j, name);
    fprintf(j->out, "%s%" PRIu64, value < 0 ? "-" : "", size / unit);
    if (digits > 0)
        fprintf(j->out, ".%0*" PRIu64, digits, size % unit);
}

void nbc_json_real(struct nbc_json *j, const char *name, double value, int digits)
{
    json_value(j, name);
    fprintf(j->out, "%.*g", digits, value);
}
