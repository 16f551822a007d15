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

static void open_file(void)
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

static void close_file(void)
{
    OK(MPI_File_close(&to_close));
}

static void set_size(void)
{
    OK(MPI_File_set_size(file, 4096));
}

/* Of a new file: Open MPI 4.1.4 cannot write collectively to a preallocated file, nor set its
 * atomicity, and often hangs when a file is preallocated again. */
static void preallocate(void)
{
    OK(MPI_File_preallocate(to_close, 8192));
    OK(MPI_File_close(&to_close));
}

static void set_view(void)
{
    char native[] = "native";
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, native, MPI_INFO_NULL));
}

static void sync_file(void)
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

static void at_all(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    OK(MPI_File_write_at_all(file, test_rank, &out, 1, MPI_INT, &status));
    OK(MPI_File_read_at_all(file, test_rank, &in, 1, MPI_INT, &status));
    check(in);
}

static void all(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    MPI_File_seek(file, test_rank, MPI_SEEK_SET);
    OK(MPI_File_write_all(file, &out, 1, MPI_INT, &status));
    MPI_File_seek(file, test_rank, MPI_SEEK_SET);
    OK(MPI_File_read_all(file, &in, 1, MPI_INT, &status));
    check(in);
}

static void set_atomicity(void)
{
    int flag = 0;
    OK(MPI_File_set_atomicity(spare, 1));
    MPI_File_get_atomicity(spare, &flag);
    EXPECT(flag, "the mode is %d", flag);
    OK(MPI_File_set_atomicity(spare, 0));
}

static void set_info(void)
{
    MPI_Info info;
    MPI_Info_create(&info);
    OK(MPI_File_set_info(spare, info));
    MPI_Info_free(&info);
}

static void split_collective(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    OK(MPI_File_write_at_all_begin(file, test_rank, &out, 1, MPI_INT));
    OK(MPI_File_write_at_all_end(file, &out, &status));
    OK(MPI_File_read_at_all_begin(file, test_rank, &in, 1, MPI_INT));
    OK(MPI_File_read_at_all_end(file, &in, &status));
    check(in);
}

static void ordered(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_write_ordered(file, &out, 1, MPI_INT, &status));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(file, &in, 1, MPI_INT, &status));
    check(in);
}

static void split_all(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    MPI_File_seek(file, test_rank, MPI_SEEK_SET);
    OK(MPI_File_write_all_begin(file, &out, 1, MPI_INT));
    OK(MPI_File_write_all_end(file, &out, &status));
    MPI_File_seek(file, test_rank, MPI_SEEK_SET);
    OK(MPI_File_read_all_begin(file, &in, 1, MPI_INT));
    OK(MPI_File_read_all_end(file, &in, &status));
    check(in);
}

static void split_ordered(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_write_ordered_begin(file, &out, 1, MPI_INT));
    OK(MPI_File_write_ordered_end(file, &out, &status));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_begin(file, &in, 1, MPI_INT));
    OK(MPI_File_read_ordered_end(file, &in, &status));
    check(in);
}

#ifdef HAVE_MPI_FILE_READ_ALL_C
static void all_c(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    MPI_File_seek(file, test_rank, MPI_SEEK_SET);
    OK(MPI_File_write_all_c(file, &out, 1, MPI_INT, &status));
    MPI_File_seek(file, test_rank, MPI_SEEK_SET);
    OK(MPI_File_read_all_c(file, &in, 1, MPI_INT, &status));
    check(in);
}

static void ordered_c(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_write_ordered_c(file, &out, 1, MPI_INT, &status));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_c(file, &in, 1, MPI_INT, &status));
    check(in);
}

static void split_c(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    OK(MPI_File_write_at_all_begin_c(file, test_rank, &out, 1, MPI_INT));
    OK(MPI_File_write_at_all_end(file, &out, &status));
    MPI_File_seek(file, test_rank, MPI_SEEK_SET);
    OK(MPI_File_read_all_begin_c(file, &in, 1, MPI_INT));
    OK(MPI_File_read_all_end(file, &in, &status));
    check(in);
    MPI_File_seek(file, test_rank, MPI_SEEK_SET);
    OK(MPI_File_write_all_begin_c(file, &out, 1, MPI_INT));
    OK(MPI_File_write_all_end(file, &out, &status));
    OK(MPI_File_read_at_all_begin_c(file, test_rank, &in, 1, MPI_INT));
    OK(MPI_File_read_at_all_end(file, &in, &status));
    check(in);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_write_ordered_begin_c(file, &out, 1, MPI_INT));
    OK(MPI_File_write_ordered_end(file, &out, &status));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_begin_c(file, &in, 1, MPI_INT));
    OK(MPI_File_read_ordered_end(file, &in, &status));
    check(in);
}

static void at_all_c(void)
{
    int out = data(test_rank), in = -1;
    MPI_Status status;
    OK(MPI_File_write_at_all_c(file, test_rank, &out, 1, MPI_INT, &status));
    OK(MPI_File_read_at_all_c(file, test_rank, &in, 1, MPI_INT, &status));
    check(in);
}
#endif

static const struct blocked cases[] = {
    {"open", open_file, NULL, NULL, false},
    {"set_view", set_view, NULL, NULL, false},
    {"set_size", set_size, NULL, NULL, false},
    {"set_atomicity", set_atomicity, NULL, NULL, false},
    {"preallocate", preallocate, NULL, open_one, false},
    {"sync", sync_file, NULL, NULL, false},
    {"set_info", set_info, NULL, NULL, false},
    {"at_all", at_all, NULL, NULL, false},
    {"all", all, NULL, NULL, false},
    {"split_collective", split_collective, NULL, NULL, false},
    {"ordered", ordered, NULL, NULL, false},
    {"split_all", split_all, NULL, NULL, false},
    {"split_ordered", split_ordered, NULL, NULL, false},
#ifdef HAVE_MPI_FILE_READ_ALL_C
    {"all_c", all_c, NULL, NULL, false},
    {"ordered_c", ordered_c, NULL, NULL, false},
    {"split_c", split_c, NULL, NULL, false},
    {"at_all_c", at_all_c, NULL, NULL, false},
#endif
    {"close", close_file, NULL, open_one, false},
};

int main(int argc, char **argv)
{
    MPI_Comm comm;
    test_init(&argc, &argv);
    /* One name for all, in the directory where the tests run. */
    snprintf(name, sizeof name, "progress_files.%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    /* Files outlive their communicators. */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    file = opened(comm, "data");
    spare = opened(comm, "spare");
    MPI_Comm_free(&comm);
    blocked_run(cases, sizeof cases / sizeof *cases, argv + 1);
    MPI_File_close(&spare);
    MPI_File_close(&file);
    return test_done();
}

#else /* an MPI that was built without files: nothing to test */

int main(int argc, char **argv)
{
    test_init(&argc, &argv);
    return test_done();
}

#endif
