/* SPDX-License-Identifier: MIT */
/* The calls that complete requests, by number; and a pool of requests of all kinds, completed by
 * random ones on random selections of them. */
#ifndef NBC_TEST_COMPLETION_H
#define NBC_TEST_COMPLETION_H

#include "util.h"

enum completion {
    BY_WAIT,
    BY_TEST,
    BY_WAITALL,
    BY_TESTALL,
    BY_WAITANY,
    BY_TESTANY,
    BY_WAITSOME,
    BY_TESTSOME,
    NCOMPLETIONS
};

static inline bool completion_tests(enum completion by)
{
    return by % 2;
}

static inline bool completion_is_of_one(enum completion by)
{
    return by == BY_WAIT || by == BY_TEST;
}

static inline bool completion_is_of_all(enum completion by)
{
    return by == BY_WAITALL || by == BY_TESTALL;
}

static inline bool completion_is_of_any(enum completion by)
{
    return by == BY_WAITANY || by == BY_TESTANY;
}

/* Makes one call, MPI_Wait and MPI_Test with the first of n requests. Sets `done` to the number of
 * entries that it completes, or to MPI_UNDEFINED if there is none that it could, and `at` to their
 * places, in the order of the statuses: all places if the call is of all. statuses: NULL for those
 * to be ignored. Returns the error of the call. */
int completion_call(enum completion by, int n, MPI_Request *r, int *done, int *at,
                    MPI_Status *statuses);

/* Makes such calls until one has completed something, has nothing to complete, or fails. */
int completion_until(enum completion by, int n, MPI_Request *r, int *done, int *at,
                     MPI_Status *statuses);

struct pool {
    int n, room;
    MPI_Request *request;
    bool *active;       /* started and not yet completed */
    bool *known;        /* MPI_Request_get_status has reported it as complete */
    MPI_Status *status; /* the status that it returned then */
    void **item;        /* data of the caller */
    int nactive;
    int most;       /* requests in the arrays of a call */
    bool has_files; /* requests of I/O, on which some calls of the MPI fail */
    int (*sort)(
        const void *item); /* returns the class of a request, 0 of ours; NULL: there is one class */
};

struct pool *pool_new(void);
void pool_delete(struct pool *p);

/* Puts a request into a free slot, one whose item is NULL, and returns its index. */
int pool_add(struct pool *p, MPI_Request request, void *item, bool active);

/* Marks a persistent request as started. */
void pool_started(struct pool *p, int i);

/* Empties a slot, whose request is inactive or freed. */
void pool_remove(struct pool *p, int i);

typedef void completed(struct pool *p, int i, const MPI_Status *status);

/* Makes one random call. For each request that it completes, calls `done`, with a NULL status if
 * MPI_STATUS(ES)_IGNORE was passed. block: MPI_Wait and the like are allowed. */
void pool_complete(struct pool *p, struct rng *own, bool block, completed *done);

/* Makes such calls until at most `rest` requests are active. */
void pool_drain(struct pool *p, struct rng *own, int rest, completed *done);

#endif
