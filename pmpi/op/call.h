/* SPDX-License-Identifier: MIT */
/* A collective call: its arguments as the program gave them. */
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
    const MPI_Datatype *types; /* the w collectives: one per peer, and displs in bytes */
};

/* The three forms of a collective. */
enum nbc_kind { NBC_KIND_BLOCKING, NBC_KIND_NONBLOCKING, NBC_KIND_PERSISTENT, NBC_NKINDS };

/* Who makes a call: the program, or nbcshim for one of these purposes. NBCSHIM_CHECK compares all
 * of them but its own. */
enum nbc_purpose {
    NBC_FOR_PROGRAM,
    NBC_FOR_OTHERS, /* before collective functions of the MPI below */
    NBC_FOR_TAGS,   /* to find free tags */
    NBC_FOR_FINALIZE,
    NBC_FOR_CHECK /* itself */
};

/* A call of any of the 22 collectives. The fields that a collective does not have stay zero. */
struct nbc_call {
    enum nbc_coll coll;
    enum nbc_purpose purpose;
    MPI_Comm comm;
    struct nbc_args send, recv; /* bcast: recv; reductions: count and type in send and recv both */
    int root;
    MPI_Op op;
    MPI_Info info; /* of persistent ones */
    bool has_info;
};

#endif
