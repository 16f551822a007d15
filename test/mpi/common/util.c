/* SPDX-License-Identifier: MIT */
#include "util.h"

#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REPORTS = 20 };

uint64_t test_seed = 1;
bool test_soak, test_native;
static double soak_share;
int test_rank, test_size;

static const char *program = "?";
static int failures;
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char place[200];

static bool env_on(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

static void read_settings(int *argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *seed = getenv("NBC_SEED");
    int kept = 1;

    program = slash ? slash + 1 : argv[0];
    if (seed && *seed)
        test_seed = strtoull(seed, NULL, 0);
    for (int i = 1; i < *argc; i++) {
        if (strncmp(argv[i], "--seed=", 7) == 0)
            test_seed = strtoull(argv[i] + 7, NULL, 0);
        else
            argv[kept++] = argv[i];
    }
    *argc = kept;
    argv[kept] = NULL;
    soak_share = getenv("NBC_SOAK") ? atof(getenv("NBC_SOAK")) : 0;
    test_soak = soak_share > 0;
    test_native = env_on("NBC_TEST_NATIVE");
}

/* nbcshim replaces the blocking collectives of MPICH before 4.3 unless told otherwise. */
#if defined MPICH_VERSION && !defined HAVE_MPIX_ASYNC_START
enum { OWN_IN_SPITE_OF_HOOK = true };
#else
enum { OWN_IN_SPITE_OF_HOOK = false };
#endif

bool test_blocking_is_native(void)
{
    const char *blocking = getenv("NBCSHIM_BLOCKING");
    int hooked = 0;
    if (test_native || (blocking && strcmp(blocking, "native") == 0))
        return true;
    nbcshim_hook(&hooked);
    return hooked && !OWN_IN_SPITE_OF_HOOK && !(blocking && strcmp(blocking, "own") == 0);
}

static bool shim_is_here(void)
{
    return nbcshim_version && nbcshim_version() == NBCSHIM_VERSION;
}

/* A hung rank says where it is; whoever started the test then ends it. */
static void on_alarm(int signal)
{
    char text[300];
    int length = snprintf(text, sizeof text, "%s: rank %d of %d hangs in: %s\n", program, test_rank,
                          test_size, *place ? place : "the beginning");

    (void)signal;
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(3);
}

static void set_alarm(void)
{
    const char *seconds = getenv("NBC_TEST_ALARM");

    if (!seconds)
        return;
    signal(SIGALRM, on_alarm);
    alarm((unsigned)atoi(seconds));
}

static void after_init(int *argc, char **argv)
{
    read_settings(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &test_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test_size);
    if (!test_native && !shim_is_here()) {
        fprintf(stderr, "%s: nbcshim is not in this process (NBC_TEST_NATIVE=1 to do without)\n",
                program);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    set_alarm();
}

void test_init(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    after_init(argc, *argv);
}

int test_init_thread(int *argc, char ***argv, int required)
{
    int provided;

    MPI_Init_thread(argc, argv, required, &provided);
    after_init(argc, *argv);
    return provided;
}

int test_done(void)
{
    int all = failures;

    /* Over point-to-point, which is not what is tested here. */
    if (test_rank > 0)
        MPI_Send(&failures, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    for (int i = 1; test_rank == 0 && i < test_size; i++) {
        int theirs;
        MPI_Recv(&theirs, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        all += theirs;
    }
    if (all > 0)
        fprintf(stderr, "%s: %d failures, %d ranks, seed %" PRIu64 "\n", program, all, test_size,
                test_seed);
    else if (test_rank == 0)
        printf("ok %d ranks\n", test_size);
    fflush(stdout);
    MPI_Finalize();
    return all > 0;
}

static struct scratch {
    struct scratch *next;
    _Alignas(max_align_t) char data[];
} * scratch;

void *test_scratch(size_t size)
{
    struct scratch *made = test_alloc(sizeof *made + size);
    made->next = scratch;
    scratch = made;
    return made->data;
}

static void free_scratch(void)
{
    while (scratch) {
        struct scratch *next = scratch->next;
        free(scratch);
        scratch = next;
    }
}

static struct test *tests, **tests_end = &tests;
static void (*before_tests)(void), (*after_tests)(void);

void test_around(void (*before)(void), void (*after)(void))
{
    before_tests = before;
    after_tests = after;
}

void test_add(struct test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

static bool has_argument(char **argv, const char *option, const char *name)
{
    size_t length = strlen(option);
    for (int i = 1; argv[i]; i++)
        if (strncmp(argv[i], option, length) == 0 && strcmp(argv[i] + length, name) == 0)
            return true;
    return false;
}

static bool is_chosen(const struct test *test, char **argv)
{
    bool all = !argv[1] || (has_argument(argv, "", "--single") && !argv[2]);
    return (all && !test->if_named) || has_argument(argv, "", test->name) ||
           has_argument(argv, "--only=", test->name);
}

static int needed_level(char **argv)
{
    int level = 0;
    for (const struct test *test = tests; test; test = test->next)
        if (is_chosen(test, argv) && test->level > level)
            level = test->level;
    return has_argument(argv, "", "--single") ? 0 : level;
}

static void run_test(const struct test *test, int level)
{
    test_place("%s", test->name);
    if (test->level > level) {
        EXPECT(test->level == MPI_THREAD_MULTIPLE, "the MPI has no threads");
        if (test_rank == 0)
            printf("%s: not without MPI_THREAD_MULTIPLE\n", test->name);
    } else if (!test->wanted || test->wanted()) {
        test->runner ? test->runner(test) : test->run();
    }
    free_scratch();
    *place = '\0';
}

static bool is_test(const char *name)
{
    const struct test *test = tests;
    while (test && strcmp(test->name, name) != 0)
        test = test->next;
    return test;
}

static void run_tests(char **argv, int level)
{
    int nrun = 0;
    for (const struct test *test = tests; test; test = test->next)
        if (is_chosen(test, argv)) {
            run_test(test, level);
            nrun++;
        }
    EXPECT(nrun > 0 || !argv[1], "no such test");
    for (int i = 1; argv[i]; i++)
        EXPECT(*argv[i] == '-' || is_test(argv[i]), "no test '%s'", argv[i]);
}

int test_main(int argc, char **argv)
{
    int level;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const struct test *test = tests; test; test = test->next)
            puts(test->name);
        return 0;
    }
    level = needed_level(argv);
    if (level)
        level = test_init_thread(&argc, &argv, level);
    else
        test_init(&argc, &argv);
    if (before_tests)
        before_tests();
    run_tests(argv, level);
    if (after_tests)
        after_tests();
    return test_done();
}

__attribute__((weak)) int main(int argc, char **argv)
{
    return test_main(argc, argv);
}

static void report(const char *text)
{
    if (++failures > MAX_REPORTS)
        return;
    fprintf(stderr, "%s [%s, rank %d of %d, seed %" PRIu64 "%s%s]\n", text, program, test_rank,
            test_size, test_seed, *place ? ", at: " : "", place);
    if (failures == MAX_REPORTS)
        fprintf(stderr, "%s: rank %d: further failures are only counted\n", program, test_rank);
}

void test_fail_at(const char *file, int line, const char *function, const char *format, ...)
{
    char text[EXPECT_TEXT];
    va_list args;

    va_start(args, format);
    expect_print(text, file, line, function, format, args);
    va_end(args);
    pthread_mutex_lock(&failing);
    report(text);
    pthread_mutex_unlock(&failing);
}

void test_place(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(place, sizeof place, format, args);
    va_end(args);
}

int test_failures(void)
{
    return failures;
}

int test_scale(int small, int soak)
{
    return small + (int)(soak_share * (soak - small));
}

bool test_has_peers(void)
{
    return test_size > 1;
}

bool test_has_shim(void)
{
    return !test_native;
}

bool test_oversubscribed(void)
{
    return test_size > sysconf(_SC_NPROCESSORS_ONLN);
}

bool test_calls_persistent(void)
{
    return MPI_Barrier_init != NULL;
}

bool test_has_persistent(void)
{
    return !test_native && test_calls_persistent();
}

void add_ints(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

MPI_Info test_info(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, (char *)key, (char *)value);
    return info;
}

void *test_alloc(size_t size)
{
    void *p = malloc(size > 0 ? size : 1);

    if (!p) {
        fprintf(stderr, "%s: rank %d: no memory for %zu bytes\n", program, test_rank, size);
        abort();
    }
    return p;
}

bool test_file(char name[TEST_FILE_NAME])
{
    const char *dir = getenv("TMPDIR");
    int n = snprintf(name, TEST_FILE_NAME, "%s/nbcshim-test-XXXXXX", dir && *dir ? dir : "/tmp");
    int fd = n < TEST_FILE_NAME ? mkstemp(name) : -1;

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

struct rng rng_shared(int64_t stream)
{
    return (struct rng){mix_in(test_seed, stream)};
}

struct rng rng_private(int64_t stream)
{
    return (struct rng){mix_in(mix_in(test_seed, stream), test_rank + 1)};
}

void rng_shuffle(struct rng *r, int *a, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = rng_below(r, i + 1), kept = a[i];
        a[i] = a[j];
        a[j] = kept;
    }
}
