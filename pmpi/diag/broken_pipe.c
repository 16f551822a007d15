/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* What nbcshim writes for people may go to a pipe that nobody reads any more; that is no reason to
 * end the program. Nor may a timer of the program cut a write short. */
#include "diag/diag.h"

#include <stddef.h>
#include <time.h>

void nbc_broken_pipe_ignore(sigset_t *before)
{
    static const int numbers[] = {SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF};
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&held, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

void nbc_broken_pipe_heed(const sigset_t *before)
{
    const struct timespec at_once = {0, 0};
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    if (!sigismember(before, SIGPIPE)) /* otherwise it may be one that the program waits for */
        while (sigtimedwait(&broken, NULL, &at_once) == SIGPIPE)
            ;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
