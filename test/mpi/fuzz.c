/* SPDX-License-Identifier: MIT */
/* Runs random programs (common/program.h) of collectives, communicators, messages, completions,
 * frees and restarts. Every result is compared with the definition of the collective.
 *
 *     fuzz [--seed=N] [--programs=N | --seconds=N] [--lines=N] [--threads=N] [--print]
 *     fuzz --program=FILE
 *
 * test/fuzz runs it again and again, and makes the program that fails small. --break=COLLECTIVE
 * spoils the results of that collective's persistent operations at their second start, so that the
 * test of test/fuzz has something to find. */
#include "fuzz.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PENDING = 60, MOST_IN_BLOCK = 12000 };

int threads;
_Thread_local int thread_number;
_Thread_local struct pool *pool;
_Thread_local struct rng own;
static enum coll broken = NCOLLS;

/* --- requests ----------------------------------------------------------------------------------*/

void drop_item(int place)
{
    struct item *item = pool->item[place];

    if (item->persistent)
        MPI_Request_free(&pool->request[place]);
    EXPECT(pool->request[place] == MPI_REQUEST_NULL, "a request that is gone is not null");
    if (item->testcase)
        case_delete(item->testcase);
    else if (item->other)
        other_delete(item->other);
    else if (item->sum)
        free(item->sum);
    else
        message_clear(&item->message);
    free(item);
    pool_remove(pool, place);
}

/* What nbcshim promises of its own operations. */
static void check_empty(const MPI_Status *status)
{
    int n, cancelled;

    if (!status || test_native)
        return;
    MPI_Get_count(status, MPI_BYTE, &n);
    MPI_Test_cancelled(status, &cancelled);
    EXPECT(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && n == 0 &&
               !cancelled,
           "the status of a collective says %d bytes from %d, tag %d, cancelled %d", n,
           status->MPI_SOURCE, status->MPI_TAG, cancelled);
}

static void finished(struct pool *p, int i, const MPI_Status *status)
{
    struct item *item = p->item[i];

    if (item->testcase || item->sum)
        check_empty(status);
    if (item->testcase)
        case_check(item->testcase, item->persistent ? "persistent" : "nonblocking");
    else if (item->other)
        other_check(item->other, status);
    else if (item->sum)
        sum_check(item->sum);
    else if (item->cancelled)
        check_cancelled(status);
    else if (!item->makes)
        check_message(item->comm, &item->message, status);
    EXPECT(!item->testcase || item->coll != broken || item->starts < 2,
           "this is what --break breaks");
    if (!item->persistent)
        drop_item(i);
}

struct item *item_new(const struct line *line, struct comm *c)
{
    struct item *item = test_alloc(sizeof *item);

    *item = (struct item){.id = line->id, .comm = c, .coll = NCOLLS};
    item->persistent = line->verb == INIT || line->verb == MESSAGE_INIT;
    return item;
}

bool item_is_message(const struct item *item)
{
    return !item->testcase && !item->other && !item->sum && !item->makes;
}

/* For arrays that have requests of one sort: ours, messages, or others. */
static int sort_of(const void *item)
{
    const struct item *i = item;

    return i->other ? 2 : item_is_message(i);
}

/* Callbacks complete nothing that is being completed. */
static _Thread_local bool completing;

void complete(bool block)
{
    if (completing)
        return;
    completing = true;
    others_go_on(block ? 100 : 20); /* a call that waits may wait for them */
    pool_complete(pool, &own, block, finished);
    completing = false;
}

static void drain(int rest)
{
    completing = true;
    others_go_on(100);
    pool_drain(pool, &own, rest, finished);
    completing = false;
}

/* --- collectives -------------------------------------------------------------------------------*/

/* One for each rank, or each neighbor. */
static bool has_many_blocks(int64_t coll)
{
    return coll >= GATHER && coll != REDUCE && coll != ALLREDUCE && coll != SCAN && coll != EXSCAN;
}

static bool make_spec(const struct line *line, const struct comm *c, struct spec *spec)
{
    const struct group *g = c->group;

    if ((line->coll >= NINTRA && !g->topology) || (line->coll >= SCAN && g->remote))
        return false;
    int64_t most = line->most;

    if (has_many_blocks(line->coll) && most > MOST_IN_BLOCK)
        most /= group_total(g);
    *spec = spec_random((enum coll)line->coll, g, (uint64_t)line->seed, (int)most);
    spec->in_place = spec->in_place && !line->apart;
    spec->style.plain = spec->style.plain || line->plain;
#ifdef MPICH_VERSION
    /* With some hundred types alive MPI_Pack of MPICH 4.0.2 stops early and tells of no error. */
    spec->style.plain = spec->style.plain || line->verb == BURST;
#endif
    return true;
}

static void start_collective(const struct line *line, struct comm *c, const struct spec *spec,
                             int round)
{
    MPI_Request request = MPI_REQUEST_NULL;
    bool persistent = line->verb == INIT;
    struct item *item = item_new(line, c);
    MPI_Info info = make_info(line);

    item->coll = spec->coll;
    item->testcase = case_new(spec);
    case_fill(item->testcase, round);
    case_expect(item->testcase,
                case_call(item->testcase, persistent ? PERSISTENT : NONBLOCKING, info, &request),
                "call");
    case_drop(item->testcase);
    MPI_Info_free(&info);
    pool_add(pool, request, item, !persistent);
}

/* The blocking collectives of Open MPI 4.1.4 fail between groups, and with other arguments than
 * these. */
static bool of_the_mpi(const struct line *line, struct spec *spec)
{
#ifdef OPEN_MPI
    if (line->verb == RUN && !test_native && test_blocking_is_native()) {
        spec->in_place = false;
        spec->style.plain = true;
        return spec->group->remote || spec->coll >= NINTRA;
    }
#endif
    (void)line, (void)spec;
    return false;
}

/* A burst is more than nbcshim has under way on a communicator; the plan is the same for all. */
static void do_collective(const struct line *line, struct comm *c)
{
    struct spec spec;

    if (!make_spec(line, c, &spec) || (line->verb == INIT && !test_has_persistent()) ||
        of_the_mpi(line, &spec))
        return;
    mark_types(line->way % 2);
    if (line->verb == RUN)
        case_run(&spec, BLOCKING);
    else if (line->verb == BURST)
        for (int i = 0; i < line->times; i++)
            start_collective(line, c, &spec, i);
    else
        start_collective(line, c, &spec, line->verb == INIT ? -1 : 0);
    mark_types(false);
}

/* --- persistent requests -----------------------------------------------------------------------*/

/* Places of the requests of a line. */
static int places_of(const struct line *line, int *place)
{
    int n = 0;

    for (int i = 0; i < line->nof; i++)
        for (int k = 0; k < pool->n; k++) {
            const struct item *item = pool->item[k];
            if (item && item->persistent && item->id == line->of[i] && !item->released)
                place[n++] = k;
        }
    return n;
}

static const struct line *line_of_item(const struct program *p, const struct item *item)
{
    for (int i = 0; i < p->n; i++)
        if (p->line[i].id == item->id && p->line[i].verb == MESSAGE_INIT)
            return &p->line[i];
    return NULL;
}

static void fill_item(const struct program *p, struct item *item)
{
    item->starts++;
    if (item->testcase)
        case_fill(item->testcase, item->starts);
    else
        fill_message(line_of_item(p, item), item->comm, &item->message, item->starts);
}

static void start_places(const int *place, int n)
{
    MPI_Request request[2 * MAX_OF];

    for (int i = 0; i < n; i++)
        request[i] = pool->request[place[i]];
    if (n == 1)
        MPI_Start(request);
    else
        MPI_Startall(n, request);
    for (int i = 0; i < n; i++) {
        EXPECT(request[i] == pool->request[place[i]], "a start has changed a handle");
        pool_started(pool, place[i]);
    }
}

/* One request is started again when it is complete; all ranks have started it by then. The order
 * of starts is this rank's own. */
static void do_start(const struct program *p, const struct line *line)
{
    int place[2 * MAX_OF], n = places_of(line, place);

    for (int i = 0; i < n; i++)
        while (pool->active[place[i]])
            complete(true);
    for (int i = 0; i < n; i++)
        fill_item(p, pool->item[place[i]]);
    rng_shuffle(&own, place, n);
    for (int i = 0; i < n;) {
        int together = 1 + rng_below(&own, n - i);
        start_places(place + i, together);
        i += together;
        if (rng_chance(&own, 30)) /* not all are started yet: no call that waits */
            complete(false);
    }
}

/* Each rank frees them in its own time. */
static void do_release(const struct line *line)
{
    int place[2 * MAX_OF], n = places_of(line, place);

    for (int i = 0; i < n; i++)
        ((struct item *)pool->item[place[i]])->released = true;
}

static void free_released(int percent)
{
    for (int i = 0; i < pool->n; i++) {
        const struct item *item = pool->item[i];
        if (item && item->released && !pool->active[i] && rng_chance(&own, percent))
            drop_item(i);
    }
}

static void do_complete(const struct line *line)
{
    for (int64_t i = 0; i < line->times; i++)
        complete(rng_chance(&own, 30));
    free_released(30);
}

/* --- programs ----------------------------------------------------------------------------------*/

static void (*const on_comm[NVERBS])(const struct line *line, struct comm *c) = {
    [DUP] = do_constructor,      [IDUP] = do_constructor,
    [SPLIT] = do_constructor,    [SPLIT_TYPE] = do_constructor,
    [CREATE] = do_constructor,   [TOPOLOGY] = do_constructor,
    [SUB] = do_constructor,      [INTER] = do_constructor,
    [MERGE] = do_constructor,    [FREE] = do_free,
    [DISCONNECT] = do_free,      [HINT] = do_hint,
    [ATTRIBUTE] = do_attribute,  [CALL] = do_collective,
    [RUN] = do_collective,       [INIT] = do_collective,
    [BURST] = do_collective,     [MESSAGE] = do_message,
    [MESSAGE_INIT] = do_message, [SENDRECV] = do_sendrecv,
    [PROBE] = do_probe,          [GIVE_UP] = do_give_up,
    [OTHER] = do_other,
};

static bool for_absent_too(int64_t verb)
{
    return verb <= DISCONNECT;
}

static bool makes_comm(int64_t verb)
{
    return verb < FREE;
}

static void execute(const struct program *p, const struct line *line)
{
    struct comm *c = comm_find(line->on);

    if (c)
        settle(c);
    if (line->verb == START)
        do_start(p, line);
    else if (line->verb == RELEASE)
        do_release(line);
    else if (line->verb == COMPLETE)
        do_complete(line);
    else if (line->verb == DRAIN)
        drain((int)line->times);
    else if (c && (c->group->comm != MPI_COMM_NULL || for_absent_too(line->verb)))
        on_comm[line->verb](line, c);
}

static void clean_up(void)
{
    drain(0);
    settle_all();
    for (int i = 0; i < pool->n; i++)
        if (pool->item[i])
            drop_item(i);
    comms_free();
    drain(0); /* what callbacks have started */
}

static void run_line(const struct program *p, int i)
{
    char text[400];

    line_print(&p->line[i], text, sizeof text);
    test_place("line %d: %s", i + 1, text);
    own = (struct rng){mix_in((uint64_t)p->line[i].seed, test_rank)};
    attributes_at(&p->line[i]);
    if (rng_chance(&own, 3)) /* ranks are apart now and then */
        usleep((useconds_t)rng_below(&own, 300));
    execute(p, &p->line[i]);
    if (pool->nactive > MOST_PENDING)
        drain(MOST_PENDING / 2);
}

/* What one thread does. */
struct task {
    pthread_t thread;
    const struct program *program;
    int number;
    MPI_Comm comm; /* its communicator 0 */
    pthread_barrier_t *turn;
};

/* Open MPI 4.1.4 hangs when two threads make communicators at once: there one thread after the
 * other makes all of its own first. */
static bool makes_first(const struct task *t)
{
#ifdef OPEN_MPI
    const struct program *p = t->program;

    if (threads == 1)
        return false;
    for (int turn = 0; turn < threads; turn++) {
        for (int i = 0; i < p->n && turn == t->number; i++)
            if (p->line[i].thread == turn && makes_comm(p->line[i].verb))
                run_line(p, i);
        pthread_barrier_wait(t->turn);
    }
    return true;
#else
    (void)t;
    return false;
#endif
}

static void *run_task(void *argument)
{
    const struct task *t = argument;
    const struct program *p = t->program;
    bool made;

    thread_number = t->number;
    pool = pool_new();
    pool->sort = sort_of;
    comm_add(&(struct line){.id = 0}, t->comm);
    made = makes_first(t);
    for (int i = 0; i < p->n; i++)
        if (p->line[i].thread == t->number && !(made && makes_comm(p->line[i].verb)))
            run_line(p, i);
    test_place("the end");
    clean_up();
    pool_delete(pool);
    return NULL;
}

static void run_program(const struct program *p)
{
    struct task *task;
    pthread_barrier_t turn;

    threads = program_threads(p);
    task = test_alloc((size_t)threads * sizeof *task);
    pthread_barrier_init(&turn, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        task[i] = (struct task){.program = p, .number = i, .comm = MPI_COMM_WORLD, .turn = &turn};
        if (i > 0)
            MPI_Comm_dup(MPI_COMM_WORLD, &task[i].comm);
    }
    others_begin(p);
    for (int i = 1; i < threads; i++)
        pthread_create(&task[i].thread, NULL, run_task, &task[i]);
    run_task(&task[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(task[i].thread, NULL);
    others_end();
    gone_end(p);
    attributes_check();
    pthread_barrier_destroy(&turn);
    free(task);
}

/* --- the main job ------------------------------------------------------------------------------*/

struct settings {
    const char *file;
    struct program program; /* read from it */
    int programs, seconds, lines, threads;
    bool print;
};

static struct program make_program(const struct settings *s)
{
    return program_random(test_seed, s->threads > 1 ? s->lines / 2 : s->lines, s->threads);
}

/* The sum over all ranks, by messages of the MPI's own. */
static int sum_of_all(int value)
{
    int other;

    for (int i = 1; i < test_size; i++) {
        if (test_rank == 0) {
            MPI_Recv(&other, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            value += other;
        } else if (test_rank == i) {
            MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
    }
    for (int i = 1; i < test_size; i++) {
        if (test_rank == 0)
            MPI_Send(&value, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
        else if (test_rank == i)
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return value;
}

static void print_program(const struct program *p)
{
    char text[400];

    for (int i = 0; i < p->n; i++) {
        line_print(&p->line[i], text, sizeof text);
        puts(text);
    }
}

/* Programs of consecutive seeds, until one fails. */
static void run_many(const struct settings *s)
{
    time_t end = time(NULL) + s->seconds;
    int done = 0;

    while (s->seconds ? sum_of_all(test_rank == 0 && time(NULL) < end) : done < s->programs) {
        struct program p = make_program(s);
        if (test_rank == 0)
            printf("program of seed %" PRIu64 "\n", test_seed);
        fflush(stdout);
        run_program(&p);
        program_free(&p);
        done++;
        if (sum_of_all(test_failures()) > 0)
            break;
        test_seed++;
    }
    if (test_rank == 0)
        printf("%d programs\n", done);
}

static bool read_number(const char *argument, const char *name, int *value)
{
    size_t length = strlen(name);

    if (strncmp(argument, name, length) != 0)
        return false;
    *value = atoi(argument + length);
    return true;
}

static struct settings read_arguments(int argc, char **argv)
{
    struct settings s = {.lines = 60, .threads = 1};

    for (int i = 1; i < argc; i++) {
        if (read_number(argv[i], "--programs=", &s.programs) ||
            read_number(argv[i], "--seconds=", &s.seconds) ||
            read_number(argv[i], "--lines=", &s.lines) ||
            read_number(argv[i], "--threads=", &s.threads))
            continue;
        if (strncmp(argv[i], "--program=", 10) == 0)
            s.file = argv[i] + 10;
        else if (strncmp(argv[i], "--break=", 8) == 0)
            broken = coll_by_name(argv[i] + 8);
        else if (strcmp(argv[i], "--print") == 0)
            s.print = true;
        else if (strncmp(argv[i], "--seed=", 7) != 0) /* test_init's */
            test_fail("what is %s?", argv[i]);
    }
    if (s.file) {
        s.program = program_read(s.file);
        s.threads = program_threads(&s.program);
    }
    return s;
}

int main(int argc, char **argv)
{
    struct settings s = read_arguments(argc, argv);
    void *buffer = test_alloc(BUFFER);
    int provided, size;

    provided =
        test_init_thread(&argc, &argv, s.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    EXPECT(s.threads == 1 || provided == MPI_THREAD_MULTIPLE, "this MPI has no threads");
    MPI_Buffer_attach(buffer, BUFFER);
    kinds_init();
    attributes_begin();
    if (!s.programs && !s.seconds)
        s.programs = test_scale(test_oversubscribed() || s.threads > 1 ? 25 : 100, 3000);
    if (s.print) {
        struct program p = make_program(&s);
        if (test_rank == 0)
            print_program(&p);
        program_free(&p);
    } else if (s.file) {
        run_program(&s.program);
        program_free(&s.program);
    } else {
        run_many(&s);
    }
    attributes_end();
    kinds_finish();
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
    return test_done();
}
