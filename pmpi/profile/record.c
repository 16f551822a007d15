/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profile/record.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/in_mpi.h"
#include "base/collect.h"
#include "below/detect.h"
#include "below/next.h"

#include "coll.h"

NBC_PER_THREAD const void *nbc_profile_caller, *nbc_profile_place;

static bool open_now;
static bool threaded; /* several threads at a time may call */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t begin_of_all, end_of_all; /* by the clock of rank 0 */

static void lock(void)
{
    if (threaded)
        pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    if (threaded)
        pthread_mutex_unlock(&mutex);
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

bool nbc_profile_skips(void)
{
    return nbc_in_mpi() || !open_now;
}

/* --- sites ------------------------------------------------------------------------------------ */

static struct nbc_site *sites; /* in the order of their first calls */

/* Whether an address is in the MPI's own code, which makes collective calls for other functions
 * (MPI_File_open); its Fortran bindings, which make those of the program, are other files. */
static bool is_of_mpi(const void *address)
{
    static const char *const names[] = {"libmpich.so", "libmpi.so",   "libmpi_abi.so",
                                        "libpmpi",     "libmpi_cray", "mca_"};
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return false; /* unreached: no object at the address */
    const char *base = nbc_base_name(info.dli_fname);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static struct nbc_site *site_find(const struct nbc_site_key *key)
{
    /* The last ones spare most calls the table. */
    static struct nbc_site *latest_sites[64];
    struct nbc_site **known = &latest_sites[(uintptr_t)key->stack / sizeof *key->stack % 64];
    struct nbc_site *s = *known;
    if (s && memcmp(&s->key, key, sizeof *key) == 0)
        return s;
    HASH_FIND(hh, sites, key, sizeof *key, s);
    if (!s && (s = calloc(1, sizeof *s))) {
        s->key = *key;
        s->foreign = is_of_mpi(key->stack->frame[0]);
        HASH_ADD(hh, sites, key, sizeof *key, s);
    }
    return *known = s;
}

/* --- requests --------------------------------------------------------------------------------- */

static struct nbc_pending *pending; /* by handle */
static struct nbc_pending *latest;  /* that was looked for */
static int npending;

/* Under the mutex. */
static struct nbc_pending *pending_find(MPI_Request request)
{
    struct nbc_pending *p = latest;
    if (p && p->request == request)
        return p;
    HASH_FIND(hh, pending, &request, sizeof request, p);
    return latest = p;
}

bool nbc_profile_any_pending(void)
{
    return __atomic_load_n(&npending, __ATOMIC_RELAXED) != 0;
}

static void count_pending(int more)
{
    __atomic_store_n(&npending, npending + more, __ATOMIC_RELAXED);
}

struct nbc_pending *nbc_profile_find(MPI_Request request)
{
    lock();
    struct nbc_pending *p = pending_find(request);
    unlock();
    return p && p->call.site ? p : NULL;
}

/* Under the mutex. */
static void request_drop(struct nbc_pending *p)
{
    p->call.site = NULL;
    p->active = false;
    count_pending(-1);
}

void nbc_profile_drop(struct nbc_pending *p)
{
    lock();
    request_drop(p);
    unlock();
}

/* MPIs give operations that are complete at once the same handle: the last one counts. Under the
 * mutex. */
static void request_add(MPI_Request request, const struct nbc_span *call, bool persistent)
{
    struct nbc_pending *p = pending_find(request);
    if (!p && !(p = calloc(1, sizeof *p)))
        return; /* unreached: no memory */
    count_pending(!p->call.site);
    p->call = *call;
    p->persistent = persistent;
    p->active = !persistent;
    if (p->hh.tbl)
        return;
    p->request = request;
    HASH_ADD(hh, pending, request, sizeof request, p);
}

/* --- calls ------------------------------------------------------------------------------------ */

/* An array has an entry for each process. */
static int64_t bytes_of_array(const struct nbc_call *call, const struct nbc_args *side)
{
    int size = 0, each;
    int64_t bytes = 0;
    NEXT(Comm_size)(call->comm, &size);
    if (!side->types)
        NEXT(Type_size)(side->type, &each);
    for (int i = 0; i < size; i++) {
        int64_t count = nbc_ints_at(side->counts, i);
        if (side->types && count)
            NEXT(Type_size)(side->types[i], &each);
        bytes += count ? count * each : 0;
    }
    return bytes;
}

/* The bytes of the vector or the block that this rank has, of an array the sum; −1: unknown. Asks
 * only about arguments that are significant. */
static int64_t bytes_of(const struct nbc_call *call)
{
    int inter = 1, each = 0;
    bool from_root = nbc_coll_has_root(call->coll) && !nbc_coll_is_to_root(call->coll);
    const struct nbc_args *side = from_root ? &call->recv : &call->send;
    if (call->coll == NBC_BARRIER)
        return 0;
    if (call->comm == MPI_COMM_WORLD)
        inter = 0;
    else if (call->comm != MPI_COMM_NULL)
        NEXT(Comm_test_inter)(call->comm, &inter);
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
    NEXT(Type_size)(side->type, &each);
    return each < 0 ? -1 : side->count * each;
}

void nbc_profile_begin(struct nbc_span *t, const struct nbc_call *call)
{
    struct nbc_site_key key = {.coll = call->coll, .kind = call->kind};
    t->bytes = bytes_of(call);
    key.size = t->bytes <= 0 ? -(t->bytes < 0) : 64 - __builtin_clzll((unsigned long long)t->bytes);
    key.python = nbc_python_find();
    lock();
    key.stack = nbc_stack_find(nbc_profile_caller, nbc_profile_place);
    t->site = key.stack ? site_find(&key) : NULL;
    if (t->site && t->site->foreign)
        t->site = NULL;
    unlock();
    nbc_in_mpi_enter();
    t->began = nbc_in_mpi_entered();
}

/* An operation begins, by a call that took so long. Under the mutex. */
static void count_start(const struct nbc_span *t, int64_t took)
{
    nbc_stats_start(&t->site->sums, t->bytes);
    t->site->starting += took;
    t->site->arrival += (double)(t->began.now + nbc_collect_offset - begin_of_all);
}

void nbc_profile_end(struct nbc_span *t, const MPI_Request *request, int error)
{
    int64_t took = nbc_in_mpi_leave();
    if (!t->site || error)
        return;
    lock();
    bool persistent = t->site->key.kind == NBC_KIND_PERSISTENT;
    if (persistent)
        t->site->starting += took;
    else
        count_start(t, took);
    if (request)
        request_add(*request, t, persistent);
    unlock();
}

void nbc_profile_started(struct nbc_pending *p, struct nbc_moment began, int64_t took)
{
    lock();
    p->call.began = began;
    p->active = true;
    count_start(&p->call, took);
    unlock();
}

void nbc_profile_waited(struct nbc_pending *p, int64_t took, bool done, struct nbc_moment now)
{
    lock();
    if (p->call.site) {
        p->call.site->waiting += took;
        if (done)
            nbc_stats_end(&p->call.site->sums, false, &p->call.began, &now);
        p->active = p->active && !done;
        if (done && !p->persistent)
            request_drop(p);
    }
    unlock();
}

/* --- beginning and end ------------------------------------------------------------------------ */

void nbc_profile_open(void)
{
    if (!getenv("NBCPROFILE") || open_now || !nbc_collect_begin())
        return;
    NEXT(Barrier)(nbc_collect_comm);
    begin_of_all = nbc_now() + nbc_collect_offset;
    NEXT(Bcast)(&begin_of_all, sizeof begin_of_all, MPI_BYTE, 0, nbc_collect_comm);
    int level = MPI_THREAD_MULTIPLE;
    NEXT(Query_thread)(&level);
    threaded = level == MPI_THREAD_MULTIPLE;
    nbc_python_setup();
    open_now = true;
}

/* A frame as others can find it: the address in its file, the symbol, and the file. */
static void write_frame(FILE *out, const void *frame)
{
    Dl_info info = {0};
    struct link_map *map = NULL;
    const char *file = "?", *symbol = "?";
    uintptr_t at = (uintptr_t)frame;
    if (dladdr1((const char *)frame - 1, &info, (void **)&map, RTLD_DL_LINKMAP) && map) {
        at -= map->l_addr;
        file = *map->l_name ? map->l_name : info.dli_fname;
        symbol = info.dli_sname ? info.dli_sname : "?";
    }
    fprintf(out, "\t%lx %s %s", (unsigned long)at, symbol, file);
}

static void write_site(FILE *out, int rank, const struct nbc_site *s)
{
    const int64_t sums[] = {s->key.size, s->sums.started, s->sums.bytes, s->starting,
                            s->waiting,  s->sums.flight,  s->sums.inside};
    fprintf(out, "call %d %s %d", rank, nbc_coll_name(s->key.coll), s->key.kind);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        fprintf(out, " %lld", (long long)sums[i]);
    fprintf(out, " %.0f", s->arrival);
    for (int i = 0; i < s->key.stack->n; i++)
        write_frame(out, s->key.stack->frame[i]);
    nbc_python_write(out, s->key.python);
    fputc('\n', out);
}

static void write_rank(FILE *out, int rank)
{
    char host[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int n;
    NEXT(Get_processor_name)(host, &n);
    fprintf(out, "rank %d %lld %s\n", rank, (long long)(end_of_all - begin_of_all), host);
    for (const struct nbc_site *s = sites; s; s = s->hh.next)
        if (!s->foreign)
            write_site(out, rank, s);
}

/* Whether nbcshim is there and does nothing: then this keyval of its interface is invalid. */
static bool nbcshim_is_inactive(void)
{
    const int *keyval = dlsym(RTLD_DEFAULT, "nbcshim_icoll_max_outstanding");
    return keyval && *keyval == MPI_KEYVAL_INVALID;
}

void nbc_profile_close(void)
{
    const char *name = getenv("NBCPROFILE");
    int rank, size;
    if (!open_now)
        return;
    end_of_all = nbc_now() + nbc_collect_offset;
    open_now = false;
    NEXT(Comm_rank)(nbc_collect_comm, &rank);
    NEXT(Comm_size)(nbc_collect_comm, &size);
    FILE *out = rank ? NULL : fopen(name, "w");
    int error = rank || out ? 0 : errno;
    if (out)
        fprintf(out, "nbcprofile 2 %d\n%s", size, nbcshim_is_inactive() ? "inactive\n" : "");
    nbc_collect(out, write_rank);
    if (out)
        fprintf(out, "end\n");
    if (out && fclose(out))
        error = errno;
    if (error)
        fprintf(stderr, "%s: %s\n", name, strerror(error));
    nbc_collect_end();
}
