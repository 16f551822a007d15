/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* Reports pending operations, and the ranks that each waits for, on standard error. NBCSHIM_TIMEOUT
 * starts a thread that reports operations pending for longer; SIGUSR1 reports all that are pending
 * now. */
#include "diag/diag.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/system_thread.h"
#include "base/in_mpi.h"
#include "below/detect.h"
#include "comm/context.h"
#include "comm/rank_lines.h"
#include "engine/progress.h"
#include "op/run.h"
#include "op/stage.h"
#include "request/request.h"

#include "coll.h"
#include "exec.h"
#include "sched.h"

/* Written at init. */
static int world_rank = -1, thread_level;
static pthread_t init_thread;
static bool signal_is_free;
static struct sigaction mpi_action;

/* Where this rank is on its way, and since when. A handler reads them. */
static volatile enum { IN_INIT, RUNNING, IN_FINALIZE, OVER } phase;
static volatile int64_t phase_since;

static struct nbc_timer timer; /* of NBCSHIM_TIMEOUT */

/* On MPI_COMM_WORLD, when MPI_Finalize was called. */
static struct nbc_line calls_at_end, recent_at_end;

/* --- lines ------------------------------------------------------------------------------------ */

static void put_seconds(struct nbc_line *l, const char *before, int64_t ns)
{
    nbc_line_put(l, "%s%lld.%d s", before, (long long)(ns / 1000000000),
                 (int)(ns / 100000000 % 10));
}

static void put_head(struct nbc_line *l)
{
    l->n = 0;
    if (world_rank < 0)
        nbc_line_put(l, "nbcshim: process %d: ", (int)getpid());
    else
        nbc_line_put(l, "nbcshim: rank %d: ", world_rank);
}

/* --- what an operation waits for -------------------------------------------------------------- */

/* The round of each operation of a schedule: the longest chain of dependent messages of this rank
 * that ends with it. Operations are in an order in which they could be executed. Under the lock. */
enum { MOST_OPS = 65536 };
static uint16_t rounds[MOST_OPS];

/* Sets `rounds`. Returns the number of rounds; 0 if the schedule is too long to count them. */
static int count_rounds(const struct nbc_sched *s)
{
    int most = 0;
    if (s->nops > MOST_OPS)
        return 0; /* unreached: more than MOST_OPS operations */
    memset(rounds, 0, (size_t)s->nops * sizeof *rounds);
    for (int32_t id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        rounds[id] = (uint16_t)(rounds[id] + (op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV));
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
static void put_peers(struct nbc_line *l, const struct nbc_exec *e, int round, int kind,
                      const char *before, const char *after)
{
    enum { MOST = 12 };
    int n = 0;
    for (int i = 0; i < e->ninflight; i++) {
        const struct nbc_op *op = &e->sched->ops[e->inflight[i]];
        if (!is_waited_for(e, i, round, kind) || is_repeated(e, i, round, kind))
            continue;
        if (n < MOST)
            nbc_line_put(l, "%s %d", n ? "," : before, op->peer);
        n++;
    }
    if (n > MOST)
        nbc_line_put(l, " and %d more", n - MOST);
    nbc_line_put(l, "%s", n ? after : "");
}

static void put_waits(struct nbc_line *l, const struct nbc_request *r)
{
    const struct nbc_exec *e = &r->run->exec;
    int all = count_rounds(e->sched), round = all && e->ninflight ? current_round(e) : 0;
    if (round)
        nbc_line_put(l, ", round %d of %d", round, all);
    nbc_line_put(l, "%s: waits for",
                 r->context->members.remote_size ? "; peers in the other group" : "");
    size_t before = l->n;
    put_peers(l, e, round, NBC_OP_RECV, " a message from rank", ";");
    put_peers(l, e, round, NBC_OP_SEND, " a receive on rank", ";");
    if (l->n > before)
        l->n--;
    else
        nbc_line_put(l,
                     nbc_stage_is_on(r->run) ? " a copy of GPU memory" : " progress on this rank");
}

/* ' "of the rows"', if the program has given the communicator this name. nbcrun --hang looks for
 * the quotation marks. */
static void put_comm_name(struct nbc_line *l, const struct nbc_context *c)
{
    if (!c->name)
        return;
    nbc_line_put(l, " \"");
    for (const char *at = c->name; *at; at++)
        nbc_line_put(l, "%c", *at == '"' || (unsigned char)*at < ' ' ? '?' : *at);
    nbc_line_put(l, "\"");
}

static void put_comm(struct nbc_line *l, const struct nbc_context *c)
{
    nbc_line_put(l, "%s",
                 c->user == MPI_COMM_WORLD  ? "MPI_COMM_WORLD"
                 : c->user == MPI_COMM_NULL ? "a freed communicator"
                                            : "a communicator");
    put_comm_name(l, c);
    nbc_line_put(l, " (rank %d of %d)", c->members.rank, c->members.size);
}

/* "blocking allreduce:ring, number 2 on MPI_COMM_WORLD (rank 0 of 4)" */
static void put_operation(struct nbc_line *l, const struct nbc_request *r)
{
    put_head(l);
    if (r->run->poll && !r->alg) {
        nbc_line_put(l, "MPI_Comm_idup");
        return;
    }
    nbc_line_put(l, "%s%s%s%s%s, number %lld on ", r->internal ? "internal " : "",
                 r->persistent ? "persistent "
                 : r->blocking ? "blocking "
                               : "",
                 nbc_coll_name(r->coll), r->alg ? ":" : "", r->alg ? r->alg->name : "",
                 (long long)nbc_request_call_number(r));
    put_comm(l, r->context);
}

static void report_operation(const struct nbc_request *r, int64_t now)
{
    struct nbc_line l;
    put_operation(&l, r);
    if (nbc_timing_on)
        put_seconds(&l, ", pending for ", now - r->began.now);
    if (!r->run->poll) {
        nbc_line_put(&l, r->run->exec.error ? ", has failed on this rank" : "");
        put_waits(&l, r);
    } else if (r->alg) {
        nbc_line_put(&l, ", which the MPI carries out");
    }
    nbc_line_print(&l);
}

/* --- on demand -------------------------------------------------------------------------------- */

/* " at solve+0x1a (app)", for a call that returns to `site`; where no symbol has the address, as
 * addr2line and nbcrun --compare have it, " at app+0x4512". */
static void put_site(struct nbc_line *l, const char *site)
{
    const ElfW(Sym) *symbol = NULL;
    const struct link_map *map = NULL;
    const char *call = site - 1;
    Dl_info info;
    if (!site || !dladdr1(call, &info, (void **)&map, RTLD_DL_LINKMAP) || !info.dli_fname)
        return; /* unreached: no object at the address */
    const char *file = nbc_base_name(info.dli_fname);
    if (nbc_is_mpi(file))
        return; /* its Fortran binding */
    dladdr1(call, &info, (void **)&symbol, RTLD_DL_SYMENT);
    if (symbol && call < (const char *)info.dli_saddr + symbol->st_size)
        nbc_line_put(l, " at %s+0x%lx (%s)", info.dli_sname,
                     (unsigned long)(call - (const char *)info.dli_saddr), file);
    else
        nbc_line_put(l, " at %s+0x%lx", file, (unsigned long)((uintptr_t)call - map->l_addr));
}

/* The communicators that one call of MPI_Comm_split makes have one key: what tells them apart is
 * the rank of their first process in MPI_COMM_WORLD. */
static void put_comm_number(struct nbc_line *l, const struct nbc_context *c)
{
    const struct nbc_members *m = &c->members;
    nbc_line_put(l, "communicator %lld", (long long)(c->key >> 16));
    if (m->in_world && !m->remote_size)
        nbc_line_put(l, ".%d", m->world ? m->world->of[0] : 0);
}

/* The last calls on a communicator, which `nbcrun --hang` compares with those of other ranks. */
static void put_recent(struct nbc_line *l, const struct nbc_context *c)
{
    static const char *const prefix[] = {"", "i", "persistent "};
    uint32_t n = c->ncalls < NBC_NRECENT ? c->ncalls : NBC_NRECENT;
    put_head(l);
    nbc_line_put(l, "last calls on ");
    if (c->user == MPI_COMM_WORLD)
        nbc_line_put(l, "MPI_COMM_WORLD");
    else
        put_comm_number(l, c);
    put_comm_name(l, c);
    for (uint32_t i = c->ncalls - n; i != c->ncalls; i++) {
        const struct nbc_recent *call = &c->recent[i % NBC_NRECENT];
        nbc_line_put(l, "%s %lld %s%s", i == c->ncalls - n ? ":" : ",", (long long)i + 1,
                     prefix[call->kind], nbc_coll_name(call->coll));
        if (call->bytes >= 0)
            nbc_line_put(l, " of %lld bytes", (long long)call->bytes);
        if (nbc_coll_has_root(call->coll))
            nbc_line_put(l, " root %d", call->root);
        put_site(l, call->site);
    }
}

static void report_recent(const struct nbc_context *c)
{
    struct nbc_line l;
    if (!c || c->ncalls == 0)
        return;
    put_recent(&l, c);
    nbc_line_print(&l);
}

static bool is_oldest(const struct nbc_request *r)
{
    const struct nbc_context *c = r->context;
    return c && (r == c->queue.pending || r == c->blocking.pending);
}

/* Blocking collectives are among them only if nbcshim carries them out. */
static void put_calls(struct nbc_line *l, const struct nbc_context *world)
{
    nbc_line_put(l, "%scollectives called on MPI_COMM_WORLD so far: %lld",
                 world && world->blocking.next_seq ? "" : "nonblocking ",
                 world ? (long long)world->ncalls : 0LL);
}

/* Where the program is. A report that had to wait is made by a thread in nbcshim: the program's, or
 * one of nbcshim's own. A second signal goes to another thread than the first while that is in the
 * handler; what such a thread does outside MPI says nothing. */
static struct nbc_current find_place(bool in_handler)
{
    struct nbc_current now = {.place = NBC_PLACE_UNKNOWN};
    const bool first = pthread_equal(pthread_self(), init_thread);
    if (in_handler || first)
        now = nbc_current_call(in_handler);
    if (now.place == NBC_PLACE_PROGRAM && !first)
        now.place = NBC_PLACE_UNKNOWN;
    return now;
}

static void put_place(struct nbc_line *l, const struct nbc_current *now)
{
    if (now->name || now->place == NBC_PLACE_MPI || now->place == NBC_PLACE_SHIM) {
        nbc_line_put(l, "in %s%s", now->name ? "MPI_" : "",
                     now->name ? now->name : "a call of MPI");
        put_site(l, now->site);
    } else if (now->place == NBC_PLACE_PROGRAM) {
        nbc_line_put(l, "outside MPI%s",
                     thread_level > MPI_THREAD_FUNNELED ? " (the thread of MPI_Init)" : "");
    }
}

/* A rank for which others wait may have nothing pending: which call it has not made, its last ones
 * on the same communicator tell. */
static void report_recent_of_all(void)
{
    enum { MOST = 8 };
    const struct nbc_context *world = nbc_context_find(MPI_COMM_WORLD), *c = NULL;
    report_recent(world);
    for (int n = 0; n < MOST && (c = nbc_context_after(c)); n += c != world && c->ncalls)
        if (c != world)
            report_recent(c);
}

static void report_place(bool in_handler)
{
    struct nbc_line l;
    struct nbc_current now = find_place(in_handler);
    bool pending = nbc_progress_first(), unknown = now.place == NBC_PLACE_UNKNOWN && !now.name;
    if (pending && unknown)
        return;
    put_head(&l);
    put_place(&l, &now);
    if (!pending) {
        nbc_line_put(&l, "%sno operation is pending; ", unknown ? "" : "; ");
        put_calls(&l, nbc_context_find(MPI_COMM_WORLD));
    }
    nbc_line_print(&l);
    if (!pending)
        report_recent_of_all();
}

/* Before MPI_Init has returned, and after MPI_Finalize was called, there is nothing else to tell.
 */
static void report_phase(void)
{
    static const char *const where[] = {[IN_INIT] = "in MPI_Init",
                                        [IN_FINALIZE] = "in MPI_Finalize",
                                        [OVER] = "after MPI_Finalize"};
    struct nbc_line l;
    put_head(&l);
    nbc_line_put(&l, "%s", where[phase]);
    put_seconds(&l, " since ", nbc_now() - phase_since);
    nbc_line_put(&l, "%s%s", phase == IN_INIT ? "" : "; ", calls_at_end.text);
    nbc_line_print(&l);
    if (phase != IN_INIT && recent_at_end.n) {
        l = recent_at_end;
        nbc_line_print(&l);
    }
}

/* Reported once for each communicator, after the oldest of its operations. */
static void report_deferred(const struct nbc_request *r)
{
    const struct nbc_context *c = r->context;
    struct nbc_line l;
    if (r != c->queue.pending || !c->queue.deferred)
        return;
    put_head(&l);
    nbc_line_put(&l, "%lld more operations on ",
                 (long long)(c->queue.next_seq - c->queue.deferred->seq));
    put_comm(&l, c);
    nbc_line_put(&l, " are queued until earlier ones complete");
    nbc_line_print(&l);
}

static void report_all(bool in_handler)
{
    int64_t now = nbc_now();
    report_place(in_handler);
    for (const struct nbc_run *run = nbc_progress_first(); run; run = run->next) {
        const struct nbc_request *r = run->request;
        report_operation(r, now);
        report_deferred(r);
        if (is_oldest(r))
            report_recent(r->context);
    }
}

static void report_if_asked(void)
{
    nbc_lock();
    if (nbc_report_asked)
        report_all(false);
    nbc_report_asked = 0;
    nbc_unlock();
}

static bool is_in_mpi(void)
{
    const struct nbc_current now = nbc_current_call(true);
    return now.place == NBC_PLACE_MPI || now.place == NBC_PLACE_SHIM;
}

/* Whether the signal handler may read the state now: not while this thread, or another one, changes
 * it. If not, nbc_report_asked stays set, and the thread that releases the lock, or waits, makes
 * the report. If threads are used, takes the mutex. */
static bool may_report(void)
{
    if (nbc_inside & NBC_LOCKED)
        return false; /* unreached: a moment between two threads */
    if (nbc_threaded)
        return pthread_mutex_trylock(&nbc_mutex) == 0;
    if (thread_level == MPI_THREAD_SERIALIZED)
        return is_in_mpi(); /* then no other thread is */
    if (pthread_equal(pthread_self(), init_thread))
        return true;
    /* unreached below: a moment between two threads */
    pthread_kill(init_thread, SIGUSR1); /* the only thread that calls MPI */
    return false;
}

/* Reports the operations, now or when the state is whole again. */
static void report_running(void)
{
    unsigned char inside = nbc_inside;
    nbc_report_asked = 1;
    if (!may_report())
        return;
    nbc_inside = NBC_LOCKED;
    report_all(true);
    nbc_report_asked = 0;
    nbc_inside = inside;
    if (nbc_threaded)
        pthread_mutex_unlock(&nbc_mutex);
}

/* The MPI's handler may call the one that it has found in MPI_Init, which is this one (MPICH). */
static void on_signal(int number, siginfo_t *info, void *context)
{
    static NBC_PER_THREAD volatile bool inside;
    int saved = errno;
    if (inside)
        return;
    inside = true;
    if (phase == RUNNING)
        report_running();
    else
        report_phase();
    if (mpi_action.sa_flags & SA_SIGINFO)
        mpi_action.sa_sigaction(number, info, context); /* unreached: a handler of this form */
    else if (mpi_action.sa_handler != SIG_DFL && mpi_action.sa_handler != SIG_IGN)
        mpi_action.sa_handler(number);
    inside = false;
    errno = saved;
}

/* A program that has its own handler keeps it. If the MPI has one (MPICH's launcher reports failed
 * processes by this signal), on_signal calls it. */
static void signal_install(void)
{
    struct sigaction action;
    if (!signal_is_free || sigaction(SIGUSR1, NULL, &action) ||
        (action.sa_handler != mpi_action.sa_handler && action.sa_sigaction != on_signal))
        return; /* unreached: no memory */
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
}

static void enter_phase(int which)
{
    phase_since = nbc_now();
    phase = which;
}

void nbc_hang_report_before_init(bool wanted)
{
    struct sigaction now;
    signal_is_free =
        !sigaction(SIGUSR1, NULL, &now) &&
        (now.sa_handler == SIG_DFL || (signal_is_free && now.sa_handler == mpi_action.sa_handler));
    enter_phase(IN_INIT);
    world_rank = nbc_launcher_rank();
    init_thread = pthread_self();
    if (wanted && signal_is_free && now.sa_handler == SIG_DFL) {
        mpi_action = now;
        signal_install();
    }
}

void nbc_hang_report_after_init(void)
{
    struct sigaction now;
    signal_is_free = signal_is_free && !sigaction(SIGUSR1, NULL, &now);
    if (signal_is_free && now.sa_sigaction != on_signal)
        mpi_action = now;
}

/* Also when the library is unloaded. */
__attribute__((destructor)) static void signal_restore(void)
{
    struct sigaction old;
    if (!sigaction(SIGUSR1, NULL, &old) && old.sa_flags & SA_SIGINFO &&
        old.sa_sigaction == on_signal)
        sigaction(SIGUSR1, &mpi_action, NULL);
}

/* --- by time ---------------------------------------------------------------------------------- */

/* An operation that was late is only slow. */
static void report_late_end(const struct nbc_request *r)
{
    struct nbc_line l;
    put_operation(&l, r);
    put_seconds(&l, ", completed after ", nbc_now() - r->began.now);
    nbc_line_print(&l);
}

/* Each operation is reported once. */
static bool report_late(void)
{
    int64_t now = nbc_now();
    nbc_lock();
    for (struct nbc_run *run = nbc_progress_first(); run; run = run->next) {
        struct nbc_request *r = run->request;
        if (r->lateness_reported || now - r->began.now < nbc_settings.timeout * 1000000000)
            continue;
        report_operation(r, now);
        if (is_oldest(r))
            report_recent(r->context);
        r->lateness_reported = true;
    }
    nbc_unlock();
    return true;
}

void nbc_hang_report_setup(int rank, int level)
{
    world_rank = rank;
    thread_level = level;
    nbc_report = report_if_asked;
    nbc_progress_late_end = report_late_end;
    phase = RUNNING;
    init_thread = pthread_self();
    nbc_timing_on = nbc_settings.stats;
    if (nbc_settings.timeout) {
        enum { PERIOD = 250000000 }; /* ns */
        nbc_timing_on = nbc_threaded = true;
        if (!nbc_timer_start(&timer, PERIOD, report_late))
            fprintf(stderr,
                    "nbcshim: NBCSHIM_TIMEOUT=%d ignored: the system cannot create a thread\n",
                    (int)nbc_settings.timeout);
    }
    signal_install();
}

void nbc_hang_report_init_ends(void)
{
    enter_phase(RUNNING);
    if (!nbc_enabled)
        signal_restore();
}

void nbc_hang_report_finalize_begins(void)
{
    if (!nbc_enabled)
        return;
    nbc_lock();
    const struct nbc_context *world = nbc_context_find(MPI_COMM_WORLD);
    calls_at_end.n = 0;
    put_calls(&calls_at_end, world);
    if (world && world->ncalls)
        put_recent(&recent_at_end, world);
    nbc_unlock();
    enter_phase(IN_FINALIZE);
}

void nbc_hang_report_stop(void)
{
    nbc_timer_stop(&timer);
}

void nbc_hang_report_finalize_ends(void)
{
    enter_phase(OVER);
}
