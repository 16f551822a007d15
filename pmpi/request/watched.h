/* SPDX-License-Identifier: MIT */
/* Long arrays of requests that the program completes one by one, by MPI_Waitany and its kin: to
 * examine every entry in every call would cost more than the operations. An array is therefore
 * watched: its handles are copied, requests of nbcshim in it enter a list when they complete, and
 * the places of the other requests are known.
 *
 * The program may change the array between two calls. So an entry is compared with what was seen
 * there before it is used, and a call that finds nothing complete compares the whole array. So do
 * other calls now and then, lest new requests starve while there is always a complete one.
 *
 * What holds of an entry seen, if the array is not stale: it is null; or the handle of a request of
 * nbcshim whose watch and place it is, and which is in the list if it is complete; or it is in
 * `others`. All of it remains true when a request is freed and its object used again, because
 * objects keep their handles.
 *
 * Under the lock, except where stated. Local. */
#ifndef NBC_WATCHED_H
#define NBC_WATCHED_H

#include "request/request.h"

/* Arrays from this length on are worth it. */
enum { NBC_WATCHED_LEAST = 32 };

struct nbc_watched {
    const MPI_Request *array;  /* of the program; NULL: this one is unused */
    int n, room;               /* its length; the length for which there is memory */
    bool busy;                 /* a call uses it */
    bool stale;                /* what was seen is not to be relied on */
    unsigned used;             /* by the last call, counted */
    unsigned turn;             /* counts its calls */
    int due;                   /* calls until it is to be compared */
    unsigned nhandles;         /* nbc_nhandles when it was compared */
    MPI_Request *seen;         /* the entries */
    int *others, nothers;      /* the places of the requests that are not nbcshim's, in any order */
    int *at;                   /* by place: the index in `others`, or −1 */
    int next;                  /* index in `others` of the one to be tested next */
    int nown;                  /* number of the other places that are not null */
    int some_own;              /* a place before which no own request was active */
    struct nbc_request *ready; /* complete requests, those that completed first are first */
};

/* The number of arrays that are watched. May be read without the lock. */
extern int nbc_nwatched;

/* Begins a call: finds the array, or watches it if it has a request of nbcshim. Returns NULL if it
 * has none, without memory, or if another call uses the array. Everything below is for the caller
 * alone until nbc_watched_end. */
struct nbc_watched *nbc_watched_begin(int n, const MPI_Request *requests);
void nbc_watched_end(struct nbc_watched *w);

/* The oldest complete request of the list that is at its place in the array; NULL if there is none.
 */
struct nbc_request *nbc_watched_ready(struct nbc_watched *w);

/* An entry is about to become null: its request is to be freed. */
void nbc_watched_forget(struct nbc_watched *w, int place);

/* Compares the whole array with what was seen. Returns whether it was the same. */
bool nbc_watched_compare(struct nbc_watched *w);

/* An active or complete request of nbcshim in the array as it was seen; NULL if there is none. */
struct nbc_request *nbc_watched_active(struct nbc_watched *w);

/* Copies handles and places of at most `most` other requests that are as they were seen, from the
 * next one on. Returns their number, and goes on past *passed entries, never past the last. Without
 * the lock. */
int nbc_watched_others(struct nbc_watched *w, int most, MPI_Request *handles, int *places,
                       int *passed);

/* The MPI below has tested the request at this place, one of `others`, and left this handle. The
 * next one to be tested is the one after it. */
void nbc_watched_tested(struct nbc_watched *w, int place, MPI_Request handle);

/* Ends watching, at finalize. */
void nbc_watched_clear(void);

#endif
