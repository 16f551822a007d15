/* SPDX-License-Identifier: MIT */
/* Calls that do not block, but that programs repeat in a loop. */
#ifndef NBC_LOOPED_H
#define NBC_LOOPED_H

#include "below/export.h"
#include "base/lock.h"
#include "base/state.h"
#include "engine/callback.h"
#include "engine/progress.h"

/* Defines a call that does not block, but that programs repeat in a loop until something happens:
 * the operations of nbcshim are polled in each. Where the MPI calls nbcshim in its progress loop,
 * not every such call enters that loop. */
#define LOOPED(name, params, args)                     \
    EXPORT(int, name, params, args)                    \
    {                                                  \
        if (!nbc_any_active() || nbc_inside)           \
            return NEXT(name) args;                    \
        unsigned polls = nbc_callback_polls;           \
        if (!nbc_hooked)                               \
            nbc_progress_all();                        \
        int error = NEXT(name) args;                   \
        if (nbc_hooked && nbc_callback_polls == polls) \
            nbc_progress_all();                        \
        return error;                                  \
    }

#endif
