/* SPDX-License-Identifier: MIT */
/* What the unit tests' main functions share. */
#ifndef NBC_TEST_UNIT_H
#define NBC_TEST_UNIT_H

#include <check.h>
#include <stdlib.h>

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
