/* SPDX-License-Identifier: MIT */
/* Common declarations of the fuzzer: its communicators and its requests. */
#ifndef NBC_TEST_FUZZ_H
#define NBC_TEST_FUZZ_H

#include "completion.h"
#include "program.h"

enum { BUFFER = 4096 * 600 }; /* bytes of all buffered messages in flight */

/* Receives on a communicator may have a wildcard source or a wildcard tag. Not both: then a later
 * message could match the receive meant for an earlier one, whose sender waits for it. */
enum { NAMED, ANY_SOURCE, ANY_TAG };

/* A communicator. Its group exists until the end, since operations may be pending when it is freed.
 */
struct comm {
    int64_t id;
    int wild;
    bool live;
    struct group *group;
    const struct comm *parent; /* set while MPI_Comm_idup is pending: not to be used yet */
    MPI_Comm made;
    bool lingers;       /* messages on it may outlive their requests */
    uint64_t due, came; /* sums of the keys of messages received by wildcards */
    struct comm *next;
};

/* A point-to-point message with known contents. */
enum { MESSAGE_STANDARD, MESSAGE_SYNCHRONOUS, MESSAGE_BUFFERED };

struct message {
    bool receives;
    int n, other, tag; /* bytes; peer; tag */
    unsigned char *bytes;
    uint64_t key;
    int round;
    int how; /* send mode */
};

/* The operation of a request. */
struct item {
    int64_t id; /* of persistent requests */
    struct testcase *testcase;
    enum coll coll;
    struct message message;
    struct other *other;
    struct sum *sum;
    struct comm *comm;
    bool cancelled;                   /* of a message */
    bool persistent, released, makes; /* makes: it makes the communicator */
    int starts;
};

extern int threads; /* number of threads of the program */
extern _Thread_local int thread_number;

/* Each thread has its own requests and communicators. */
extern _Thread_local struct pool *pool;
extern _Thread_local struct rng own; /* the generator of this rank and line */

/* --- fuzz.c: requests --------------------------------------------------------------------------*/

bool item_is_message(const struct item *item);

struct item *item_new(const struct line *line, struct comm *c);

/* Frees the contents of a slot of the pool and empties it. */
void drop_item(int place);

/* Completes some requests and checks them. block: MPI_Wait and the like are allowed. */
void complete(bool block);

/* --- fuzz_comms.c ------------------------------------------------------------------------------*/

struct comm *comm_find(int64_t id); /* or NULL */
struct comm *comm_add(const struct line *line, MPI_Comm comm);

/* Complete the operation that makes c; those that make any communicator. */
void settle(struct comm *c);
void settle_all(void);

void comms_free(void);

/* Returns the hints of a line. */
MPI_Info make_info(const struct line *line);

void do_constructor(const struct line *line, struct comm *c);
void do_free(const struct line *line, struct comm *c);
void do_hint(const struct line *line, struct comm *c);

/* --- fuzz_attributes.c -------------------------------------------------------------------------*/

/* begin and end are called once for all programs, check after each. */
void attributes_begin(void);
void attributes_end(void);
void attributes_check(void);

/* Sets what callbacks do, which depends on the current line. */
void attributes_at(const struct line *line);

void do_attribute(const struct line *line, struct comm *c);
bool attribute_is_on(MPI_Comm comm);
void attribute_drop(MPI_Comm comm);

/* Sets whether new types have attributes. */
void mark_types(bool on);

void sum_check(const struct sum *s);

/* --- fuzz_messages.c ---------------------------------------------------------------------------*/

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

void do_message(const struct line *line, struct comm *c);
void do_sendrecv(const struct line *line, struct comm *c);
void do_probe(const struct line *line, struct comm *c);

/* Makes the two messages of a line, without contents. Returns false if this rank does not take
 * part. */
bool make_messages(const struct line *line, struct comm *c, struct message *in,
                   struct message *out);

/* Fills the contents for a start. */
void fill_message(const struct line *line, struct comm *c, struct message *m, int starts);

/* Checks a received message. status may be NULL. */
void check_message(struct comm *c, const struct message *m, const MPI_Status *status);

/* --- fuzz_gone.c -------------------------------------------------------------------------------*/

void do_give_up(const struct line *line, struct comm *c);
void check_cancelled(const MPI_Status *status);

/* Call it after a program: receives its remaining messages. Collective. */
void gone_end(const struct program *p);

/* --- fuzz_others.c -----------------------------------------------------------------------------*/

/* Make and free what the requests of a program need. Collective. */
void others_begin(const struct program *p);
void others_end(void);

void do_other(const struct line *line, struct comm *c);

/* Completes some generalized requests of this thread. */
void others_go_on(int percent);

void other_check(const struct other *o, const MPI_Status *status);
void other_delete(struct other *o);

#endif
