/* SPDX-License-Identifier: MIT */
#ifndef NBC_LOOPED_H
#define NBC_LOOPED_H

#include "below/export.h"
#include "base/lock.h"
#include "engine/progress.h"

/* Defines a call that does not block, but that programs repeat in a loop until something happens:
 * the operations of nbcshim are polled in each. */
#define LOOPED(name, params, args)           \
    EXPORT(int, name, params, args)          \
    {                                        \
        if (nbc_any_active() && !nbc_inside) \
            nbc_progress_all();              \
        return NEXT(name) args;              \
    }

#endif
