/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* The call of MPI in which this thread is, by its stack: no call costs anything for that. Also in a
 * signal handler. */
#include "diag/diag.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unwind.h>

#include "base/in_mpi.h"
#include "below/detect.h"
#include "below/next.h"

struct walk {
    const void *mpi, *shim; /* where these objects begin */
    bool left;              /* the frames of the report itself */
    struct nbc_current now; /* by the frames so far */
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

/* In the static library nbcshim's functions are some of the program's: only those that a program
 * calls are known. */
static bool is_of_shim(const struct walk *w, const void *base, const void *start)
{
#ifdef PIC
    (void)start;
    return base == w->shim;
#else
    return base == w->shim && nbc_next_wrapper(start);
#endif
}

static void look_at_function(struct walk *w, const void *start, const char *site)
{
    Dl_info info;
    if (!start || !dladdr(start, &info))
        return;
    bool of_shim = is_of_shim(w, info.dli_fbase, start);
    const char *name = mpi_name(info.dli_sname);
    if (info.dli_fbase == w->mpi)
        w->now = (struct nbc_current){NBC_PLACE_MPI,
                                      info.dli_sname ? name : name_behind_jump(start), NULL};
    else if (of_shim && w->left)
        w->now = (struct nbc_current){NBC_PLACE_SHIM, name ? name : nbc_next_wrapper(start), NULL};
    else if (!of_shim && !w->now.site && !nbc_is_mpi(info.dli_fname)) /* its Fortran binding */
        w->now.site = site;
    w->left = w->left || !of_shim;
}

/* Where the walk ends: while the dynamic linker binds a function, the frames below its own are not
 * found on arm64 (glibc 2.36), and to look for them there crashes. */
static bool is_of_linker(const void *site)
{
    const unsigned long linker = getauxval(AT_BASE);
    return linker && (uintptr_t)object_with(site) == linker;
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *to)
{
    uintptr_t addresses[] = {_Unwind_GetRegionStart(context), _Unwind_GetIP(context)};
    void *start, *site;
    memcpy(&start, &addresses[0], sizeof start);
    memcpy(&site, &addresses[1], sizeof site);
    if (is_of_linker(site))
        return _URC_NORMAL_STOP;
    look_at_function(to, start, site);
    return _URC_NO_REASON;
}

#ifndef PIC
/* Whether nbcshim calls the function of the MPI in its own loops. */
static bool is_polled(const char *name)
{
    return strncmp(name, "Test", 4) == 0 || strstr(name, "probe");
}
#endif

struct nbc_current nbc_current_call(bool in_handler)
{
    void *finalize;
    int (*next)(void) = NEXT(Finalize);
    memcpy(&finalize, &next, sizeof finalize);
    const void *here = object_with(&nbc_timing_on);
    struct walk w = {.mpi = object_with(finalize), .shim = here, .left = !in_handler};
    if (!w.mpi || w.mpi == here)
        return w.now;
#ifdef PIC
    w.now.place = NBC_PLACE_PROGRAM;
#endif
    _Unwind_Backtrace(look_at_frame, &w);
#ifndef PIC
    if (w.now.place == NBC_PLACE_MPI && w.now.name && is_polled(w.now.name))
        w.now.name = w.now.site = NULL; /* in the program or in nbcshim */
#endif
    return w.now;
}
