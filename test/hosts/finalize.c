/* SPDX-License-Identifier: MIT */
/* Preloaded into the ranks of MPICH 4.0 on several hosts, which otherwise often hangs in
 * MPI_Finalize, with nbcshim or without: a rank that has closed its connections waits for a message
 * of the process manager, and no longer answers ranks that still close theirs (MPICH's pull request
 * 6596). Here it answers them until that message is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

unsigned ucp_worker_progress(void *worker);
void *ucp_disconnect_nb(void *endpoint);
void ucp_worker_destroy(void *worker);

static void *latest; /* the worker that has made progress last */
static int closing;

static void find(void *function, const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(function, &address, sizeof address);
}

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*below)(void *);
    if (!below)
        find(&below, "ucp_worker_progress");
    latest = worker;
    return below(worker);
}

void *ucp_disconnect_nb(void *endpoint)
{
    static void *(*below)(void *);
    if (!below)
        find(&below, "ucp_disconnect_nb");
    closing = 1;
    return below(endpoint);
}

void ucp_worker_destroy(void *worker)
{
    static void (*below)(void *);
    if (!below)
        find(&below, "ucp_worker_destroy");
    closing = 0;
    below(worker);
}

ssize_t read(int fd, void *data, size_t size)
{
    static ssize_t (*below)(int, void *, size_t);
    struct pollfd there = {fd, POLLIN, 0};
    if (!below)
        find(&below, "read");
    while (closing && latest && poll(&there, 1, 0) == 0)
        if (!ucp_worker_progress(latest))
            sched_yield();
    return below(fd, data, size);
}
