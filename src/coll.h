/* SPDX-License-Identifier: MIT */
/* The 22 collectives, and the one struct that describes a call of any of them. */
#ifndef NBC_COLL_H
#define NBC_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nbc_coll {
#define COLL(NAME, name, Name) NBC_##NAME,
#include "colls.def"
#undef COLL
    NBC_NCOLLS
};

/* Lower-case name as in the standard ("allreduce"), for tables, messages and variables. */
const char *nbc_coll_name(enum nbc_coll coll);

/* Letters of names. (tolower() and toupper() go by the locale of the program: 'I' and 'i' are no
 * pair in Turkish.) */
static inline char nbc_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static inline char nbc_upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

/* The collective of that name, or NBC_NCOLLS. */
enum nbc_coll nbc_coll_by_name(const char *name);

/* Whether the collective has a root. */
static inline bool nbc_coll_has_root(enum nbc_coll coll)
{
    return (coll >= NBC_BCAST && coll <= NBC_SCATTERV) || coll == NBC_REDUCE;
}

/* Whether the collective communicates along the edges of the communicator's topology. */
static inline bool nbc_coll_is_neighborhood(enum nbc_coll coll)
{
    return coll >= NBC_NEIGHBOR_ALLGATHER;
}

/* Whether the collective reduces (has an op). */
bool nbc_coll_reduces(enum nbc_coll coll);

/* Whether every peer has a type of its own (the w collectives). */
bool nbc_coll_has_types(enum nbc_coll coll);

/* Buffers of a call. Addresses are bound when a schedule runs; schedules hold (buffer, offset). */
enum nbc_buf { NBC_BUF_SEND, NBC_BUF_RECV, NBC_BUF_TEMP, NBC_NBUFS };

/* Type slots: an index into the array of layouts of a shape, and into the array of handles that
 * the transport of an operation holds. Per-peer types (the w collectives) follow FIRST_PEER:
 * first those of the send side, then those of the receive side. A collective with one datatype
 * (bcast, reductions) has it in both SEND and RECV. */
enum { NBC_TYPE_BYTE, NBC_TYPE_SEND, NBC_TYPE_RECV, NBC_TYPE_FIRST_PEER };

/* What an algorithm must know of a datatype. Bytes; lb and extent may be negative. */
struct nbc_type {
    int64_t size;        /* bytes of data in one element */
    int64_t extent;      /* from one element to the next */
    int64_t true_lb;     /* lowest byte of an element relative to its address */
    int64_t true_extent; /* from there to its highest byte + 1 */
    bool packed;         /* memory order is type-map order without gaps, also between elements: */
                         /* bytes may be moved instead of elements */
};

/* A view of an argument array: int or 64-bit elements. data = NULL: no array. */
struct nbc_ints {
    const void *data;
    int width; /* bytes of an element: 4 or 8 */
};

static inline int64_t nbc_ints_at(struct nbc_ints v, int64_t i)
{
    return v.width == 4 ? ((const int32_t *)v.data)[i] : ((const int64_t *)v.data)[i];
}

/* One side of a call: blocks for (or from) peers. Without arrays every block has `count` elements
 * and they lie one behind the other, `count` extents apart. */
struct nbc_side {
    int64_t count;
    struct nbc_ints counts;
    struct nbc_ints displs;
    int type;            /* slot of the type, or of the first per-peer type */
    bool peer_types;     /* block i has type slot `type` + i */
    bool displs_bytes;   /* displacements are bytes, not extents */
    bool displs_implied; /* counts without displs: blocks are dense (reduce_scatter) */
};

/* A neighborhood, in the order of the standard (8.6): k-th block to destinations[k], from
 * sources[k]. Negative: MPI_PROC_NULL. The same process may appear several times. */
struct nbc_neighbors {
    const int *sources, *destinations;
    int indegree, outdegree;
    bool cartesian; /* per dimension: negative, positive neighbor */
};

/* Which node each rank is on, for hierarchical algorithms: nodes.h. Nodes are numbered by their
 * lowest rank. Absent (NULL in the shape) when all ranks share a node or none do. */
struct nbc_nodes {
    int size, nnodes;
    int block;          /* > 0: node r holds ranks r · block and on, and there are no arrays */
    bool ordered;       /* each node holds a range of ranks */
    const int *node_of; /* by rank */
    const int *member;  /* node by node, ascending … */
    const int *first;   /* … from here, by node; first[nnodes] = size */
};

/* A call, without handles or addresses. Everything a builder may depend on. */
struct nbc_shape {
    enum nbc_coll coll;
    int rank, size;  /* in the local group */
    int remote_size; /* 0: intracommunicator */
    int root;      /* rooted collectives: rank; for intercommunicators rank in the root's group, */
                   /* or NBC_ROOT_HERE, NBC_ROOT_IDLE (MPI_ROOT, MPI_PROC_NULL) */
    bool in_place; /* this rank passed MPI_IN_PLACE */
    bool commutative;
    struct nbc_side send, recv;
    const struct nbc_type *types; /* by slot */
    int ntypes;
    const struct nbc_neighbors *neighbors;
    const struct nbc_nodes *nodes;
    bool local;          /* all ranks are known to share a node; never between two groups */
    bool oversubscribed; /* and it has fewer processors than ranks in all */
    int64_t segment;     /* bytes a pipelined algorithm moves at a time; 0: its own choice */
};

enum { NBC_ROOT_HERE = -3, NBC_ROOT_IDLE = -4 };

/* Bytes that describe the call for selection: the same on every rank by the standard's matching
 * rules, or -1 where no rank knows them of the others (alltoallv/w, gatherv, scatterv, neighbors).
 * bcast, reductions: whole vector; gather, scatter, alltoall, allgather: one block; allgatherv and
 * reduce_scatter: mean block (rounded down). Intercommunicators: the ranks of the root's group know
 * nothing of rooted ones; allgather, alltoall: mean of both directions; reduce_scatter_block and
 * reduce_scatter: mean block over both groups. */
int64_t nbc_shape_bytes(const struct nbc_shape *s);

#endif
