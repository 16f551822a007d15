/* SPDX-License-Identifier: MIT */
/* The context: the record of a communicator. It knows the hidden communicator that carries the
 * messages of its collectives, and the tags in use there. The hidden communicator is the duplicate
 * of MPI_COMM_WORLD, of which the context has a range of tags (ranges.h), or a duplicate of its
 * own: where ranges have run out, where processes are not in MPI_COMM_WORLD, or before MPI_Init.
 * Under the lock of lock.h unless stated. */
#ifndef NBC_CONTEXT_H
#define NBC_CONTEXT_H

#include "base/errors.h"
#include "base/settings.h"
#include "base/tag_space.h"
#include "op/members.h"
#include "below/next.h"
#include "below/revoked.h"
#include "base/table.h"
#include "ranges.h"

struct nbc_hints;
struct nbc_request;

/* The life of a context, in this order; a step may be omitted. MPI_Comm_free that fails returns it
 * from FREEING to LIVE. */
enum nbc_context_life {
    /* The program has the communicator. */
    NBC_CONTEXT_LIVE,
    /* MPI_Comm_free or MPI_Comm_disconnect is freeing the communicator. The program's attribute
     * callbacks may still use it. */
    NBC_CONTEXT_FREEING,
    /* The program's communicator no longer exists; `user` is MPI_COMM_NULL. Pending operations
     * continue. */
    NBC_CONTEXT_FREED,
    /* A duplicate of its own no longer exists either. No operation starts. */
    NBC_CONTEXT_DISCONNECTED
};

/* Whether messages on the hidden communicator reach their operations; the value only increases. */
enum nbc_delivery {
    NBC_DELIVERY_SOUND,
    NBC_DELIVERY_LEAKS, /* messages may arrive that no operation receives, see
                         * nbc_context_mark_undeliverable */
    NBC_DELIVERY_LOST   /* an operation might receive the messages of a failed one: none starts */
};

/* The nonblocking operations of a communicator, or its blocking ones: each kind is numbered by
 * itself, and uses a ring of tags in turn.
 *
 * The two are apart because an MPI keeps them apart: a program whose ranks call a blocking and a
 * nonblocking collective in different orders is erroneous, but runs, and a blocking call does not
 * match a nonblocking one. Calls that nbcshim makes for itself (barriers before constructors,
 * agreements in ..._init) are blocking ones; all ranks make them in the same order relative to
 * those of the program. (While calls are checked, one queue has all, and the other the checks.)
 *
 * Blocking calls on a communicator follow one another, and MPI matches messages of two ranks in
 * order, so one tag would do for all right ones. But ranks that disagree on a length may send
 * messages that nobody receives, which must not reach the next calls. */
struct nbc_queue {
    int64_t next_seq;             /* number of the next call, the same on every rank */
    int64_t end_seq;              /* the first number for which no operation may start */
    int first_tag, ring;          /* the tags that they use in turn */
    struct nbc_request *pending;  /* incomplete operations, oldest first */
    struct nbc_request *deferred; /* the oldest of them that has not started, or NULL */
    int nstarted;                 /* started and incomplete operations */
};

/* A message from one rank to another: barrier_before.h. */
struct nbc_signal {
    int kind, number;
    int value; /* content, if the kind has any */
};

/* A signal that has arrived and for which no call has waited yet. */
struct nbc_mail {
    struct nbc_signal signal;
    int source;
    struct nbc_mail *prev, *next;
};

/* A call of a collective, for hang reports: the fields of struct nbc_call, in their order. */
struct nbc_recent {
    uint8_t coll, purpose, kind;
    bool large;
    int32_t root;
    const void *site;
    int64_t bytes; /* result of nbc_shape_bytes */
};

enum { NBC_NRECENT = 16 };

struct nbc_context {
    enum nbc_context_life life;
    enum nbc_delivery delivery;
    MPI_Comm user;   /* the program's communicator; MPI_COMM_NULL from FREED on */
    MPI_Comm hidden; /* carries the messages; a duplicate is MPI_COMM_NULL from DISCONNECTED on */
    struct nbc_context *host;              /* whose hidden communicator it is; NULL: its own */
    int range;                             /* in `hidden`; NBC_NO_RANGE: it has all tags */
    const struct nbc_tag_space *tag_space; /* their division */
    bool spans_jobs;                       /* or some processes may not have called MPI_Init */
    uint64_t key;                          /* for searches of ranges, the same on all ranks */
    uint64_t nsearches;                    /* so far, the same on all ranks */
    struct nbc_spare_ranges spare;         /* for communicators that are made of this one */
    struct nbc_members members;
    struct nbc_queue queue, blocking;
    struct nbc_tags *tags;            /* of persistent operations; NULL until first needed */
    struct nbc_plans *plans;          /* of earlier calls */
    struct nbc_hints *hints;          /* from its info, or NULL */
    char *name;                       /* that the program has given it, or NULL */
    struct nbc_mail *mail;            /* in the order of arrival */
    int nobjects;                     /* windows and files that have a persistent barrier */
    int64_t nduplicates, nduplicated; /* calls of MPI_Comm_idup, those that the MPI has done */
    int nby_mpi; /* pending, carried out by the MPI: counted if NBC_ENDS_WITH_COMM */
    int uses;    /* active and persistent operations, which may communicate */

    /* The communicator has the attribute with the context. Only the thread that makes or frees the
     * communicator uses this, without the lock. */
    bool has_attribute;

    /* From FREEING on: the error handler of the communicator, or MPI_ERRHANDLER_NULL. It is freed
     * with the context, but never if errors may still be raised with it (keeps_handler). */
    MPI_Errhandler handler;
    bool keeps_handler;

    bool ends;                /* the program has freed it, or does */
    bool revoked;             /* the program's communicator is: it stays so */
    bool found;               /* in the table of nbc_context_find */
    struct nbc_context *next; /* in the lists of context.c */
    UT_hash_handle hh;

    uint32_t ncalls; /* of the program */
    /* The last of them, in turn. Not initialized, since that costs as much as the rest. */
    struct nbc_recent recent[NBC_NRECENT];
};

/* Frees the contexts that are dead. Without the lock. Local. */
void nbc_context_reclaim(void);

/* Creates the keyvals, before the first nbc_context_attach. Without the lock. Returns an MPI error
 * code. */
int nbc_context_setup(void);

/* From what the context of a new communicator is made. All zero but `range`, which is NBC_NO_RANGE:
 * of a communicator whose processes may be in other jobs. */
struct nbc_origin {
    struct nbc_context *parent; /* in the same MPI_COMM_WORLD; or NULL */
    bool duplicate;             /* has the processes of the parent, in the same order */
    uint64_t key;               /* of the new context */
    int range;       /* which the new context takes over if it is made; or NBC_NO_RANGE */
    MPI_Comm hidden; /* without a range: a duplicate, likewise */
};

/* Begins the creation of a communicator from a parent: a new key, and a spare range if the parent
 * has one, which are the same on all ranks of the parent if they all make this call. Under the
 * lock. Local. */
struct nbc_origin nbc_origin_of(struct nbc_context *parent, bool duplicate);

/* Gives the range back, since the communicator could not be made. Without the lock. */
void nbc_origin_drop(const struct nbc_origin *origin);

/* Creates the context of a new communicator; comm may be MPI_COMM_NULL. The range is given back
 * then, and after an error. Without a range makes the duplicate, collective over comm. Without the
 * lock. Returns an MPI error code. */
int nbc_context_attach(MPI_Comm comm, struct nbc_origin *origin);

/* The same where the caller has made the duplicate. Local. Without the lock. */
int nbc_context_adopt(MPI_Comm comm, const struct nbc_origin *origin);

/* The ranges of tags of this process, in the duplicate of MPI_COMM_WORLD. Under the lock, which a
 * search may release temporarily. */
extern struct nbc_ranges nbc_ranges;

/* Creates the contexts of MPI_COMM_WORLD, whose duplicate has the ranges, and MPI_COMM_SELF.
 * Collective over MPI_COMM_WORLD. Without the lock. Returns an MPI error code. */
int nbc_context_attach_world(void);

/* Completes the members of a context, before anything is sent in it: most communicators of some
 * programs never have a collective of nbcshim. Local. Returns an MPI error code. */
int nbc_context_complete_slow(struct nbc_context *c);

static inline int nbc_context_complete(struct nbc_context *c)
{
    return c->members.later ? nbc_context_complete_slow(c) : MPI_SUCCESS;
}

/* The ranks in c->hidden by rank of the communicator, with an intercommunicator of the remote
 * group; NULL: the same. The members are complete. */
static inline const int *nbc_context_ranks(const struct nbc_context *c)
{
    return c->members.world ? c->members.world->of : NULL;
}

/* The context of a communicator, NULL if there is none (for a null or invalid handle). */
struct nbc_context *nbc_context_find(MPI_Comm comm);

/* The contexts of the program's communicators, the last one first: the one after c, which is NULL
 * at the beginning and at the end. */
const struct nbc_context *nbc_context_after(const struct nbc_context *c);

/* Reads the hints of an info that is set on a communicator. Without the lock. Local. Returns an MPI
 * error code. */
int nbc_context_hint(MPI_Comm comm, MPI_Info info);

/* What becomes of buffers in a device's memory, as the environment, the info of a call, and that of
 * the communicator say, in this order; AUTO if none does. */
enum nbc_device_use nbc_context_device_use(const struct nbc_context *c,
                                           enum nbc_device_use of_call);

/* To be called before MPI_Comm_free and MPI_Comm_disconnect below: returns the context, NULL if
 * there is none. The program's attribute callbacks may use the context until nbc_context_ended.
 *
 * If the lock is in use (nbc_threaded), deletes the attribute here, because the MPI may delete it
 * much later, in any call of any thread that ends the last message on the communicator: MPICH 4.0.2
 * releases its own lock for the callback, also in the middle of a loop over its buffered messages,
 * which another thread then changes. Without the lock. */
struct nbc_context *nbc_context_ending(MPI_Comm comm);

/* To be called after them with the handle that they have left. Returns whether the context ends
 * now, and not later or never: then the caller has a reference to it. Without the lock. */
bool nbc_context_ended(struct nbc_context *c, MPI_Comm comm);

/* Ends the context of a communicator that still exists. Without the lock. */
void nbc_context_end_early(MPI_Comm comm);

/* An operation takes or drops its reference. The context survives MPI_Comm_free as long as it has
 * references. */
static inline void nbc_context_hold(struct nbc_context *c)
{
    c->uses++;
}

void nbc_context_retire(struct nbc_context *c);
static inline void nbc_context_release(struct nbc_context *c)
{
    if (--c->uses == 0 && c->life >= NBC_CONTEXT_FREED)
        nbc_context_retire(c);
}

/* Where errors of its operations are raised. The scope remains valid forever. */
struct nbc_error_scope nbc_context_scope(struct nbc_context *c);

/* Records that an operation cannot start on this rank, although the other ranks send messages for
 * it. The context keeps its range or its duplicate forever, so that the messages do not reach a
 * later communicator. If the operation has number seq in one of the queues, the messages would
 * reach the next operation with the same tag: no such operation will start. */
void nbc_context_mark_undeliverable(struct nbc_context *c);
void nbc_context_mark_number_undeliverable(struct nbc_context *c, struct nbc_queue *queue,
                                           int64_t seq);

/* Records that the messages of one operation might reach another: no operation starts any more. */
void nbc_context_mark_lost(struct nbc_context *c);

/* Whether the program's communicator has been revoked, by any rank, as far as the MPI knows. Then
 * no operation starts, and those that are pending end. Under the lock. Local. */
bool nbc_context_ask_revoked(struct nbc_context *c);

static inline bool nbc_context_is_revoked(struct nbc_context *c)
{
    return __builtin_expect(nbc_may_be_revoked, 0) && nbc_context_ask_revoked(c);
}

/* Whether operations may start. */
static inline bool nbc_context_usable(const struct nbc_context *c)
{
    return c->delivery != NBC_DELIVERY_LOST && c->queue.next_seq < c->queue.end_seq &&
           c->blocking.next_seq < c->blocking.end_seq;
}

/* Frees all contexts, at finalize. Without the lock. */
void nbc_context_cleanup(void);

/* The context of the communicator of a call, NULL if there is none, or if the call comes from
 * inside the MPI below: the same on all its ranks. Without the lock. */
struct nbc_context *nbc_context_of(MPI_Comm comm);

static inline bool nbc_comm_is_ours(MPI_Comm comm)
{
    return nbc_context_of(comm);
}

#endif
