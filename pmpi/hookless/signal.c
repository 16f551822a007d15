/* SPDX-License-Identifier: MIT */
#include "hookless/signal.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/lock.h"
#include "below/next.h"
#include "engine/progress.h"

#include "topo.h"

enum { INTS = sizeof(struct nbc_signal) / sizeof(int) };

/* A signal that is being sent, with its send buffer. */
struct outgoing {
    struct nbc_signal signal;
    const struct nbc_context *context; /* may have been freed meanwhile */
    MPI_Request request;
    struct outgoing *next;
};

static struct outgoing *outgoing; /* under the lock */

bool nbc_signal_pending(const struct nbc_context *c)
{
    struct outgoing *o, *later;
    bool pending = false;
    LL_FOREACH_SAFE (outgoing, o, later) {
        int flag = 0;
        if (NEXT(Test)(&o->request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag) {
            pending |= o->context == c; /* unreached: small messages are late */
            continue;                   /* unreached: small messages are late */
        }
        LL_DELETE(outgoing, o);
        free(o);
    }
    return pending;
}

static int signal_tag(const struct nbc_context *c)
{
    return c->queue.first_tag + c->tag_space->signal;
}

int nbc_signal_send(struct nbc_context *c, int peer, struct nbc_signal signal)
{
    struct outgoing *o = malloc(sizeof *o);
    if (!o)
        return MPI_ERR_NO_MEM; /* unreached: no memory */
    *o = (struct outgoing){.signal = signal, .context = c};
    nbc_lock();
    nbc_signal_pending(c); /* frees those that are complete */
    int error = NEXT(Isend)(&o->signal, INTS, MPI_INT, peer, signal_tag(c), c->hidden, &o->request);
    if (error)
        free(o); /* unreached: no memory */
    else
        LL_PREPEND(outgoing, o);
    nbc_unlock();
    return error;
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

int nbc_signal_wait(struct nbc_context *c, int source, struct nbc_signal *signal)
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

/* The processes of a group, which signal each other. */
struct peers {
    struct nbc_context *c;
    MPI_Group group, all; /* `all`: of c->hidden */
    struct nbc_signal signal;
};

static int rank_in_all(const struct peers *p, int i)
{
    int rank = MPI_PROC_NULL;
    NEXT(Group_translate_ranks)(p->group, 1, &i, p->all, &rank);
    return rank;
}

static int send_to(int i, void *peers)
{
    struct peers *p = peers;
    return nbc_signal_send(p->c, rank_in_all(p, i), p->signal);
}

static int wait_for(int i, void *peers)
{
    struct peers *p = peers;
    return nbc_signal_wait(p->c, rank_in_all(p, i), &p->signal);
}

int nbc_signal_group(struct nbc_context *c, MPI_Group group, struct nbc_signal signal,
                     enum nbc_signal_use use)
{
    struct peers p = {.c = c, .group = group, .signal = signal};
    int n, me, error = NEXT(Comm_group)(c->hidden, &p.all);
    if (error)
        return error; /* unreached: the MPI fails */
    NEXT(Group_size)(group, &n);
    NEXT(Group_rank)(group, &me);
    if (use == NBC_SIGNAL_BARRIER)
        error = nbc_disseminate(me, n, send_to, wait_for, &p);
    for (int i = 0; i < n && !error && use != NBC_SIGNAL_BARRIER; i++)
        error = use == NBC_SIGNAL_WAIT ? wait_for(i, &p) : send_to(i, &p);
    NEXT(Group_free)(&p.all);
    return error;
}

void nbc_signal_cleanup(void)
{
    nbc_lock();
    nbc_signal_pending(NULL);
    nbc_unlock();
}
