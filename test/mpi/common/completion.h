/* SPDX-License-Identifier: MIT */
/* Requests of all kinds, completed by random calls of the completion family on random selections
 * of them. */
#ifndef NBC_TEST_COMPLETION_H
#define NBC_TEST_COMPLETION_H

#include "util.h"

struct pool {
    int n, room;
    MPI_Request *request;
    bool *active;       /* started and not yet completed */
    bool *known;        /* to be complete: MPI_Request_get_status has said so */
    MPI_Status *status; /* and this */
    void **item;        /* of the caller */
    int nactive;
    bool no_testall;               /* the MPI's cannot bear what is there */
    int (*sort)(const void *item); /* numbers requests that are alike; NULL: all are */
};

struct pool *pool_new(void);
void pool_delete(struct pool *p);

/* Puts a request into a free place (one whose item is NULL) and returns its index. */
int pool_add(struct pool *p, MPI_Request request, void *item, bool active);

/* Marks a persistent request as started. */
void pool_started(struct pool *p, int i);

/* Empties a place. The request is no longer there, or freed. */
void pool_remove(struct pool *p, int i);

typedef void completed(struct pool *p, int i, const MPI_Status *status);

/* One random call. For each request that it completes, calls done, with NULL instead of a status
 * where the call was made with MPI_STATUS(ES)_IGNORE. block: calls that wait are allowed. */
void pool_complete(struct pool *p, struct rng *own, bool block, completed *done);

/* As many calls as it takes until at most `rest` are active. */
void pool_drain(struct pool *p, struct rng *own, int rest, completed *done);

#endif
