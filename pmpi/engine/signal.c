/* SPDX-License-Identifier: MIT */
#include "engine/signal.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/lock.h"
#include "base/tag_space.h"
#include "below/next.h"
#include "engine/progress.h"

enum { INTS = sizeof(struct nbc_signal) / sizeof(int) };

/* A signal that is being sent, with its send buffer. */
struct outgoing {
    struct nbc_signal signal;
    const struct nbc_context *context; /* may have been freed meanwhile */
    MPI_Request request;
    struct outgoing *next;
};

static struct outgoing *outgoing; /* under the lock */

static void signals_reap(void)
{
    struct outgoing *o, *later;
    LL_FOREACH_SAFE (outgoing, o, later) {
        int flag = 0;
        if (NEXT(Test)(&o->request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag)
            continue; /* unreached: small messages are late */
        LL_DELETE(outgoing, o);
        free(o);
    }
}

static int signal_tag(const struct nbc_context *c)
{
    return c->first_tag + c->tag_space->signal;
}

static int signal_post(struct nbc_context *c, int peer, struct nbc_signal signal)
{
    struct outgoing *o = malloc(sizeof *o);
    if (!o)
        return MPI_ERR_NO_MEM; /* unreached: no memory */
    o->signal = signal;
    o->context = c;
    int error = NEXT(Isend)(&o->signal, INTS, MPI_INT, peer, signal_tag(c), c->hidden, &o->request);
    if (error)
        free(o); /* unreached: no memory */
    else
        LL_PREPEND(outgoing, o);
    return error;
}

bool nbc_signal_pending(const struct nbc_context *c)
{
    const struct outgoing *o;
    signals_reap();
    LL_FOREACH (outgoing, o)
        if (o->context == c) /* unreached: small messages are late */
            return true;     /* unreached: small messages are late */
    return false;
}

int nbc_signal_send(struct nbc_context *c, int peer, struct nbc_signal signal)
{
    nbc_lock();
    signals_reap();
    int error = signal_post(c, peer, signal);
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
        mail->source = source;
        error = NEXT(Recv)(&mail->signal, INTS, MPI_INT, source, signal_tag(c), c->hidden,
                           MPI_STATUS_IGNORE);
        if (error) {
            /* unreached below: no memory */
            free(mail);
            return error;
        }
        DL_APPEND(c->mail, mail);
    }
}

static bool mail_take(struct nbc_context *c, int source, struct nbc_signal *signal)
{
    struct nbc_mail *mail;
    DL_FOREACH (c->mail, mail) {
        if (mail->source != source || mail->signal.kind != signal->kind ||
            mail->signal.number != signal->number)
            continue;
        *signal = mail->signal;
        DL_DELETE(c->mail, mail);
        free(mail);
        return true;
    }
    return false;
}

int nbc_signal_wait(struct nbc_context *c, int source, struct nbc_signal *signal)
{
    int spins = 0;
    for (;;) {
        nbc_lock();
        int error = mail_collect(c, source);
        bool came = mail_take(c, source, signal);
        if (!came)
            nbc_progress(NULL);
        nbc_unlock();
        if (came || error)
            return came ? MPI_SUCCESS : error;
        nbc_pause(&spins);
    }
}

/* The dissemination algorithm, as in src/alg_barrier.c. */
int nbc_signal_barrier(struct nbc_context *c, const int *ranks, int n, int me,
                       struct nbc_signal signal)
{
    int error = MPI_SUCCESS;
    for (int64_t step = 1; step < n && !error; step *= 2) {
        error = nbc_signal_send(c, ranks[(me + step) % n], signal);
        if (!error)
            error = nbc_signal_wait(c, ranks[(me - step + n) % n], &signal);
    }
    return error;
}

int *nbc_signal_ranks(const struct nbc_context *c, MPI_Group group, int n)
{
    MPI_Group all;
    int *from = malloc(2 * ((size_t)n + 1) * sizeof *from), *to = from + n;
    if (!from || NEXT(Comm_group)(c->hidden, &all)) {
        free(from); /* unreached: no memory */
        return NULL;
    }
    for (int i = 0; i < n; i++)
        from[i] = i;
    int error = NEXT(Group_translate_ranks)(group, n, from, all, to);
    NEXT(Group_free)(&all);
    memmove(from, to, n * sizeof *from);
    if (!error)
        return from;
    /* unreached below: no memory */
    free(from);
    return NULL;
}

void nbc_signal_cleanup(void)
{
    nbc_lock();
    signals_reap();
    nbc_unlock();
}
