/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "diag/hang_report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/system_thread.h"
#include "base/tag_space.h"
#include "below/next.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/run.h"
#include "request/request.h"

#include "coll.h"
#include "exec.h"
#include "sched.h"

/* Written at init. */
static int world_rank, thread_level;
static pthread_t init_thread;
static bool signal_is_free;
static struct sigaction mpi_action;

/* The thread of NBCSHIM_TIMEOUT; `stop` under `mutex`. */
static pthread_t thread;
static bool running, stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;

/* --- lines: a signal handler writes them too, so without stdio -------------------------------- */

struct line {
    char text[512];
    size_t n;
};

static void report_put(struct line *l, const char *word)
{
    while (*word && l->n < sizeof l->text - 1)
        l->text[l->n++] = *word++;
}

static void report_put_number(struct line *l, int64_t number)
{
    char digits[24];
    size_t n = sizeof digits - 1;
    digits[n] = '\0';
    do
        digits[--n] = (char)('0' + number % 10);
    while (number /= 10);
    report_put(l, digits + n);
}

static void report_put_line(struct line *l)
{
    l->text[l->n++] = '\n';
    if (write(STDERR_FILENO, l->text, l->n) < 0)
        /* unreached: no memory */
        return; /* the error cannot be reported either */
}

/* --- what an operation waits for -------------------------------------------------------------- */

/* The round of each operation of a schedule: the longest chain of dependent messages of this rank
 * that ends with it. Operations are in an order in which they could be executed. Under the lock. */
enum { MOST_OPS = 65536 };
static uint16_t rounds[MOST_OPS];

static bool is_message(const struct nbc_op *op)
{
    return op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV;
}

/* Sets `rounds`. Returns the number of rounds; 0 if the schedule is too long to count them. */
static int count_rounds(const struct nbc_sched *s)
{
    int most = 0;
    if (s->nops > MOST_OPS)
        return 0; /* unreached: more than MOST_OPS operations */
    memset(rounds, 0, (size_t)s->nops * sizeof *rounds);
    for (int32_t id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        rounds[id] = (uint16_t)(rounds[id] + is_message(op));
        if (rounds[id] > most)
            most = rounds[id];
        const int32_t *next = &s->succ[op->succ + op->nsucc_issue];
        for (int i = 0; i < op->nsucc_done; i++)
            if (rounds[next[i]] < rounds[id])
                rounds[next[i]] = rounds[id];
    }
    return most;
}

static int current_round(const struct nbc_exec *e)
{
    int least = UINT16_MAX;
    for (int i = 0; i < e->ninflight; i++)
        if (rounds[e->inflight[i]] < least)
            least = rounds[e->inflight[i]];
    return least;
}

/* Whether the round still waits for the i-th message in flight, and that is of this kind; round 0
 * is any round. */
static bool is_waited_for(const struct nbc_exec *e, int i, int round, int kind)
{
    int32_t id = e->inflight[i];
    return e->sched->ops[id].kind == kind && (!round || rounds[id] == round);
}

/* Whether an earlier message of that sort has the same peer: a vector travels in segments. */
static bool is_repeated(const struct nbc_exec *e, int i, int round, int kind)
{
    int peer = e->sched->ops[e->inflight[i]].peer;
    for (int j = 0; j < i; j++)
        if (e->sched->ops[e->inflight[j]].peer == peer && is_waited_for(e, j, round, kind))
            return true;
    return false;
}

/* The peers of the messages of one kind for which the round still waits, each once. */
static void report_put_peers(struct line *l, const struct nbc_exec *e, int round, int kind,
                             const char *before, const char *after)
{
    enum { MOST = 12 };
    int n = 0;
    for (int i = 0; i < e->ninflight; i++) {
        const struct nbc_op *op = &e->sched->ops[e->inflight[i]];
        if (!is_waited_for(e, i, round, kind) || is_repeated(e, i, round, kind))
            continue;
        if (n == 0)
            report_put(l, before);
        if (n < MOST) {
            report_put(l, n ? ", " : " ");
            report_put_number(l, op->peer);
        }
        n++;
    }
    if (n > MOST) {
        report_put(l, " and ");
        report_put_number(l, n - MOST);
        report_put(l, " more");
    }
    if (n)
        report_put(l, after);
}

static void report_put_waits(struct line *l, const struct nbc_request *r)
{
    const struct nbc_exec *e = &r->run->exec;
    int all = count_rounds(e->sched), round = all && e->ninflight ? current_round(e) : 0;
    if (round) {
        report_put(l, ", round ");
        report_put_number(l, round);
        report_put(l, " of ");
        report_put_number(l, all);
    }
    report_put(l, r->context->members.remote_size ? "; peers in the other group: waits for"
                                                  : ": waits for");
    size_t before = l->n;
    report_put_peers(l, e, round, NBC_OP_RECV, " a message from rank", ";");
    report_put_peers(l, e, round, NBC_OP_SEND, " a receive on rank", ";");
    if (l->n > before)
        l->n--;
    else
        report_put(l, " progress on this rank"); /* unreached: a moment between two threads */
}

static void report_put_comm(struct line *l, const struct nbc_context *c)
{
    if (c->user == MPI_COMM_WORLD)
        report_put(l, "MPI_COMM_WORLD");
    else if (c->user == MPI_COMM_NULL)
        report_put(l, "a freed communicator");
    else
        report_put(l, "a communicator");
    report_put(l, " (rank ");
    report_put_number(l, c->members.rank);
    report_put(l, " of ");
    report_put_number(l, c->members.size);
    report_put(l, ")");
}

static void report_put_head(struct line *l)
{
    l->n = 0;
    report_put(l, "nbcshim: rank ");
    report_put_number(l, world_rank);
    report_put(l, ": ");
}

static void report_put_age(struct line *l, const struct nbc_request *r, int64_t now)
{
    if (!nbc_timing_on)
        return;
    int64_t tenths = (now - r->started) / 100000000;
    report_put(l, ", pending for ");
    report_put_number(l, tenths / 10);
    report_put(l, ".");
    report_put_number(l, tenths % 10);
    report_put(l, " s");
}

static void report_operation(const struct nbc_request *r, int64_t now)
{
    struct line l;
    report_put_head(&l);
    if (r->run->poll) {
        report_put(&l, "MPI_Comm_idup");
        report_put_age(&l, r, now);
        report_put_line(&l);
        return;
    }
    report_put(&l, r->persistent ? "persistent " : r->blocking ? "blocking " : "");
    report_put(&l, nbc_coll_name(r->coll));
    if (r->alg) {
        report_put(&l, ":");
        report_put(&l, r->alg->name);
    }
    report_put(&l, ", number ");
    report_put_number(&l, nbc_request_call_number(r));
    report_put(&l, " on ");
    report_put_comm(&l, r->context);
    report_put_age(&l, r, now);
    if (r->run->exec.error)
        report_put(&l, ", has failed on this rank");
    report_put_waits(&l, r);
    report_put_line(&l);
}

/* --- on demand -------------------------------------------------------------------------------- */

static void report_idle(void)
{
    struct line l;
    const struct nbc_context *world = nbc_context_find(MPI_COMM_WORLD);
    report_put_head(&l);
    report_put(
        &l, "no operation is pending; nonblocking collectives called on MPI_COMM_WORLD so far: ");
    report_put_number(&l, world ? world->queue.next_seq : 0);
    report_put_line(&l);
}

/* Reported once for each communicator, after the oldest of its operations. */
static void report_deferred(const struct nbc_request *r)
{
    const struct nbc_context *c = r->context;
    struct line l;
    if (r != c->queue.pending || !c->queue.deferred)
        return;
    report_put_head(&l);
    report_put_number(&l, c->queue.next_seq - c->queue.deferred->seq);
    report_put(&l, " more operations on ");
    report_put_comm(&l, c);
    report_put(&l, " are queued until earlier ones complete");
    report_put_line(&l);
}

static void report_all(void)
{
    int n = 0;
    int64_t now = nbc_now();
    for (const struct nbc_run *run = nbc_progress_first(); run; run = run->next) {
        const struct nbc_request *r = run->request;
        report_operation(r, now);
        report_deferred(r);
        n++;
    }
    if (n == 0)
        report_idle();
}

static void report_if_asked(void)
{
    nbc_lock();
    if (nbc_report_asked)
        report_all();
    nbc_report_asked = 0;
    nbc_unlock();
}

/* Whether the signal handler may read the state now: not while this thread, or another one, changes
 * it. If not, nbc_report_asked stays set, and the thread that releases the lock, or waits, makes
 * the report. If threads are used, takes the mutex. */
static bool may_report(void)
{
    if (nbc_inside)
        return false; /* unreached: a moment between two threads */
    if (nbc_threaded)
        return nbc_try_lock();
    if (thread_level == MPI_THREAD_SERIALIZED)
        return false; /* unreached: a moment between two threads */
    if (pthread_equal(pthread_self(), init_thread))
        return true;
    /* unreached below: a moment between two threads */
    pthread_kill(init_thread, SIGUSR1); /* the only thread that calls MPI */
    return false;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    nbc_report_asked = 1;
    if (may_report()) {
        nbc_inside = NBC_LOCKED;
        report_all();
        nbc_report_asked = 0;
        nbc_inside = NBC_OUTSIDE;
        if (nbc_threaded)
            nbc_unlock_slow();
    }
    if (mpi_action.sa_flags & SA_SIGINFO)
        /* unreached: a handler with three arguments */
        mpi_action.sa_sigaction(number, info, context);
    else if (mpi_action.sa_handler != SIG_DFL && mpi_action.sa_handler != SIG_IGN)
        mpi_action.sa_handler(number);
    errno = saved;
}

void nbc_hang_report_before_init(void)
{
    struct sigaction now;
    signal_is_free =
        !sigaction(SIGUSR1, NULL, &now) &&
        (now.sa_handler == SIG_DFL || (signal_is_free && now.sa_handler == mpi_action.sa_handler));
}

void nbc_hang_report_after_init(void)
{
    signal_is_free = signal_is_free && !sigaction(SIGUSR1, NULL, &mpi_action);
}

/* A program that has its own handler keeps it. If the MPI has one (MPICH's launcher reports failed
 * processes by this signal), on_signal calls it. */
static void signal_install(void)
{
    struct sigaction action;
    if (!signal_is_free || sigaction(SIGUSR1, NULL, &action) ||
        action.sa_handler != mpi_action.sa_handler)
        return; /* unreached: no memory */
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
}

static void signal_restore(void)
{
    struct sigaction old;
    if (!sigaction(SIGUSR1, NULL, &old) && old.sa_flags & SA_SIGINFO &&
        old.sa_sigaction == on_signal)
        sigaction(SIGUSR1, &mpi_action, NULL);
}

/* --- by time ---------------------------------------------------------------------------------- */

/* Each operation is reported once. */
static void report_late(void)
{
    int64_t now = nbc_now();
    nbc_lock();
    for (struct nbc_run *run = nbc_progress_first(); run; run = run->next) {
        struct nbc_request *r = run->request;
        if (r->lateness_reported || now - r->started < nbc_settings.timeout * 1000000000)
            continue;
        report_operation(r, now);
        r->lateness_reported = true;
    }
    nbc_unlock();
}

static void *report_thread(void *unused)
{
    enum { PERIOD = 250000000 }; /* ns */
    (void)unused;
    pthread_mutex_lock(&mutex);
    while (!stop) {
        nbc_wait_until(&wake, &mutex, nbc_now() + PERIOD);
        pthread_mutex_unlock(&mutex);
        report_late();
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static bool report_thread_start(void)
{
    stop = false;
    return nbc_condition_init(&wake) && nbc_system_thread_start(&thread, report_thread, NULL);
}

void nbc_hang_report_setup(int rank, int level)
{
    world_rank = rank;
    thread_level = level;
    nbc_report = report_if_asked;
    init_thread = pthread_self();
    nbc_timing_on = nbc_settings.stats;
    if (nbc_settings.timeout) {
        nbc_timing_on = nbc_threaded = true;
        running = report_thread_start();
        if (!running)
            fprintf(stderr,
                    "nbcshim: NBCSHIM_TIMEOUT=%d ignored: the system cannot create a thread\n",
                    (int)nbc_settings.timeout);
    }
    signal_install();
}

void nbc_hang_report_stop(void)
{
    if (!nbc_enabled)
        return;
    signal_restore();
    if (!running)
        return;
    pthread_mutex_lock(&mutex);
    stop = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&wake);
    running = false;
}
