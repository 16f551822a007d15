/* SPDX-License-Identifier: MIT */
#include "comm/rank_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put_letter(struct nbc_line *l, char letter)
{
    if (l->n < sizeof l->text - 1)
        l->text[l->n++] = letter;
    l->text[l->n] = '\0';
}

static void put_word(struct nbc_line *l, const char *word)
{
    while (*word)
        put_letter(l, *word++);
}

static void put_digits(struct nbc_line *l, unsigned long long number, unsigned base)
{
    char digits[24] = "";
    size_t n = sizeof digits - 1;
    do
        digits[--n] = "0123456789abcdef"[number % base];
    while (number /= base);
    put_word(l, digits + n);
}

static void put_number(struct nbc_line *l, long long number)
{
    put_word(l, number < 0 ? "-" : "");
    put_digits(l, number < 0 ? -(unsigned long long)number : (unsigned long long)number, 10);
}

void nbc_line_put(struct nbc_line *l, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    for (; *format; format++) {
        int length = 0;
        if (*format != '%') {
            put_letter(l, *format);
            continue;
        }
        while (*++format == 'l')
            length++;
        if (*format == 's')
            put_word(l, va_arg(values, const char *));
        else if (*format == 'x')
            put_digits(l, va_arg(values, unsigned long), 16);
        else if (*format == 'c')
            put_letter(l, (char)va_arg(values, int));
        else if (length == 0)
            put_number(l, va_arg(values, int));
        else
            put_number(l, length == 1 ? va_arg(values, long) : va_arg(values, long long));
    }
    va_end(values);
}

/* Appends the ranks as ranges. At most MOST ranges are named. */
static void put_ranges(struct nbc_line *l, int size, const struct nbc_rank *ranks, int64_t value)
{
    enum { MOST = 10 };
    int nranges = 0;
    for (int first = 0, last; first < size; first = last + 1) {
        last = first;
        if (ranks[first].value != value)
            continue;
        while (last + 1 < size && ranks[last + 1].value == value)
            last++;
        if (nranges == MOST) {
            /* unreached below: more ranks or hosts than tests have */
            nbc_line_put(l, " and others");
            return;
        }
        nbc_line_put(l, nranges++ ? ", %d" : "%d", first);
        if (last > first)
            nbc_line_put(l, "-%d", last);
    }
}

/* Appends the names of their hosts, at most MOST. */
static void put_hosts(struct nbc_line *l, int size, const struct nbc_rank *ranks, int64_t value)
{
    enum { MOST = 4 };
    const char *named[MOST];
    int n = 0;
    for (int rank = 0; rank < size; rank++) {
        bool known = ranks[rank].value != value;
        for (int i = 0; i < n && !known; i++)
            known = strcmp(ranks[rank].host, named[i]) == 0;
        if (known)
            continue;
        if (n == MOST) {
            /* unreached below: more ranks or hosts than tests have */
            nbc_line_put(l, " and others");
            break;
        }
        named[n] = ranks[rank].host;
        nbc_line_put(l, n++ ? ", %s" : " (%s", ranks[rank].host);
    }
    nbc_line_put(l, n ? ")" : "");
}

void nbc_line_put_ranks(struct nbc_line *l, int size, const struct nbc_rank *ranks, int64_t value,
                        bool hosts)
{
    int n = 0;
    for (int rank = 0; rank < size; rank++)
        n += ranks[rank].value == value;
    nbc_line_put(l, n == 1 ? "rank " : "ranks ");
    put_ranges(l, size, ranks, value);
    if (hosts)
        put_hosts(l, size, ranks, value);
}

void nbc_line_print(struct nbc_line *l)
{
    l->text[l->n++] = '\n';
    if (write(STDERR_FILENO, l->text, l->n) < 0)
        return; /* unreached: the error cannot be reported either */
}

/* The MPI kills the process before it writes what gcov has counted. */
static void write_coverage(void)
{
#ifdef NBC_COVERAGE
    extern void __gcov_dump(void);
    __gcov_dump();
#endif
} /* unreached: in a process that writes no counts */

int nbc_line_abort(MPI_Comm comm)
{
    nbc_next_let_launcher_read();
    write_coverage();
    return NEXT(Abort)(comm, EXIT_FAILURE); /* unreached: in a process that writes no counts */
}

void nbc_host_own(char host[NBC_HOST_LENGTH])
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length;
    NEXT(Get_processor_name)(name, &length);
    snprintf(host, NBC_HOST_LENGTH, "%.*s", NBC_HOST_LENGTH - 1, name);
}
