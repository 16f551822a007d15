/* SPDX-License-Identifier: MIT */
/* What the shim knows of a communicator: the hidden duplicate that carries its messages, and the
 * tags in use there. All under the lock of lock.h. */
#ifndef NBC_CONTEXT_H
#define NBC_CONTEXT_H

#include "next.h"
#include "table.h"

#include "coll.h"
#include "raise.h"

struct nbc_hints;
struct nbc_mail;
struct nbc_request;

struct nbc_context {
    int max_outstanding; /* first: the attribute MPI_ICOLL_MAX_OUTSTANDING points at the context */
    MPI_Comm user;       /* MPI_COMM_NULL once freed */
    bool has_handler;    /* freed while in use: with this error handler */
    bool keeps_handler;  /* for good: errors are raised with it */
    MPI_Errhandler handler;
    MPI_Comm hidden; /* MPI_COMM_NULL once disconnected */
    int rank, size;
    int remote_size;  /* 0: intracommunicator */
    int64_t next_seq; /* of nonblocking operations: counts calls, the same on every rank */
    int64_t end_seq;  /* the first that there cannot be: nbc_context_miss_number */
    struct nbc_request *pending;   /* nonblocking operations not yet complete, oldest first */
    struct nbc_request *deferred;  /* the oldest of them that has not been started, or NULL */
    int nstarted;                  /* so many of them are under way, orphans not counted */
    struct nbc_tags *tags;         /* persistent tags: tags.h */
    struct nbc_topology *topology; /* neighbor lists, made when first asked for */
    struct nbc_plans *plans;       /* of earlier calls */
    struct nbc_nodes *nodes;       /* made when first asked for: nodemap.h */
    bool local, crowded;           /* as those of a shape: nodemap.h */
    bool mixed;                    /* some ranks may share nodes */
    struct nbc_hints *hints;       /* from its info, or NULL */
    struct nbc_context *guards;    /* of the checks of its calls, or NULL: check.h */
    struct nbc_context *guarded;   /* of a guard: whose calls it checks */
    int first_tag;                 /* of its nonblocking operations */
    struct nbc_mail *mail;         /* tokens that have come: token.h */
    int ngates;                    /* windows and files that it serves: rendezvous.h */
    bool ending;                   /* MPI_Comm_free or MPI_Comm_disconnect is freeing `user` */
    bool ended;  /* and our attribute is deleted already: `handler` is what it had */
    bool lost;   /* messages of a failed operation may reach later ones: nothing starts any more */
    bool missed; /* messages may come that nobody receives: nbc_context_miss */
    bool out;    /* no longer found by `user` */
    int uses;    /* operations that may still communicate here: active ones, persistent ones */
    struct nbc_context *next; /* among those that wait for nbc_context_bury */
    UT_hash_handle hh;
};

/* Frees what contexts held that ended under the lock. Not under the lock. */
void nbc_context_bury(void);

/* Makes the keyval. Before the first attach. Returns an MPI error code. */
int nbc_context_setup(void);

/* Gives a communicator just made its context. Collective over it. comm may be MPI_COMM_NULL.
 * Returns an MPI error code. */
int nbc_context_attach(MPI_Comm comm);

/* The same where the duplicate exists already (nonblocking constructors): takes `hidden` over. */
int nbc_context_adopt(MPI_Comm comm, MPI_Comm hidden);

/* The context of a communicator, NULL for none (a null or invalid handle). */
struct nbc_context *nbc_context_find(MPI_Comm comm);

/* Takes the hints of an info set on a communicator. Returns an MPI error code. */
int nbc_context_hint(MPI_Comm comm, MPI_Info info);

/* MPI_Comm_free, or MPI_Comm_disconnect, is about to end a communicator: returns its context, NULL
 * for none. It serves the program's attribute callbacks too, before or behind ours, until
 * nbc_context_end tells that the call is over. */
struct nbc_context *nbc_context_ending(MPI_Comm comm);
void nbc_context_end(struct nbc_context *c, bool disconnect);

/* An operation begins, or ends, to need the context: it lives on after MPI_Comm_free until then. */
void nbc_context_hold(struct nbc_context *c);
void nbc_context_release(struct nbc_context *c);

/* Where errors of its operations are raised, for as long as the program likes. */
struct nbc_place nbc_context_place(struct nbc_context *c);

/* An operation cannot be here, and the other ranks' messages for it come all the same. `hidden`
 * will not be freed: the MPI would have them reach a later communicator. Of a nonblocking one (seq)
 * they wait for the next of its tag: there will be none. */
void nbc_context_miss(struct nbc_context *c);
void nbc_context_miss_number(struct nbc_context *c, int64_t seq);

/* False: a message for another operation might reach the next one. */
bool nbc_context_good(const struct nbc_context *c);

/* Forgets all communicators, at finalize. */
void nbc_context_cleanup(void);

#endif
