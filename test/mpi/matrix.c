/* SPDX-License-Identifier: MIT */
/* Every collective in each of its forms with each wrong argument of matrix.def: the call raises the
 * class of the table, once, on its communicator, and the communicator goes on. One rank makes the
 * wrong call, and the others make none. The same with large counts, and on an intercommunicator.
 * The MPI's own functions are called in the same way where it has them, by one process; they answer
 * the same but for the differences of the table. */
#define _GNU_SOURCE
#include "library.h"
#include "util.h"

#include <ctype.h>
#include <dlfcn.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 16 }; /* ranks, and neighbors */

/* The arguments that a collective may have. */
enum {
    SBUF = 1 << 0,
    RBUF = 1 << 1,
    SCOUNT = 1 << 2,
    RCOUNT = 1 << 3,
    SCOUNTS = 1 << 4,
    RCOUNTS = 1 << 5,
    SDISPLS = 1 << 6,
    RDISPLS = 1 << 7,
    STYPE = 1 << 8,
    RTYPE = 1 << 9,
    STYPES = 1 << 10,
    RTYPES = 1 << 11,
    OP = 1 << 12,
    ROOT = 1 << 13,
    REQUEST = 1 << 14, /* of the form, like the next */
    INFO = 1 << 15,
    NEIGHBOR = 1 << 16, /* the kinds of a collective */
    SCATTER = 1 << 17,
    EXSCAN = 1 << 18,
    SCANS = 1 << 19,
    INTER = 1 << 20, /* the call is on an intercommunicator */
    PEERS = 1 << 21, /* there are several ranks, and so an intercommunicator */
    ALLGATHER = 1 << 22
};
enum {
    SEND_SIDE = SBUF | SCOUNT | SCOUNTS | SDISPLS | STYPE | STYPES,
    RECV_SIDE = RBUF | RCOUNT | RCOUNTS | RDISPLS | RTYPE | RTYPES
};

enum form { BLOCKING, IMMEDIATE, PERSISTENT };
static const struct way {
    const char *name;
    enum form form;
    bool large, inter;
} ways[] = {
    {"blocking", BLOCKING, false, false},
    {"I", IMMEDIATE, false, false},
    {"_init", PERSISTENT, false, false},
    {"blocking _c", BLOCKING, true, false},
    {"I _c", IMMEDIATE, true, false},
    {"_init_c", PERSISTENT, true, false},
    {"blocking, between groups,", BLOCKING, false, true},
    {"I, between groups,", IMMEDIATE, false, true},
    {"_init, between groups,", PERSISTENT, false, true},
};
enum { NWAYS = sizeof ways / sizeof *ways };

/* A call with counts and displacements of these types. Reductions take their count and datatype
 * from the send side, bcast from the other. */
#define STRUCT_ARGS(name, Count, Displ)                                                        \
    struct name {                                                                              \
        void *sendbuf, *recvbuf;                                                               \
        Count sendcount, recvcount, *sendcounts, *recvcounts;                                  \
        Displ *sdispls, *rdispls;                                                              \
        MPI_Aint *saddresses, *raddresses; /* the displacements of neighbor_alltoallw */       \
        MPI_Datatype sendtype, recvtype, *sendtypes, *recvtypes;                               \
        MPI_Op op;                                                                             \
        int root;                                                                              \
        MPI_Comm comm, plain, inter; /* of the call; without a topology; between two groups */ \
        MPI_Info info;                                                                         \
        MPI_Request *request;                                                                  \
        int size, nsend, nrecv; /* of the group of roots, and of the arrays */                 \
    }
STRUCT_ARGS(args, int, int);
STRUCT_ARGS(large_args, MPI_Count, MPI_Aint);

/* Where the arrays of a call lie. */
struct arrays {
    int sendcounts[MOST], recvcounts[MOST], sdispls[MOST], rdispls[MOST];
    MPI_Aint saddresses[MOST], raddresses[MOST];
    MPI_Datatype sendtypes[MOST], recvtypes[MOST];
    MPI_Count large_sendcounts[MOST], large_recvcounts[MOST];
    MPI_Aint large_sdispls[MOST], large_rdispls[MOST];
};

/* MPI_SUCCESS and the classes are not negative. */
enum { LACKS = -1, UNDEFINED = -2 };

static MPI_Datatype pair, uncommitted;
static MPI_Op first; /* an operator of the program */

/* --- the calls ------------------------------------------------------------------------------- */

#define CALL_OF(Name, given)                                                \
    do {                                                                    \
        library_function *f = native ? library_below("PMPI_" #Name) : NULL; \
        if (native)                                                         \
            return f ? ((__typeof__(MPI_##Name) *)f)given : LACKS;          \
        return MPI_##Name given;                                            \
    } while (0)

#define SMALL(NAME, Name, name, ...)                                          \
    static int call_##Name(const struct args *a, enum form form, bool native) \
    {                                                                         \
        if (form == BLOCKING)                                                 \
            CALL_OF(Name, (__VA_ARGS__));                                     \
        if (form == IMMEDIATE)                                                \
            CALL_OF(I##name, (__VA_ARGS__, a->request));                      \
        CALL_OF(Name##_init, (__VA_ARGS__, a->info, a->request));             \
    }
#define LARGE(NAME, Name, name, ...)                                                 \
    static int large_##Name(const struct large_args *a, enum form form, bool native) \
    {                                                                                \
        if (form == BLOCKING)                                                        \
            CALL_OF(Name##_c, (__VA_ARGS__));                                        \
        if (form == IMMEDIATE)                                                       \
            CALL_OF(I##name##_c, (__VA_ARGS__, a->request));                         \
        CALL_OF(Name##_init_c, (__VA_ARGS__, a->info, a->request));                  \
    }

#define BUFFER R_BLOCK
#define S_BLOCK a->sendbuf, a->sendcount, a->sendtype
#define R_BLOCK a->recvbuf, a->recvcount, a->recvtype
#define S_VECTOR a->sendbuf, a->sendcounts, a->sdispls, a->sendtype
#define R_VECTOR a->recvbuf, a->recvcounts, a->rdispls, a->recvtype
#define S_TYPES a->sendbuf, a->sendcounts, a->sdispls, a->sendtypes
#define R_TYPES a->recvbuf, a->recvcounts, a->rdispls, a->recvtypes
#define S_ADDRESSES a->sendbuf, a->sendcounts, a->saddresses, a->sendtypes
#define R_ADDRESSES a->recvbuf, a->recvcounts, a->raddresses, a->recvtypes
#define VECTOR a->sendbuf, a->recvbuf, a->sendcount, a->sendtype, a->op
#define OF_BLOCK VECTOR
#define OF_BLOCKS a->sendbuf, a->recvbuf, a->sendcounts, a->sendtype, a->op
#define ROOT a->root

SMALL(BARRIER, Barrier, barrier, a->comm)
#define CALL(NAME, Name, name, ...) SMALL(NAME, Name, name, __VA_ARGS__, a->comm)
#include "collectives.def"
#undef CALL
#define CALL(NAME, Name, name, ...) LARGE(NAME, Name, name, __VA_ARGS__, a->comm)
#include "collectives.def"
#undef CALL

/* The same arguments as bits. */
#undef S_BLOCK
#undef R_BLOCK
#undef S_VECTOR
#undef R_VECTOR
#undef S_TYPES
#undef R_TYPES
#undef S_ADDRESSES
#undef R_ADDRESSES
#undef VECTOR
#undef OF_BLOCKS
#undef ROOT
#define S_BLOCK (SBUF | SCOUNT | STYPE)
#define R_BLOCK (RBUF | RCOUNT | RTYPE)
#define S_VECTOR (SBUF | SCOUNTS | SDISPLS | STYPE)
#define R_VECTOR (RBUF | RCOUNTS | RDISPLS | RTYPE)
#define S_TYPES (SBUF | SCOUNTS | SDISPLS | STYPES)
#define R_TYPES (RBUF | RCOUNTS | RDISPLS | RTYPES)
#define S_ADDRESSES S_TYPES
#define R_ADDRESSES R_TYPES
#define VECTOR (SBUF | RBUF | SCOUNT | STYPE | OP)
#define OF_BLOCKS (SBUF | RBUF | SCOUNTS | STYPE | OP)
#define ANY_OF(...) THREE(__VA_ARGS__, 0, 0, 0)
#define THREE(a, b, c, ...) ((a) | (b) | (c))

#define CALL(NAME, Name, name, ...) {#Name, ANY_OF(__VA_ARGS__), call_##Name, large_##Name},
static struct collective {
    const char *name;
    int has; /* also the kinds, after find_kinds */
    int (*call)(const struct args *a, enum form form, bool native);
    int (*large)(const struct large_args *a, enum form form, bool native);
} collectives[] = {
    {"Barrier", 0, call_Barrier, NULL},
#include "collectives.def"
};
#undef CALL
enum { NCOLLECTIVES = sizeof collectives / sizeof *collectives };

static void find_kinds(void)
{
    for (struct collective *c = collectives; c < collectives + NCOLLECTIVES; c++)
        c->has |= (strncmp(c->name, "Neighbor", 8) == 0 ? NEIGHBOR : 0) |
                  (strncmp(c->name, "Scatter", 7) == 0 ? SCATTER : 0) |
                  (strncmp(c->name, "Allgather", 9) == 0 ? ALLGATHER : 0) |
                  (strcmp(c->name, "Exscan") == 0 ? EXSCAN : 0) |
                  (strstr(c->name, "can") ? SCANS : 0);
}

/* --- the table ------------------------------------------------------------------------------- */

/* No handle of the MPI. Where handles are pointers, any other one is followed. */
#if defined OPEN_MPI || defined MPI_ABI_VERSION
#define GARBAGE(type) ((type)NULL)
#else
#define GARBAGE(type) ((type)0x12345678)
#endif

#define WRONG(name, has, lacks, class, statement) \
    static void make_##name(struct args *a)       \
    {                                             \
        statement;                                \
    }
#include "matrix.def"
#undef WRONG

#define WRONG(name, has, lacks, class, statement) {#name, has, lacks, class, make_##name},
static const struct wrong {
    const char *name;
    int has, lacks, class;
    void (*make)(struct args *a);
} wrongs[] = {
#include "matrix.def"
};
#undef WRONG
enum { NWRONGS = sizeof wrongs / sizeof *wrongs };

enum mpi { MPICH_4, OPEN_MPI_4, NEITHER };

#define DIFFERS(mpi, name, collectives, class, reason) {mpi, #name, collectives, class},
static const struct difference {
    enum mpi mpi;
    const char *wrong, *collectives;
    int class;
} differences[] = {
#include "matrix.def"
};
#undef DIFFERS
enum { NDIFFERENCES = sizeof differences / sizeof *differences };

static bool matches(const char *patterns, const char *name)
{
    char list[200], *rest = list, *pattern;
    snprintf(list, sizeof list, "%s", patterns);
    while ((pattern = strsep(&rest, "|")))
        if (fnmatch(pattern, name, 0) == 0)
            return true;
    return false;
}

/* Whether the wrong argument is one that the call has and reads. Of a call with a root between two
 * groups only one side is read. */
static bool applies(const struct wrong *w, const struct collective *c, const struct way *way)
{
    int has = c->has | (way->form != BLOCKING ? REQUEST : 0) |
              (way->form == PERSISTENT ? INFO : 0) | (way->inter ? INTER : 0) |
              (test_size > 1 ? PEERS : 0);
    bool both_sides = (w->has & SEND_SIDE) && (w->has & RECV_SIDE);
    if ((way->large && !c->large) ||
        (way->inter &&
         (test_size == 1 || (c->has & (NEIGHBOR | SCANS)) || ((c->has & ROOT) && both_sides))))
        return false;
    return (has & w->has) == w->has && !(has & w->lacks);
}

/* --- one call -------------------------------------------------------------------------------- */

static int data[2][4 * MOST]; /* room for a pair per peer */

struct comms {
    MPI_Comm ring, plain, inter; /* inter: rank 0 and the others; null if there are none */
};

/* On an intercommunicator: this rank is the root where the wrong argument is one of the root's. */
static int root_between(const struct wrong *w, const struct collective *c)
{
    int of_root = c->has & SCATTER ? SEND_SIDE : c->has & SBUF ? RECV_SIDE : 0;
    return w->has & of_root ? MPI_ROOT : 0;
}

/* A right call. */
static void fill(struct args *a, struct arrays *r, const struct wrong *w,
                 const struct collective *c, const struct way *way, const struct comms *comms)
{
    int neighbors = c->has & NEIGHBOR ? 2 : 0;
    MPI_Comm comm = way->inter ? comms->inter : comms->ring;
    for (int i = 0; i < MOST; i++) {
        r->sendcounts[i] = r->recvcounts[i] = 1;
        r->sdispls[i] = r->rdispls[i] = 0;
        r->saddresses[i] = r->raddresses[i] = 0;
        r->sendtypes[i] = r->recvtypes[i] = MPI_INT;
    }
    *a = (struct args){
        .sendbuf = data[0],
        .recvbuf = data[1],
        .sendcount = 1,
        .recvcount = 1,
        .sendcounts = r->sendcounts,
        .recvcounts = r->recvcounts,
        .sdispls = r->sdispls,
        .rdispls = r->rdispls,
        .saddresses = r->saddresses,
        .raddresses = r->raddresses,
        .sendtype = MPI_INT,
        .recvtype = MPI_INT,
        .sendtypes = r->sendtypes,
        .recvtypes = r->recvtypes,
        .op = MPI_SUM,
        .comm = comm,
        .plain = comms->plain,
        .inter = comms->inter,
        .info = MPI_INFO_NULL,
    };
    if (way->inter) {
        MPI_Comm_remote_size(comm, &a->size);
        a->root = root_between(w, c);
    } else {
        MPI_Comm_size(comm, &a->size);
        MPI_Comm_rank(comm, &a->root);
    }
    a->nsend = a->nrecv = neighbors ? neighbors : a->size;
    if (way->inter && (c->has & (OP | SCOUNTS)) == (OP | SCOUNTS))
        MPI_Comm_size(comm, &a->nsend); /* reduce_scatter has an entry per rank of this group */
}

static MPI_Count *large_counts(MPI_Count *to, const int *from)
{
    for (int i = 0; from && i < MOST; i++)
        to[i] = from[i];
    return from ? to : NULL;
}

static MPI_Aint *large_displs(MPI_Aint *to, const int *from)
{
    for (int i = 0; from && i < MOST; i++)
        to[i] = from[i];
    return from ? to : NULL;
}

static int make_call(const struct args *a, struct arrays *r, const struct collective *c,
                     const struct way *way, bool native)
{
    if (!way->large)
        return c->call(a, way->form, native);
    struct large_args large = {
        .sendbuf = a->sendbuf,
        .recvbuf = a->recvbuf,
        .sendcount = a->sendcount,
        .recvcount = a->recvcount,
        .sendcounts = large_counts(r->large_sendcounts, a->sendcounts),
        .recvcounts = large_counts(r->large_recvcounts, a->recvcounts),
        .sdispls = large_displs(r->large_sdispls, a->sdispls),
        .rdispls = large_displs(r->large_rdispls, a->rdispls),
        .saddresses = a->saddresses,
        .raddresses = a->raddresses,
        .sendtype = a->sendtype,
        .recvtype = a->recvtype,
        .sendtypes = a->sendtypes,
        .recvtypes = a->recvtypes,
        .op = a->op,
        .root = a->root,
        .comm = a->comm,
        .info = a->info,
        .request = a->request,
    };
    return c->large(&large, way->form, native);
}

static int calls, elsewhere, seen;
static MPI_Comm expected_comm;

static void on_error(MPI_Comm *comm, int *code, ...)
{
    calls++;
    elsewhere += *comm != expected_comm;
    seen = class_of(*code);
}

/* The text of an error begins with the function, and has the value of a wrong root. */
static void check_text(const struct wrong *w, const struct collective *c, const struct way *way,
                       const struct args *a, int error)
{
    char text[MPI_MAX_ERROR_STRING], name[64], where[64] = "", root[64];
    int length, rank, size;
    snprintf(name, sizeof name, "MPI_%s%s%s%s:", way->form == IMMEDIATE ? "I" : "", c->name,
             way->form == PERSISTENT ? "_init" : "", way->large ? "_c" : "");
    if (way->form == IMMEDIATE)
        name[5] = (char)tolower((unsigned char)name[5]);
    if (a->comm != MPI_COMM_NULL) {
        MPI_Comm_rank(a->comm, &rank);
        MPI_Comm_size(a->comm, &size);
        snprintf(where, sizeof where, "(rank %d of %d in %s)", rank, size,
                 a->comm == a->plain   ? "plain"
                 : a->comm == a->inter ? "between"
                                       : "a communicator without a name");
    }
    snprintf(root, sizeof root, " root is %d,", a->root);
    MPI_Error_string(error, text, &length);
    EXPECT(strncmp(text, name, strlen(name)) == 0 && strstr(text, where) &&
               (w->class != MPI_ERR_ROOT || strstr(text, root)),
           "%s %s, %s: %s", way->name, c->name, w->name, text);
}

static void check(const struct wrong *w, const struct collective *c, const struct way *way,
                  const struct comms *comms)
{
    struct args a;
    struct arrays arrays;
    MPI_Request untouched, given;
    fill(&a, &arrays, w, c, way, comms);
    MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &untouched);
    given = untouched;
    a.request = &given;
    w->make(&a);
    expected_comm = a.comm == MPI_COMM_NULL ? MPI_COMM_WORLD : a.comm;
    calls = elsewhere = 0;
    int error = make_call(&a, &arrays, c, way, false), class = class_of(error);
    EXPECT_INT(class, w->class, "%s %s, %s", way->name, c->name, w->name);
    EXPECT_INT(calls, 1);
    EXPECT_INT(elsewhere, 0);
    EXPECT_INT(seen, w->class);
    check_text(w, c, way, &a, error);
    EXPECT(given == untouched, "%s %s, %s: the request was set", way->name, c->name, w->name);
    MPI_Request_free(&untouched);
}

/* All ranks. A wrong call that had sent anything, or counted as a call, would show. */
static void use(MPI_Comm comm, const char *after)
{
    MPI_Request r[2];
    int sum = -1, values[MOST];
    MPI_Iallreduce(&test_rank, &sum, 1, MPI_INT, MPI_SUM, comm, &r[0]);
    MPI_Iallgather(&test_rank, 1, MPI_INT, values, 1, MPI_INT, comm, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    EXPECT_INT(sum, sum_of_ranks(), "after %s", after);
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(values[i], i, "after %s", after);
}

/* The same between rank 0 and the others. */
static void use_between(MPI_Comm inter, const char *after)
{
    MPI_Request request;
    int sum = -1, all = sum_of_ranks();
    if (inter == MPI_COMM_NULL)
        return;
    MPI_Iallreduce(&test_rank, &sum, 1, MPI_INT, MPI_SUM, inter, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_INT(sum, test_rank == 0 ? all : 0, "after %s, from the other group", after);
}

/* --- the MPI's own functions ----------------------------------------------------------------- */

/* Which of the two MPIs of the table this is, in the version that was looked at. */
static enum mpi this_mpi(void)
{
#if MPI_VERSION >= 3
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    if (strstr(version, "Open MPI v4.1.4"))
        return OPEN_MPI_4;
    if (strstr(version, "MPICH") && strstr(version, "4.0.2"))
        return MPICH_4;
#endif
    return NEITHER;
}

/* The class that the table has for a call of the MPI's own function. */
static int native_class(const struct wrong *w, const struct collective *c, const struct way *way,
                        enum mpi mpi, bool used[])
{
    char name[64];
    snprintf(name, sizeof name, "%s%s",
             way->inter   ? "inter:"
             : way->large ? "large:"
                          : "",
             c->name);
    for (int i = 0; i < NDIFFERENCES; i++) {
        const struct difference *d = &differences[i];
        if (d->mpi != mpi || strcmp(d->wrong, w->name) != 0 ||
            !(matches(d->collectives, name) || matches(d->collectives, c->name)))
            continue;
        used[i] = true;
        return d->class;
    }
    return w->class;
}

static int ask_native(const struct wrong *w, const struct collective *c, const struct way *way,
                      const struct comms *comms)
{
    struct args a;
    struct arrays arrays;
    MPI_Request request = MPI_REQUEST_NULL;
    fill(&a, &arrays, w, c, way, comms);
    a.request = &request;
    w->make(&a);
    int error = make_call(&a, &arrays, c, way, true);
    if (error == LACKS)
        return LACKS;
    if (!error && way->form == IMMEDIATE && a.request && !way->inter)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!error && way->form == PERSISTENT && a.request)
        MPI_Request_free(&request);
    return class_of(error);
}

/* Between two groups a function that accepts the call would wait for the other group. */
static void compare(const struct wrong *w, const struct collective *c, const struct way *way,
                    const struct comms *comms, int expected)
{
    if (expected == UNDEFINED || (way->inter && (way->form == BLOCKING || !expected)))
        return;
    test_place("the MPI's own %s %s, %s", way->name, c->name, w->name);
    int class = ask_native(w, c, way, comms);
    EXPECT(class == LACKS || class == expected, "the MPI's own %s %s, %s: class %d, not %d",
           way->name, c->name, w->name, class, expected);
}

/* --- all of it ------------------------------------------------------------------------------- */

/* A ring of all ranks, and a communicator without topology; errors call on_error. */
static void make_comms(MPI_Comm from, struct comms *comms, MPI_Errhandler handler)
{
    int size, periodic = 1;
    MPI_Comm_size(from, &size);
    MPI_Cart_create(from, 1, &size, &periodic, 0, &comms->ring);
    MPI_Comm_dup(from, &comms->plain);
    MPI_Comm_set_name(comms->ring, "");
    MPI_Comm_set_name(comms->plain, "plain");
    MPI_Comm_set_errhandler(comms->ring, handler);
    MPI_Comm_set_errhandler(comms->plain, handler);
}

static void make_between(MPI_Comm *inter, MPI_Errhandler handler)
{
    MPI_Comm half;
    *inter = MPI_COMM_NULL;
    if (test_size == 1)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank == 0, test_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, test_rank == 0 ? 1 : 0, 0, inter);
    MPI_Comm_set_name(*inter, "between");
    MPI_Comm_set_errhandler(*inter, handler);
    MPI_Comm_free(&half);
}

static void free_comms(struct comms *comms)
{
    MPI_Comm_free(&comms->ring);
    MPI_Comm_free(&comms->plain);
}

static MPI_Comm inter;
static MPI_Errhandler handler;

static bool is_first(void)
{
    return test_rank == 0;
}

TEST(native, .wanted = is_first)
{
    struct comms comms = {.inter = inter};
    bool used[NDIFFERENCES] = {false};
    enum mpi mpi = this_mpi();
    if (mpi == NEITHER || !library_below("PMPI_Init"))
        return;
    make_comms(MPI_COMM_SELF, &comms, handler);
    for (int i = 0; i < NWRONGS; i++)
        for (int j = 0; j < NCOLLECTIVES; j++)
            for (int k = 0; k < NWAYS; k++)
                if (applies(&wrongs[i], &collectives[j], &ways[k]))
                    compare(&wrongs[i], &collectives[j], &ways[k], &comms,
                            native_class(&wrongs[i], &collectives[j], &ways[k], mpi, used));
    for (int i = 0; i < NDIFFERENCES; i++)
        EXPECT(used[i] || differences[i].mpi != mpi || test_size == 1,
               "the row %s, %s fits no call", differences[i].wrong, differences[i].collectives);
    free_comms(&comms);
}

TEST(ours, .wanted = test_has_shim)
{
    struct comms comms = {.inter = inter};
    int n = 0;
    make_comms(MPI_COMM_WORLD, &comms, handler);
    for (int i = 0; i < NWRONGS; i++) {
        for (int j = 0; j < NCOLLECTIVES; j++) {
            for (int k = 0; k < NWAYS; k++) {
                if (!applies(&wrongs[i], &collectives[j], &ways[k]))
                    continue;
                test_place("%s %s, %s", ways[k].name, collectives[j].name, wrongs[i].name);
                if (n++ % test_size == test_rank)
                    check(&wrongs[i], &collectives[j], &ways[k], &comms);
            }
            use(comms.ring, wrongs[i].name);
        }
        use_between(inter, wrongs[i].name);
    }
    use(comms.plain, "all");
    free_comms(&comms);
}

/* --- what is right --------------------------------------------------------------------------- */

/* A datatype that was refused is accepted once it is committed. */
TEST(commit_later, .wanted = test_has_shim)
{
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Request request;
    int value[2] = {test_rank, test_rank};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Type_contiguous(2, MPI_INT, &type);
    expected_comm = comm;
    for (int i = 0; i < 2; i++)
        EXPECT_INT(class_of(MPI_Ibcast(value, 1, type, 0, comm, &request)), MPI_ERR_TYPE,
                   "an uncommitted datatype");
    MPI_Type_commit(&type);
    OK(MPI_Ibcast(value, 1, type, 0, comm, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_INT(value[0], 0);
    EXPECT_INT(value[1], 0);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
}

/* MPI-4.1 6.11.2: the receive buffer of rank 0 is not significant. */
TEST(exscan_without_result, .wanted = test_has_shim)
{
    int one = 1, sum = 0;
    MPI_Exscan(&one, test_rank ? &sum : NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_INT(sum, test_rank, "exscan");
}

/* Displacements are addresses there, and predefined datatypes may stand at them. */
TEST(neighbors_from_bottom, .wanted = test_has_shim)
{
    MPI_Comm ring;
    int periodic = 1, mine[2] = {test_rank, test_rank}, theirs[2], counts[2] = {1, 1};
    int from[2] = {left(), right()};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Aint send[2], recv[2];
    MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &periodic, 0, &ring);
    for (int i = 0; i < 2; i++) {
        MPI_Get_address(&mine[i], &send[i]);
        MPI_Get_address(&theirs[i], &recv[i]);
    }
    MPI_Neighbor_alltoallw(MPI_BOTTOM, counts, send, types, MPI_BOTTOM, counts, recv, types, ring);
    for (int i = 0; i < 2; i++)
        EXPECT_INT(theirs[i], from[i], "neighbor %d", i);
    MPI_Comm_free(&ring);
}

static void first_operator(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static void begin(void)
{
    find_kinds();
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    MPI_Op_create(first_operator, 1, &first);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    make_between(&inter, handler);
}

static void end(void)
{
    if (inter != MPI_COMM_NULL)
        MPI_Comm_free(&inter);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Op_free(&first);
    MPI_Type_free(&uncommitted);
    MPI_Type_free(&pair);
}

AROUND_TESTS(begin, end)
