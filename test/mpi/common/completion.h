/* SPDX-License-Identifier: MIT */
/* A pool of requests of all kinds, completed by random completion calls on random selections of
 * them. */
#ifndef NBC_TEST_COMPLETION_H
#define NBC_TEST_COMPLETION_H

#include "util.h"

struct pool {
    int n, room;
    MPI_Request *request;
    bool *active;       /* started and not yet completed */
    bool *known;        /* MPI_Request_get_status has reported it as complete */
    MPI_Status *status; /* the status that it returned then */
    void **item;        /* data of the caller */
    int nactive;
    int most;       /* requests in an array, up to 300; 24 unless the caller sets it */
    bool has_files; /* requests of I/O, on which some calls of the MPI fail */
    int (*sort)(const void *item); /* returns the class of a request; NULL: there is one class */
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
