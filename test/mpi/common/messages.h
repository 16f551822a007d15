/* SPDX-License-Identifier: MIT */
/* Point-to-point messages with known contents, among collectives. */
#ifndef NBC_TEST_MESSAGES_H
#define NBC_TEST_MESSAGES_H

#include "cases.h"

enum { MESSAGE_STANDARD, MESSAGE_SYNCHRONOUS, MESSAGE_BUFFERED };

struct message {
    bool receives;
    int n, other, tag; /* bytes; peer; tag */
    unsigned char *bytes;
    uint64_t key;
    int round;
    int how; /* send mode */
};

/* Makes a receive and a send of this rank: each rank of the group sends to the rank at a random
 * distance, drawn from a generator that is the same on all ranks. */
void messages_draw(const struct group *g, struct rng *shared, struct message *in,
                   struct message *out);

/* Fills the buffers for a round. */
void message_fill(struct message *m, int round);

/* Call MPI_Irecv or MPI_Isend; MPI_Recv_init or MPI_Send_init; or those of the send mode. */
MPI_Request message_start(struct message *m, MPI_Comm comm);
MPI_Request message_init(struct message *m, MPI_Comm comm);

/* Whether all data has arrived, whether or not the request still exists. */
bool message_is_right(const struct message *m);

/* Checks a message after completion. status may be NULL. */
void message_check(const struct message *m, const MPI_Status *status);

void message_clear(struct message *m);

#endif
