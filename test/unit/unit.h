/* SPDX-License-Identifier: MIT */
/* Common code of the unit test programs. */
#ifndef NBC_TEST_UNIT_H
#define NBC_TEST_UNIT_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

/* An assertion for long loops: Check's own do I/O even if they hold. */
#define need(condition)                     \
    do {                                    \
        if (!(condition))                   \
            ck_abort_msg("%s", #condition); \
    } while (0)

/* A test of the program: UNIT(name) { ... }; with _i = 0 ... n - 1: UNIT(name, .times = n) { ... };
 * for every algorithm with a schedule, whose row is _i: UNIT(name, .each_row = true) { ... }. */
struct unit {
    void (*add)(TCase *tcase, int first, int end);
    int times;
    bool each_row;
    struct unit *next;
};

#define UNIT(name, ...)                                            \
    static void run_##name(int _i);                                \
    START_TEST(name)                                               \
    {                                                              \
        run_##name(_i);                                            \
    }                                                              \
    END_TEST                                                       \
    static void add_##name(TCase *tcase, int first, int end)       \
    {                                                              \
        tcase_add_loop_test(tcase, name, first, end);              \
    }                                                              \
    __attribute__((constructor)) static void register_##name(void) \
    {                                                              \
        static struct unit unit;                                   \
        unit = (struct unit){.add = add_##name, __VA_ARGS__};      \
        unit_add(&unit);                                           \
    }                                                              \
    static void run_##name(int _i __attribute__((unused)))

void unit_add(struct unit *unit);

/* Runs the tests; what main does unless the program has another. Returns the exit status. */
int unit_main(void);

#endif
