/* SPDX-License-Identifier: MIT */
/* Makes an MPI take buffers in the memory of devices, as one that is built for GPUs does: a layer
 * between nbcshim and the MPI, for the look-alikes of the runtimes (runtime.c). Messages use the
 * look-alike's hidden mapping of the memory, as a network adapter does, without waiting for copies
 * that the program has begun; and as some MPIs do, it needs the context of the memory to be current
 * in the thread that calls it: when a message starts and, in the progress thread of nbcshim, which
 * cannot have it from the program, as long as one is under way, whatever that thread tests. */
#include "../tools/below.h"
#include "config.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

int MPIX_Query_cuda_support(void);
int MPIX_Query_rocm_support(void);
int MPIX_GPU_query_support(int number, int *answer);

int MPIX_Query_cuda_support(void)
{
    return 1;
}

int MPIX_Query_rocm_support(void)
{
    return 1;
}

/* That of MPICH. */
int MPIX_GPU_query_support(int number, int *answer)
{
    *answer = number >= 0;
    return MPI_SUCCESS;
}

typedef intptr_t distance(uintptr_t at);

/* From the address of a byte of a device to the hidden one; 0: it is none. */
static intptr_t to_hidden(uintptr_t at)
{
    static distance *found;
    static const char *const names[] = {"libcuda.so.1", "libamdhip64.so.6"};
    distance *f = __atomic_load_n(&found, __ATOMIC_RELAXED);
    for (int i = 0; i < 2 && !f; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        void *address = library ? dlsym(library, "nbc_runtime_to_hidden") : NULL;
        memcpy(&f, &address, sizeof f);
    }
    __atomic_store_n(&found, f, __ATOMIC_RELAXED);
    return f ? f(at) : 0;
}

/* Messages from and to devices that are under way. */
enum { MOST = 4096 };
static struct {
    MPI_Request request;
    uintptr_t at;
} moving[MOST];
static int nmoving;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Returns the hidden address. */
static void *translated(const void *buf, int count, MPI_Datatype type, uintptr_t *on_device)
{
    MPI_Aint lb, extent;
    intptr_t far = 0;
    PMPI_Type_get_true_extent(type, &lb, &extent);
    uintptr_t at = (uintptr_t)buf;
    *on_device = at + (uintptr_t)lb;
    if (count > 0 && extent > 0)
        far = to_hidden(*on_device);
    if (far == 0)
        *on_device = 0;
    return (void *)(at + (uintptr_t)far);
}

/* Messages that were over at once may share a request. */
static int place_of(MPI_Request request)
{
    int i = 0;
    while (i < nmoving && moving[i].request != request)
        i++;
    return i;
}

/* nbcshim asks no more for a send that is complete when MPI_Isend returns. */
static bool is_over(MPI_Request request)
{
    BELOW(Request_get_status);
    int over = 0;
    return below(request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && over;
}

static int begin(int error, MPI_Request request, uintptr_t on_device)
{
    pthread_mutex_lock(&mutex);
    if (!error && on_device && nmoving < MOST && place_of(request) == nmoving) {
        moving[nmoving].request = request;
        moving[nmoving++].at = on_device;
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

static void end(MPI_Request request)
{
    pthread_mutex_lock(&mutex);
    int i = place_of(request);
    if (i < nmoving)
        moving[i] = moving[--nmoving];
    pthread_mutex_unlock(&mutex);
}

/* The progress thread of nbcshim, where no other thread than it and the first calls the MPI. */
static bool is_progress_thread(void)
{
    const char *progress = getenv("NBCSHIM_PROGRESS");
    return progress && strcmp(progress, "thread") == 0 && gettid() != getpid();
}

/* The look-alike reports it if the context is not the current one. */
static void need_contexts(void)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < nmoving && is_progress_thread(); i++)
        to_hidden(moving[i].at);
    pthread_mutex_unlock(&mutex);
}

int PMPI_Isend(NBC_CONST void *buf, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    BELOW(Isend);
    uintptr_t at;
    void *hidden = translated(buf, count, type, &at);
    int error = below(hidden, count, type, peer, tag, comm, request);
    return begin(error, *request, !error && at && is_over(*request) ? 0 : at);
}

int PMPI_Irecv(void *buf, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    BELOW(Irecv);
    uintptr_t at;
    void *hidden = translated(buf, count, type, &at);
    int error = below(hidden, count, type, peer, tag, comm, request);
    return begin(error, *request, at);
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    BELOW(Test);
    MPI_Request before = *request;
    need_contexts();
    int error = below(request, flag, status);
    if (error || *flag)
        end(before);
    return error;
}

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    BELOW(Request_get_status);
    need_contexts();
    return below(request, flag, status);
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    BELOW(Wait);
    MPI_Request before = *request;
    int error = below(request, status);
    end(before);
    return error;
}

int PMPI_Testsome(int n, MPI_Request *requests, int *nover, int *over, MPI_Status *statuses)
{
    BELOW(Testsome);
    MPI_Request *before = malloc((size_t)n * sizeof *before + 1);
    memcpy(before, requests, (size_t)n * sizeof *before);
    need_contexts();
    int error = below(n, requests, nover, over, statuses);
    for (int i = 0; i < n; i++)
        if (requests[i] != before[i])
            end(before[i]);
    free(before);
    return error;
}

#if defined OPEN_MPI
/* The MCA parameter of a component for HCOLL, if NBC_HCOLL is set to its value; on one rank alone,
 * if NBC_HCOLL_RANK is set. */
enum { HCOLL_INDEX = 1 << 20 };

int mca_base_var_find_by_name(const char *name, int *index);
int mca_base_var_get_value(int index, const void *value, void *source, const char **file);

int mca_base_var_find_by_name(const char *name, int *index)
{
    static __typeof__(&mca_base_var_find_by_name) next;
    const char *only = getenv("NBC_HCOLL_RANK");
    int rank = -1;
    if (!next)
        find_below(&next, "mca_base_var_find_by_name");
    if (!getenv("NBC_HCOLL") || strcmp(name, "coll_hcoll_enable") != 0)
        return next(name, index);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (only && atoi(only) != rank)
        return next(name, index);
    *index = HCOLL_INDEX;
    return 0;
}

int mca_base_var_get_value(int index, const void *value, void *source, const char **file)
{
    static __typeof__(&mca_base_var_get_value) next;
    static int hcoll;
    if (!next)
        find_below(&next, "mca_base_var_get_value");
    if (index != HCOLL_INDEX)
        return next(index, value, source, file);
    hcoll = atoi(getenv("NBC_HCOLL"));
    *(const int **)(uintptr_t)value = &hcoll;
    return 0;
}
#endif

/* So nbcshim does not take it for a tool. */
__typeof__(MPI_Isend) MPI_Isend __attribute__((alias("PMPI_Isend")));
__typeof__(MPI_Irecv) MPI_Irecv __attribute__((alias("PMPI_Irecv")));
__typeof__(MPI_Test) MPI_Test __attribute__((alias("PMPI_Test")));
__typeof__(MPI_Request_get_status) MPI_Request_get_status
    __attribute__((alias("PMPI_Request_get_status")));
__typeof__(MPI_Wait) MPI_Wait __attribute__((alias("PMPI_Wait")));
__typeof__(MPI_Testsome) MPI_Testsome __attribute__((alias("PMPI_Testsome")));
