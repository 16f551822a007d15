/* SPDX-License-Identifier: MIT */
/* nbccompare with any records of runs, for libFuzzer: it refuses what is no record, and writes its
 * text, its JSON and its page from every other. Each record of an input ends with a line "-".
 * test/text/run.sh builds and runs it. */
#define main nbccompare_main
#include "../../tools/compare/nbccompare.c"
#undef main

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* For addr2line, which is not called. */
FILE *popen(const char *command, const char *mode)
{
    (void)command, (void)mode;
    return NULL;
}

/* Makes a file of a text, and puts NAME=FILE into an argument. */
static int make_file(char *argument, size_t room, const char *name, const char *text, size_t n)
{
    int file = memfd_create("record", MFD_CLOEXEC);
    if (file < 0 || write(file, text, n) != (ssize_t)n)
        __builtin_trap();
    snprintf(argument, room, "%s=/proc/self/fd/%d", name, file);
    return file;
}

/* A program that ends need not. */
static void forget(struct comparison *c)
{
    for (int i = 0; i < c->nruns; i++) {
        struct run *r = &c->runs[i];
        for (int k = 0; r->host && k < r->nranks; k++)
            free(r->host[k]);
        for (int k = 0; k < r->nrows; k++)
            free(r->rows[k].text);
        free(r->host);
        free(r->wall);
        free(r->rows);
    }
    for (int i = 0; i < c->nsites; i++)
        free(c->sites[i].where);
    free(c->sites);
    for (int v = 0; v < NVARIANTS; v++)
        free(c->late[v]);
}

/* JSON knows no infinity, and nothing that is not a number. */
static void expect_numbers(const char *json)
{
    bool in_string = false;
    for (const char *c = json; *c; c++) {
        if (*c == '"')
            in_string = !in_string;
        else if (*c == '\\')
            c++;
        else if (!in_string && (strncmp(c, "nan", 3) == 0 || strncmp(c, "inf", 3) == 0))
            __builtin_trap();
    }
}

static void compare(struct comparison *c)
{
    char *json;
    size_t length;
    FILE *page = fopen("/dev/null", "w"), *out = open_memstream(&json, &length);
    print_all(c);
    page_write(page, c);
    write_json(out, c);
    fclose(page);
    fclose(out);
    expect_numbers(json);
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 6 };
    static char text[4096];
    struct run runs[MOST];
    struct comparison c = {.command = "./program \"a\" & <b>", .runs = runs};
    bool good = true;
    if (size >= sizeof text)
        return -1;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *from = text, *end; good && *from && c.nruns < MOST; from = end) {
        char argument[64];
        end = strstr(from, "\n-\n");
        size_t n = end ? (size_t)(end - from) + 1 : strlen(from);
        end = end ? end + 3 : from + n;
        int file = make_file(argument, sizeof argument, variant_names[c.nruns % 2], from, n);
        good = read_argument(&c, argument);
        close(file);
    }
    if (good && compare_runs(&c))
        compare(&c);
    forget(&c);
    return 0;
}
