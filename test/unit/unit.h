/* SPDX-License-Identifier: MIT */
/* What the unit tests' main functions share. */
#ifndef NBC_TEST_UNIT_H
#define NBC_TEST_UNIT_H

#include <check.h>
#include <stdlib.h>

/* For loops that check a lot: Check's own assertions do I/O even when they hold. */
#define need(condition)                     \
    do {                                    \
        if (!(condition))                   \
            ck_abort_msg("%s", #condition); \
    } while (0)

/* Runs a suite in this process, so that sanitizers and debuggers see it. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    if (!getenv("CK_FORK"))
        srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
