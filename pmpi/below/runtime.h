/* SPDX-License-Identifier: MIT */
/* A runtime of devices, as device.c uses it: a row of its table. */
#ifndef NBC_RUNTIME_H
#define NBC_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions that have the same parameters in CUDA and HIP, in the order of `names`. They return
 * 0 or an error; addresses of a device are integers in CUDA and pointers in HIP. */
struct nbc_runtime_functions {
    int (*stream_new)(void **stream, unsigned flags);
    int (*stream_free)(void *stream);
    int (*event_new)(void **event, unsigned flags);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*fetch)(void *host, uintptr_t device, size_t n, void *stream);
    int (*store)(uintptr_t device, const void *host, size_t n, void *stream);
    int (*pin)(void *memory, size_t size, unsigned flags);
    int (*unpin)(void *memory);
    int (*move)(uintptr_t to, uintptr_t from, size_t n, void *stream);
};

enum { NBC_NFUNCTIONS = sizeof(struct nbc_runtime_functions) / sizeof(void *) };

enum { NBC_NOT_READY = 600 }; /* event_query's answer */

/* Where an address is. */
struct nbc_place {
    bool device;
    bool waits; /* what has been written there is there when the call returns */
    void *context;
    uintptr_t start;
    size_t size;
};

/* Rows of `length` bytes, `pitch` bytes apart in both memories. */
struct nbc_rows {
    uintptr_t on_device, on_host;
    int64_t length, pitch, n;
};

/* What an MPI says of the runtime: MPIX_GPU_query_support knows it by the number. */
struct nbc_aware {
    const char *names[2]; /* of functions without arguments */
    int number;
    int asked; /* 0: not yet; 1: no; 2: yes */
};

struct nbc_runtime {
    const char *library;
    struct nbc_aware aware;
    const char *names[NBC_NFUNCTIONS]; /* NULL: it has none */
    void *own; /* its own functions: pointers, in the order of their names, which NULL ends */
    const char *const *own_names;
    bool (*locate)(uintptr_t at, struct nbc_place *p); /* false: the runtime does not know it */
    int (*enter)(void *context, void **before); /* makes the context current in this thread */
    void (*leave)(void *before);
    int (*copy_rows)(bool store, const struct nbc_rows *rows, void *stream);
    const char *rows_name; /* of the function that it calls */
    const char *(*words)(int error);
    void *(*memory_new)(size_t size); /* of the host, which copies need; NULL: any will do */
    void (*memory_free)(void *memory);
    void (*end)(void);      /* nothing of it is used any more; or NULL */
    bool found, is_refused; /* is_refused: it lacks a function, or nobody has asked for it */
    union {
        struct nbc_runtime_functions f;
        void *any[NBC_NFUNCTIONS];
    };
};

extern struct nbc_runtime nbc_level_zero;

/* The functions that one runtime alone has, of a list of rows F(type, function, name, parameters).
 */
#define NBC_RUNTIME_POINTER(type, function, name, parameters) type(*function) parameters;
#define NBC_RUNTIME_NAME(type, function, name, parameters) name,
#define NBC_RUNTIME_OWN(LIST, own) \
    static struct {                \
        LIST(NBC_RUNTIME_POINTER)  \
    } own;                         \
    static const char *const own##_names[] = {LIST(NBC_RUNTIME_NAME) NULL};

#endif
