/* SPDX-License-Identifier: MIT */
#include "hookless/signal.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/lock.h"
#include "below/next.h"
#include "engine/progress.h"
#include "hookless/poll.h"

#include "topo.h"

enum { INTS = sizeof(struct nbc_signal) / sizeof(int) };

static int signal_tag(const struct nbc_context *c)
{
    return c->queue.first_tag + c->tag_space->signal;
}

static int signal_send(struct nbc_context *c, int peer, const struct nbc_signal *signal,
                       MPI_Request *request)
{
    return NEXT(Isend)((void *)(uintptr_t)signal, INTS, MPI_INT, peer, signal_tag(c), c->hidden,
                       request);
}

/* Receives the signals that have arrived from a rank. */
static int mail_collect(struct nbc_context *c, int source)
{
    for (;;) {
        int flag = 0;
        int error = NEXT(Iprobe)(source, signal_tag(c), c->hidden, &flag, MPI_STATUS_IGNORE);
        if (error || !flag)
            return error;
        struct nbc_mail *mail = malloc(sizeof *mail);
        if (!mail)
            return MPI_ERR_NO_MEM; /* unreached: no memory */
        error = NEXT(Recv)(&mail->signal, INTS, MPI_INT, source, signal_tag(c), c->hidden,
                           MPI_STATUS_IGNORE);
        if (error) {
            /* unreached below: the MPI fails */
            free(mail);
            return error;
        }
        mail->source = source;
        DL_APPEND(c->mail, mail);
    }
}

static bool mail_take(struct nbc_context *c, int source, struct nbc_signal *signal)
{
    struct nbc_mail *mail;
    DL_FOREACH (c->mail, mail)
        if (mail->source == source && mail->signal.kind == signal->kind &&
            mail->signal.number == signal->number)
            break;
    if (!mail)
        return false;
    *signal = mail->signal;
    DL_DELETE(c->mail, mail);
    free(mail);
    return true;
}

/* Waits for the next signal from a rank with the kind and number of *signal. */
static int signal_wait(struct nbc_context *c, int source, struct nbc_signal *signal)
{
    int error, spins = 0;
    bool came = false;
    nbc_lock();
    while (!(error = nbc_context_is_revoked(c) ? nbc_error_revoked : mail_collect(c, source)) &&
           !(came = mail_take(c, source, signal))) {
        nbc_progress(NULL);
        nbc_progress_yield(&spins);
    }
    nbc_unlock();
    return error;
}

int nbc_signal_exchange(struct nbc_context *c, int to, int from, struct nbc_signal *signal)
{
    static NBC_PER_THREAD struct nbc_signal mine; /* after an error it may still be under way */
    MPI_Request request;
    mine = *signal;
    int error = signal_send(c, to, &mine, &request);
    if (error)
        return error; /* unreached: no memory */
    error = signal_wait(c, from, signal);
    if (!error)
        return nbc_wait_other(&request, MPI_STATUS_IGNORE);
    NEXT(Request_free)(&request);
    return error;
}

/* The processes of a group, which signal each other. */
struct peers {
    struct nbc_context *c;
    MPI_Group group, all; /* `all`: of c->hidden */
    const struct nbc_signal *signal;
};

static int rank_in_all(const struct peers *p, int i)
{
    int rank = MPI_PROC_NULL;
    NEXT(Group_translate_ranks)(p->group, 1, &i, p->all, &rank);
    return rank;
}

static int exchange(int to, int from, void *peers)
{
    const struct peers *p = peers;
    struct nbc_signal signal = *p->signal;
    return nbc_signal_exchange(p->c, rank_in_all(p, to), rank_in_all(p, from), &signal);
}

static int post_or_await(const struct peers *p, int rank, bool waits)
{
    struct nbc_signal signal = *p->signal;
    MPI_Request request;
    if (waits)
        return signal_wait(p->c, rank, &signal);
    int error = signal_send(p->c, rank, p->signal, &request);
    return error ? error : NEXT(Request_free)(&request);
}

int nbc_signal_group(struct nbc_context *c, MPI_Group group, const struct nbc_signal *signal,
                     enum nbc_signal_use use)
{
    struct peers p = {.c = c, .group = group, .signal = signal};
    int n, me, error = NEXT(Comm_group)(c->hidden, &p.all);
    if (error)
        return error; /* unreached: the MPI fails */
    NEXT(Group_size)(group, &n);
    NEXT(Group_rank)(group, &me);
    if (use == NBC_SIGNAL_BARRIER)
        error = nbc_disseminate(me, n, exchange, &p);
    for (int i = 0; i < n && !error && use != NBC_SIGNAL_BARRIER; i++)
        error = post_or_await(&p, rank_in_all(&p, i), use == NBC_SIGNAL_AWAIT_ALL);
    NEXT(Group_free)(&p.all);
    return error;
}
