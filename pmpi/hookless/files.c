/* SPDX-License-Identifier: MIT */
/* Files: MPI-4.1 chapter 14. Calls that are collective over a file are preceded by a barrier:
 * barrier_before.h.
 *
 * The I/O library of an MPI calls MPI functions itself, some of them under its own locks. nbcshim
 * passes these to the MPI below unchanged, unless they have a request of nbcshim: then a callback
 * of the program calls them, an error handler of a file or a callback of an attribute. */
#include "below/export.h"

NBC_ARCHIVE_MEMBER(files)

#ifdef HAVE_MPI_FILE_OPEN
#include "base/lock.h"
#include "below/quirks.h"
#include "engine/progress.h"
#include "hookless/barrier_before.h"

static struct nbc_object_barrier *file_barrier(MPI_File fh)
{
    return nbc_object_barrier_find(NBC_FILE, NBC_KEY(fh));
}

/* Returns an error after raising it on the file. */
static int file_pass(struct nbc_object_barrier *b, MPI_File fh, bool ends)
{
    int error = nbc_object_barrier_pass(b, ends);
    if (error)
        NEXT(File_call_errhandler)(fh, error); /* unreached: the MPI fails */
    return error;
}

static void leave_below(const unsigned char *before)
{
    nbc_inside = *before;
}

/* Makes a native call, during which the thread is inside the MPI below, unless it holds the lock,
 * as in an operator. The call may end by an exception of an error handler, too (C++, -fexceptions).
 */
#define BELOW(call)                                                                       \
    do {                                                                                  \
        __attribute__((cleanup(leave_below))) const unsigned char before_it = nbc_inside; \
        if (before_it == NBC_OUTSIDE)                                                     \
            nbc_inside = NBC_BELOW;                                                       \
        call;                                                                             \
    } while (0)

EXPORT(int, File_open,
       (MPI_Comm comm, NBC_CONST char *filename, int amode, MPI_Info info, MPI_File *fh),
       (comm, filename, amode, info, fh))
{
    if (!nbc_comm_is_ours(comm))
        return NEXT(File_open)(comm, filename, amode, info, fh); /* unreached: within the MPI */
    int error = nbc_barrier_before_constructor(comm);
    if (error)
        return error; /* unreached: the MPI fails */
    BELOW(error = NEXT(File_open)(comm, filename, amode, info, fh));
    return error ? error : nbc_object_barrier_new(NBC_FILE, NBC_KEY(*fh), comm);
}

EXPORT(int, File_close, (MPI_File * fh), (fh))
{
    struct nbc_object_barrier *b = fh ? file_barrier(*fh) : NULL;
    if (!b)
        return NEXT(File_close)(fh);
    int error = file_pass(b, *fh, true);
    if (error)
        return error; /* unreached: the MPI fails */
    BELOW(error = NEXT(File_close)(fh));
    nbc_object_barrier_ended(b, !error);
    return error;
}

#define FILE_CALL(name, params, args)                    \
    EXPORT(int, name, params, args)                      \
    {                                                    \
        struct nbc_object_barrier *b = file_barrier(fh); \
        if (!b)                                          \
            return NEXT(name) args;                      \
        int error = file_pass(b, fh, false);             \
        if (!error)                                      \
            BELOW(error = NEXT(name) args);              \
        return error;                                    \
    }

#define FILE_LOCAL(name, params, args, prepare) \
    EXPORT(int, name, params, args)             \
    {                                           \
        int error;                              \
        prepare;                                \
        BELOW(error = NEXT(name) args);         \
        return error;                           \
    }

/* Where the MPI does not bear the progress thread there, the first of these calls stops it. */
static void thread_leave_files(void)
{
    if (!NBC_FILES_BEAR_THREADS && !nbc_inside)
        nbc_thread_stop();
}

#define FILE_SHARED(name, params, args) FILE_LOCAL(name, params, args, (void)0)
#define FILE_START(name, params, args) FILE_LOCAL(name, params, args, thread_leave_files())

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
