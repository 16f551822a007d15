/* SPDX-License-Identifier: MIT */
#include "comm/rank_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void nbc_line_put(struct nbc_line *l, const char *format, ...)
{
    const size_t room = sizeof l->text - l->n;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(l->text + l->n, room, format, values);
    va_end(values);
    if (length > 0)
        l->n += (size_t)length < room ? (size_t)length : room - 1;
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

void nbc_line_abort(MPI_Comm comm)
{
    nbc_next_let_launcher_read();
    write_coverage();
    NEXT(Abort)(comm, EXIT_FAILURE);
    _exit(EXIT_FAILURE); /* MPICH 4.2.1 returns */
} /* unreached: in a process that writes no counts */

void nbc_host_own(char host[NBC_HOST_LENGTH])
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length;
    NEXT(Get_processor_name)(name, &length);
    snprintf(host, NBC_HOST_LENGTH, "%.*s", NBC_HOST_LENGTH - 1, name);
}
