/* SPDX-License-Identifier: MIT */
/* Point-to-point messages with known contents, to stand between collectives. */
#ifndef NBC_TEST_MESSAGES_H
#define NBC_TEST_MESSAGES_H

#include "cases.h"

enum { MESSAGE_STANDARD, MESSAGE_SYNCHRONOUS, MESSAGE_BUFFERED };

struct message {
    bool receives;
    int n, other, tag; /* bytes; from or to whom */
    unsigned char *bytes;
    uint64_t key;
    int round;
    int how; /* it is sent */
};

/* A receive and a send of this rank, such that each rank of the group sends to the one a random
 * distance further on; drawn from a generator that is the same on all ranks. */
void messages_draw(const struct group *g, struct rng *shared, struct message *in,
                   struct message *out);

/* Contents for a round. */
void message_fill(struct message *m, int round);

/* MPI_Irecv or MPI_Isend; MPI_Recv_init or MPI_Send_init; or Issend and so on. */
MPI_Request message_start(struct message *m, MPI_Comm comm);
MPI_Request message_init(struct message *m, MPI_Comm comm);

/* Whether all has come, be the request gone or not. */
bool message_is_right(const struct message *m);

/* After completion; status may be NULL. */
void message_check(const struct message *m, const MPI_Status *status);

void message_clear(struct message *m);

#endif
