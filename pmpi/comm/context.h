/* SPDX-License-Identifier: MIT */
/* The record of a communicator: the hidden duplicate that carries the messages of its collectives,
 * and the tags in use there. All under the lock of lock.h. */
#ifndef NBC_CONTEXT_H
#define NBC_CONTEXT_H

#include "base/errors.h"
#include "op/members.h"
#include "below/next.h"
#include "base/table.h"

struct nbc_hints;
struct nbc_request;

/* The life of a record, in this order; a step may be left out.
 *
 * LIVE      the program has the communicator
 * FREEING   MPI_Comm_free or MPI_Comm_disconnect is freeing the communicator, and the program's
 *           attribute callbacks may still use it
 * FREED_IN_CALL  the same, and the attribute of nbcshim is deleted already
 * FREED     the program's communicator is gone: `user` is MPI_COMM_NULL. Operations that are
 * pending here go on DISCONNECTED  so is the hidden duplicate: nothing starts any more DEAD      no
 * operation needs the record: nbc_context_reclaim frees it
 *
 * MPI_Comm_free that fails goes back from FREEING to LIVE. */
enum nbc_context_life {
    NBC_CONTEXT_LIVE,
    NBC_CONTEXT_FREEING,
    NBC_CONTEXT_FREED_IN_CALL,
    NBC_CONTEXT_FREED,
    NBC_CONTEXT_DISCONNECTED,
    NBC_CONTEXT_DEAD
};

/* What becomes of messages on the hidden duplicate; it only gets worse. */
enum nbc_delivery {
    NBC_DELIVERY_SOUND,
    NBC_DELIVERY_LEAKS, /* messages may come that nobody receives: nbc_context_mark_undeliverable */
    NBC_DELIVERY_LOST   /* those of a failed operation may reach a later one: nothing starts */
};

/* The nonblocking operations of a communicator, which take tags in turn. */
struct nbc_queue {
    int64_t next_seq;             /* counts calls, the same on every rank */
    int64_t end_seq;              /* the first number that there cannot be */
    int first_tag;                /* of the ring */
    struct nbc_request *pending;  /* those not yet complete, oldest first */
    struct nbc_request *deferred; /* the oldest of them that has not been started, or NULL */
    int nstarted;                 /* so many of them are under way, orphans not counted */
};

/* A message from one rank to another: signal.h. */
struct nbc_signal {
    int kind, number;
    int value; /* what it says, if anything */
};

/* A signal that has come and that nobody has waited for yet. */
struct nbc_mail {
    struct nbc_signal signal;
    int source;
    struct nbc_mail *prev, *next;
};

struct nbc_context {
    int max_outstanding; /* first: the attribute MPI_ICOLL_MAX_OUTSTANDING points at the context */
    enum nbc_context_life life;
    enum nbc_delivery delivery;
    MPI_Comm user;   /* MPI_COMM_NULL from FREED on */
    MPI_Comm hidden; /* MPI_COMM_NULL from DISCONNECTED on */
    struct nbc_members members;
    struct nbc_queue queue;
    struct nbc_tags *tags;       /* of persistent operations: tags.h; made when first needed */
    struct nbc_plans *plans;     /* of earlier calls */
    struct nbc_hints *hints;     /* from its info, or NULL */
    struct nbc_context *guards;  /* of the checks of its calls, NBC_NGUARDS of them, or NULL */
    struct nbc_context *guarded; /* of a guard: whose calls it checks */
    struct nbc_mail *mail;       /* in the order of arrival */
    int ngates;                  /* windows and files that it serves: presync.h */
    int uses; /* operations that may still communicate here: active ones, persistent ones */

    /* From FREED_IN_CALL on: the error handler that the communicator had, MPI_ERRHANDLER_NULL for
     * none. It is kept where errors may still be raised with it. */
    MPI_Errhandler handler;
    bool keeps_handler;

    bool found;               /* by `user` */
    struct nbc_context *next; /* among the dead */
    UT_hash_handle hh;
};

/* Guards number the checks of calls apart from the operations: check.h. */
enum { NBC_NGUARDS = 2 };

/* Frees what contexts held that ended under the lock. Not under the lock. */
void nbc_context_reclaim(void);

/* Makes the keyval. Before the first attach. Returns an MPI error code. */
int nbc_context_setup(void);

/* Gives a communicator just made its context. Collective over it. comm may be MPI_COMM_NULL.
 * Not under the lock, as the next. Returns an MPI error code. */
int nbc_context_attach(MPI_Comm comm);

/* The same where the duplicate exists already (nonblocking constructors): takes `hidden` over.
 * Local. */
int nbc_context_adopt(MPI_Comm comm, MPI_Comm hidden);

/* The context of a communicator, NULL for none (a null or invalid handle). */
struct nbc_context *nbc_context_find(MPI_Comm comm);

/* Takes the hints of an info set on a communicator. Not under the lock. Returns an MPI error code.
 */
int nbc_context_hint(MPI_Comm comm, MPI_Info info);

/* MPI_Comm_free, or MPI_Comm_disconnect, is about to end a communicator: returns its context, NULL
 * for none. It serves the program's attribute callbacks too, before or after that of nbcshim, until
 * nbc_context_end says that the call is over. Not under the lock. */
struct nbc_context *nbc_context_ending(MPI_Comm comm);

/* Returns whether the call has freed the communicator. Then the caller holds the context, and frees
 * *handler without the lock if it is not null. */
bool nbc_context_end(struct nbc_context *c, MPI_Errhandler *handler);

/* Takes the hidden duplicate of a freed communicator away, for the caller to disconnect;
 * MPI_COMM_NULL where it must stay. */
MPI_Comm nbc_context_take_hidden(struct nbc_context *c);

/* An operation begins, or ends, to need the context: it lives on after MPI_Comm_free until then. */
void nbc_context_hold(struct nbc_context *c);
void nbc_context_release(struct nbc_context *c);

/* Where errors of its operations are raised, for as long as the program likes. */
struct nbc_error_scope nbc_context_scope(struct nbc_context *c);

/* An operation cannot be here, and the other ranks' messages for it come all the same. `hidden`
 * will not be freed: the MPI would have them reach a later communicator. Those of a nonblocking
 * operation (seq) wait for the next one of its tag: there will be none. */
void nbc_context_mark_undeliverable(struct nbc_context *c);
void nbc_context_mark_number_undeliverable(struct nbc_context *c, int64_t seq);

/* A message for another operation might reach the next one: nothing starts any more. */
void nbc_context_mark_lost(struct nbc_context *c);

/* Whether operations may be started. */
bool nbc_context_usable(const struct nbc_context *c);

/* Forgets all communicators, at finalize. Not under the lock. */
void nbc_context_cleanup(void);

#endif
