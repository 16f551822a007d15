/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include "routines.h"

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 31

enum { TAG = 1, UNUSED_TAG = 2, WINDOW_BYTES = 4096 };

#define DO(call) s->calls->call
#define COMM s->o->comm
#define IGNORE MPI_STATUS_IGNORE
#define AROUND(before, after) .set_up = before, .tear_down = after

/* Two ranks each make a pair. */
#define TO(rank, tag) s->o->send, s->o->count, MPI_DOUBLE, rank, tag, COMM
#define FROM(rank, tag) s->o->recv, s->o->count, MPI_DOUBLE, rank, tag, COMM
#define OUT TO(s->peer, TAG)
#define IN FROM(s->peer, TAG)
#define MESSAGE s->peer, TAG, COMM /* for a probe */
#define RECEIVE DO(Recv(IN, IGNORE))
#define RECEIVE_MESSAGE DO(Mrecv(s->o->recv, s->o->count, MPI_DOUBLE, &s->message, IGNORE))
#define WAIT_ALL DO(Waitall(2, s->requests, no_statuses))

/* --- communicators -----------------------------------------------------------------------------*/

static const int one = 1;

/* gcc takes MPICH's MPI_UNWEIGHTED for an array of no elements and warns of it. */
static int *unweighted(void)
{
    int *volatile weights = MPI_UNWEIGHTED;
    return weights;
}

static int next_rank(const struct side *s)
{
    return (s->o->rank + 1) % s->o->size;
}

static int last_rank(const struct side *s)
{
    return (s->o->rank + s->o->size - 1) % s->o->size;
}

/* Ranks 0 and 1 are joined to each other, or the only rank to itself. */
static int graph_create(struct side *s)
{
    int index[2] = {1, 2}, edges[2] = {s->o->size > 1, 0}, nodes = s->o->size > 1 ? 2 : 1;
    DO(Graph_create(COMM, nodes, index, edges, 0, &s->made));
    return s->made == MPI_COMM_NULL ? MPI_SUCCESS : DO(Comm_free(&s->made));
}

static int with_group(struct side *s)
{
    return MPI_Comm_group(COMM, &s->group);
}

static void free_group(struct side *s)
{
    MPI_Group_free(&s->group);
}

/* The even and the odd ranks. */
static int with_half(struct side *s)
{
    return DO(Comm_split(COMM, s->o->rank % 2, 0, &s->comm));
}

static int with_bridge(struct side *s)
{
    with_half(s);
    MPI_Comm half = s->comm;
    DO(Intercomm_create(half, 0, COMM, 1 - s->o->rank % 2, 1, &s->comm));
    return DO(Comm_free(&half));
}

static void free_comm(struct side *s)
{
    DO(Comm_free(&s->comm));
}

/* --- messages and requests ---------------------------------------------------------------------*/

/* Repeats a call that sets s->flag when it has succeeded. */
static int poll(struct side *s, int (*call)(struct side *s))
{
    int error = MPI_SUCCESS;
    for (s->flag = 0; !s->flag && !error;)
        error = call(s);
    return error;
}

/* Repeats a call that sets s->n to the number of requests that it has completed. */
static int complete_both(struct side *s, int (*call)(struct side *s))
{
    int error = MPI_SUCCESS;
    for (int done = 0; done < 2 && !error; done += s->n)
        error = call(s);
    return error;
}

static int iprobe(struct side *s)
{
    return DO(Iprobe(MESSAGE, &s->flag, IGNORE));
}

static int improbe(struct side *s)
{
    return DO(Improbe(MESSAGE, &s->flag, &s->message, IGNORE));
}

/* An exchange without data tells that the receive of the other rank is posted. */
static int rsend(struct side *s)
{
    DO(Irecv(IN, s->requests));
    DO(Sendrecv(NULL, 0, MPI_BYTE, s->peer, UNUSED_TAG, NULL, 0, MPI_BYTE, s->peer, UNUSED_TAG,
                COMM, IGNORE));
    DO(Rsend(OUT));
    return DO(Wait(s->requests, IGNORE));
}

static int post(struct side *s)
{
    return DO(Irecv(IN, &s->requests[0])) || DO(Isend(OUT, &s->requests[1]));
}

static int wait_some(struct side *s)
{
    return DO(Waitsome(2, s->requests, &s->n, s->which, no_statuses));
}

static int test_first(struct side *s)
{
    return DO(Test(&s->requests[0], &s->flag, IGNORE));
}

static int test_second(struct side *s)
{
    return DO(Test(&s->requests[1], &s->flag, IGNORE));
}

static int test_all(struct side *s)
{
    return DO(Testall(2, s->requests, &s->flag, no_statuses));
}

static int test_any(struct side *s)
{
    return DO(Testany(2, s->requests, s->which, &s->n, IGNORE));
}

static int test_some(struct side *s)
{
    return DO(Testsome(2, s->requests, &s->n, s->which, no_statuses));
}

static int get_status(struct side *s)
{
    return DO(Request_get_status(s->requests[0], &s->flag, IGNORE));
}

static int make_persistent(struct side *s)
{
    int peer = s->peer < 0 ? MPI_PROC_NULL : s->peer;
    DO(Recv_init(FROM(peer, TAG), &s->requests[0]));
    return DO(Send_init(TO(peer, TAG), &s->requests[1]));
}

static void free_persistent(struct side *s)
{
    DO(Request_free(&s->requests[0]));
    DO(Request_free(&s->requests[1]));
}

/* Receives that no message ends, for calls that find nothing complete. */
static int post_in_vain(struct side *s)
{
    DO(Irecv(FROM(s->o->rank, UNUSED_TAG), &s->requests[0]));
    return DO(Irecv(FROM(s->o->rank, UNUSED_TAG), &s->requests[1]));
}

static void take_back(struct side *s)
{
    DO(Cancel(&s->requests[0]));
    DO(Cancel(&s->requests[1]));
    WAIT_ALL;
}

#define IDLE AROUND(post_in_vain, take_back)

/* --- local calls -------------------------------------------------------------------------------*/

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static int create_keyval(struct side *s)
{
    return DO(Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &s->keyval, NULL));
}

static void free_keyval(struct side *s)
{
    DO(Comm_free_keyval(&s->keyval));
}

/* --- windows -----------------------------------------------------------------------------------*/

#define SHAPE WINDOW_BYTES, 1, MPI_INFO_NULL, COMM
#define TARGET (s->peer < 0 ? s->o->rank : s->peer)
#define PUT DO(Put(s->o->send, 1, MPI_DOUBLE, TARGET, 0, 1, MPI_DOUBLE, s->win))

static int with_memory(struct side *s)
{
    s->memory = malloc(WINDOW_BYTES);
    return s->memory ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void free_memory(struct side *s)
{
    free(s->memory);
}

static int with_window(struct side *s)
{
    return DO(Win_allocate(SHAPE, &s->memory, &s->win));
}

static void free_window(struct side *s)
{
    DO(Win_free(&s->win));
}

/* Puts need an epoch that a fence has opened. */
static int with_fence(struct side *s)
{
    return with_window(s) || DO(Win_fence(0, s->win));
}

static void end_fence(struct side *s)
{
    DO(Win_fence(MPI_MODE_NOSUCCEED, s->win));
    free_window(s);
}

static int with_lock_all(struct side *s)
{
    return with_window(s) || DO(Win_lock_all(0, s->win));
}

static void end_lock_all(struct side *s)
{
    DO(Win_unlock_all(s->win));
    free_window(s);
}

/* Each rank exposes its memory to the other one of the pair. */
static int with_pair(struct side *s)
{
    MPI_Group all;
    int other = TARGET;
    with_window(s);
    MPI_Comm_group(COMM, &all);
    MPI_Group_incl(all, s->peer < 0 ? 0 : 1, &other, &s->group);
    return MPI_Group_free(&all);
}

static void end_pair(struct side *s)
{
    MPI_Group_free(&s->group);
    free_window(s);
}

static int expose(struct side *s)
{
    DO(Win_post(s->group, 0, s->win));
    DO(Win_start(s->group, 0, s->win));
    if (s->peer >= 0)
        PUT;
    return DO(Win_complete(s->win));
}

static int test_window(struct side *s)
{
    return DO(Win_test(s->win, &s->flag));
}

/* --- files -------------------------------------------------------------------------------------*/

#ifdef HAVE_MPI_FILE_OPEN

/* More than all samples read: Open MPI 4.1.4 does not complete a nonblocking read that begins at
 * the end of a file. Hardly anything of it is stored. */
enum { MODE = MPI_MODE_CREATE | MPI_MODE_RDWR, LONG_ENOUGH = 1 << 26 };

static int open_file(struct side *s)
{
    return DO(File_open(COMM, s->path, MODE, MPI_INFO_NULL, &s->file));
}

static int with_file(struct side *s)
{
    return open_file(s) || DO(File_set_size(s->file, LONG_ENOUGH));
}

static void close_file(struct side *s)
{
    DO(File_close(&s->file));
}

#define OPEN AROUND(with_file, close_file)
#define PLACE (MPI_Offset)sizeof(double) * s->o->rank
#define ELEMENT_OUT s->o->send, 1, MPI_DOUBLE
#define ELEMENT_IN s->o->recv, 1, MPI_DOUBLE

#endif

/* --- all of them -------------------------------------------------------------------------------*/

#define JOINED(a, b) a##b
#define NAMED(line) JOINED(run_, line)

#define ROUTINE(in, calls, expression, ...)     \
    static int NAMED(__LINE__)(struct side * s) \
    {                                           \
        return expression;                      \
    }
#include "routines.def"
#undef ROUTINE

const struct routine routines[] = {
#define ROUTINE(in, calls, expression, ...) \
    {.group = in, .name = calls, .run = NAMED(__LINE__), __VA_ARGS__},
#include "routines.def"
#undef ROUTINE
    {.name = NULL}};

#else
const struct routine routines[] = {{.name = NULL}};
#endif

int run_collective(struct side *s)
{
    return operands_call(s->calls, s->o) ? MPI_SUCCESS : MPI_ERR_OTHER;
}

int routine_set_up(const struct routine *r, struct side *s)
{
    MPI_Info_create(&s->no_hints);
    return r->set_up ? r->set_up(s) : MPI_SUCCESS;
}

void routine_tear_down(const struct routine *r, struct side *s)
{
    if (r->tear_down)
        r->tear_down(s);
    MPI_Info_free(&s->no_hints);
}
