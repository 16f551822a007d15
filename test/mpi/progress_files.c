/* SPDX-License-Identifier: MIT */
/* Progress of collectives while rank 0 is blocked in a call on files: common/blocked.h. */
#include "blocked.h"
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef HAVE_MPI_FILE_OPEN
enum { MODE = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE };

static char name[64];
static MPI_File file;
static MPI_File spare;

BLOCKED(open_file, .in = "File_open")
{
    MPI_File another;
    char another_name[80];
    snprintf(another_name, sizeof another_name, "%s.open", name);
    OK(MPI_File_open(blocked_comm, another_name, MODE, MPI_INFO_NULL, &another));
    OK(MPI_File_close(&another));
}

static MPI_File opened(MPI_Comm comm, const char *suffix)
{
    MPI_File made;
    char path[80], native[] = "native";
    snprintf(path, sizeof path, "%s.%s", name, suffix);
    OK(MPI_File_open(comm, path, MODE, MPI_INFO_NULL, &made));
    MPI_File_set_view(made, 0, MPI_INT, MPI_INT, native, MPI_INFO_NULL);
    return made;
}

static MPI_File to_close;

/* A file outlives its communicator. */
static void open_one(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(blocked_comm, &comm);
    to_close = opened(comm, "close");
    MPI_Comm_free(&comm);
}

BLOCKED(close_file, .prepare = open_one, .in = "File_close")
{
    OK(MPI_File_close(&to_close));
}

BLOCKED(set_size, .in = "File_set_size")
{
    OK(MPI_File_set_size(file, 4096));
}

/* Of a new file: Open MPI 4.1.4 cannot write collectively to a preallocated file, nor set its
 * atomicity, and often hangs when a file is preallocated again. */
BLOCKED(preallocate, .prepare = open_one)
{
    OK(MPI_File_preallocate(to_close, 8192));
    OK(MPI_File_close(&to_close));
}

BLOCKED(set_view, .in = "File_set_view")
{
    char native[] = "native";
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, native, MPI_INFO_NULL));
}

BLOCKED(sync_file)
{
    OK(MPI_File_sync(file));
}

/* What rank `rank` writes at its place. */
static int data(int rank)
{
    return 1000 + rank;
}

static void check(int value)
{
    EXPECT_INT(value, data(test_rank));
}

BLOCKED(set_atomicity)
{
    int flag = 0;
    OK(MPI_File_set_atomicity(spare, 1));
    MPI_File_get_atomicity(spare, &flag);
    EXPECT(flag, "the mode is %d", flag);
    OK(MPI_File_set_atomicity(spare, 0));
}

BLOCKED(set_info)
{
    MPI_Info info;
    MPI_Info_create(&info);
    OK(MPI_File_set_info(spare, info));
    MPI_Info_free(&info);
}

/* All ranks together, or none. */
static void seek(bool shared, const char *next)
{
    if (!shared) {
        MPI_File_seek(file, test_rank, MPI_SEEK_SET);
        return;
    }
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    blocked_next(next);
}

/* Each rank writes at its place, and reads what it has written. */
#define AT_PLACE test_rank,
#define WHOLE(name, kind, at, shared, c, first)                           \
    BLOCKED(name, .in = first)                                            \
    {                                                                     \
        int out = data(test_rank), in = -1;                               \
        MPI_Status status;                                                \
        seek(shared, "File_write_" #kind);                                \
        OK(MPI_File_write_##kind##c(file, at &out, 1, MPI_INT, &status)); \
        blocked_next((shared) ? "File_seek_shared" : "File_read_" #kind); \
        seek(shared, "File_read_" #kind);                                 \
        OK(MPI_File_read_##kind##c(file, at &in, 1, MPI_INT, &status));   \
        check(in);                                                        \
    }
#define SPLIT(name, kind, at, shared, c)                                 \
    BLOCKED(name)                                                        \
    {                                                                    \
        int out = data(test_rank), in = -1;                              \
        MPI_Status status;                                               \
        seek(shared, NULL);                                              \
        OK(MPI_File_write_##kind##_begin##c(file, at &out, 1, MPI_INT)); \
        OK(MPI_File_write_##kind##_end(file, &out, &status));            \
        seek(shared, NULL);                                              \
        OK(MPI_File_read_##kind##_begin##c(file, at &in, 1, MPI_INT));   \
        OK(MPI_File_read_##kind##_end(file, &in, &status));              \
        check(in);                                                       \
    }

WHOLE(at_all, at_all, AT_PLACE, false, , "File_write_at_all")
WHOLE(all, all, , false, , "File_write_all")
WHOLE(ordered, ordered, , true, , "File_seek_shared")
SPLIT(split_at_all, at_all, AT_PLACE, false, )
SPLIT(split_all, all, , false, )
SPLIT(split_ordered, ordered, , true, )
#ifdef HAVE_MPI_FILE_READ_ALL_C
WHOLE(at_all_c, at_all, AT_PLACE, false, _c, NULL)
WHOLE(all_c, all, , false, _c, NULL)
WHOLE(ordered_c, ordered, , true, _c, NULL)
SPLIT(split_at_all_c, at_all, AT_PLACE, false, _c)
SPLIT(split_all_c, all, , false, _c)
SPLIT(split_ordered_c, ordered, , true, _c)
#endif

static void begin(void)
{
    MPI_Comm comm;
    /* One name for all, in the directory where the tests run. */
    snprintf(name, sizeof name, "progress_files.%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    /* Files outlive their communicators. */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    file = opened(comm, "data");
    spare = opened(comm, "spare");
    MPI_Comm_free(&comm);
    blocked_begin();
}

static void end(void)
{
    blocked_end();
    MPI_File_close(&spare);
    MPI_File_close(&file);
}
#else /* an MPI that was built without files: nothing to test */
static void begin(void)
{
}

static void end(void)
{
}
#endif

AROUND_TESTS(begin, end)
