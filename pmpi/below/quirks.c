/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/quirks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "below/next.h"
#include "below/slot.h"

#include "coll.h"

#ifdef HAVE_MPI_GET_LIBRARY_VERSION
int nbc_quirks_version(const char *word)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    const char *at = NEXT(Get_library_version)(text, &length) ? NULL : strstr(text, word);
    return at ? atoi(at + strlen(word)) : -1;
}
#endif

#if NBC_MAY_TEST_EACH
bool nbc_quirks_tests_each;

static void learn_to_test_each(void)
{
    struct nbc_slot slot;
    nbc_quirks_tests_each =
        nbc_quirks_version("MPICH Version:") >= 0 && !nbc_slot_find("MPIR_Err_return_comm", &slot);
}
#else
static void learn_to_test_each(void)
{
}
#endif

MPI_Request nbc_quirks_complete_send = MPI_REQUEST_NULL;

/* Open MPI's is ompi_request_empty, which is not counted. In MPICH the handle says whether it is
 * one of those that are not counted: MPICH 3.3 counts how often it has given one. */
static bool is_never_freed(MPI_Request request)
{
#if defined MPICH_NUMVERSION && !defined NBC_ABI
    return (unsigned)request >> 26 == 0x6c000000U >> 26;
#else
    return NBC_IS_OPEN_MPI && request != MPI_REQUEST_NULL;
#endif
}

/* Two messages to nobody are complete at once, so their requests are the same if there is such a
 * one. */
static void learn_complete_send(MPI_Comm comm)
{
    MPI_Request two[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    for (int i = 0; i < 2; i++)
        NEXT(Isend)(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &two[i]);
    if (two[0] == two[1] && is_never_freed(two[0]))
        nbc_quirks_complete_send = two[0];
    for (int i = 0; i < 2; i++)
        NEXT(Wait)(&two[i], MPI_STATUS_IGNORE);
}

void nbc_quirks_setup(MPI_Comm comm)
{
    learn_to_test_each();
    learn_complete_send(comm);
}

uint32_t nbc_quirks_own_blocking(void)
{
#if defined I_MPI_VERSION
    return NBC_BIT(EXSCAN) | NBC_BIT(BCAST);
#elif defined MPICH_NUMVERSION && !defined HAVE_MPIX_ASYNC_START
    return ~UINT32_C(0);
#else
    return 0;
#endif
}

/* Most of them with some derived datatypes, which ranks cannot know of each other. The MPICH family
 * refuses a null buffer on rank 0 of MPI_Exscan, and chooses the algorithm of MPI_Iallgatherv by
 * numbers of elements, which differ if ranks count in different datatypes. What else vendors have
 * made of MPICH is not known.
 */
uint32_t nbc_quirks_wrong(bool blocking)
{
    uint32_t wrong = 0;
#if defined OPEN_MPI
    wrong = NBC_BIT(ALLTOALLW); /* blocking: NBC_SAME_IS_IN_PLACE, also if it has many types */
    if (!blocking && OMPI_MAJOR_VERSION < 5)
        wrong |= NBC_BIT(ALLTOALLV) | NBC_BIT(REDUCE);
#elif defined MPICH_NUMVERSION
    wrong = NBC_BIT(EXSCAN) | (blocking ? 0 : NBC_BIT(ALLGATHERV));
#if defined I_MPI_VERSION
    wrong |= nbc_quirks_own_blocking() | (blocking ? 0 : NBC_BIT(ALLTOALLW));
#elif !defined CRAY_MPICH_VERSION && !defined MVAPICH_VERSION
    wrong |= NBC_BIT(GATHER) | NBC_BIT(REDUCE_SCATTER);
    if (blocking)
        wrong |= nbc_quirks_own_blocking();
    else if (MPICH_NUMVERSION < 50000000)
        wrong |= NBC_BIT(BCAST) | NBC_BIT(SCATTER) | NBC_BIT(ALLTOALL) | NBC_BIT(ALLTOALLV) |
                 NBC_BIT(ALLTOALLW) | NBC_BIT(REDUCE_SCATTER_BLOCK) |
                 (MPICH_NUMVERSION < 40000000 ? NBC_BIT(SCATTERV) : 0);
#endif
#elif defined NBC_ABI
    wrong = NBC_BIT(EXSCAN) | NBC_BIT(ALLTOALLW) | NBC_BIT(GATHER) | NBC_BIT(REDUCE_SCATTER) |
            (blocking ? 0 : NBC_BIT(ALLGATHERV));
#endif
    (void)blocking;
    return wrong;
}

#if (defined OPEN_MPI && defined HAVE_MPI_GET_LIBRARY_VERSION) || defined NBC_ABI
int nbc_quirks_open_mpi_version(void)
{
    int major = nbc_quirks_version("Open MPI v");
    return major > 0 ? major : 0;
}

/* Excludes the component "treematch" of Open MPI 4: with it, MPI_Dist_graph_create occasionally
 * hangs in programs that create and free many communicators, also without nbcshim. The component
 * that remains does not renumber ranks where `reorder` permits it. A value that the user has set
 * takes precedence. */
void nbc_quirks_before_init(void)
{
    if (nbc_quirks_open_mpi_version() == 4)
        setenv("OMPI_MCA_topo", "^treematch", 0);
}

/* Lines NAME=VALUE. */
static const char variables_key[] = "PMIX_ENVAR";

/* The variables that are passed on, by their first letters, the most important ones first. Where
 * the other job has another NBCSHIM_DYNAMIC, one of the two waits for what the other does not send.
 * Without a later NBCSHIM variable the settings of the two differ, and the MPI carries out the
 * collectives between them. */
static const char *const passed_on[] = {"NBCSHIM_DYNAMIC=", "LD_PRELOAD=", "NBCSHIM"};
enum { NPASSED_ON = sizeof passed_on / sizeof *passed_on };

/* The index in passed_on, NPASSED_ON if the variable is not passed on. */
/* unreached: Open MPI 5 */
static size_t kind_of(const char *variable)
{
    size_t i = 0;
    while (i < NPASSED_ON && strncmp(variable, passed_on[i], strlen(passed_on[i])) != 0)
        i++;
    return strchr(variable, '\n') ? NPASSED_ON : i;
}

/* Appends the line if there is room. */
/* unreached: Open MPI 5 */
static size_t append_line(char *lines, size_t length, size_t room, const char *line)
{
    size_t more = strlen(line);
    if (length + (length > 0) + more >= room)
        return length;
    if (length > 0)
        lines[length++] = '\n';
    memcpy(lines + length, line, more + 1);
    return length + more;
}

/* unreached: Open MPI 5 */
static void list_variables(char *lines, size_t room)
{
    size_t length = 0;
    lines[0] = '\0';
    for (size_t i = 0; i < NPASSED_ON; i++)
        for (char **e = environ; e && *e; e++)
            if (kind_of(*e) == i)
                length = append_line(lines, length, room, *e);
}

/* unreached: Open MPI 5 */
static bool has_variables(MPI_Info info)
{
    int length, found = 0;
    return NEXT(Info_get_valuelen)(info, (char *)variables_key, &length, &found) || found;
}

/* A program that says itself which variables its children have gets what it asks for. */
/* unreached: tests spawn with Open MPI 5 only */
MPI_Info nbc_quirks_spawn_info(MPI_Info info)
{
    char lines[MPI_MAX_INFO_VAL];
    MPI_Info passed;
    if (nbc_quirks_open_mpi_version() < 5 || (info != MPI_INFO_NULL && has_variables(info)))
        return info;
    list_variables(lines, sizeof lines);
    if (!lines[0] ||
        (info == MPI_INFO_NULL ? NEXT(Info_create)(&passed) : NEXT(Info_dup)(info, &passed)))
        return info;
    NEXT(Info_set)(passed, (char *)variables_key, lines);
    return passed;
}

/* unreached: tests spawn with Open MPI 5 only */
void nbc_quirks_forget(MPI_Info passed, MPI_Info info)
{
    if (passed != info)
        NEXT(Info_free)(&passed);
}
#else
/* Between so many turns of its progress loop Intel MPI calls what the hook needs (hook.h); without
 * the variable it is some thousand. */
void nbc_quirks_before_init(void)
{
#ifdef I_MPI_VERSION
    setenv("I_MPI_SPIN_COUNT", "20", 0);
#endif
}

MPI_Info nbc_quirks_spawn_info(MPI_Info info)
{
    return info;
}

void nbc_quirks_forget(MPI_Info passed, MPI_Info info)
{
    (void)passed, (void)info;
}
#endif

int nbc_quirks_topo_test(MPI_Comm comm, int *kind)
{
    int ndims;
    if (!NBC_IS_SIMULATED)
        return NEXT(Topo_test)(comm, kind);
    *kind = NEXT(Cartdim_get)(comm, &ndims) ? MPI_UNDEFINED : MPI_CART;
    return MPI_SUCCESS;
}

int nbc_quirks_parent(MPI_Comm *parent)
{
    *parent = MPI_COMM_NULL;
    return NBC_IS_SIMULATED ? MPI_SUCCESS : NEXT(Comm_get_parent)(parent);
}

/* MPICH 4.0.2 crashes in calls that poll, as these do, in a program without MPI_Init. Open MPI from
 * 5 on refuses requests of several sessions in one call, but for those from MPI_PROC_NULL, so that
 * nbcshim's session needs these. */
int nbc_quirks_inactive_source(MPI_Comm comm)
{
    MPI_Request request;
    int index = MPI_UNDEFINED, flag;
    if ((comm != MPI_COMM_SELF && !NBC_MAY_BE_OPEN_MPI) ||
        NEXT(Recv_init)(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &request))
        return 0;
    int error = NEXT(Testany)(1, &request, &index, &flag, MPI_STATUS_IGNORE);
    NEXT(Request_free)(&request);
    return error || index != MPI_UNDEFINED ? 0 : MPI_PROC_NULL;
}

MPI_Datatype nbc_quirks_sent(MPI_Datatype predefined)
{
    MPI_Datatype same;
    if (!NBC_IS_MPICH || NEXT(Type_contiguous)(1, predefined, &same))
        return predefined;
    NEXT(Type_commit)(&same);
    return same;
}

#if defined OPEN_MPI && defined HAVE_MPI_SESSION_INIT
typedef int reduces(const void *in, void *inout, size_t n, MPI_Datatype type, MPI_Op op, void *);

/* The function by which that one reduces. */
static int reduce_without_world(const void *in, void *inout, int n, MPI_Datatype type, MPI_Op op)
{
    reduces *reduce = (reduces *)nbc_next_function("mca_coll_base_reduce_local");
    return reduce ? reduce(in, inout, (size_t)n, type, op, NULL) : MPI_ERR_UNSUPPORTED_OPERATION;
}

int nbc_quirks_reduce_local(const void *in, void *inout, int n, MPI_Datatype type, MPI_Op op,
                            bool world)
{
    if (!world)
        return reduce_without_world(in, inout, n, type, op);
    return NEXT(Reduce_local)(in, inout, n, type, op);
}
#else
int nbc_quirks_reduce_local(const void *in, void *inout, int n, MPI_Datatype type, MPI_Op op,
                            bool world)
{
    (void)world;
    return NEXT(Reduce_local)((NBC_CONST void *)in, inout, n, type, op);
}
#endif

#if defined OPEN_MPI && !defined NBC_ABI
typedef int invokes(MPI_Errhandler handler, void *object, int kind, int error, const char *caller);

/* Names a function, or what caller says, as the place of the error. */
static bool raise_as_mpi(MPI_Comm comm, MPI_Errhandler handler, int class, const char *text)
{
    enum { OF_COMM = 1 };
    invokes *invoke = (invokes *)nbc_next_function("ompi_errhandler_invoke");
    if (!invoke)
        return false; /* unreached: this MPI has it */
    invoke(handler, comm, OF_COMM, class, text);
    return true; /* unreached: the job has ended */
}
#elif defined MPICH_NUMVERSION && !defined NBC_ABI
typedef int makes_code(int last, int fatal, const char *function, int line, int class,
                       const char *generic, const char *specific, ...);

/* The class is in the low bits of the code, unlike that of MPI_Add_error_code. */
static bool raise_as_mpi(MPI_Comm comm, MPI_Errhandler handler, int class, const char *text)
{
    makes_code *make = (makes_code *)nbc_next_function("MPIR_Err_create_code");
    (void)handler;
    if (!make)
        return false; /* unreached: this MPI has it */
    int code = make(MPI_SUCCESS, 0, "nbcshim", 0, class, "**other", "%s", text);
    NEXT(Comm_call_errhandler)(comm, code);
    return true; /* unreached: the job has ended */
}
#else
static bool raise_as_mpi(MPI_Comm comm, MPI_Errhandler handler, int class, const char *text)
{
    (void)comm, (void)handler, (void)class, (void)text;
    return false;
}
#endif

void nbc_quirks_raise_fatal(MPI_Comm comm, MPI_Errhandler handler, int class, const char *text)
{
    if (raise_as_mpi(comm, handler, class, text))
        return;                             /* unreached: the job has ended */
    fprintf(stderr, "nbcshim: %s\n", text); /* unreached: these MPIs say the text */
    NEXT(Comm_call_errhandler)(comm, class);
}

pthread_mutex_t nbc_quirks_handlers = PTHREAD_MUTEX_INITIALIZER;

void nbc_quirks_mute(MPI_Errhandler kept[2])
{
    pthread_mutex_lock(&nbc_quirks_handlers);
    MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    for (int i = 0; i < 2; i++) {
        NEXT(Comm_get_errhandler)(comms[i], &kept[i]);
        NEXT(Comm_set_errhandler)(comms[i], MPI_ERRORS_RETURN);
    }
}

void nbc_quirks_unmute(MPI_Errhandler kept[2])
{
    MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    for (int i = 0; i < 2; i++) {
        NEXT(Comm_set_errhandler)(comms[i], kept[i]);
        NEXT(Errhandler_free)(&kept[i]);
    }
    pthread_mutex_unlock(&nbc_quirks_handlers);
}

static bool is_on(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && !strchr("0nNfF", *value);
}

bool nbc_quirks_tolerates_faults(void)
{
    return is_on("OMPI_MCA_mpi_ft_enable") || is_on("MPIR_CVAR_ENABLE_FT") ||
           is_on("MPIR_PARAM_ENABLE_FT") || is_on("MPICH_ENABLE_FT");
}
