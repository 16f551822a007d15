/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum state { FRESH, POSTED, ARRIVED, ASKED };

/* Small, since there are tens of millions of them. */
struct op {
    int64_t bytes;
    double at;     /* of receives: the time of the change to this state */
    int32_t peer;  /* with a symmetry: the class of pairs */
    int32_t mate;  /* the matching operation of the peer */
    uint32_t succ; /* index in the list of its rank */
    uint32_t kind : 3, issues : 1, state : 2,
        nsucc : 26; /* the successor that it issues comes first */
    int32_t waits;
};

struct place {
    size_t op, succ, end, succ_end;
};

struct program {
    int size, nranks; /* nranks: added so far */
    int expected;     /* as many are going to be added */
    enum symmetry symmetry;
    struct op *ops;
    int32_t *succ;
    size_t nops, nsucc, ops_room, succ_room;
    struct place *rank;
    int64_t temp;
    char text[160];
};

struct program *program_new(int size, int nranks, enum symmetry symmetry)
{
    struct program *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->size = size;
    p->expected = nranks;
    p->symmetry = symmetry;
    p->rank = malloc((size_t)nranks * sizeof *p->rank);
    if (p->rank)
        return p;
    free(p);
    return NULL;
}

void program_free(struct program *p)
{
    if (!p)
        return;
    free(p->ops);
    free(p->succ);
    free(p->rank);
    free(p);
}

int64_t program_size(const struct program *p)
{
    return p->size;
}

/* Grows by at least a quarter, and as if the remaining ranks were like the previous ones. */
static bool make_room(void **array, size_t n, size_t more, size_t *room, size_t element,
                      const struct program *p)
{
    if (n + more <= *room)
        return true;
    size_t want = n + n / 4 + more;
    size_t guess = (size_t)((double)(n + more) / (p->nranks + 1) * 1.02 * p->expected);
    if (p->nranks > 64 && guess > want)
        want = guess;
    void *larger = realloc(*array, want * element);
    if (!larger)
        return false;
    *array = larger;
    *room = want;
    return true;
}

static bool is_message(const struct op *op)
{
    return op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV;
}

int symmetry_digits(int size, int *radix)
{
    static const int usable[] = {4, 2, 3, 5, 7};
    int n = 0;
    for (int i = 0; i < 5; i++)
        for (; size % usable[i] == 0; size /= usable[i])
            radix[n++] = usable[i];
    return size == 1 ? n : 0;
}

/* Negative if the ranks differ in several digits. */
static int digit_class(int size, int from, int to)
{
    int radix[MOST_DIGITS], class = -1;
    int n = symmetry_digits(size, radix);
    for (int t = 0; t < n; from /= radix[t], to /= radix[t], t++) {
        int distance = (to % radix[t] - from % radix[t] + radix[t]) % radix[t];
        if (distance && class >= 0)
            return -1;
        if (distance)
            class = 8 * t + distance;
    }
    return class;
}

int symmetry_class(enum symmetry symmetry, int size, int rank, int peer, bool sends)
{
    switch (symmetry) {
    case ROTATION:
        return (sends ? peer - rank + size : rank - peer + size) % size;
    case MIRROR:
        if ((peer - rank) % 2 == 0)
            return -1 - rank; /* the two ends would disagree: there is no symmetry */
        return (rank % 2 == 0 ? peer - rank + size : rank - peer + size) % size;
    case CUBE:
        return peer ^ rank;
    case DIGITWISE:
        return sends ? digit_class(size, rank, peer) : digit_class(size, peer, rank);
    default:
        return peer;
    }
}

bool program_add(struct program *p, const struct nbc_sched *s, const struct nbc_shape *shape)
{
    if (!make_room((void **)&p->ops, p->nops, s->nops, &p->ops_room, sizeof *p->ops, p) ||
        !make_room((void **)&p->succ, p->nsucc, s->nsucc, &p->succ_room, sizeof *p->succ, p))
        return false;
    struct op *to = p->ops + p->nops;
    for (int i = 0; i < s->nops; i++) {
        const struct nbc_op *from = &s->ops[i];
        bool message = from->kind == NBC_OP_SEND || from->kind == NBC_OP_RECV;
        to[i] = (struct op){
            .bytes = from->kind == NBC_OP_JOIN ? 0 : nbc_ref_bytes(shape, nbc_op_a(from)),
            .peer = message ? symmetry_class(p->symmetry, p->size, shape->rank, from->peer,
                                             from->kind == NBC_OP_SEND)
                            : -1,
            .mate = -1,
            .succ = (uint32_t)from->succ,
            .kind = (uint32_t)from->kind & 7,
            .issues = from->nsucc_issue > 0,
            .nsucc = (uint32_t)(from->nsucc_issue + from->nsucc_done) & 0x3ffffff};
    }
    if (s->nsucc > 0)
        memcpy(p->succ + p->nsucc, s->succ, (size_t)s->nsucc * sizeof *s->succ);
    p->rank[p->nranks++] =
        (struct place){p->nops, p->nsucc, p->nops + (size_t)s->nops, p->nsucc + (size_t)s->nsucc};
    p->nops += (size_t)s->nops;
    p->nsucc += (size_t)s->nsucc;
    p->temp = s->temp_bytes > p->temp ? s->temp_bytes : p->temp;
    return true;
}

static struct op *op_at(const struct program *p, int rank, int k)
{
    return &p->ops[p->rank[rank].op + (size_t)k];
}

/* Returns the simulated rank that is the peer of an operation. */
static int peer_of(const struct program *p, int rank, const struct op *op)
{
    return p->symmetry == NONE ? op->peer : rank;
}

/* --- matching --------------------------------------------------------------------------------- */

struct index {
    int32_t peer, op;
};

static int by_peer(const void *x, const void *y)
{
    const struct index *a = x, *b = y;
    if (a->peer != b->peer)
        return a->peer < b->peer ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

/* The sends, or the receives, of a rank, sorted by peer and for each peer in order. */
static int list_messages(const struct program *p, int rank, enum nbc_op_kind kind,
                         struct index *list)
{
    int n = 0;
    bool sorted = true;
    for (int k = 0; k < program_steps(p, rank); k++) {
        const struct op *op = op_at(p, rank, k);
        if (op->kind != (uint32_t)kind)
            continue;
        sorted = sorted && (n == 0 || list[n - 1].peer <= op->peer);
        list[n++] = (struct index){op->peer, k};
    }
    if (!sorted)
        qsort(list, (size_t)n, sizeof *list, by_peer);
    return n;
}

static const char *complain(struct program *p, const char *what, int from, int to)
{
    snprintf(p->text, sizeof p->text, "%s, from rank %d to %d", what, from, to);
    return p->text;
}

/* The sorted receives of all ranks, in which each send finds its match by binary search. */
struct receives {
    struct index *list;
    size_t *first; /* per rank */
};

static int index_find(const struct index *list, size_t n, int peer)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list[middle].peer < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return (int)low;
}

static const char *match_rank(struct program *p, int rank, const struct receives *r,
                              const struct index *sends, int n)
{
    int at = 0, base = 0;
    for (int i = 0; i < n; i++) {
        struct op *send = op_at(p, rank, sends[i].op);
        int to = peer_of(p, rank, send), from = p->symmetry == NONE ? rank : send->peer;
        if (to < 0 || to >= p->nranks)
            return complain(p, "an invalid peer", rank, send->peer);
        const struct index *list = r->list + r->first[to];
        size_t nlist = r->first[to + 1] - r->first[to];
        if (i == 0 || sends[i].peer != sends[i - 1].peer) {
            base = index_find(list, nlist, from);
            at = base;
        }
        if ((size_t)at >= nlist || list[at].peer != from)
            return complain(p, "a send without a matching receive", rank, send->peer);
        struct op *recv = op_at(p, to, list[at].op);
        if (recv->bytes != send->bytes)
            return complain(p, "a send and a receive of different sizes", rank, send->peer);
        send->mate = list[at].op;
        recv->mate = sends[i].op;
        at++;
    }
    return NULL;
}

static const char *match_all(struct program *p, struct receives *r, struct index *sends)
{
    size_t n = 0;
    for (int rank = 0; rank < p->nranks; rank++) {
        r->first[rank] = n;
        n += (size_t)list_messages(p, rank, NBC_OP_RECV, r->list + n);
    }
    r->first[p->nranks] = n;
    for (int rank = 0; rank < p->nranks; rank++) {
        int nsends = list_messages(p, rank, NBC_OP_SEND, sends);
        const char *wrong = match_rank(p, rank, r, sends, nsends);
        if (wrong)
            return wrong;
    }
    for (int rank = 0; rank < p->nranks; rank++)
        for (int k = 0; k < program_steps(p, rank); k++) {
            const struct op *op = op_at(p, rank, k);
            if (op->kind == NBC_OP_RECV && op->mate < 0)
                return complain(p, "a receive without a matching send", op->peer, rank);
        }
    return NULL;
}

const char *program_match(struct program *p)
{
    size_t nrecvs = 0;
    int most = 1;
    for (size_t i = 0; i < p->nops; i++)
        nrecvs += p->ops[i].kind == NBC_OP_RECV;
    for (int rank = 0; rank < p->nranks; rank++)
        most = program_steps(p, rank) > most ? program_steps(p, rank) : most;
    struct receives r = {malloc((nrecvs + 1) * sizeof *r.list),
                         malloc(((size_t)p->nranks + 1) * sizeof *r.first)};
    struct index *sends = malloc((size_t)most * sizeof *sends);
    const char *wrong = "out of memory";
    if (r.list && r.first && sends)
        wrong = match_all(p, &r, sends);
    free(sends);
    free(r.first);
    free(r.list);
    return wrong;
}

/* --- events ----------------------------------------------------------------------------------- */

enum what {
    INJECT, /* the processor is done with a send, which may use the port */
    ASK,    /* a rendezvous request arrives at the receiver */
    HEAD,   /* a message begins to arrive */
    LAND,   /* it has arrived */
    DONE
};

struct event {
    double time;
    uint64_t order; /* breaks ties: first come, first served */
    int32_t rank;
    int32_t op;
    int32_t what;
};

/* The port to the network, or that of a rank to the other ranks of its node. */
struct port {
    double out, in; /* busy until */
};

struct cause {
    int32_t rank, op;
    double done;
};

struct run {
    struct program *p;
    const struct network *net;
    struct event *heap;
    size_t nheap, heap_room;
    uint64_t order;
    double *cpu; /* per rank: busy until */
    struct port *within, *between;
    struct index *stack;                /* operations that may start now: rank, operation */
    size_t nstack, started, stack_room; /* started: as many of them have */
    struct cause *cause;                /* per operation, if the path is requested */
    struct index *last;                 /* per rank: the last operation of its processor */
    uint64_t random;
    double now;
    size_t left;
    int32_t last_rank, last_op;
    double end;
    bool failed;
};

static bool before(const struct event *x, const struct event *y)
{
    return x->time < y->time || (x->time == y->time && x->order < y->order);
}

static void push(struct run *r, double time, int rank, int op, enum what what)
{
    if (r->nheap == r->heap_room) {
        struct event *more = realloc(r->heap, 2 * r->heap_room * sizeof *more);
        if (!more) {
            r->failed = true;
            return;
        }
        r->heap = more;
        r->heap_room *= 2;
    }
    struct event e = {time, r->order++, rank, op, what};
    size_t i = r->nheap++;
    while (i > 0 && before(&e, &r->heap[(i - 1) / 2])) {
        r->heap[i] = r->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    r->heap[i] = e;
}

static struct event pop(struct run *r)
{
    struct event top = r->heap[0], e = r->heap[--r->nheap];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < r->nheap) {
        if (child + 1 < r->nheap && before(&r->heap[child + 1], &r->heap[child]))
            child++;
        if (!before(&r->heap[child], &e))
            break;
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = e;
    return top;
}

static double stretched(struct run *r, double time)
{
    if (r->net->noise == 0)
        return time;
    r->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = r->random;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return time * (1 - r->net->noise * log(((double)(x >> 11) + 0.5) / 9007199254740992.0));
}

static bool same_node(const struct run *r, const struct op *op, int rank)
{
    int ppn = r->net->ppn;
    return r->p->symmetry == NONE ? op->peer / ppn == rank / ppn : r->p->size <= ppn;
}

static const struct link *link_of(const struct run *r, const struct op *op, int rank)
{
    return same_node(r, op, rank) ? &r->net->within : &r->net->between;
}

static struct port *port_of(const struct run *r, const struct op *op, int rank)
{
    if (same_node(r, op, rank))
        return &r->within[rank];
    return &r->between[r->net->own_ports ? rank : rank / r->net->ppn];
}

static double wire(const struct link *l, const struct op *op)
{
    return op->bytes > 1 ? (double)(op->bytes - 1) * l->G : 0;
}

static struct cause *cause_of(struct run *r, int rank, int op)
{
    return &r->cause[r->p->rank[rank].op + (size_t)op];
}

static void blame(struct run *r, int rank, int op, int on_rank, int on_op)
{
    if (r->cause) {
        cause_of(r, rank, op)->rank = on_rank;
        cause_of(r, rank, op)->op = on_op;
    }
}

/* Occupies the processor for the next free `time` seconds. Returns their end. */
static double work(struct run *r, int rank, int op, double time)
{
    bool busy = r->cpu[rank] > r->now;
    if (busy && r->cause)
        blame(r, rank, op, r->last[rank].peer, r->last[rank].op);
    r->cpu[rank] = (busy ? r->cpu[rank] : r->now) + stretched(r, time);
    if (r->cause)
        r->last[rank] = (struct index){rank, op};
    return r->cpu[rank];
}

/* As in the executor, what may start at the same time starts in the order of emission. All of it is
 * of one rank. */
static void may_start(struct run *r, int rank, int op)
{
    if (r->nstack == r->stack_room) {
        struct index *more = realloc(r->stack, 2 * r->stack_room * sizeof *more);
        if (!more) {
            r->failed = true;
            return;
        }
        r->stack = more;
        r->stack_room *= 2;
    }
    size_t at = r->nstack++;
    for (; at > r->started && r->stack[at - 1].op > op; at--)
        r->stack[at] = r->stack[at - 1];
    r->stack[at] = (struct index){rank, op};
}

/* Satisfies the edges from..to of an operation. */
static void release(struct run *r, int rank, int id, uint32_t from, uint32_t to)
{
    const struct op *op = op_at(r->p, rank, id);
    const int32_t *succ = r->p->succ + r->p->rank[rank].succ + op->succ;
    for (uint32_t i = from; i < to; i++)
        if (--op_at(r->p, rank, succ[i])->waits == 0) {
            blame(r, rank, succ[i], rank, id);
            may_start(r, rank, succ[i]);
        }
}

static void finish(struct run *r, int rank, int id)
{
    const struct op *op = op_at(r->p, rank, id);
    if (r->now >= r->end) {
        r->end = r->now;
        r->last_rank = rank;
        r->last_op = id;
    }
    if (r->cause)
        cause_of(r, rank, id)->done = r->now;
    r->left--;
    release(r, rank, id, op->issues, op->nsucc);
}

static void land(struct run *r, int rank, int id, struct op *op)
{
    push(r, work(r, rank, id, link_of(r, op, rank)->o), rank, id, DONE);
}

/* The time in which a request for a rendezvous, or its answer, reaches the other side. */
static double half_handshake(const struct run *r, const struct op *op, int rank)
{
    double time = same_node(r, op, rank) ? 0 : r->net->handshake;
    return time > 0 ? time / 2 : link_of(r, op, rank)->L;
}

/* The receiver answers a rendezvous request. */
static void invite(struct run *r, int rank, struct op *op)
{
    push(r, r->now + half_handshake(r, op, rank), peer_of(r->p, rank, op), op->mate, INJECT);
}

static void start_recv(struct run *r, int rank, int id, struct op *op)
{
    enum state was = op->state;
    op->state = POSTED;
    op->at = r->now;
    if (was == ARRIVED)
        land(r, rank, id, op);
    else if (was == ASKED)
        invite(r, rank, op);
}

static void start_send(struct run *r, int rank, int id, const struct op *op)
{
    const struct link *l = link_of(r, op, rank);
    double sent = work(r, rank, id, l->o);
    if (op->bytes <= r->net->eager)
        push(r, sent, rank, id, INJECT);
    else
        push(r, sent + half_handshake(r, op, rank), peer_of(r->p, rank, op), op->mate, ASK);
}

static void op_start(struct run *r, int rank, int id)
{
    struct op *op = op_at(r->p, rank, id);
    switch (op->kind) {
    case NBC_OP_SEND:
        start_send(r, rank, id, op);
        break;
    case NBC_OP_RECV:
        start_recv(r, rank, id, op);
        break;
    case NBC_OP_COPY:
        push(r, work(r, rank, id, (double)op->bytes * r->net->copy), rank, id, DONE);
        break;
    case NBC_OP_REDUCE:
        push(r, work(r, rank, id, (double)op->bytes * r->net->reduce), rank, id, DONE);
        break;
    default:
        finish(r, rank, id);
    }
    release(r, rank, id, 0, op->issues);
}

static void inject(struct run *r, int rank, int id, const struct op *op)
{
    const struct link *l = link_of(r, op, rank);
    struct port *port = port_of(r, op, rank);
    double begin = port->out > r->now ? port->out : r->now, end = begin + wire(l, op);
    port->out = end + l->g;
    push(r, end, rank, id, DONE);
    push(r, begin + stretched(r, l->L), peer_of(r->p, rank, op), op->mate, HEAD);
}

static void arrive(struct run *r, int rank, int id, const struct op *op)
{
    const struct link *l = link_of(r, op, rank);
    struct port *port = port_of(r, op, rank);
    double end = (port->in > r->now ? port->in : r->now) + wire(l, op);
    port->in = end + l->g;
    push(r, end, rank, id, LAND);
}

/* A message arrives at a receive, no earlier than that is posted. */
static void reach(struct run *r, const struct event *e, struct op *op)
{
    bool asks = e->what == ASK;
    if (op->state != POSTED) {
        op->state = asks ? ASKED : ARRIVED;
        op->at = r->now;
        return;
    }
    blame(r, e->rank, e->op, peer_of(r->p, e->rank, op), op->mate);
    if (asks)
        invite(r, e->rank, op);
    else
        land(r, e->rank, e->op, op);
}

static void handle(struct run *r, const struct event *e)
{
    struct op *op = op_at(r->p, e->rank, e->op);
    r->now = e->time;
    switch (e->what) {
    case INJECT:
        inject(r, e->rank, e->op, op);
        break;
    case HEAD:
        arrive(r, e->rank, e->op, op);
        break;
    case DONE:
        finish(r, e->rank, e->op);
        break;
    default:
        reach(r, e, op);
    }
}

static void start_all(struct run *r)
{
    while (r->started < r->nstack) {
        struct index next = r->stack[r->started++];
        op_start(r, next.peer, next.op);
    }
    r->nstack = r->started = 0;
}

static void reset(struct program *p)
{
    for (size_t i = 0; i < p->nops; i++) {
        p->ops[i].waits = 0;
        p->ops[i].state = FRESH;
    }
    for (int rank = 0; rank < p->nranks; rank++)
        for (size_t i = p->rank[rank].succ; i < p->rank[rank].succ_end; i++)
            op_at(p, rank, p->succ[i])->waits++;
}

static void simulate(struct run *r)
{
    struct program *p = r->p;
    reset(p);
    r->left = p->nops;
    for (int rank = 0; rank < p->nranks; rank++) {
        for (int k = 0; k < program_steps(p, rank); k++)
            if (op_at(p, rank, k)->waits == 0) {
                blame(r, rank, k, -1, -1);
                may_start(r, rank, k);
            }
        /* Only these: they may release others that start now. */
        start_all(r);
    }
    while (r->nheap && !r->failed) {
        struct event e = pop(r);
        handle(r, &e);
        start_all(r);
    }
}

/* Follows the critical path from the operation that ended last to the one that it waited for, and
 * so on. */
static void follow_path(struct run *r, struct result *result)
{
    struct path *path = &result->path;
    double spent = 0;
    int rank = r->last_rank, id = r->last_op;
    *path = (struct path){0};
    while (rank >= 0) {
        const struct op *op = op_at(r->p, rank, id);
        const struct cause *c = cause_of(r, rank, id);
        const struct link *l = is_message(op) ? link_of(r, op, rank) : NULL;
        bool crossed =
            op->kind == NBC_OP_RECV && c->rank == peer_of(r->p, rank, op) && c->op == op->mate;
        if (crossed) {
            path->messages++;
            path->bytes += op->bytes;
            spent += l->L + wire(l, op);
        }
        if (l)
            spent += l->o;
        path->reduced += op->kind == NBC_OP_REDUCE ? op->bytes : 0;
        path->copied += op->kind == NBC_OP_COPY ? op->bytes : 0;
        rank = c->rank;
        id = c->op;
    }
    spent += (double)path->reduced * r->net->reduce + (double)path->copied * r->net->copy;
    result->waited = result->time > spent ? result->time - spent : 0;
}

static void count(const struct program *p, struct result *result)
{
    result->messages = result->most_bytes = 0;
    result->bytes = 0;
    for (int rank = 0; rank < p->nranks; rank++) {
        int64_t bytes[2] = {0};
        for (int k = 0; k < program_steps(p, rank); k++) {
            const struct op *op = op_at(p, rank, k);
            result->messages += op->kind == NBC_OP_SEND;
            if (is_message(op))
                bytes[op->kind == NBC_OP_SEND] += op->bytes;
        }
        result->bytes += (double)bytes[1];
        for (int i = 0; i < 2; i++)
            result->most_bytes = bytes[i] > result->most_bytes ? bytes[i] : result->most_bytes;
    }
    if (p->symmetry != NONE) {
        result->messages = result->messages / p->nranks * p->size;
        result->bytes = result->bytes / p->nranks * p->size;
    }
    result->temp = p->temp;
}

static bool prepare(struct run *r, bool path)
{
    size_t n = (size_t)r->p->nranks;
    r->heap_room = r->stack_room = 1024;
    r->heap = malloc(r->heap_room * sizeof *r->heap);
    r->stack = malloc(r->stack_room * sizeof *r->stack);
    r->cpu = calloc(n, sizeof *r->cpu);
    r->within = calloc(n, sizeof *r->within);
    r->between = calloc(n, sizeof *r->between);
    bool good = r->heap && r->stack && r->cpu && r->within && r->between;
    if (!path)
        return good;
    r->cause = malloc((r->p->nops + 1) * sizeof *r->cause);
    r->last = malloc(n * sizeof *r->last);
    return good && r->cause && r->last;
}

const char *program_run(struct program *p, const struct network *net, bool path,
                        struct result *result)
{
    struct run r = {.p = p, .net = net, .random = net->seed, .last_rank = -1};
    const char *wrong = NULL;
    if (!prepare(&r, path))
        r.failed = true;
    else
        simulate(&r);
    if (r.failed)
        wrong = "out of memory";
    else if (r.left)
        wrong = "deadlock: the ranks wait for each other";
    result->time = r.end;
    count(p, result);
    if (!wrong && path)
        follow_path(&r, result);
    free(r.heap);
    free(r.stack);
    free(r.cpu);
    free(r.within);
    free(r.between);
    free(r.cause);
    free(r.last);
    return wrong;
}

/* --- for those who write programs out --------------------------------------------------------- */

int program_steps(const struct program *p, int rank)
{
    return (int)(p->rank[rank].end - p->rank[rank].op);
}

struct step program_step(const struct program *p, int rank, int k)
{
    const struct op *op = op_at(p, rank, k);
    struct step step = {(enum nbc_op_kind)op->kind, op->peer, 0, op->bytes};
    for (int i = 0; i < k && is_message(op); i++) {
        const struct op *other = op_at(p, rank, i);
        step.nth += other->kind == op->kind && other->peer == op->peer;
    }
    return step;
}

void program_edges(const struct program *p, int rank,
                   void (*edge)(void *self, int first, int second, bool issue), void *self)
{
    for (int k = 0; k < program_steps(p, rank); k++) {
        const struct op *op = op_at(p, rank, k);
        const int32_t *succ = p->succ + p->rank[rank].succ + op->succ;
        for (uint32_t i = 0; i < op->nsucc; i++)
            edge(self, k, succ[i], i < op->issues);
    }
}
