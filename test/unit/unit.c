/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "select.h"

static struct unit *units, **units_end = &units;

void unit_add(struct unit *unit)
{
    *units_end = unit;
    units_end = &unit->next;
}

/* The names are static because Check keeps their addresses. */
static void add_rows(Suite *suite, const struct unit *unit)
{
    static char names[500][80];
    for (int row = 0; row < nbc_nalgs && row < 500; row++) {
        if (nbc_algs[row].needs & NBC_BY_MPI)
            continue;
        snprintf(names[row], sizeof names[row], "%s:%s", nbc_coll_name(nbc_algs[row].coll),
                 nbc_algs[row].name);
        TCase *tcase = tcase_create(names[row]);
        tcase_set_timeout(tcase, 0);
        unit->add(tcase, row, row + 1);
        suite_add_tcase(suite, tcase);
    }
}

int unit_main(void)
{
    const char *name = program_invocation_short_name;
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(suite, tcase);
    for (const struct unit *unit = units; unit; unit = unit->next) {
        if (unit->each_row)
            add_rows(suite, unit);
        else
            unit->add(tcase, 0, unit->times ? unit->times : 1);
    }
    SRunner *runner = srunner_create(suite);
    if (!getenv("CK_FORK")) /* in this process, for sanitizers and debuggers */
        srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Of the programs without arguments. */
__attribute__((weak)) int main(void)
{
    return unit_main();
}
