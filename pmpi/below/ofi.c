/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/ofi.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "below/slot.h"

/* The beginning of struct fid_fabric, fid_domain and fid_cq of libfabric 1 and 2. */
struct object {
    size_t class;
    void *context, *ops;
    nbc_slot_function **table; /* in place of the first one its size in bytes */
};

/* The places of functions in the three tables. */
enum { FABRIC_DOMAIN = 1, DOMAIN_CQ_OPEN = 2, CQ_READ = 1, CQ_READFROM = 2 };

typedef int opens(void *parent, void *attributes, struct object **object, void *context);
typedef intptr_t reads(struct object *queue, void *entries, size_t count);
typedef intptr_t reads_from(struct object *queue, void *entries, size_t count, void *sources);

/* The MPI opens such objects one after the other. A copy is given back where that is possible, and
 * else stays: the MPI may use the object until the process ends. */
enum { COPIES = 16, WORDS = 24 };
static struct copy {
    bool used;
    nbc_slot_function **original;
    nbc_slot_function *table[WORDS];
} copies[COPIES];

static struct nbc_slot fabric_slot, search_slot;
static int nqueues;
static int (*wanted)(void);

static struct copy *copy_of(const struct object *o)
{
    return (struct copy *)((char *)o->table - offsetof(struct copy, table));
}

/* Gives the object a copy of its table. */
static bool copy_table(struct object *o)
{
    struct copy *c = copies;
    size_t size = (size_t)(uintptr_t)o->table[0];
    while (c < copies + COPIES && c->used)
        c++;
    if (c == copies + COPIES || size > sizeof c->table)
        return false;
    *c = (struct copy){.used = true, .original = o->table};
    memcpy(c->table, o->table, size);
    o->table = c->table;
    return true;
}

/* Gives the object its own table back. */
static void restore_table(struct object *o)
{
    struct copy *c = copy_of(o);
    o->table = c->original;
    c->used = false;
}

static void call_wanted(void)
{
    int (*function)(void) = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);
    if (function)
        function();
}

static intptr_t queue_read(struct object *queue, void *entries, size_t count)
{
    reads *next = (reads *)copy_of(queue)->original[CQ_READ];
    call_wanted();
    return next(queue, entries, count);
}

static intptr_t queue_readfrom(struct object *queue, void *entries, size_t count, void *sources)
{
    reads_from *next = (reads_from *)copy_of(queue)->original[CQ_READFROM];
    call_wanted();
    return next(queue, entries, count, sources);
}

/* The provider tcp of libfabric 2 recognizes its domains by the address of their table, so the
 * domain gets its own back. The first queue of a domain is that of all ordinary messages. */
static int open_queue(void *parent, void *attributes, struct object **queue, void *context)
{
    opens *next = (opens *)copy_of(parent)->original[DOMAIN_CQ_OPEN];
    restore_table(parent);
    int error = next(parent, attributes, queue, context);
    if (error || !copy_table(*queue))
        return error;
    (*queue)->table[CQ_READ] = (nbc_slot_function *)queue_read;
    (*queue)->table[CQ_READFROM] = (nbc_slot_function *)queue_readfrom;
    nqueues++;
    return 0;
}

static int open_domain(void *parent, void *info, struct object **domain, void *context)
{
    opens *next = (opens *)copy_of(parent)->original[FABRIC_DOMAIN];
    int error = next(parent, info, domain, context);
    if (!error && copy_table(*domain))
        (*domain)->table[DOMAIN_CQ_OPEN] = (nbc_slot_function *)open_queue;
    return error;
}

/* --- how the MPI finds libfabric --------------------------------------------------------------*/

typedef int opens_fabric(void *attributes, struct object **fabric, void *context);
typedef void *searches(void *restrict handle, const char *restrict name,
                       const char *restrict version);

static opens_fabric *next_fabric;

static int open_fabric(void *attributes, struct object **fabric, void *context)
{
    int error = next_fabric(attributes, fabric, context);
    if (!error && copy_table(*fabric))
        (*fabric)->table[FABRIC_DOMAIN] = (nbc_slot_function *)open_domain;
    return error;
}

/* Intel MPI loads libfabric and looks its functions up. dlvsym itself is reached by a jump: for
 * RTLD_NEXT it looks at its return address. */
static void *search(void *restrict handle, const char *restrict name, const char *restrict version)
{
    searches *next = (searches *)search_slot.original;
    if (strcmp(name, "fi_fabric") != 0)
        return next(handle, name, version);
    void *object = next(handle, name, version);
    opens_fabric *mine = open_fabric;
    if (!object)
        return NULL;
    memcpy(&next_fabric, &object, sizeof next_fabric);
    memcpy(&object, &mine, sizeof object);
    return object;
}

void nbc_ofi_watch(void)
{
    if (nbc_ofi_may_open()) {
        next_fabric = (opens_fabric *)fabric_slot.original;
        nbc_slot_set(&fabric_slot, (nbc_slot_function *)open_fabric);
    }
    if (nbc_slot_find("dlvsym", &search_slot))
        nbc_slot_set(&search_slot, (nbc_slot_function *)search);
}

static void give_back(struct nbc_slot *slot)
{
    if (slot->original)
        nbc_slot_set(slot, slot->original);
    slot->original = NULL;
}

void nbc_ofi_unwatch(void)
{
    give_back(&fabric_slot);
    give_back(&search_slot);
}

bool nbc_ofi_may_open(void)
{
    return nbc_slot_find("fi_fabric", &fabric_slot);
}

bool nbc_ofi_has_queue(void)
{
    return nqueues > 0;
}

void nbc_ofi_call(int (*function)(void))
{
    __atomic_store_n(&wanted, function, __ATOMIC_RELEASE);
}
