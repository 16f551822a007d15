/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "diag/current_call.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unwind.h>

#include "base/clock.h"
#include "below/next.h"

struct walk {
    const void *mpi, *shim; /* where these objects begin */
    bool left;              /* the frames of the report itself */
    enum nbc_place place;   /* of the outermost frame so far */
    const char *name;
};

static const void *object_with(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* The name without the first P; NULL if that of no function of MPI. */
static const char *mpi_name(const char *symbol)
{
    if (symbol && symbol[0] == 'P')
        symbol++;
    return symbol && strncmp(symbol, "MPI_", 4) == 0 ? symbol : NULL;
}

/* Whether nbcshim calls the function of the MPI in its own loops. */
static bool is_polled(const char *name)
{
    return strncmp(name, "MPI_Test", 8) == 0 || strstr(name, "probe");
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *to)
{
    struct walk *w = to;
    Dl_info info;
    uintptr_t address = _Unwind_GetIP(context);
    void *at;
    memcpy(&at, &address, sizeof at);
    if (!at || !dladdr(at, &info))
        return _URC_NO_REASON;
    if (info.dli_fbase == w->mpi) {
        const char *name = mpi_name(info.dli_sname);
        w->place = NBC_PLACE_MPI;
        w->name = name ? name : w->name;
    } else if (info.dli_fbase == w->shim && w->left) {
        w->place = NBC_PLACE_SHIM;
        w->name = w->name && is_polled(w->name) ? NULL : w->name;
    }
    w->left = w->left || info.dli_fbase != w->shim;
    return _URC_NO_REASON;
}

enum nbc_place nbc_current_call(const char **name)
{
    void *finalize;
    int (*next)(void) = NEXT(Finalize);
    memcpy(&finalize, &next, sizeof finalize);
    struct walk w = {.mpi = object_with(finalize), .shim = object_with(&nbc_timing_on)};
    *name = NULL;
    if (!w.mpi || w.mpi == w.shim)
        return NBC_PLACE_UNKNOWN;
    w.place = NBC_PLACE_PROGRAM;
    _Unwind_Backtrace(look_at_frame, &w);
    *name = w.name;
    return w.place;
}
