/* An MPI that takes an inactive persistent request to or from MPI_PROC_NULL for a complete one, as
 * Intel MPI does: MPI_Testany and its kin report it in each call, with the status of a message from
 * there. Preloaded below nbcshim. */
#include "below.h"

#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static MPI_Request *list; /* such requests */
static int n, room;

static void add(MPI_Request request)
{
    pthread_mutex_lock(&mutex);
    if (n == room)
        list = realloc(list, (size_t)(room = 2 * room + 8) * sizeof *list);
    list[n++] = request;
    pthread_mutex_unlock(&mutex);
}

/* Whether it is in the list, from which it is removed if it is to be freed. */
static bool is_such(MPI_Request request, bool removed)
{
    int i = 0;
    pthread_mutex_lock(&mutex);
    while (i < n && list[i] != request)
        i++;
    bool found = i < n;
    if (found && removed)
        list[i] = list[--n];
    pthread_mutex_unlock(&mutex);
    return found;
}

/* The first one at or after a place of an array; its length if there is none. */
static int next_such(int length, const MPI_Request *requests, int from)
{
    while (from < length && !(requests[from] != MPI_REQUEST_NULL && is_such(requests[from], false)))
        from++;
    return from;
}

static void set(MPI_Status *status)
{
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = MPI_ANY_TAG;
}

#define FUNCTION(name, parameters) int PMPI_##name parameters

FUNCTION(Recv_init, (void *buf, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                     MPI_Request *request))
{
    BELOW(Recv_init);
    int error = below(buf, count, type, peer, tag, comm, request);
    if (!error && peer == MPI_PROC_NULL)
        add(*request);
    return error;
}

FUNCTION(Send_init, (const void *buf, int count, MPI_Datatype type, int peer, int tag,
                     MPI_Comm comm, MPI_Request *request))
{
    BELOW(Send_init);
    int error = below(buf, count, type, peer, tag, comm, request);
    if (!error && peer == MPI_PROC_NULL)
        add(*request);
    return error;
}

FUNCTION(Request_free, (MPI_Request * request))
{
    BELOW(Request_free);
    is_such(*request, true);
    return below(request);
}

FUNCTION(Testany, (int length, MPI_Request *requests, int *index, int *flag, MPI_Status *status))
{
    BELOW(Testany);
    int such = next_such(length, requests, 0);
    int error = below(length, requests, index, flag, status);
    if (error || such == length || (*flag && *index != MPI_UNDEFINED))
        return error;
    *flag = 1;
    *index = such;
    if (status != MPI_STATUS_IGNORE)
        set(status);
    return error;
}

FUNCTION(Waitany, (int length, MPI_Request *requests, int *index, MPI_Status *status))
{
    BELOW(Waitany);
    int flag;
    if (next_such(length, requests, 0) == length)
        return below(length, requests, index, status);
    return PMPI_Testany(length, requests, index, &flag, status);
}

FUNCTION(Testsome,
         (int length, MPI_Request *requests, int *count, int *indices, MPI_Status *statuses))
{
    BELOW(Testsome);
    int such = next_such(length, requests, 0);
    int error = below(length, requests, count, indices, statuses);
    if (error || such == length)
        return error;
    if (*count == MPI_UNDEFINED)
        *count = 0;
    int below_count = *count;
    for (; such < length; such = next_such(length, requests, such + 1)) {
        bool active = false;
        for (int i = 0; i < below_count; i++)
            active |= indices[i] == such;
        if (active)
            continue;
        if (statuses != MPI_STATUSES_IGNORE)
            set(&statuses[*count]);
        indices[(*count)++] = such;
    }
    return error;
}

FUNCTION(Waitsome,
         (int length, MPI_Request *requests, int *count, int *indices, MPI_Status *statuses))
{
    BELOW(Waitsome);
    if (next_such(length, requests, 0) == length)
        return below(length, requests, count, indices, statuses);
    return PMPI_Testsome(length, requests, count, indices, statuses);
}
