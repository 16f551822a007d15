/* SPDX-License-Identifier: MIT */
/* Common code of the unit test programs. */
#ifndef NBC_TEST_UNIT_H
#define NBC_TEST_UNIT_H

#include <check.h>
#include <stdlib.h>

/* An assertion for long loops: Check's own do I/O even if they hold. */
#define need(condition)                     \
    do {                                    \
        if (!(condition))                   \
            ck_abort_msg("%s", #condition); \
    } while (0)

/* Adds a test case for every algorithm that has a schedule, named "allreduce:ring"; the test finds
 * its row in _i. The names are static because Check keeps their addresses. */
#define add_for_each_row(suite, test)                                                           \
    do {                                                                                        \
        static char names[500][80];                                                             \
        for (int row = 0; row < nbc_nalgs && row < 500; row++) {                                \
            if (nbc_algs[row].needs & NBC_BY_MPI)                                               \
                continue;                                                                       \
            snprintf(names[row], sizeof names[row], "%s:%s", nbc_coll_name(nbc_algs[row].coll), \
                     nbc_algs[row].name);                                                       \
            TCase *tcase = tcase_create(names[row]);                                            \
            tcase_set_timeout(tcase, 0);                                                        \
            tcase_add_loop_test(tcase, test, row, row + 1);                                     \
            suite_add_tcase(suite, tcase);                                                      \
        }                                                                                       \
    } while (0)

/* Runs a suite in this process, for sanitizers and debuggers. Returns the exit status. */
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
