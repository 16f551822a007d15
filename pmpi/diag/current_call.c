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
    const char *name;       /* of the function of MPI there */
};

static const void *object_with(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* The name without prefix; NULL if that of no function of MPI. */
static const char *mpi_name(const char *symbol)
{
    if (symbol && symbol[0] == 'P')
        symbol++;
    return symbol && strncmp(symbol, "MPI_", 4) == 0 ? symbol + 4 : NULL;
}

/* Whether a function does no more than jump to another one. */
static bool jumps_to(void (*function)(void), const void *other)
{
    const unsigned char *code;
    memcpy(&code, &function, sizeof code);
#ifdef __x86_64__
    static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    enum { JMP = 0xe9 };
    int32_t distance;
    if (code && memcmp(code, endbr64, sizeof endbr64) == 0)
        code += sizeof endbr64;
    if (!code || *code != JMP)
        return false;
    memcpy(&distance, code + 1, sizeof distance);
    return code + 1 + sizeof distance + distance == other;
#else
    (void)other;
    return false;
#endif
}

/* The compiler may put a function of the MPI into one that has no symbol, and leave of the other
 * one only a jump, which leaves no frame. */
static const char *name_behind_jump(const void *start)
{
#define FN(name)                                     \
    if (jumps_to((void (*)(void))NEXT(name), start)) \
        return #name;
#include "below/next.def"
#undef FN
    return NULL;
}

static const char *name_in_mpi(const void *start, const char *symbol)
{
    return symbol ? mpi_name(symbol) : name_behind_jump(start);
}

static const char *name_in_shim(const void *start, const char *symbol)
{
#ifdef PIC
    const char *name = mpi_name(symbol);
    return name ? name : nbc_next_wrapper(start);
#else
    (void)start;
    return symbol; /* unreached: the static library is a part of the program */
#endif
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *to)
{
    struct walk *w = to;
    Dl_info info;
    uintptr_t address = _Unwind_GetRegionStart(context);
    void *start;
    memcpy(&start, &address, sizeof start);
    if (!start || !dladdr(start, &info))
        return _URC_NO_REASON;
    if (info.dli_fbase == w->mpi) {
        w->place = NBC_PLACE_MPI;
        w->name = name_in_mpi(start, info.dli_sname);
    } else if (info.dli_fbase == w->shim && w->left) {
        w->place = NBC_PLACE_SHIM;
        w->name = name_in_shim(start, info.dli_sname);
    }
    w->left = w->left || info.dli_fbase != w->shim;
    return _URC_NO_REASON;
}

#ifndef PIC
/* Whether nbcshim calls the function of the MPI in its own loops. */
static bool is_polled(const char *name)
{
    return strncmp(name, "Test", 4) == 0 || strstr(name, "probe");
}
#endif

enum nbc_place nbc_current_call(bool in_handler, const char **name)
{
    void *finalize;
    int (*next)(void) = NEXT(Finalize);
    memcpy(&finalize, &next, sizeof finalize);
    const void *here = object_with(&nbc_timing_on);
    struct walk w = {.mpi = object_with(finalize), .left = !in_handler};
    *name = NULL;
    if (!w.mpi || w.mpi == here)
        return NBC_PLACE_UNKNOWN;
#ifdef PIC
    w.shim = here;
    w.place = NBC_PLACE_PROGRAM;
#endif
    _Unwind_Backtrace(look_at_frame, &w);
#ifndef PIC
    if (w.name && is_polled(w.name))
        w.name = NULL; /* in the program or in nbcshim */
#endif
    *name = w.name;
    return w.place;
}
