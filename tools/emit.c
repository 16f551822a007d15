/* SPDX-License-Identifier: MIT */
#include "emit.h"

#include <inttypes.h>

void emit_quoted(FILE *out, const char *value)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < ' ' || *c > '~') /* what is no ASCII need not be UTF-8 either */
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void open_json(struct emit *e, const char *name, const char *bracket)
{
    fprintf(e->out, "%s\n", e->again ? "," : "");
    if (name) {
        emit_quoted(e->out, name);
        fputs(": ", e->out);
    }
    fputs(bracket, e->out);
    e->again = false;
}

static void close_json(struct emit *e, const char *bracket)
{
    fputs(bracket, e->out);
    e->again = true;
}

void emit_begin(struct emit *e)
{
    if (e->json)
        fputc('{', e->out);
    e->again = false;
}

void emit_end(struct emit *e)
{
    if (e->json)
        fputs("\n}\n", e->out);
}

void emit_list(struct emit *e, const char *name, const char *heading)
{
    if (e->json) {
        open_json(e, name, "[");
        return;
    }
    fprintf(e->out, "%s%s\n", e->again ? "\n" : "", heading);
    e->again = true;
}

void emit_list_end(struct emit *e)
{
    if (e->json)
        close_json(e, "]");
}

void emit_row(struct emit *e, const char *name)
{
    if (e->json)
        open_json(e, name, "{");
    else
        fputs("  ", e->out);
}

void emit_row_end(struct emit *e)
{
    if (e->json)
        close_json(e, "}");
    else
        fputc('\n', e->out);
}

static void field(struct emit *e, const char *name)
{
    if (e->again)
        fputs(", ", e->out);
    emit_quoted(e->out, name);
    fputs(": ", e->out);
    e->again = true;
}

void emit_string(struct emit *e, const char *name, int width, const char *value)
{
    if (!e->json) {
        if (width >= 0)
            fprintf(e->out, "%-*s%s", width, value, width ? " " : "");
        return;
    }
    field(e, name);
    if (value)
        emit_quoted(e->out, value);
    else
        fputs("null", e->out);
}

void emit_number(struct emit *e, const char *name, int width, int64_t value)
{
    if (e->json) {
        field(e, name);
        fprintf(e->out, "%" PRId64, value);
    } else if (width >= 0) {
        fprintf(e->out, "%*" PRId64 " ", width, value);
    }
}

void emit_bool(struct emit *e, const char *name, int width, bool value)
{
    if (e->json) {
        field(e, name);
        fputs(value ? "true" : "false", e->out);
    } else if (width >= 0) {
        fprintf(e->out, "%-*s ", width, value ? "yes" : "no");
    }
}

void emit_real(struct emit *e, const char *name, int digits, double value)
{
    if (!e->json)
        return;
    field(e, name);
    fprintf(e->out, "%.*g", digits, value);
}

void emit_object(struct emit *e, const char *name)
{
    if (!e->json)
        return;
    field(e, name);
    fputc('{', e->out);
    e->again = false;
}

void emit_object_end(struct emit *e)
{
    if (e->json)
        close_json(e, "}");
}

int emit_status(const char *program, int status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: cannot write to standard output\n", program);
    return 1;
}
