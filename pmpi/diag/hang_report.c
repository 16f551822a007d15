/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "diag/hang_report.h"

#include <errno.h>
#include <signal.h>
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

/* The watching thread; `stop` under `mutex`. */
static pthread_t thread;
static bool running, stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;

/* --- lines: written by a signal handler too, so without stdio --------------------------------- */

struct line {
    char text[512];
    size_t n;
};

static void put(struct line *l, const char *word)
{
    while (*word && l->n < sizeof l->text - 1)
        l->text[l->n++] = *word++;
}

static void put_number(struct line *l, int64_t number)
{
    char digits[24];
    size_t n = sizeof digits - 1;
    digits[n] = '\0';
    do
        digits[--n] = (char)('0' + number % 10);
    while (number /= 10);
    put(l, digits + n);
}

static void put_line(struct line *l)
{
    l->text[l->n++] = '\n';
    if (write(STDERR_FILENO, l->text, l->n) < 0)
        return; /* nobody to tell */
}

/* --- what an operation waits for -------------------------------------------------------------- */

/* How many messages of this rank follow one another up to each operation, that one included.
 * Operations come in an order in which they could happen. Under the lock. */
enum { MOST_OPS = 65536 };
static uint16_t rounds[MOST_OPS];

static bool is_message(const struct nbc_op *op)
{
    return op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV;
}

/* The number of rounds; 0: too long to tell. */
static int count_rounds(const struct nbc_sched *s)
{
    int most = 0;
    if (s->nops > MOST_OPS)
        return 0;
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

/* The peers of the messages of a kind that this round still waits for. */
static void put_peers(struct line *l, const struct nbc_exec *e, int round, int kind,
                      const char *before, const char *behind)
{
    enum { MOST = 12 };
    int n = 0;
    for (int i = 0; i < e->ninflight; i++) {
        const struct nbc_op *op = &e->sched->ops[e->inflight[i]];
        if (op->kind != kind || (round && rounds[e->inflight[i]] != round))
            continue;
        if (n == 0)
            put(l, before);
        if (n < MOST) {
            put(l, n ? ", " : " ");
            put_number(l, op->peer);
        }
        n++;
    }
    if (n > MOST) {
        put(l, " and ");
        put_number(l, n - MOST);
        put(l, " more");
    }
    if (n)
        put(l, behind);
}

static void put_waits(struct line *l, const struct nbc_request *r)
{
    const struct nbc_exec *e = &r->run->exec;
    int all = count_rounds(e->sched), round = all && e->ninflight ? current_round(e) : 0;
    if (round) {
        put(l, ", round ");
        put_number(l, round);
        put(l, " of ");
        put_number(l, all);
    }
    put(l,
        r->context->members.remote_size ? "; peers in the other group: waits for" : ": waits for");
    size_t before = l->n;
    put_peers(l, e, round, NBC_OP_RECV, " a message from rank", ";");
    put_peers(l, e, round, NBC_OP_SEND, " a receive on rank", ";");
    if (l->n > before)
        l->n--;
    else
        put(l, " progress on this rank");
}

static void put_comm(struct line *l, const struct nbc_context *c)
{
    if (c->user == MPI_COMM_WORLD)
        put(l, "MPI_COMM_WORLD");
    else if (c->user == MPI_COMM_NULL)
        put(l, "a freed communicator");
    else
        put(l, "a communicator");
    put(l, " (rank ");
    put_number(l, c->members.rank);
    put(l, " of ");
    put_number(l, c->members.size);
    put(l, ")");
}

static void put_head(struct line *l)
{
    l->n = 0;
    put(l, "nbcshim: rank ");
    put_number(l, world_rank);
    put(l, ": ");
}

static void put_age(struct line *l, const struct nbc_request *r, int64_t now)
{
    if (!nbc_timing_on)
        return;
    int64_t tenths = (now - r->started) / 100000000;
    put(l, ", pending for ");
    put_number(l, tenths / 10);
    put(l, ".");
    put_number(l, tenths % 10);
    put(l, " s");
}

static void show(const struct nbc_request *r, int64_t now)
{
    struct line l;
    put_head(&l);
    if (r->run->poll) {
        put(&l, "MPI_Comm_idup");
        put_age(&l, r, now);
        put_line(&l);
        return;
    }
    put(&l, r->persistent ? "persistent " : "");
    put(&l, nbc_coll_name(r->coll));
    if (r->alg) {
        put(&l, ":");
        put(&l, r->alg->name);
    }
    put(&l, ", number ");
    put_number(&l, r->persistent ? r->tag - nbc_tag_ring + 1 : r->seq + 1);
    put(&l, " on ");
    put_comm(&l, r->context);
    put_age(&l, r, now);
    put_waits(&l, r);
    put_line(&l);
}

/* --- on demand -------------------------------------------------------------------------------- */

static void show_nothing(void)
{
    struct line l;
    const struct nbc_context *world = nbc_context_find(MPI_COMM_WORLD);
    put_head(&l);
    put(&l, "no operation is pending; nonblocking collectives called on MPI_COMM_WORLD so far: ");
    put_number(&l, world ? world->queue.next_seq : 0);
    put_line(&l);
}

/* Told once for each communicator, behind the oldest of its operations. */
static void show_held_back(const struct nbc_request *r)
{
    const struct nbc_context *c = r->context;
    struct line l;
    if (r != c->queue.pending || !c->queue.deferred)
        return;
    put_head(&l);
    put_number(&l, c->queue.next_seq - c->queue.deferred->seq);
    put(&l, " more operations on ");
    put_comm(&l, c);
    put(&l, " are queued until earlier ones complete");
    put_line(&l);
}

static void show_all(void)
{
    int n = 0;
    int64_t now = nbc_now();
    for (const struct nbc_run *run = nbc_progress_first(); run; run = run->next) {
        const struct nbc_request *r = run->request;
        if (r->drains)
            continue;
        show(r, now);
        show_held_back(r);
        n++;
    }
    if (n == 0)
        show_nothing();
}

static void dump(void)
{
    nbc_lock();
    if (nbc_report_asked)
        show_all();
    nbc_report_asked = 0;
    nbc_unlock();
}

/* Whether this thread may look now: not while it, or another one, changes what it would look at.
 * Where it may not, the flag stays set, and whoever gives the lock back, or waits, shows it. */
static bool may_look(void)
{
    if (nbc_inside)
        return false;
    if (nbc_threaded)
        return nbc_try_lock();
    if (thread_level == MPI_THREAD_SERIALIZED)
        return false;
    if (pthread_equal(pthread_self(), init_thread))
        return true;
    pthread_kill(init_thread, SIGUSR1); /* the only one that calls MPI */
    return false;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    nbc_report_asked = 1;
    if (may_look()) {
        nbc_inside = NBC_LOCKED;
        show_all();
        nbc_report_asked = 0;
        nbc_inside = NBC_OUTSIDE;
        if (nbc_threaded)
            nbc_unlock_slow();
    }
    if (mpi_action.sa_flags & SA_SIGINFO)
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

/* A program that has a use for the signal keeps it. An MPI that has one (MPICH's launcher tells it
 * of failed processes so) gets it too. */
static void take_signal(void)
{
    struct sigaction action;
    if (!signal_is_free || sigaction(SIGUSR1, NULL, &action) ||
        action.sa_handler != mpi_action.sa_handler)
        return;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
}

static void leave_signal(void)
{
    struct sigaction old;
    if (!sigaction(SIGUSR1, NULL, &old) && old.sa_flags & SA_SIGINFO &&
        old.sa_sigaction == on_signal)
        sigaction(SIGUSR1, &mpi_action, NULL);
}

/* --- by time ---------------------------------------------------------------------------------- */

/* Each operation is told of once. */
static void show_late(void)
{
    int64_t now = nbc_now();
    nbc_lock();
    for (struct nbc_run *run = nbc_progress_first(); run; run = run->next) {
        struct nbc_request *r = run->request;
        if (r->drains || r->lateness_reported ||
            now - r->started < nbc_settings.timeout * 1000000000)
            continue;
        show(r, now);
        r->lateness_reported = true;
    }
    nbc_unlock();
}

static void *watch(void *unused)
{
    enum { PERIOD = 250000000 }; /* ns */
    (void)unused;
    pthread_mutex_lock(&mutex);
    while (!stop) {
        nbc_wait_until(&wake, &mutex, nbc_now() + PERIOD);
        pthread_mutex_unlock(&mutex);
        show_late();
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static bool start_thread(void)
{
    stop = false;
    return nbc_condition_init(&wake) && nbc_system_thread_start(&thread, watch, NULL);
}

void nbc_hang_report_setup(int level)
{
    NEXT(Comm_rank)(MPI_COMM_WORLD, &world_rank);
    thread_level = level;
    nbc_report = dump;
    init_thread = pthread_self();
    nbc_timing_on = nbc_settings.stats;
    if (nbc_settings.timeout) {
        nbc_timing_on = nbc_threaded = true;
        running = start_thread();
    }
    take_signal();
}

void nbc_hang_report_stop(void)
{
    if (!nbc_enabled)
        return;
    leave_signal();
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
