/* SPDX-License-Identifier: MIT */
/* What the parts of the fuzzer share: its communicators and its requests. */
#ifndef NBC_TEST_FUZZ_H
#define NBC_TEST_FUZZ_H

#include "completion.h"
#include "messages.h"
#include "program.h"

enum { BUFFER = 4096 * 600 }; /* of all buffered messages that are on their way */

/* Receives of a communicator may take any source or any tag. Not both: then a message sent later
 * may take the receive meant for one sent earlier, whose sender waits for it. */
enum { NAMED, ANY_SOURCE, ANY_TAG };

/* A communicator. Its group stays until the end: operations may be pending when it is freed. */
struct comm {
    int64_t id;
    int wild;
    bool live;
    struct group *group;
    const struct comm *parent; /* of one that MPI_Comm_idup is making: not to be used yet */
    MPI_Comm made;
    bool lingers;       /* messages on it may outlive their requests */
    uint64_t due, came; /* messages received by wildcards: sums of their keys */
    struct comm *next;
};

/* What a request belongs to. */
struct item {
    int64_t id; /* persistent ones */
    struct testcase *testcase;
    enum coll coll;
    struct message message;
    struct other *other;
    struct sum *sum;
    struct comm *comm;
    bool cancelled;                   /* the message */
    bool persistent, released, makes; /* the communicator */
    int starts;
};

extern int threads; /* of the program */
extern _Thread_local int thread_number;

/* Each thread has its own, and communicators of its own. */
extern _Thread_local struct pool *pool;
extern _Thread_local struct rng own; /* of this rank and line */

/* --- fuzz.c: requests --------------------------------------------------------------------------*/

bool item_is_message(const struct item *item);

struct item *item_new(const struct line *line, struct comm *c);

/* Frees what a place of the pool has, and empties it. */
void drop_item(int place);

/* Completes some requests, and checks them; block: by calls that wait, too. */
void complete(bool block);

/* --- fuzz_comms.c ------------------------------------------------------------------------------*/

struct comm *comm_find(int64_t id); /* or NULL */
struct comm *comm_add(const struct line *line, MPI_Comm comm);

/* Complete what makes c, or each. */
void settle(struct comm *c);
void settle_all(void);

void comms_free(void);

/* The hints of a line. */
MPI_Info make_info(const struct line *line);

void do_constructor(const struct line *line, struct comm *c);
void do_free(const struct line *line, struct comm *c);
void do_hint(const struct line *line, struct comm *c);

/* --- fuzz_attributes.c -------------------------------------------------------------------------*/

/* Once for all programs, and after each. */
void attributes_begin(void);
void attributes_end(void);
void attributes_check(void);

/* What callbacks may do depends on the line that is run. */
void attributes_at(const struct line *line);

void do_attribute(const struct line *line, struct comm *c);
bool attribute_is_on(MPI_Comm comm);
void attribute_drop(MPI_Comm comm);

/* Whether the types that are made have them. */
void mark_types(bool on);

void sum_check(const struct sum *s);

/* --- fuzz_messages.c ---------------------------------------------------------------------------*/

void do_message(const struct line *line, struct comm *c);
void do_sendrecv(const struct line *line, struct comm *c);
void do_probe(const struct line *line, struct comm *c);

/* The two messages of a line, without contents. false: this rank has no part in it. */
bool make_messages(const struct line *line, struct comm *c, struct message *in,
                   struct message *out);

/* Contents for a start. */
void fill_message(const struct line *line, struct comm *c, struct message *m, int starts);

/* Of a received message; status may be NULL. */
void check_message(struct comm *c, const struct message *m, const MPI_Status *status);

/* --- fuzz_gone.c -------------------------------------------------------------------------------*/

void do_give_up(const struct line *line, struct comm *c);
void check_cancelled(const MPI_Status *status);

/* After a program: what is left of its messages. Collective. */
void gone_end(const struct program *p);

/* --- fuzz_others.c -----------------------------------------------------------------------------*/

/* What the requests of a program need. Collective. */
void others_begin(const struct program *p);
void others_end(void);

void do_other(const struct line *line, struct comm *c);

/* Some generalized requests of this thread become complete. */
void others_go_on(int percent);

void other_check(const struct other *o, const MPI_Status *status);
void other_delete(struct other *o);

#endif
