/* SPDX-License-Identifier: MIT */
#include "observe.h"

#include "completion.h"

#include <string.h>

MPI_Comm comm;
int one_in, one_out;

/* --- what was raised ---------------------------------------------------------------------------*/

int nraised;
static int raised_class;
static MPI_Comm raised_on;

/* C11 has no prototype for "...", MPI has: more arguments may follow. */
static void note_error(MPI_Comm *on, int *code, ...)
{
    nraised++;
    raised_on = *on;
    MPI_Error_class(*code, &raised_class);
}

bool raised(int class, MPI_Comm on)
{
    bool there = on == MPI_COMM_NULL ? raised_on != MPI_COMM_WORLD : raised_on == on;
    bool as_it_should = nraised == 1 && raised_class == class && there;
    nraised = 0;
    return as_it_should;
}

bool raised_last(int class, MPI_Comm on)
{
    nraised = nraised > 0;
    return raised(class, on);
}

void note_errors(MPI_Comm on)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(note_error, &handler);
    MPI_Comm_set_errhandler(on, handler);
    MPI_Errhandler_free(&handler);
}

/* --- statuses ----------------------------------------------------------------------------------*/

void spoil(MPI_Status *s, int n)
{
    memset(s, 0x55, n * sizeof *s);
    for (int i = 0; i < n; i++)
        s[i].MPI_ERROR = UNTOUCHED;
}

bool is_empty(const MPI_Status *s)
{
    int cancelled, count;
    MPI_Test_cancelled(s, &cancelled);
    MPI_Get_count(s, MPI_INT, &count);
    return s->MPI_SOURCE == MPI_ANY_SOURCE && s->MPI_TAG == MPI_ANY_TAG && !cancelled && count == 0;
}

bool is_message(const MPI_Status *s, int source, int tag)
{
    int count;
    MPI_Get_count(s, MPI_INT, &count);
    return s->MPI_SOURCE == source && s->MPI_TAG == tag && count == 1;
}

/* --- operations that are surely pending --------------------------------------------------------*/

bool is_late(void)
{
    return test_rank == test_size - 1;
}

void gate_wait(void)
{
    for (int i = 0; is_late() && i < test_size - 1; i++)
        MPI_Recv(NULL, 0, MPI_INT, i, GATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void gate_open(void)
{
    if (!is_late())
        MPI_Send(NULL, 0, MPI_INT, test_size - 1, GATE, MPI_COMM_WORLD);
}

MPI_Request sum_start(void)
{
    MPI_Request r;
    one_in = test_rank;
    one_out = -1;
    MPI_Iallreduce(&one_in, &one_out, 1, MPI_INT, MPI_SUM, comm, &r);
    return r;
}

MPI_Request sum_init(void)
{
    MPI_Request r;
    one_in = test_rank;
    one_out = -1;
    MPI_Allreduce_init(&one_in, &one_out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r);
    return r;
}

/* --- requests that are not active --------------------------------------------------------------*/

void single_inactive(MPI_Request r)
{
    MPI_Request before = r;
    MPI_Status s;
    int flag = 0, done, at[1];

    for (enum completion by = BY_WAIT; by <= BY_TEST; by++) {
        spoil(&s, 1);
        OK(completion_call(by, 1, &r, &done, at, &s));
        CHECK(done == 1 && is_empty(&s));
    }
    spoil(&s, 1);
    CHECK(MPI_Request_get_status(r, &flag, &s) == MPI_SUCCESS && flag && is_empty(&s));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(r == before);
}

void array_inactive(int n, MPI_Request *r)
{
    enum { MOST = 8 };

    for (enum completion by = BY_WAITALL; by < NCOMPLETIONS; by++) {
        MPI_Status s[MOST + 1], behind;
        int done, at[MOST], told = completion_is_of_all(by) ? n : completion_is_of_any(by);
        spoil(s, n + 1);
        behind = s[n];
        OK(completion_call(by, n, r, &done, at, s));
        EXPECT_INT(done, completion_is_of_all(by) ? n : MPI_UNDEFINED, "call %d", by);
        for (int i = 0; i < told; i++)
            CHECK(is_empty(&s[i]));
        CHECK(memcmp(&s[n], &behind, sizeof behind) == 0);
    }
    OK(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
}

void poll_status(MPI_Request r)
{
    MPI_Status s;
    int flag = 0;
    spoil(&s, 1);
    while (!flag)
        OK(MPI_Request_get_status(r, &flag, &s));
    CHECK(is_empty(&s) && s.MPI_ERROR == UNTOUCHED);
}

void observe_begin(void)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    note_errors(comm);
    note_errors(MPI_COMM_WORLD);
}

void observe_end(void)
{
    MPI_Comm_free(&comm);
}
