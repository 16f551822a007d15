/* SPDX-License-Identifier: MIT */
#include "emit.h"

#include <inttypes.h>

void emit_begin(struct emit *e)
{
    if (e->json)
        fputc('{', e->writer.out);
    e->writer.again = false;
}

void emit_end(struct emit *e)
{
    if (e->json)
        fputs("\n}\n", e->writer.out);
}

void emit_list(struct emit *e, const char *name, const char *heading)
{
    if (e->json) {
        nbc_json_line(&e->writer, name, "[");
        return;
    }
    fprintf(e->writer.out, "%s%s\n", e->writer.again ? "\n" : "", heading);
    e->writer.again = true;
}

void emit_list_end(struct emit *e)
{
    if (e->json)
        nbc_json_close(&e->writer, "]");
}

void emit_row(struct emit *e, const char *name)
{
    if (e->json)
        nbc_json_line(&e->writer, name, "{");
    else
        fputs("  ", e->writer.out);
}

void emit_row_end(struct emit *e)
{
    if (e->json)
        nbc_json_close(&e->writer, "}");
    else
        fputc('\n', e->writer.out);
}

void emit_string(struct emit *e, const char *name, int width, const char *value)
{
    if (!e->json) {
        if (width >= 0)
            fprintf(e->writer.out, "%-*s%s", width, value, width ? " " : "");
        return;
    }
    nbc_json_string(&e->writer, name, value);
}

void emit_number(struct emit *e, const char *name, int width, int64_t value)
{
    if (e->json)
        nbc_json_int(&e->writer, name, value);
    else if (width >= 0)
        fprintf(e->writer.out, "%*" PRId64 "%s", width, value, width ? " " : "");
}

void emit_bool(struct emit *e, const char *name, int width, bool value)
{
    if (e->json)
        nbc_json_bool(&e->writer, name, value);
    else if (width >= 0)
        fprintf(e->writer.out, "%-*s ", width, value ? "yes" : "no");
}

void emit_real(struct emit *e, const char *name, int digits, double value)
{
    if (e->json)
        nbc_json_real(&e->writer, name, value, digits);
}

void emit_object(struct emit *e, const char *name)
{
    if (e->json)
        nbc_json_open(&e->writer, name, "{");
}

void emit_object_end(struct emit *e)
{
    if (e->json)
        nbc_json_close(&e->writer, "}");
}

int emit_status(const char *program, int status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: cannot write to standard output\n", program);
    return 1;
}
