/* SPDX-License-Identifier: MIT */
/* What every test program checks with. A failure says file, line and function, and of integers what
 * the program got and wanted. The programs of test/mpi count failures and go on (common/util.c);
 * any other defines, before it includes this file, IF_IT_FAILS: what it does after a failure. */
#ifndef NBC_TEST_EXPECT_H
#define NBC_TEST_EXPECT_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* After the condition stands what went wrong, after two integers what they are of, if their names
 * do not say it: EXPECT_INT(sum, size, "round %d", i). "| 0" refuses pointers and floating point.
 */
#define EXPECT(condition, ...)      \
    do {                            \
        if (!(condition))           \
            test_fail(__VA_ARGS__); \
    } while (0)
#define EXPECT_INT(got, want, ...)                                        \
    do {                                                                  \
        long long got_ = (got) | 0, want_ = (want) | 0;                   \
        if (got_ != want_)                                                \
            expect_int(EXPECT_HERE, #got, got_, want_, ", " __VA_ARGS__); \
    } while (0)
#define CHECK(condition) EXPECT(condition, "not %s", #condition)
#define OK(call) expect_ok(EXPECT_HERE, #call, call)
#define test_fail(...) test_fail_at(EXPECT_HERE, __VA_ARGS__)
#define EXPECT_HERE __FILE__, __LINE__, __func__
#define EXPECT_FORMAT(text, args) __attribute__((unused, format(printf, text, args)))

enum { EXPECT_TEXT = 1000 };

static inline void expect_print(char text[EXPECT_TEXT], const char *file, int line,
                                const char *function, const char *format, va_list args)
{
    const char *slash = strrchr(file, '/');
    int n = snprintf(text, EXPECT_TEXT, "%s:%d: %s: ", slash ? slash + 1 : file, line, function);
    vsnprintf(text + n, (size_t)(EXPECT_TEXT - n), format, args);
}

#ifndef FAILURES_TO
#define FAILURES_TO STDERR_FILENO
#endif

#ifndef IF_IT_FAILS
void test_fail_at(const char *file, int line, const char *function, const char *format, ...)
    EXPECT_FORMAT(4, 5);
#else
EXPECT_FORMAT(4, 5)
static void test_fail_at(const char *file, int line, const char *function, const char *format, ...)
{
    char text[EXPECT_TEXT];
    va_list args;
    va_start(args, format);
    expect_print(text, file, line, function, format, args);
    va_end(args);
    dprintf(FAILURES_TO, "%s\n", text);
    IF_IT_FAILS;
}
#endif

EXPECT_FORMAT(7, 8)
static void expect_int(const char *file, int line, const char *function, const char *what,
                       long long got, long long want, const char *format, ...)
{
    char of[EXPECT_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(of, sizeof of, format, args);
    va_end(args);
    test_fail_at(file, line, function, "%s is %lld, not %lld%s", what, got, want, of[2] ? of : "");
}

#ifdef MPI_VERSION
static inline void expect_ok(const char *file, int line, const char *function, const char *call,
                             int error)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (error == MPI_SUCCESS)
        return;
    MPI_Error_string(error, text, &length);
    test_fail_at(file, line, function, "%s: %s", call, text);
}
#endif

#endif
