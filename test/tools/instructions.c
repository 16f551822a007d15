/* SPDX-License-Identifier: MIT */
/* Makes each call that one rank can make, for callgrind to count: `instructions native FILE` those
 * of the MPI, `instructions shim FILE` those of nbcshim. Each call of a counted_* function is one
 * count; FILE gets the calls, in the same order. See instructions.sh. */
#include <stdio.h>
#include <string.h>

#include "routines.h"

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 31

/* Open MPI looks for rare events every 8 calls. */
enum { TIMES = 8, WARM = 3, BYTES = 8 };

/* The variable keeps the compiler from making one function of equal ones. */
#define COUNTED(name)                                                             \
    static volatile int made_##name;                                              \
    __attribute__((noinline)) void name(struct side *s, const struct routine *r); \
    void name(struct side *s, const struct routine *r)                            \
    {                                                                             \
        for (int i = 0; i < TIMES; i++) {                                         \
            r->run(s);                                                            \
            made_##name++;                                                        \
        }                                                                         \
    }

COUNTED(counted_native)
COUNTED(counted_shim)
COUNTED(counted_held)

static struct operands own, theirs;
static FILE *names;
static char path[4096];

static void set_up(struct side *s, const struct routine *r)
{
    routine_set_up(r, s);
    for (int i = 0; i < WARM; i++)
        r->run(s);
}

/* Counts the calls of the MPI: twice, since memory is tidied up now and then. */
static void count_of_mpi(const struct routine *r)
{
    struct side s = {.calls = &native, .o = &theirs, .peer = -1, .path = path};
    set_up(&s, r);
    counted_native(&s, r);
    counted_native(&s, r);
    routine_tear_down(r, &s);
}

/* Counts those of nbcshim, and those while the program holds a request of nbcshim. */
static void count_of_shim(const struct routine *r)
{
    struct side s = {.calls = &shim, .o = &own, .peer = -1, .path = path};
    MPI_Request held;
    set_up(&s, r);
    counted_shim(&s, r);
    counted_shim(&s, r);
    shim.Ibarrier(own.comm, &held);
    r->run(&s);
    counted_held(&s, r);
    counted_held(&s, r);
    shim.Wait(&held, MPI_STATUS_IGNORE);
    routine_tear_down(r, &s);
}

static bool of_mpi;

static void count(const struct routine *r)
{
    if (of_mpi)
        count_of_mpi(r);
    else
        count_of_shim(r);
    fprintf(names, "%s\n", r->name);
}

static void count_collective(enum nbc_coll coll, const char *name)
{
    struct routine r = {.name = name, .run = run_collective};
    own.coll = theirs.coll = coll;
    count(&r);
}

/* Operations from the start to the end of the wait, to nothing of the MPI: on one rank all is
 * nbcshim's. */
static int run_ibarrier(struct side *s)
{
    MPI_Request request;
    if (s->calls == &native)
        return MPI_SUCCESS;
    shim.Ibarrier(s->o->comm, &request);
    return shim.Wait(&request, MPI_STATUS_IGNORE);
}

static int run_iallreduce(struct side *s)
{
    int in[2] = {1, 2}, out[2];
    MPI_Request request;
    if (s->calls == &native)
        return MPI_SUCCESS;
    shim.Iallreduce(in, out, 2, MPI_INT, MPI_SUM, s->o->comm, &request);
    return shim.Wait(&request, MPI_STATUS_IGNORE);
}

static int make_persistent(struct side *s)
{
    static int in[2], out[2];
    return s->calls == &native ? MPI_SUCCESS
                               : shim.Allreduce_init(in, out, 2, MPI_INT, MPI_SUM, s->o->comm,
                                                     MPI_INFO_NULL, &s->requests[0]);
}

static int run_persistent(struct side *s)
{
    if (s->calls == &native)
        return MPI_SUCCESS;
    shim.Start(&s->requests[0]);
    return shim.Wait(&s->requests[0], MPI_STATUS_IGNORE);
}

static void free_persistent(struct side *s)
{
    if (s->calls == &shim)
        shim.Request_free(&s->requests[0]);
}

static const struct routine operations[] = {
    {.name = "all of Ibarrier+Wait", .run = run_ibarrier},
    {.name = "all of Iallreduce+Wait", .run = run_iallreduce},
    {.name = "all of Start+Wait, allreduce",
     .run = run_persistent,
     .set_up = make_persistent,
     .tear_down = free_persistent},
    {.name = NULL},
};

/* Nonblocking file operations wait by polling for threads, as do split ones in Open MPI 4.1.4.
 * There some windows need several ranks, and the counts of opening and of ordered access vary. */
static bool is_possible(const struct routine *r)
{
#ifdef OPEN_MPI
    if (strstr(r->name, "Win_create") || strstr(r->name, "_begin") ||
        strstr(r->name, "File_open") || strstr(r->name, "_ordered"))
        return false;
#endif
    return r->ranks <= 1 && !strstr(r->name, "File_i");
}

int main(int argc, char **argv)
{
    int size = 1, ring = 1;
    MPI_Init(&argc, &argv);
    of_mpi = argc == 3 && strcmp(argv[1], "native") == 0;
    if (argc != 3 || !(names = fopen(argv[2], "w")) || !calls_load())
        return 2;
    snprintf(path, sizeof path, "%s.data", argv[2]);
    MPI_Comm comm;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
    /* With room for two neighbors, which is more than others need. */
    if (!operands_make(&own, NBC_NEIGHBOR_ALLGATHER, comm, BYTES / (int)sizeof(double)))
        return 2;
    theirs = own;
    native.Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &theirs.comm);
#define COLL(NAME, name, Name) count_collective(NBC_##NAME, #Name);
#include "colls.def"
#undef COLL
    for (const struct routine *r = operations; r->name; r++)
        count(r);
    for (const struct routine *r = routines; r->name; r++)
        if (is_possible(r))
            count(r);
    native.Comm_free(&theirs.comm);
    MPI_Comm_free(&comm);
    operands_free(&own);
    MPI_Finalize();
    return fclose(names) != 0;
}

#else

/* routines.def has no calls then. */
int main(void)
{
    return 77;
}

#endif
