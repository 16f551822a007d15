/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profile/record.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/next.h"

#include "coll.h"

_Thread_local const void *nbc_profile_caller;

static _Thread_local int depth; /* of calls of the program, and of calls within them */
static bool open_now;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t begin_of_all, offset; /* rank 0's clock minus this rank's */

int64_t nbc_profile_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void (*nbc_profile_next(const char *name))(void)
{
    char symbol[64];
    void (*found)(void);
    snprintf(symbol, sizeof symbol, "PMPI_%s", name);
    void *object = dlsym(RTLD_NEXT, symbol);
    if (!object) {
        fprintf(stderr, "nbcprofile: this MPI lacks MPI_%s, which the program calls\n", name);
        exit(3);
    }
    memcpy(&found, &object, sizeof found); /* POSIX permits the conversion */
    return found;
}

void nbc_profile_enter(void)
{
    depth++;
}

void nbc_profile_leave(void)
{
    depth--;
}

bool nbc_profile_skips(void)
{
    return depth > 0 || !open_now;
}

/* --- sites ---------------------------------------------------------------------------------------
 */

/* All sites, in the order of their first calls; `table` finds them: open addressing, a power of
 * two. Sites never move. */
static struct nbc_site **sites, **table;
static size_t nsites, room;

static size_t hash(const void *address, uint64_t rest)
{
    return (size_t)(((uint64_t)(uintptr_t)address ^ rest << 48) * UINT64_C(0x9e3779b97f4a7c15) >>
                    20);
}

static struct nbc_site **site_place(const struct nbc_site *key)
{
    uint64_t rest = (uint64_t)key->coll << 8 ^ (uint64_t)key->kind << 6 ^ (uint64_t)(key->size + 1);
    for (size_t i = hash(key->address, rest);; i++) {
        struct nbc_site **at = &table[i & (room - 1)];
        if (!*at || ((*at)->address == key->address && (*at)->coll == key->coll &&
                     (*at)->kind == key->kind && (*at)->size == key->size))
            return at;
    }
}

/* Returns false without memory. */
static bool sites_grow(void)
{
    size_t more = room ? 2 * room : 256;
    struct nbc_site **list = realloc(sites, more * sizeof *list), **t = calloc(more, sizeof *t);
    if (list)
        sites = list;
    if (!list || !t) {
        /* unreached below: no memory */
        free(t);
        return false;
    }
    free(table);
    table = t;
    room = more;
    for (size_t i = 0; i < nsites; i++)
        *site_place(sites[i]) = sites[i];
    return true;
}

/* Whether an address is in the MPI's own code, which makes collective calls for other functions
 * (MPI_File_open); its Fortran bindings, which make those of the program, are other files. */
static bool is_of_mpi(const void *address)
{
    static const char *const names[] = {"libmpich.so", "libmpi.so",   "libmpi_abi.so",
                                        "libpmpi",     "libmpi_cray", "mca_"};
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return false; /* unreached: no object at the address */
    const char *base = strrchr(info.dli_fname, '/');
    base = base ? base + 1 : info.dli_fname;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static struct nbc_site *site_find(const struct nbc_site *key)
{
    if (2 * nsites >= room && !sites_grow())
        return NULL; /* unreached: no memory */
    struct nbc_site **at = site_place(key);
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (*at) {
            **at = *key;
            (*at)->foreign = is_of_mpi(key->address);
            sites[nsites++] = *at;
        }
    }
    return *at;
}

/* --- requests ------------------------------------------------------------------------------------
 */

/* By handle. Chains, because requests are removed all the time. */
struct entry {
    MPI_Request request;
    struct nbc_pending pending;
    struct entry *next;
};

enum { CHAINS = 4096 };

static struct entry *chains[CHAINS], *spare;
static int npending;

static struct entry **chain_of(MPI_Request request)
{
    uint64_t key = 0;
    memcpy(&key, &request, sizeof request);
    struct entry **e = &chains[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
    while (*e && (*e)->request != request)
        e = &(*e)->next;
    return e;
}

bool nbc_profile_any_pending(void)
{
    return __atomic_load_n(&npending, __ATOMIC_RELAXED) != 0;
}

struct nbc_pending *nbc_profile_find(MPI_Request request)
{
    pthread_mutex_lock(&mutex);
    struct entry *e = *chain_of(request);
    pthread_mutex_unlock(&mutex);
    return e ? &e->pending : NULL;
}

void nbc_profile_drop(MPI_Request request)
{
    pthread_mutex_lock(&mutex);
    struct entry **at = chain_of(request), *e = *at;
    if (e) {
        *at = e->next;
        e->next = spare;
        spare = e;
        __atomic_store_n(&npending, npending - 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&mutex);
}

/* MPIs give operations that are complete at once the same handle: the last one counts. Under the
 * mutex. */
static void request_add(MPI_Request request, struct nbc_pending pending)
{
    struct entry **at = chain_of(request);
    if (!*at) {
        struct entry *e = spare;
        if (e)
            spare = e->next;
        else
            e = malloc(sizeof *e);
        if (!e)
            return; /* unreached: no memory */
        *e = (struct entry){.request = request};
        *at = e;
        __atomic_store_n(&npending, npending + 1, __ATOMIC_RELAXED);
    }
    (*at)->pending = pending;
}

/* --- calls ---------------------------------------------------------------------------------------
 */

/* An array has an entry for each process. */
static int64_t bytes_of_array(const struct nbc_call *call, const struct nbc_args *side)
{
    int size = 0, each;
    int64_t bytes = 0;
    PROFILE_NEXT(Comm_size)(call->comm, &size);
    if (!side->types)
        PROFILE_NEXT(Type_size)(side->type, &each);
    for (int i = 0; i < size; i++) {
        int64_t count = nbc_ints_at(side->counts, i);
        if (side->types && count)
            PROFILE_NEXT(Type_size)(side->types[i], &each);
        bytes += count ? count * each : 0;
    }
    return bytes;
}

static bool takes_from_root(enum nbc_coll coll)
{
    return coll == NBC_BCAST || coll == NBC_SCATTER || coll == NBC_SCATTERV;
}

/* The bytes of the vector or the block that this rank has, of an array the sum; −1: unknown. Asks
 * only about arguments that are significant. */
static int64_t bytes_of(const struct nbc_call *call)
{
    int inter = 1, each = 0;
    const struct nbc_args *side = takes_from_root(call->coll) ? &call->recv : &call->send;
    if (call->coll == NBC_BARRIER)
        return 0;
    if (call->comm != MPI_COMM_NULL)
        PROFILE_NEXT(Comm_test_inter)(call->comm, &inter);
    if (inter)
        return -1;
    if (side->buf == MPI_IN_PLACE)
        side = side == &call->send ? &call->recv : &call->send;
    if (call->coll == NBC_REDUCE_SCATTER)
        side = &call->send; /* has the counts, in place too */
    if (side->counts.data)
        return nbc_coll_is_neighborhood(call->coll) ? -1 : bytes_of_array(call, side);
    if (side->types || side->count < 0 || side->type == MPI_DATATYPE_NULL)
        return -1; /* unreached: erroneous: no count or type */
    PROFILE_NEXT(Type_size)(side->type, &each);
    return each < 0 ? -1 : side->count * each;
}

static int size_class(int64_t bytes)
{
    return bytes < 0 ? -1 : bytes ? 64 - __builtin_clzll((unsigned long long)bytes) : 0;
}

void nbc_profile_begin(struct nbc_timed *t, const struct nbc_call *call, enum nbc_kind kind)
{
    struct nbc_site key = {.address = nbc_profile_caller, .coll = call->coll, .kind = kind};
    nbc_profile_enter();
    t->bytes = bytes_of(call);
    key.size = size_class(t->bytes);
    pthread_mutex_lock(&mutex);
    t->site = site_find(&key);
    if (t->site && t->site->foreign)
        t->site = NULL;
    pthread_mutex_unlock(&mutex);
    t->began = nbc_profile_now();
}

/* Under the mutex. */
static void count_call(struct nbc_site *s, int64_t began, int64_t bytes)
{
    s->calls++;
    s->bytes += bytes > 0 ? bytes : 0;
    s->arrival += (double)(began + offset - begin_of_all);
}

void nbc_profile_end(struct nbc_timed *t, const MPI_Request *request, int error)
{
    int64_t now = nbc_profile_now();
    struct nbc_site *s = t->site;
    nbc_profile_leave();
    if (!s || error)
        return;
    pthread_mutex_lock(&mutex);
    bool persistent = s->kind == NBC_KIND_PERSISTENT;
    s->inside += now - t->began;
    if (!persistent)
        count_call(s, t->began, t->bytes);
    if (request)
        request_add(*request, (struct nbc_pending){.site = s,
                                                   .began = t->began,
                                                   .bytes = t->bytes,
                                                   .persistent = persistent,
                                                   .active = !persistent});
    pthread_mutex_unlock(&mutex);
}

void nbc_profile_started(struct nbc_pending *p, int64_t began, int64_t now)
{
    pthread_mutex_lock(&mutex);
    count_call(p->site, began, p->bytes);
    p->site->inside += now - began;
    p->began = began;
    p->active = true;
    pthread_mutex_unlock(&mutex);
}

void nbc_profile_waited(struct nbc_pending *p, int64_t took, bool done, int64_t now)
{
    pthread_mutex_lock(&mutex);
    p->site->waiting += took;
    if (done) {
        p->site->flight += now - p->began;
        p->active = false;
    }
    pthread_mutex_unlock(&mutex);
}

/* --- beginning and end ---------------------------------------------------------------------------
 */

/* The fastest of some round trips tells how far rank 0's clock is ahead. */
static void compare_clocks(int rank, int size)
{
    enum { PINGS = 5, TAG = 7 };
    int64_t there, least = INT64_MAX;
    for (int peer = 1; rank == 0 && peer < size; peer++)
        for (int i = 0; i < PINGS; i++) {
            PROFILE_NEXT(Recv)(NULL, 0, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            there = nbc_profile_now();
            PROFILE_NEXT(Send)(&there, sizeof there, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        }
    for (int i = 0; rank > 0 && i < PINGS; i++) {
        int64_t begin = nbc_profile_now();
        PROFILE_NEXT(Send)(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        PROFILE_NEXT(Recv)
        (&there, sizeof there, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int64_t trip = nbc_profile_now() - begin;
        if (trip < least) {
            least = trip;
            offset = there - (begin + trip / 2);
        }
    }
}

void nbc_profile_open(void)
{
    int rank, size;
    if (!getenv("NBCPROFILE") || open_now)
        return;
    PROFILE_NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    PROFILE_NEXT(Comm_size)(MPI_COMM_WORLD, &size);
    compare_clocks(rank, size);
    PROFILE_NEXT(Barrier)(MPI_COMM_WORLD);
    begin_of_all = nbc_profile_now() + offset;
    PROFILE_NEXT(Bcast)(&begin_of_all, sizeof begin_of_all, MPI_BYTE, 0, MPI_COMM_WORLD);
    open_now = true;
}

/* A call site as others can find it: the file, and the address in it. nbccompare reads so much of a
 * symbol, and what follows it as the file. */
static void write_site(FILE *out, int rank, const struct nbc_site *s)
{
    Dl_info info = {0};
    struct link_map *map = NULL;
    const char *file = "?", *symbol = "?";
    uintptr_t at = (uintptr_t)s->address;
    if (dladdr1(s->address, &info, (void **)&map, RTLD_DL_LINKMAP) && map) {
        at -= map->l_addr;
        file = *map->l_name ? map->l_name : info.dli_fname;
        symbol = info.dli_sname ? info.dli_sname : "?";
    }
    fprintf(out, "call %d %s %d %d %lld %lld %lld %lld %lld %.0f %lx %.63s %s\n", rank,
            nbc_coll_name(s->coll), (int)s->kind, s->size, (long long)s->calls, (long long)s->bytes,
            (long long)s->inside, (long long)s->waiting, (long long)s->flight, s->arrival,
            (unsigned long)at, symbol, file);
}

/* What this rank tells rank 0. */
static char *text_of_rank(int rank, int64_t wall, size_t *length)
{
    char host[MPI_MAX_PROCESSOR_NAME + 1] = "", *text = NULL;
    int n;
    FILE *out = open_memstream(&text, length);
    if (!out)
        return NULL; /* unreached: no memory */
    PROFILE_NEXT(Get_processor_name)(host, &n);
    fprintf(out, "rank %d %lld %s\n", rank, (long long)wall, host);
    for (size_t i = 0; i < nsites; i++)
        if (!sites[i]->foreign)
            write_site(out, rank, sites[i]);
    return fclose(out) ? NULL : text;
}

static void write_all(const char *text, size_t length, int size)
{
    const char *name = getenv("NBCPROFILE");
    FILE *out = fopen(name, "w");
    if (!out) {
        perror(name);
        return;
    }
    fprintf(out, "nbcprofile 1 %d\n", size);
    fwrite(text, 1, length, out);
    fprintf(out, "end\n");
    if (fclose(out))
        perror(name);
}

/* Rank 0 gathers the texts of all ranks. */
static void gather(const char *text, int length, int rank, int size)
{
    int *lengths = NULL, *places = NULL, total = 0;
    char *all = NULL;
    if (rank == 0) {
        lengths = calloc(size, sizeof *lengths);
        places = calloc(size, sizeof *places);
    }
    PROFILE_NEXT(Gather)(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; i++) {
        places[i] = total;
        total += lengths[i];
    }
    if (rank == 0)
        all = malloc(total + 1);
    PROFILE_NEXT(Gatherv)
    ((void *)(uintptr_t)text, length, MPI_CHAR, all, lengths, places, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        write_all(all, total, size);
    free(all);
    free(places);
    free(lengths);
}

void nbc_profile_close(void)
{
    int rank, size;
    size_t length = 0;
    if (!open_now)
        return;
    int64_t wall = nbc_profile_now() + offset - begin_of_all;
    open_now = false;
    PROFILE_NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    PROFILE_NEXT(Comm_size)(MPI_COMM_WORLD, &size);
    char *text = text_of_rank(rank, wall, &length);
    gather(text ? text : "", text ? (int)length : 0, rank, size);
    free(text);
}
