/* SPDX-License-Identifier: MIT */
/* A collective call: its arguments as the program has passed them. */
#ifndef NBC_CALL_H
#define NBC_CALL_H

#include "below/next.h"

#include "coll.h"

/* One side of a call. */
struct nbc_args {
    const void *buf;
    int64_t count;
    struct nbc_ints counts, displs;
    MPI_Datatype type;
    const MPI_Datatype *types; /* the w collectives: one per peer; then displs are in bytes */
};

/* The three forms of a collective. */
enum nbc_kind { NBC_KIND_BLOCKING, NBC_KIND_NONBLOCKING, NBC_KIND_PERSISTENT, NBC_NKINDS };

/* The purpose of a call: it is the program's, or nbcshim makes it for one of the others.
 * NBCSHIM_CHECK compares all calls except its own. */
enum nbc_purpose {
    NBC_FOR_PROGRAM,
    NBC_FOR_OTHERS, /* before a collective function of the MPI below */
    NBC_FOR_TAGS,   /* to agree on the tags of persistent operations */
    NBC_FOR_FINALIZE,
    NBC_FOR_CHECK /* to compare another call */
};

/* A call of any of the 22 collectives. Fields that a collective does not use are zero. */
struct nbc_call {
    /* As in struct nbc_recent, which has them of the last calls. */
    uint8_t coll, purpose; /* enum nbc_coll, enum nbc_purpose */
    uint8_t kind;          /* enum nbc_kind */
    bool large;            /* a function whose name ends in _c */
    int root;
    const void *site; /* to which the program's call returns */
    MPI_Comm comm;
    struct nbc_args send, recv; /* bcast: only recv; reductions: count and type in both */
    MPI_Op op;
    MPI_Info info; /* of persistent collectives */
    bool has_info;
};

#endif
