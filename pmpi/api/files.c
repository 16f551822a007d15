/* SPDX-License-Identifier: MIT */
/* Files: MPI-4.1 chapter 14. The calls that are collective over a file wait for all its ranks
 * before they go to the MPI: presync.h.
 *
 * The I/O part of an MPI is a library above it, which calls MPI functions in its turn, some of them
 * under locks of its own. Those pass straight on: all ranks are in the same call. */
#include "below/next.h"

#ifdef HAVE_MPI_FILE_OPEN
#include "api/presync.h"
#include "base/lock.h"
#include "below/export.h"
#include "engine/thread.h"

static struct nbc_gate *gate_of(MPI_File fh)
{
    return nbc_gate_find(NBC_GATE_FILE, NBC_GATE_KEY(fh));
}

/* Returns false, having raised it, for an error of ours. */
static bool pass(struct nbc_gate *gate, MPI_File fh, int *error)
{
    *error = nbc_gate_pass(gate);
    if (*error)
        NEXT(File_call_errhandler)(fh, *error);
    return *error == MPI_SUCCESS;
}

/* Around the native call; returns what leave wants. */
static unsigned char enter(void)
{
    unsigned char before = nbc_inside;
    nbc_inside = NBC_BELOW;
    return before;
}

static void leave(unsigned char before)
{
    nbc_inside = before;
}

EXPORT(int, File_open,
       (MPI_Comm comm, NBC_CONST char *filename, int amode, MPI_Info info, MPI_File *fh),
       (comm, filename, amode, info, fh))
{
    if (!nbc_knows(comm))
        return NEXT(File_open)(comm, filename, amode, info, fh);
    int error = nbc_presync(comm);
    if (error)
        return error;
    unsigned char before = enter();
    error = NEXT(File_open)(comm, filename, amode, info, fh);
    leave(before);
    return error ? error : nbc_gate_new(NBC_GATE_FILE, NBC_GATE_KEY(*fh), comm);
}

EXPORT(int, File_close, (MPI_File * fh), (fh))
{
    int error;
    struct nbc_gate *gate = fh ? gate_of(*fh) : NULL;
    if (!gate)
        return NEXT(File_close)(fh);
    if (!pass(gate, *fh, &error))
        return error;
    nbc_gate_remove(gate);
    unsigned char before = enter();
    error = NEXT(File_close)(fh);
    leave(before);
    if (error)
        nbc_gate_restore(gate);
    else
        nbc_gate_free(gate);
    return error;
}

#define FILE_CALL(name, params, args)        \
    EXPORT(int, name, params, args)          \
    {                                        \
        int error;                           \
        struct nbc_gate *gate = gate_of(fh); \
        if (!gate)                           \
            return NEXT(name) args;          \
        if (!pass(gate, fh, &error))         \
            return error;                    \
        unsigned char before = enter();      \
        error = NEXT(name) args;             \
        leave(before);                       \
        return error;                        \
    }

/* Open MPI 4.1.4 crashes where one thread completes such an operation while another is in the MPI:
 * with the first of them the progress thread ends. */
#ifdef OPEN_MPI
#define FILE_START(name, params, args) \
    EXPORT(int, name, params, args)    \
    {                                  \
        if (!nbc_inside)               \
            nbc_thread_stop();         \
        return NEXT(name) args;        \
    }
#include "below/files_nonblocking.def"
#endif

#define NAME(name) name
#define C int
#include "below/files.def"
#undef NAME
#undef C

#ifdef HAVE_MPI_FILE_READ_ALL_C
#define LARGE
#define NAME(name) name##_c
#define C MPI_Count
#include "below/files.def"
#endif
#endif
