/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME "nbcshim"

/* Beyond this limit of the user a larger file ends the process by SIGXFSZ. */
static bool may_be_so_large(size_t bytes)
{
    struct rlimit limit;
    return !getrlimit(RLIMIT_FSIZE, &limit) &&
           (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

int nbc_segment_create(size_t bytes)
{
#ifdef SYS_memfd_create
    const int close_at_exec = 1; /* MFD_CLOEXEC, which the C library of old systems lacks */
    int fd = may_be_so_large(bytes) ? (int)syscall(SYS_memfd_create, NAME, close_at_exec) : -1;
    if (fd < 0 || !ftruncate(fd, (off_t)bytes))
        return fd;
    close(fd);
#else
    (void)bytes;
#endif
    return -1;
}

/* The number may be that of a process elsewhere, and its descriptor anything. */
int nbc_segment_open(int process, int descriptor)
{
    static const char expected[] = "/memfd:" NAME " ";
    char path[64], target[sizeof expected];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
    ssize_t length = readlink(path, target, sizeof expected - 1);
    if (length < 0 || (size_t)length < sizeof expected - 1 ||
        memcmp(target, expected, (size_t)length))
        return -1;
    return open(path, O_RDWR | O_CLOEXEC);
}

bool nbc_segment_provide(int descriptor, size_t from, size_t n)
{
    int error;
    do
        error = posix_fallocate(descriptor, (off_t)from, (off_t)n);
    while (error == EINTR);
    return !error;
}

void *nbc_segment_map(int descriptor, size_t bytes)
{
    if (lseek(descriptor, 0, SEEK_END) != (off_t)bytes)
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void nbc_segment_unmap(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}
