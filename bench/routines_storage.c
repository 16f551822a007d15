/* SPDX-License-Identifier: MIT */
/* Windows and files. */
#include <stddef.h>
#include <stdlib.h>

#include "routines.h"

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 31

/* --- windows -----------------------------------------------------------------------------------*/

enum { WINDOW_BYTES = 4096 };

#define SHAPE WINDOW_BYTES, 1, MPI_INFO_NULL, s->o->comm

static int with_memory(struct side *s)
{
    s->memory = malloc(WINDOW_BYTES);
    return s->memory ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void free_memory(struct side *s)
{
    free(s->memory);
}

#define WINDOW(function, ...)               \
    static int function(struct side *s)     \
    {                                       \
        void *base;                         \
        (void)base;                         \
        s->calls->__VA_ARGS__;              \
        return s->calls->Win_free(&s->win); \
    }

WINDOW(win_create, Win_create(s->memory, SHAPE, &s->win))
WINDOW(win_allocate, Win_allocate(SHAPE, &base, &s->win))
WINDOW(win_allocate_shared, Win_allocate_shared(SHAPE, &base, &s->win))
WINDOW(win_create_dynamic, Win_create_dynamic(MPI_INFO_NULL, s->o->comm, &s->win))

static int with_window(struct side *s)
{
    return s->calls->Win_allocate(SHAPE, &s->memory, &s->win);
}

static void free_window(struct side *s)
{
    s->calls->Win_free(&s->win);
}

static int with_window_info(struct side *s)
{
    MPI_Info_create(&s->info);
    return with_window(s);
}

static void free_window_info(struct side *s)
{
    free_window(s);
    MPI_Info_free(&s->info);
}

static int target(const struct side *s)
{
    return s->peer < 0 ? s->o->rank : s->peer;
}

static int put(struct side *s)
{
    return s->calls->Put(s->o->send, 1, MPI_DOUBLE, target(s), 0, 1, MPI_DOUBLE, s->win);
}

static int fence(struct side *s)
{
    return s->calls->Win_fence(0, s->win);
}

static int put_fence(struct side *s)
{
    put(s);
    return fence(s);
}

static int set_info(struct side *s)
{
    return s->calls->Win_set_info(s->win, s->info);
}

/* Puts need an epoch that a fence has opened. */
static int with_fence(struct side *s)
{
    with_window(s);
    return fence(s);
}

static void end_fence(struct side *s)
{
    s->calls->Win_fence(MPI_MODE_NOSUCCEED, s->win);
    free_window(s);
}

static int lock(struct side *s)
{
    s->calls->Win_lock(MPI_LOCK_SHARED, target(s), 0, s->win);
    return s->calls->Win_unlock(target(s), s->win);
}

static int lock_put(struct side *s)
{
    s->calls->Win_lock(MPI_LOCK_EXCLUSIVE, target(s), 0, s->win);
    put(s);
    return s->calls->Win_unlock(target(s), s->win);
}

static int lock_all(struct side *s)
{
    s->calls->Win_lock_all(0, s->win);
    return s->calls->Win_unlock_all(s->win);
}

static int with_lock_all(struct side *s)
{
    with_window(s);
    return s->calls->Win_lock_all(0, s->win);
}

static void end_lock_all(struct side *s)
{
    s->calls->Win_unlock_all(s->win);
    free_window(s);
}

#define FLUSH(function, ...)            \
    static int function(struct side *s) \
    {                                   \
        put(s);                         \
        return s->calls->__VA_ARGS__;   \
    }

FLUSH(flush, Win_flush(target(s), s->win))
FLUSH(flush_local, Win_flush_local(target(s), s->win))
FLUSH(flush_all, Win_flush_all(s->win))
FLUSH(flush_local_all, Win_flush_local_all(s->win))

static int sync_window(struct side *s)
{
    return s->calls->Win_sync(s->win);
}

/* Each rank exposes its memory to the other one of the pair. */
static int with_pair(struct side *s)
{
    MPI_Group all;
    int other = target(s);
    with_window(s);
    MPI_Comm_group(s->o->comm, &all);
    MPI_Group_incl(all, s->peer < 0 ? 0 : 1, &other, &s->group);
    return MPI_Group_free(&all);
}

static void end_pair(struct side *s)
{
    MPI_Group_free(&s->group);
    free_window(s);
}

static void expose(struct side *s)
{
    s->calls->Win_post(s->group, 0, s->win);
    s->calls->Win_start(s->group, 0, s->win);
    if (s->peer >= 0)
        put(s);
    s->calls->Win_complete(s->win);
}

static int post_wait(struct side *s)
{
    expose(s);
    return s->calls->Win_wait(s->win);
}

static int post_test(struct side *s)
{
    int flag = 0;
    expose(s);
    while (!flag)
        s->calls->Win_test(s->win, &flag);
    return MPI_SUCCESS;
}

const struct routine window_routines[] = {
    ROW("Win_create+Win_free", win_create, AROUND(with_memory, free_memory)),
    ROW("Win_allocate+Win_free", win_allocate),
    ROW("Win_allocate_shared+Win_free", win_allocate_shared),
    ROW("Win_create_dynamic+Win_free", win_create_dynamic),
    ROW("Win_fence", fence, AROUND(with_fence, end_fence)),
    ROW("Put+Win_fence", put_fence, AROUND(with_fence, end_fence)),
    ROW("Win_set_info", set_info, AROUND(with_window_info, free_window_info)),
    ROW("Win_lock+Win_unlock", lock, AROUND(with_window, free_window)),
    ROW("Win_lock+Put+Win_unlock", lock_put, AROUND(with_window, free_window)),
    ROW("Win_lock_all+Win_unlock_all", lock_all, AROUND(with_window, free_window)),
    ROW("Put+Win_flush", flush, AROUND(with_lock_all, end_lock_all)),
    ROW("Put+Win_flush_local", flush_local, AROUND(with_lock_all, end_lock_all)),
    ROW("Put+Win_flush_all", flush_all, AROUND(with_lock_all, end_lock_all)),
    ROW("Put+Win_flush_local_all", flush_local_all, AROUND(with_lock_all, end_lock_all)),
    ROW("Win_sync", sync_window, AROUND(with_lock_all, end_lock_all)),
    ROW("Win_post+Win_start+Put+Win_complete+Win_wait", post_wait, AROUND(with_pair, end_pair),
        .ranks = 2),
    ROW("Win_post+Win_start+Put+Win_complete+Win_test", post_test, AROUND(with_pair, end_pair),
        .ranks = 2),
    {.name = NULL}};

/* --- files -------------------------------------------------------------------------------------*/

#ifdef HAVE_MPI_FILE_OPEN

/* MPI_File_preallocate is missing: in Open MPI 4.1.4, where the file has the size already, it
 * leaves a message behind, and the next MPI_File_open hangs. */

/* More than all samples read: Open MPI 4.1.4 does not complete a nonblocking read that begins at
 * the end of a file. Hardly anything of it is stored. */
enum { MODE = MPI_MODE_CREATE | MPI_MODE_RDWR, LONG_ENOUGH = 1 << 26 };

static int open_file(struct side *s)
{
    return s->calls->File_open(s->o->comm, s->path, MODE, MPI_INFO_NULL, &s->file);
}

static int with_file(struct side *s)
{
    int error = open_file(s);
    return error ? error : s->calls->File_set_size(s->file, LONG_ENOUGH);
}

static void close_file(struct side *s)
{
    s->calls->File_close(&s->file);
}

static int with_file_info(struct side *s)
{
    MPI_Info_create(&s->info);
    return with_file(s);
}

static void close_file_info(struct side *s)
{
    close_file(s);
    MPI_Info_free(&s->info);
}

static int open_close(struct side *s)
{
    int error = open_file(s);
    return error ? error : s->calls->File_close(&s->file);
}

#define ON_FILE(function, ...)          \
    static int function(struct side *s) \
    {                                   \
        return s->calls->__VA_ARGS__;   \
    }

#define PLACE (MPI_Offset)sizeof(double) * s->o->rank
#define OUT s->o->send, 1, MPI_DOUBLE
#define IN s->o->recv, 1, MPI_DOUBLE
#define IGNORE MPI_STATUS_IGNORE

ON_FILE(write_all, File_write_all(s->file, OUT, IGNORE))
ON_FILE(write_at_all, File_write_at_all(s->file, PLACE, OUT, IGNORE))
ON_FILE(write_ordered, File_write_ordered(s->file, OUT, IGNORE))
ON_FILE(read_all, File_read_all(s->file, IN, IGNORE))
ON_FILE(read_at_all, File_read_at_all(s->file, PLACE, IN, IGNORE))
ON_FILE(read_ordered, File_read_ordered(s->file, IN, IGNORE))
ON_FILE(set_size, File_set_size(s->file, 4096))
ON_FILE(set_view, File_set_view(s->file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL))
ON_FILE(set_file_info, File_set_info(s->file, s->info))
ON_FILE(set_atomicity, File_set_atomicity(s->file, 0))
ON_FILE(seek_shared, File_seek_shared(s->file, 0, MPI_SEEK_SET))
ON_FILE(write_shared, File_write_shared(s->file, OUT, IGNORE))
ON_FILE(read_shared, File_read_shared(s->file, IN, IGNORE))
ON_FILE(sync_file, File_sync(s->file))

static int get_position(struct side *s)
{
    MPI_Offset position;
    return s->calls->File_get_position_shared(s->file, &position);
}

/* In two calls. */
#define TWICE(function, begin, end)           \
    static int function(struct side *s)       \
    {                                         \
        int error = s->calls->begin;          \
        return error ? error : s->calls->end; \
    }

TWICE(write_all_twice, File_write_all_begin(s->file, OUT),
      File_write_all_end(s->file, s->o->send, IGNORE))
TWICE(write_at_all_twice, File_write_at_all_begin(s->file, PLACE, OUT),
      File_write_at_all_end(s->file, s->o->send, IGNORE))
TWICE(write_ordered_twice, File_write_ordered_begin(s->file, OUT),
      File_write_ordered_end(s->file, s->o->send, IGNORE))
TWICE(read_all_twice, File_read_all_begin(s->file, IN),
      File_read_all_end(s->file, s->o->recv, IGNORE))
TWICE(read_at_all_twice, File_read_at_all_begin(s->file, PLACE, IN),
      File_read_at_all_end(s->file, s->o->recv, IGNORE))
TWICE(read_ordered_twice, File_read_ordered_begin(s->file, IN),
      File_read_ordered_end(s->file, s->o->recv, IGNORE))

#define WAITED(function, ...)                                    \
    static int function(struct side *s)                          \
    {                                                            \
        MPI_Request request;                                     \
        int error = s->calls->__VA_ARGS__;                       \
        return error ? error : s->calls->Wait(&request, IGNORE); \
    }

WAITED(iwrite, File_iwrite(s->file, OUT, &request))
WAITED(iwrite_all, File_iwrite_all(s->file, OUT, &request))
WAITED(iwrite_at, File_iwrite_at(s->file, PLACE, OUT, &request))
WAITED(iwrite_at_all, File_iwrite_at_all(s->file, PLACE, OUT, &request))
WAITED(iwrite_shared, File_iwrite_shared(s->file, OUT, &request))
WAITED(iread, File_iread(s->file, IN, &request))
WAITED(iread_all, File_iread_all(s->file, IN, &request))
WAITED(iread_at, File_iread_at(s->file, PLACE, IN, &request))
WAITED(iread_at_all, File_iread_at_all(s->file, PLACE, IN, &request))
WAITED(iread_shared, File_iread_shared(s->file, IN, &request))

#define OPEN AROUND(with_file, close_file)

const struct routine file_routines[] = {
    ROW("File_open+File_close", open_close),
    ROW("File_write_all", write_all, OPEN),
    ROW("File_write_at_all", write_at_all, OPEN),
    ROW("File_write_ordered", write_ordered, OPEN),
    ROW("File_read_all", read_all, OPEN),
    ROW("File_read_at_all", read_at_all, OPEN),
    ROW("File_read_ordered", read_ordered, OPEN),
    ROW("File_write_all_begin+File_write_all_end", write_all_twice, OPEN),
    ROW("File_write_at_all_begin+File_write_at_all_end", write_at_all_twice, OPEN),
    ROW("File_write_ordered_begin+File_write_ordered_end", write_ordered_twice, OPEN),
    ROW("File_read_all_begin+File_read_all_end", read_all_twice, OPEN),
    ROW("File_read_at_all_begin+File_read_at_all_end", read_at_all_twice, OPEN),
    ROW("File_read_ordered_begin+File_read_ordered_end", read_ordered_twice, OPEN),
    ROW("File_iwrite+Wait", iwrite, OPEN),
    ROW("File_iwrite_all+Wait", iwrite_all, OPEN),
    ROW("File_iwrite_at+Wait", iwrite_at, OPEN),
    ROW("File_iwrite_at_all+Wait", iwrite_at_all, OPEN),
    ROW("File_iwrite_shared+Wait", iwrite_shared, OPEN),
    ROW("File_iread+Wait", iread, OPEN),
    ROW("File_iread_all+Wait", iread_all, OPEN),
    ROW("File_iread_at+Wait", iread_at, OPEN),
    ROW("File_iread_at_all+Wait", iread_at_all, OPEN),
    ROW("File_iread_shared+Wait", iread_shared, OPEN),
    ROW("File_set_size", set_size, OPEN),
    ROW("File_set_view", set_view, OPEN),
    ROW("File_set_info", set_file_info, AROUND(with_file_info, close_file_info)),
    ROW("File_set_atomicity", set_atomicity, OPEN),
    ROW("File_seek_shared", seek_shared, OPEN),
    ROW("File_write_shared", write_shared, OPEN),
    ROW("File_read_shared", read_shared, OPEN),
    ROW("File_get_position_shared", get_position, OPEN),
    ROW("File_sync", sync_file, OPEN),
    {.name = NULL}};

#else
const struct routine file_routines[] = {{.name = NULL}};
#endif

#else
const struct routine window_routines[] = {{.name = NULL}}, file_routines[] = {{.name = NULL}};
#endif
