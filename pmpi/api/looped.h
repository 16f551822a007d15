/* SPDX-License-Identifier: MIT */
#ifndef NBC_LOOPED_H
#define NBC_LOOPED_H

#include "below/export.h"
#include "base/lock.h"
#include "engine/progress.h"

/* A call that itself waits for nobody, but that programs make in a loop until something happens:
 * ours moves on a bit in each. */
#define LOOPED(name, params, args)           \
    EXPORT(int, name, params, args)          \
    {                                        \
        if (nbc_any_active() && !nbc_inside) \
            nbc_progress_all();              \
        return NEXT(name) args;              \
    }

#endif
