/* SPDX-License-Identifier: MIT */
/* Common code of the MPI test programs: start and end, random numbers, failures, the size of a run.
 *
 * Environment: NBC_SEED (also the argument --seed=N) repeats a run. NBC_SOAK=1 makes it long, 0.1 a
 * tenth as long. NBC_TEST_NATIVE=1 tests the MPI's own collectives, without nbcshim and without
 * what only nbcshim guarantees; otherwise a program fails if nbcshim is not there, so that a
 * preload without effect does not pass. */
#ifndef NBC_TEST_UTIL_H
#define NBC_TEST_UTIL_H

#include <nbcshim.h>

#include "../../expect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gcc takes MPI_UNWEIGHTED, MPI_STATUSES_IGNORE and similar constants for arrays that are too
 * short. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic ignored "-Wpragmas" /* gcc before 11 does not know the last one */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

/* The prototypes of an MPI-2 have no const. */
#if MPI_VERSION < 3
#if defined __clang__
#pragma clang diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#elif defined __GNUC__
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"
#endif
#endif

/* The ABI of MPI-5 has its own conversions of handles to numbers; its stand-in (test/mpi41) has
 * none.
 */
#if defined MPI_ABI_VERSION && MPI_ABI_VERSION > 0 && !defined NBC_TEST_ABI
typedef int MPI_Fint;
#define MPI_Errhandler_c2f MPI_Errhandler_toint
#define MPI_Op_c2f MPI_Op_toint
#define MPI_Request_c2f MPI_Request_toint
#define MPI_Request_f2c MPI_Request_fromint
#define MPI_Type_c2f MPI_Type_toint
#endif

/* The version of the MPICH that is below, or below the stand-in for an MPI-2.2; 0: another MPI. */
#if defined NBC_TEST_NUMVERSION
enum { MPICH_BELOW = NBC_TEST_NUMVERSION };
#elif defined MPICH_NUMVERSION
enum { MPICH_BELOW = MPICH_NUMVERSION };
#else
enum { MPICH_BELOW = 0 };
#endif

/* MPICH 4.3.2 or 5.0.1, whose faults doc/mpis.md has. With the header of that ABI the tests ran on
 * MPICH 5 alone. */
#if defined MPI_ABI_VERSION && MPI_ABI_VERSION > 0
enum { IS_MPICH_43 = 1 };
#else
enum { IS_MPICH_43 = MPICH_BELOW >= 40300000 };
#endif

/* MPI_Request_get_status of Intel MPI, and of MPICH from 4.2 on, completes a persistent request: a
 * test after it finds an inactive one. */
#ifdef I_MPI_VERSION
enum { GET_STATUS_COMPLETES = 1 };
#else
enum { GET_STATUS_COMPLETES = IS_MPICH_43 || MPICH_BELOW >= 40200000 };
#endif

/* MPI_Waitany of MPICH2 1.4.1p1 and MPICH 3.2 waits forever if the persistent requests of the MPI
 * in its array are all inactive, and no other is left. */
#if defined MPICH2_NUMVERSION || (defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40000000)
enum { WAITANY_BEARS_INACTIVE = 0 };
#else
enum { WAITANY_BEARS_INACTIVE = 1 };
#endif

/* MPI_Waitany and MPI_Waitsome of MPICH2 1.4.1p1 may wait forever for I/O that is not complete when
 * they are called. */
#ifdef MPICH2_NUMVERSION
enum { WAITS_BEAR_FILES = 0 };
#else
enum { WAITS_BEAR_FILES = 1 };
#endif

/* Programs that run with a preloaded nbcshim are linked with the MPI only: functions that it may
 * lack are referenced weakly. Linked ones have strong.c, too. */
/* A barrier has no count; clang warns of a weak name that is not declared. */
int MPI_Barrier_c(void);
int MPI_Ibarrier_c(void);
int MPI_Barrier_init_c(void);
#define WEAK(name) _Pragma(#name)
#define COLL(NAME, name, Name)    \
    WEAK(weak MPI_I##name)        \
    WEAK(weak MPI_##Name##_init)  \
    WEAK(weak MPIX_##Name##_init) \
    WEAK(weak MPI_##Name##_c)     \
    WEAK(weak MPI_I##name##_c)    \
    WEAK(weak MPI_##Name##_init_c)
#include "colls.def"
#undef COLL
#pragma weak nbcshim_version
#pragma weak nbcshim_hook
#pragma weak nbcshim_algorithm
#pragma weak nbcshim_icoll_max_outstanding
#pragma weak MPI_Neighbor_allgather
#pragma weak MPI_Neighbor_allgatherv
#pragma weak MPI_Neighbor_alltoall
#pragma weak MPI_Neighbor_alltoallv
#pragma weak MPI_Neighbor_alltoallw

extern uint64_t test_seed;
extern bool test_soak, test_native;
extern int test_rank, test_size; /* in MPI_COMM_WORLD */

/* Calls MPI_Init, reads the environment, removes --seed=N from the arguments. */
void test_init(int *argc, char ***argv);

/* The same with MPI_Init_thread. Returns the provided thread level. */
int test_init_thread(int *argc, char ***argv, int required);

/* Finalizes MPI. Returns the exit status, 0 if no rank has failed. */
int test_done(void);

/* A test of the program: TEST(name) { ... }, or TEST(name, .wanted = f) { ... } with a function
 * that says whether to run it. Tests run in the order in which they stand in the file. */
struct test {
    const char *name;
    void (*run)(void);
    bool (*wanted)(void);
    bool if_named; /* runs only if an argument names it */
    int level;     /* of threads: MPI_THREAD_..., or 0 for a test without threads */
    void (*runner)(
        const struct test *test); /* calls `run`; NULL: nothing is to be done around it */
    struct test *next;
};

#define TEST(function, ...)                                                           \
    static void function(void);                                                       \
    __attribute__((constructor)) static void add_##function(void)                     \
    {                                                                                 \
        static struct test added = {.name = #function, .run = function, __VA_ARGS__}; \
        test_add(&added);                                                             \
    }                                                                                 \
    static void function(void)

void test_add(struct test *test);

/* Functions without arguments that are called before and after the tests of a program, or NULL. */
#define AROUND_TESTS(before, after)                                 \
    __attribute__((constructor)) static void add_around_tests(void) \
    {                                                               \
        test_around(before, after);                                 \
    }

void test_around(void (*before)(void), void (*after)(void));

/* What main does unless the program has another: runs the tests, or those that arguments name (NAME
 * or --only=NAME), between test_init and test_done. The level of threads is the highest that one of
 * them needs; what the MPI does not have, or --single forbids, is left out. With --list it only
 * prints their names. Returns the exit status. */
int test_main(int argc, char **argv);

/* Returns the number of failures of this rank so far. */
int test_failures(void);

/* Records the current activity of this thread, for the report of a failure and of a rank that hangs
 * (NBC_TEST_ALARM seconds). */
void test_place(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns `small`, with NBC_SOAK=1 `soak`, and for fractions a number between. */
int test_scale(int small, int soak);

/* The neighbors of this rank in a ring of all, and the sum of all their numbers. */
static inline int left(void)
{
    return (test_rank + test_size - 1) % test_size;
}

static inline int right(void)
{
    return (test_rank + 1) % test_size;
}

static inline int sum_of_ranks(void)
{
    return test_size * (test_size - 1) / 2;
}

/* Whether there are several ranks; whether nbcshim is tested, and not the MPI. */
bool test_has_peers(void);
bool test_has_shim(void);

/* Whether the MPI carries out the blocking collectives. */
bool test_blocking_is_native(void);

/* Whether ranks outnumber processors: then each wait takes a time slice. */
bool test_oversubscribed(void);

/* Whether there are persistent collectives, of nbcshim or of the MPI. */
bool test_calls_persistent(void);

/* Whether they are tested: only with nbcshim, since those of the MPIs are missing or wrong. */
bool test_has_persistent(void);

/* An operator of the program: the sum of ints. */
void add_ints(void *in, void *inout, int *n, MPI_Datatype *type);

/* Returns the class of an MPI error code. */
int class_of(int code);

/* Returns an info object with this key. */
MPI_Info test_info(const char *key, const char *value);

/* Never return NULL. What the second one returns is freed after the test of test_main. */
void *test_alloc(size_t size);
void *test_scratch(size_t size);

/* Creates an empty file of this process in TMPDIR or /tmp. Returns false on an error. */
enum { TEST_FILE_NAME = 512 };
bool test_file(char name[TEST_FILE_NAME]);

/* Random numbers: a seed yields the same sequence on every machine. */
struct rng {
    uint64_t state;
};

static inline uint64_t mix64(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Returns a hash of several numbers, for seeds. */
static inline uint64_t mix_in(uint64_t hash, int64_t value)
{
    return mix64(hash ^ mix64((uint64_t)value));
}

static inline uint64_t rng_next(struct rng *r)
{
    return mix64(r->state++);
}

static inline int rng_below(struct rng *r, int bound)
{
    return (int)(rng_next(r) % (uint64_t)bound);
}

static inline bool rng_chance(struct rng *r, int percent)
{
    return rng_below(r, 100) < percent;
}

/* Return a generator that is the same on all ranks, and one that differs by rank. */
struct rng rng_shared(int64_t stream);
struct rng rng_private(int64_t stream);

/* Shuffles n integers. */
void rng_shuffle(struct rng *r, int *a, int n);

#endif
