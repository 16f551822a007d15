/* SPDX-License-Identifier: MIT */
/* The fuzzer's messages of which requests are given up: cancelled, or freed while they are active.
 */
#include "fuzz.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* A receive that nobody sends to, cancelled, and completed or freed; one with a sender, cancelled;
 * a message of which the send is freed; both. */
enum { CANCELLED, CANCELLED_FREED, IN_VAIN, SEND_FREED, BOTH_FREED, NWAYS };

/* A message without a request. Its bytes may be in use until the end of the program. */
struct gone {
    struct message message;
    bool comes; /* it is received */
    struct gone *next;
};

static struct gone *all_gone;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(const struct message *m, bool comes)
{
    struct gone *g = test_alloc(sizeof *g);

    *g = (struct gone){.message = *m, .comes = comes};
    pthread_mutex_lock(&lock);
    g->next = all_gone;
    all_gone = g;
    pthread_mutex_unlock(&lock);
}

static void free_active(MPI_Request *request, const struct message *m, bool comes)
{
    MPI_Request_free(request);
    EXPECT(*request == MPI_REQUEST_NULL, "a request that was freed is not null");
    keep(m, comes);
}

static void add_to_pool(const struct line *line, struct comm *c, const struct message *m,
                        MPI_Request request, bool cancelled)
{
    struct item *item = item_new(line, c);

    item->message = *m;
    item->cancelled = cancelled;
    pool_add(pool, request, item, true);
}

void check_cancelled(const MPI_Status *status)
{
    int flag;

    if (!status)
        return;
    MPI_Test_cancelled(status, &flag);
    EXPECT(flag, "a receive that nobody sends to was not cancelled");
}

static void cancel_lonely(const struct line *line, struct comm *c, struct message *in)
{
    MPI_Request request;

    message_fill(in, 0);
    request = message_start(in, c->group->comm);
    if (rng_chance(&own, 50))
        complete(false);
    MPI_Cancel(&request);
    if (line->way % NWAYS == CANCELLED)
        add_to_pool(line, c, in, request, true);
    else
        free_active(&request, in, false);
}

/* It comes all the same if it was too late; else another receive takes it. */
static void cancel_in_vain(const struct line *line, struct comm *c, struct message *in)
{
    MPI_Request request = message_start(in, c->group->comm);
    MPI_Status status;
    int cancelled, flag = 0;

    if (rng_chance(&own, 50))
        complete(false);
    MPI_Cancel(&request);
    for (int i = rng_below(&own, 5); i > 0 && !flag; i--)
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled) {
        add_to_pool(line, c, in, message_start(in, c->group->comm), false);
        return;
    }
    check_message(c, in, &status);
    message_clear(in);
}

/* Open MPI 4.1.4 loses messages of intercommunicators that are freed: see complete_messages. So
 * does MPICH 4.0.2 of receives that are freed, where there are threads. A wildcard may take another
 * message. */
static int way_of(const struct line *line, const struct comm *c)
{
    int way = (int)(line->way % NWAYS);

#ifdef OPEN_MPI
    if (c->group->remote)
        return way % IN_VAIN;
#else
    if (threads > 1 && way == BOTH_FREED)
        return SEND_FREED;
#endif
    return c->wild && (way == IN_VAIN || way == BOTH_FREED) ? SEND_FREED : way;
}

static void give_up_message(const struct line *line, struct comm *c, struct message *in,
                            struct message *out)
{
    int way = way_of(line, c);
    MPI_Request request;

    fill_message(line, c, in, 0);
    fill_message(line, c, out, 0);
    if (way == BOTH_FREED) {
        request = message_start(in, c->group->comm);
        free_active(&request, in, true);
    } else if (way == SEND_FREED) {
        add_to_pool(line, c, in, message_start(in, c->group->comm), false);
    }
    request = message_start(out, c->group->comm);
    if (way == IN_VAIN) {
        add_to_pool(line, c, out, request, false);
        cancel_in_vain(line, c, in);
        return;
    }
    free_active(&request, out, false);
}

void do_give_up(const struct line *line, struct comm *c)
{
    struct message in, out;
    int way = way_of(line, c);

    c->lingers = true; /* on all ranks */
    if (!make_messages(line, c, &in, &out))
        return;
    out.how = line->seed % 2 ? MESSAGE_SYNCHRONOUS : MESSAGE_STANDARD;
    if (way > CANCELLED_FREED) {
        give_up_message(line, c, &in, &out);
        return;
    }
    message_clear(&out);
    in.tag = (int)line->tag; /* no wildcard */
    cancel_lonely(line, c, &in);
}

/* --- the end -----------------------------------------------------------------------------------*/

/* MPI_Iprobe on MPI_COMM_SELF progresses nothing in MPICH 4.0.2. */
static void wait_for(const struct message *m)
{
    int flag;

    for (int i = 0; i < 1000 && !message_is_right(m); i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        usleep(i < 100 ? 10 : 5000);
    }
    message_check(m, NULL);
}

/* The buffer of a send that was freed is in use until its receive is complete on another rank, and
 * MPICH 4.0.2 sends no more of it once this rank is in MPI_Finalize. */
void gone_end(const struct program *p)
{
    bool any = false;

    for (int i = 0; i < p->n; i++)
        any = any || p->line[i].verb == GIVE_UP;
    for (const struct gone *g = all_gone; g; g = g->next)
        if (g->comes)
            wait_for(&g->message);
    if (any)
        MPI_Barrier(MPI_COMM_WORLD);
    while (all_gone) {
        struct gone *next = all_gone->next;
        message_clear(&all_gone->message);
        free(all_gone);
        all_gone = next;
    }
}
