/* SPDX-License-Identifier: MIT */
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "staged.h"

/* --- random numbers --------------------------------------------------------------------------- */

uint64_t rng_next(struct rng *r)
{
    r->state += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(r->state);
}

int64_t rng_below(struct rng *r, int64_t n)
{
    return (int64_t)(rng_next(r) % (uint64_t)n);
}

/* --- datatypes -------------------------------------------------------------------------------- */

struct layout layout_make(int unit, int natoms, const int64_t *at, int64_t extent)
{
    struct layout l = {.unit = unit, .natoms = natoms};
    int64_t low = 0, high = 0;
    bool dense = true;
    for (int i = 0; i < natoms; i++) {
        l.at[i] = at[i];
        if (i == 0 || at[i] < low)
            low = at[i];
        if (i == 0 || at[i] + unit > high)
            high = at[i] + unit;
        dense = dense && at[i] == at[0] + (int64_t)i * unit;
    }
    l.type = (struct nbc_type){
        .size = (int64_t)natoms * unit,
        .extent = extent,
        .true_lb = low,
        .true_extent = high - low,
        .packed = dense && extent == (int64_t)natoms * unit,
    };
    return l;
}

void layout_pack(const struct layout *l, const void *element, int64_t count, void *out)
{
    const char *from = element;
    char *to = out;
    if (count * l->type.size == 0)
        return;
    if (l->type.packed) {
        memcpy(to, from + l->type.true_lb, (size_t)(count * l->type.size));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < l->natoms; k++, to += l->unit)
            memcpy(to, from + i * l->type.extent + l->at[k], (size_t)l->unit);
}

void layout_unpack(const struct layout *l, void *element, int64_t count, const void *in)
{
    char *to = element;
    const char *from = in;
    if (count * l->type.size == 0)
        return;
    if (l->type.packed) {
        memcpy(to + l->type.true_lb, from, (size_t)(count * l->type.size));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < l->natoms; k++, from += l->unit)
            memcpy(to + i * l->type.extent + l->at[k], from, (size_t)l->unit);
}

/* What a network may leave in a buffer that it has not filled yet. */
static void spoil(const struct layout *l, char *element, int64_t count)
{
    if (count * l->type.size == 0)
        return;
    if (l->type.packed) {
        memset(element + l->type.true_lb, 0xdb, (size_t)(count * l->type.size));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < l->natoms; k++)
            memset(element + i * l->type.extent + l->at[k], 0xdb, (size_t)l->unit);
}

/* --- messages --------------------------------------------------------------------------------- */

struct end {
    char *addr;
    int64_t count, bytes;
    const struct layout *layout;
    int64_t due; /* round in which it completes */
};

enum side { SEND, RECV };

/* Made by whichever end is posted first. A handle is its address plus the side. */
struct message {
    struct end end[2];
    bool posted[2], reported[2];
    bool moved;
    bool spoiled;         /* one of them is empty because its rank had an error */
    char *eager;          /* data of an eager send */
    struct message *next; /* unmatched, in the same channel */
    struct sim_rank *receiver;
    int from;
};

/* Unmatched messages from one rank to another in one operation, in posted order: sends or
 * receives, never both. */
struct channel {
    struct message *head, *tail;
};

struct sim_op {
    struct sim *sim;
    struct sim_rank *ranks;
    int size, remote_size;
    struct sim_op *next;
};

struct sim {
    struct sim_config config;
    struct rng rng;
    struct sim_op *ops;
    struct sim_rank **order;
    int nranks, nlive, nwaiting; /* ranks: all, running, to be started (again) */
    int64_t round;
    int64_t nmessages; /* alive */
    int64_t ntimers;   /* ends that will complete by themselves */
    int64_t ncompleted;
    int calls;
    const struct sim_rank *failed; /* the rank with the error of fail_at */
    char text[400];
};

static void complain(struct sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The first complaint counts. */
static void complain(struct sim *sim, const char *format, ...)
{
    if (sim->text[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(sim->text, sizeof sim->text, format, args);
    va_end(args);
}

static struct sim_rank *peer_of(const struct sim_rank *r, int peer)
{
    struct sim_op *op = r->op;
    if (!op->remote_size)
        return &op->ranks[peer];
    return &op->ranks[peer + (r->group ? 0 : op->size)];
}

static int64_t later(struct sim *sim)
{
    sim->ntimers++;
    return sim->round + (sim->config.jitter ? rng_below(&sim->rng, sim->config.jitter + 1) : 0);
}

/* Whether this call is the one that fails. */
static bool inject(struct sim_rank *r)
{
    struct sim *sim = r->op->sim;
    if (++sim->calls != sim->config.fail_at)
        return false;
    sim->failed = r;
    r->told = true;
    return true;
}

static void matched(struct sim *sim, struct message *m)
{
    if (m->end[SEND].bytes != m->end[RECV].bytes && !m->spoiled)
        complain(sim, "rank %d sends %" PRId64 " bytes to rank %d, which wants %" PRId64, m->from,
                 m->end[SEND].bytes, m->receiver->local, m->end[RECV].bytes);
    /* See nbc_send. Only the type of bytes has a unit of 1. */
    const struct nbc_type *received = &m->end[RECV].layout->type;
    if (m->end[SEND].layout->unit == 1 && !received->packed && m->end[SEND].bytes > 0)
        complain(sim, "rank %d sends bytes, which rank %d receives as elements with gaps", m->from,
                 m->receiver->local);
    m->end[RECV].due = later(sim);
    if (!m->eager && !m->reported[SEND])
        m->end[SEND].due = later(sim);
}

static void move_data(struct message *m)
{
    if (m->moved || m->end[SEND].bytes != m->end[RECV].bytes)
        return;
    m->moved = true;
    if (m->end[SEND].bytes == 0)
        return;
    char *data = m->eager ? m->eager : malloc((size_t)m->end[SEND].bytes);
    if (!m->eager)
        layout_pack(m->end[SEND].layout, m->end[SEND].addr, m->end[SEND].count, data);
    layout_unpack(m->end[RECV].layout, m->end[RECV].addr, m->end[RECV].count, data);
    if (!m->eager)
        free(data);
}

static void free_message(struct sim *sim, struct message *m)
{
    sim->nmessages--;
    free(m->eager);
    free(m);
}

static void buffer_eager(struct sim *sim, struct message *m)
{
    const struct end *e = &m->end[SEND];
    m->eager = malloc((size_t)e->bytes + 1);
    layout_pack(e->layout, e->addr, e->count, m->eager);
    m->end[SEND].due = later(sim);
}

static int sim_post(struct sim_rank *r, enum side side, struct end end, int peer, nbc_handle *h)
{
    struct sim *sim = r->op->sim;
    int npeers = r->op->remote_size ? (r->group ? r->op->size : r->op->remote_size) : r->op->size;
    if (peer < 0 || peer >= npeers) {
        complain(sim, "rank %d has no peer %d", r->local, peer);
        return 99;
    }
    struct sim_rank *receiver = side == RECV ? r : peer_of(r, peer);
    int from = side == RECV ? peer : r->local;
    struct channel *c = &receiver->from[from];
    struct message *m = c->head;
    if (m && !m->posted[side]) {
        c->head = m->next;
    } else {
        m = calloc(1, sizeof *m);
        m->end[SEND].due = m->end[RECV].due = INT64_MAX;
        m->receiver = receiver;
        m->from = from;
        *(c->head ? &c->tail->next : &c->head) = m;
        c->tail = m;
        sim->nmessages++;
    }
    m->posted[side] = true;
    m->spoiled = m->spoiled || (r->told && end.bytes == 0);
    end.due = INT64_MAX;
    m->end[side] = end;
    if (side == SEND && !sim->config.rendezvous)
        buffer_eager(sim, m);
    if (m->posted[SEND] && m->posted[RECV])
        matched(sim, m);
    *h = (nbc_handle)m | side;
    return 0;
}

/* --- the transport ---------------------------------------------------------------------------- */

static struct end make_end(const struct sim_rank *r, uintptr_t addr, int64_t count, int type)
{
    const struct layout *l = &r->layouts[type];
    return (struct end){
        .addr = (char *)addr, .count = count, .bytes = count * l->type.size, .layout = l};
}

static int sim_send(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    if (inject(self))
        return 71;
    return sim_post(self, SEND, make_end(self, addr, count, type), peer, h);
}

/* Whether a receive finds its message, which is then gone. */
static bool swallow(struct sim_rank *r, int type, int peer)
{
    struct sim *sim = r->op->sim;
    struct message *m = r->from[peer].head;
    nbc_handle h;
    if (!sim->config.swallow || !m || !m->posted[SEND] || !m->eager)
        return false;
    sim_post(r, RECV, make_end(r, 0, 0, type), peer, &h);
    m->reported[RECV] = true;
    sim->ntimers--;
    sim->ncompleted++;
    if (m->reported[SEND])
        free_message(sim, m);
    return true;
}

static int sim_recv(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    struct sim_rank *r = self;
    if (inject(r))
        return swallow(r, type, peer) ? NBC_SENT - 72 : 72;
    spoil(&r->layouts[type], (char *)addr, count);
    return sim_post(r, RECV, make_end(r, addr, count, type), peer, h);
}

/* A copy between a buffer and its shadow: a handle with this bit. */
enum { COPY = 2 };

static bool shadow_copy_ends(struct sim *sim, nbc_handle h);

static int sim_poll(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    struct sim_rank *r = self;
    struct sim *sim = r->op->sim;
    bool shorter = false;
    *ndone = 0;
    for (int i = 0; i < n; i++) {
        if (h[i] & COPY) {
            if (shadow_copy_ends(sim, h[i]))
                done[(*ndone)++] = i;
            continue;
        }
        struct message *m = (struct message *)(h[i] & ~(nbc_handle)1);
        enum side side = h[i] & 1;
        if (m->end[side].due > sim->round)
            continue;
        if (m->posted[SEND] && m->posted[RECV])
            move_data(m);
        done[(*ndone)++] = i;
        shorter = shorter || (side == RECV && m->end[SEND].bytes < m->end[RECV].bytes);
        m->reported[side] = true;
        sim->ntimers--;
        sim->ncompleted++;
        if (m->reported[SEND] && m->reported[RECV])
            free_message(sim, m);
    }
    if (*ndone && inject(r))
        return 73;
    if (!*ndone || !shorter)
        return 0;
    r->told = true;
    return 76;
}

static int sim_copy(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src,
                    int64_t scount, int stype)
{
    struct sim_rank *r = self;
    struct end from = make_end(r, src, scount, stype), to = make_end(r, dst, dcount, dtype);
    if (inject(r))
        return 74;
    if (from.bytes != to.bytes)
        complain(r->op->sim, "rank %d copies %" PRId64 " bytes to %" PRId64, r->local, from.bytes,
                 to.bytes);
    else if (from.bytes > 0) {
        char *data = malloc((size_t)from.bytes);
        layout_pack(from.layout, from.addr, scount, data);
        layout_unpack(to.layout, to.addr, dcount, data);
        free(data);
    }
    return 0;
}

static int sim_reduce(void *self, uintptr_t dst, uintptr_t left, uintptr_t right, int64_t count,
                      int type)
{
    struct sim_rank *r = self;
    const struct layout *l = &r->layouts[type];
    if (inject(r))
        return 75;
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < l->natoms; k++) {
            uintptr_t at = (uintptr_t)(i * l->type.extent + l->at[k]);
            r->reduce((void *)(dst + at), (void *)(left + at), (void *)(right + at));
        }
    return 0;
}

struct shadow_copy {
    const struct layout *layout;
    char *from, *to;
    int64_t count, due;
};

static uintptr_t user_base(const struct sim_rank *r, int buf)
{
    return (uintptr_t)(buf == NBC_BUF_SEND ? r->send : r->recv);
}

static int sim_stage(void *self, const struct nbc_op *op, nbc_handle *h)
{
    struct sim_rank *r = self;
    if (inject(r))
        return 77;
    struct shadow_copy *c = malloc(sizeof *c);
    const struct layout *l = &r->layouts[op->type];
    char *to = (char *)r->exec.base[op->buf] + op->off;
    char *from = (char *)r->exec.base[op->b_buf] + op->b_off;
    if (op->kind == NBC_OP_FETCH || op->kind == NBC_OP_STORE) {
        int64_t shift = nbc_staged_shift(r->sched->staged, op->buf, op->off + l->type.true_lb);
        char *shadow = to - shift, *user = (char *)user_base(r, op->buf) + op->off;
        to = op->kind == NBC_OP_STORE ? user : shadow;
        from = op->kind == NBC_OP_STORE ? shadow : user;
    }
    *c = (struct shadow_copy){
        .layout = l, .from = from, .to = to, .count = op->count, .due = later(r->op->sim)};
    spoil(c->layout, c->to, c->count);
    *h = (nbc_handle)c | COPY;
    return 0;
}

static bool shadow_copy_ends(struct sim *sim, nbc_handle h)
{
    struct shadow_copy *c = (struct shadow_copy *)(h & ~(nbc_handle)COPY);
    if (c->due > sim->round)
        return false;
    char *data = malloc((size_t)(c->count * c->layout->type.size) + 1);
    layout_pack(c->layout, c->from, c->count, data);
    layout_unpack(c->layout, c->to, c->count, data);
    free(data);
    free(c);
    sim->ntimers--;
    sim->ncompleted++;
    return true;
}

static void sim_release(void *self)
{
    struct sim_rank *r = self;
    const struct nbc_sched *s = r->exec.sched;
    bool last = r->exec.ninflight == 0;
    r->released = true;
    for (int i = 0; i < s->nops - 1; i++)
        last = last && s->ops[i].nsucc_done > 0; /* others, and so this one, wait for it */
    if (!last)
        complain(r->op->sim, "rank %d gives its memory back too early", r->local);
}

static const struct nbc_transport transport = {
    .stage = sim_stage,
    .release = sim_release,
    .send = sim_send,
    .recv = sim_recv,
    .poll = sim_poll,
    .copy = sim_copy,
    .reduce = sim_reduce,
};

/* --- the machine ------------------------------------------------------------------------------ */

struct sim *sim_new(const struct sim_config *config)
{
    struct sim *sim = calloc(1, sizeof *sim);
    sim->config = *config;
    sim->rng.state = config->seed;
    return sim;
}

/* A few ranks come very late: when all others have done what they can. */
static int64_t start_round(struct sim *sim)
{
    int64_t late = sim->config.delay ? rng_below(&sim->rng, sim->config.delay + 1) : 0;
    return sim->round + (late && rng_below(&sim->rng, 8) == 0 ? 10 * late : late);
}

/* A device makes one copy after the other: what is used first comes first. */
static void check_fetches(struct sim_rank *r)
{
    int32_t before = 0;
    for (int id = 0; id < r->runs_as->nops && r->runs_as->ops[id].kind == NBC_OP_FETCH; id++) {
        const struct nbc_op *op = &r->runs_as->ops[id];
        int32_t first = INT32_MAX;
        for (int i = 0; i < op->nsucc_done; i++)
            if (r->runs_as->succ[op->succ + i] < first)
                first = r->runs_as->succ[op->succ + i];
        if (first < before)
            complain(r->op->sim, "rank %d fetches late what operation %d uses", r->local, first);
        before = first;
    }
}

/* The processor reads and writes nothing on a device. Only what has no gaps is copied from there.
 */
static void check_moves(struct sim_rank *r, unsigned buffers)
{
    for (int id = 0; id < r->runs_as->nops; id++) {
        const struct nbc_op *op = &r->runs_as->ops[id];
        bool stores = buffers >> op->buf & 1, fetches = buffers >> op->b_buf & 1;
        if (op->kind == NBC_OP_COPY && (stores || fetches))
            complain(r->op->sim, "rank %d copies on a device", r->local);
        if (op->kind == NBC_OP_MOVE && !stores && !fetches)
            complain(r->op->sim, "rank %d lets a device copy on the host", r->local);
        if (op->kind == NBC_OP_MOVE && fetches && !r->layouts[op->type].type.packed)
            complain(r->op->sim, "rank %d fetches elements with gaps", r->local);
    }
}

/* The staged schedule of a rank whose buffers are a device's, in short pieces; if `direct` and it
 * has one, that for a network which takes them. */
static void stage_rank(struct sim_rank *r, int ntypes, unsigned buffers, bool direct)
{
    enum { PIECE = 40, FAR = 8 };
    struct nbc_type *types = malloc((size_t)ntypes * sizeof *types);
    for (int i = 0; i < ntypes; i++)
        types[i] = r->layouts[i].type;
    struct nbc_sched *sched = (struct nbc_sched *)(uintptr_t)r->sched;
    nbc_staged_of(sched, types, ntypes, FAR);
    direct = direct && nbc_has_direct(sched);
    r->runs_as = nbc_stage(sched, types, ntypes, buffers, direct ? 0 : PIECE);
    for (int buf = 0; buf < 2; buf++) {
        if (buffers >> buf & 1 && !direct)
            r->shadow[buf] = malloc((size_t)nbc_staged_size(sched->staged, buf) + 1);
    }
    free(types);
    if (r->runs_as && direct)
        check_moves(r, buffers);
    else if (r->runs_as)
        check_fetches(r);
}

/* The number of type slots that a schedule uses. */
static int count_types(const struct nbc_sched *s)
{
    int n = NBC_TYPE_FIRST_PEER;
    for (int id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        n = op->kind != NBC_OP_JOIN && op->type >= n ? op->type + 1 : n;
        n = op->kind == NBC_OP_COPY && op->b_type >= n ? op->b_type + 1 : n;
    }
    return n;
}

static void bind_buffers(struct sim_rank *r)
{
    r->released = false;
    for (int buf = 0; buf < 2; buf++) {
        r->exec.base[buf] = user_base(r, buf);
        if (!r->shadow[buf])
            continue;
        const struct nbc_staged *staged = r->sched->staged;
        int64_t low = staged->nparts[buf] > 0 ? staged->parts[buf]->span.low : 0;
        memset(r->shadow[buf], 0xa7, (size_t)nbc_staged_size(staged, buf));
        r->exec.base[buf] = (uintptr_t)r->shadow[buf] - (uintptr_t)low;
    }
}

void sim_add(struct sim *sim, struct sim_rank *ranks, int size, int remote_size)
{
    struct sim_op *op = calloc(1, sizeof *op);
    int n = size + remote_size;
    *op = (struct sim_op){sim, ranks, size, remote_size, sim->ops};
    sim->ops = op;
    sim->order = realloc(sim->order, (size_t)(sim->nranks + n) * sizeof *sim->order);
    for (int i = 0; i < n; i++) {
        struct sim_rank *r = &ranks[i];
        r->op = op;
        r->group = i >= size;
        r->local = r->group ? i - size : i;
        r->run = 0;
        r->live = r->told = false;
        r->start = start_round(sim);
        r->from = calloc((size_t)(size > remote_size ? size : remote_size), sizeof *r->from);
        r->runs_as = r->sched;
        r->shadow[0] = r->shadow[1] = NULL;
        if (sim->config.staged)
            stage_rank(r, count_types(r->sched), (unsigned)rng_below(&sim->rng, 4),
                       rng_below(&sim->rng, 2));
        r->temp = malloc((size_t)r->runs_as->temp_bytes + 1);
        r->memory = malloc(nbc_exec_memory(r->runs_as) + 1);
        nbc_exec_init(&r->exec, r->runs_as, &transport, r, r->memory);
        r->exec.defer = i % 3; /* nothing, all, what is longer than one element */
        r->exec.defer_kinds = (i / 3 % 2) << NBC_OP_SEND | (i / 6 % 2) << NBC_OP_RECV;
        r->exec.base[NBC_BUF_TEMP] = (uintptr_t)r->temp;
        sim->order[sim->nranks++] = r;
        sim->nwaiting++;
    }
}

/* A run is complete: on to the next, or to rest. */
static void end_run(struct sim *sim, struct sim_rank *r)
{
    r->live = false;
    sim->nlive--;
    if (r->exec.ninflight || (r->runs_as != r->sched && !r->released))
        complain(sim, "rank %d is complete with messages under way", r->local);
    if (r->told != (r->exec.error != 0) || r->exec.lost)
        complain(sim, "rank %d ends with error %d", r->local, r->exec.error);
    r->spoiled = r->exec.error != 0;
    if (r->finished)
        r->finished(r, r->run);
    r->told = false;
    r->run++;
    if (r->run >= r->runs)
        return;
    r->start = start_round(sim);
    sim->nwaiting++;
}

static void count_crowd(struct sim_rank *r)
{
    if (r->exec.ninflight > r->crowd)
        r->crowd = r->exec.ninflight;
}

/* What waits for nothing at the start is posted in the order of emission: long messages that the
 * builder emitted later do not hold up short ones. (Nothing is complete yet, so the list of
 * messages under way is in the order in which they were posted.) */
static void check_order_of_posts(struct sim *sim, const struct sim_rank *r)
{
    const struct nbc_exec *e = &r->exec;
    int32_t last = -1;
    for (int i = 0; i < e->ninflight; i++) {
        int32_t id = e->inflight[i];
        if (e->sched->ops[id].kind != NBC_OP_SEND)
            continue;
        if (id < last)
            complain(sim, "rank %d posts send %d behind %d at the start", r->local, (int)id,
                     (int)last);
        last = id;
    }
}

static void sim_step(struct sim *sim, struct sim_rank *r)
{
    if (r->live) {
        bool complete = nbc_exec_poll(&r->exec);
        count_crowd(r);
        if (complete)
            end_run(sim, r);
        return;
    }
    if (r->run >= (r->runs ? r->runs : 1) || r->start > sim->round)
        return;
    memset(r->temp, 0x5a, (size_t)r->runs_as->temp_bytes);
    bind_buffers(r);
    r->live = true;
    sim->nwaiting--;
    sim->nlive++;
    sim->ncompleted++;
    bool complete = nbc_exec_start(&r->exec);
    check_order_of_posts(sim, r);
    count_crowd(r);
    if (complete)
        end_run(sim, r);
}

static void shuffle(struct sim *sim)
{
    for (int i = sim->nranks - 1; i > 0; i--) {
        int j = (int)rng_below(&sim->rng, i + 1);
        struct sim_rank *r = sim->order[i];
        sim->order[i] = sim->order[j];
        sim->order[j] = r;
    }
}

/* Names one message that a stuck rank waits for. */
static void complain_deadlock(struct sim *sim)
{
    for (int i = 0; i < sim->nranks; i++) {
        const struct sim_rank *r = sim->order[i];
        if (!r->live)
            continue;
        const struct nbc_exec *e = &r->exec;
        if (e->ninflight == 0) {
            complain(sim, "deadlock: rank %d has nothing to wait for", r->local);
            return;
        }
        const struct nbc_op *op = &e->sched->ops[e->inflight[0]];
        complain(sim, "deadlock: rank %d of %d, run %d, waits for operation %d (%s rank %d)",
                 r->local, r->op->size, r->run, (int)e->inflight[0],
                 op->kind == NBC_OP_SEND ? "send to" : "receive from", (int)op->peer);
        return;
    }
}

static void complain_leftover(struct sim *sim)
{
    for (int i = 0; i < sim->nranks; i++) {
        const struct sim_rank *r = sim->order[i];
        for (int from = 0;
             from < (r->group || !r->op->remote_size ? r->op->size : r->op->remote_size); from++)
            if (r->from[from].head)
                complain(sim, "rank %d never receives a message from rank %d", r->local, from);
    }
}

const char *sim_run(struct sim *sim)
{
    while ((sim->nlive || sim->nwaiting) && !sim->text[0]) {
        int64_t before = sim->ncompleted;
        shuffle(sim);
        for (int i = 0; i < sim->nranks; i++)
            sim_step(sim, sim->order[i]);
        sim->round++;
        if (sim->ncompleted != before || sim->ntimers || sim->nwaiting)
            continue;
        if (sim->nlive)
            complain_deadlock(sim);
        break;
    }
    if (sim->nmessages)
        complain_leftover(sim);
    return sim->text[0] ? sim->text : NULL;
}

bool sim_failed(const struct sim *sim)
{
    return sim->failed != NULL;
}

/* Messages under way are known to the ranks that wait for them, the others to the channels. */
static void free_messages(struct sim *sim, struct sim_rank *r)
{
    for (int i = 0; i < r->exec.ninflight; i++) {
        if (r->exec.handles[i] & COPY) {
            free((void *)(r->exec.handles[i] & ~(nbc_handle)COPY));
            continue;
        }
        struct message *m = (struct message *)(r->exec.handles[i] & ~(nbc_handle)1);
        enum side side = r->exec.handles[i] & 1;
        m->reported[side] = true;
        if (m->reported[!side] && m->posted[!side])
            free_message(sim, m);
    }
}

static void free_channels(struct sim *sim, struct sim_rank *r, int n)
{
    for (int from = 0; from < n; from++)
        for (struct message *m = r->from[from].head, *next; m; m = next) {
            next = m->next;
            free_message(sim, m);
        }
    free(r->from);
}

void sim_free(struct sim *sim)
{
    for (int i = 0; i < sim->nranks; i++)
        free_messages(sim, sim->order[i]);
    for (int i = 0; i < sim->nranks; i++) {
        struct sim_rank *r = sim->order[i];
        int size = r->op->size, remote = r->op->remote_size;
        free_channels(sim, r, size > remote ? size : remote);
        free(r->temp);
        free(r->memory);
        free(r->shadow[0]);
        free(r->shadow[1]);
    }
    for (struct sim_op *op = sim->ops, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    free(sim->order);
    free(sim);
}
