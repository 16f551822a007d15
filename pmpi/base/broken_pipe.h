/* SPDX-License-Identifier: MIT */
/* What nbcshim writes for people may go to a pipe that nobody reads any more; that is no reason to
 * end the program. Nor may a timer of the program cut a write short. */
#ifndef NBC_BROKEN_PIPE_H
#define NBC_BROKEN_PIPE_H

#include <signal.h>

/* Between the two calls SIGPIPE and the signals of timers do not reach this thread. A SIGPIPE is
 * dropped, the others arrive afterwards. */
void nbc_broken_pipe_ignore(sigset_t *before);
void nbc_broken_pipe_heed(const sigset_t *before);

#endif
