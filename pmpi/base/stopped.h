/* SPDX-License-Identifier: MIT */
/* Whether a process of the program is stopped, as by a debugger. */
#ifndef NBC_STOPPED_H
#define NBC_STOPPED_H

#include <stdbool.h>

/* Whether a process on this host that runs the same program as this one, this one included, is
 * stopped by a signal or traced by a debugger. False where there is no /proc. */
bool nbc_any_is_stopped(void);

#endif
