/* SPDX-License-Identifier: MIT */
/* The 22 collectives, and the struct that describes a call of any of them. */
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

/* Sets of collectives are bits of a word: NBC_BIT(BCAST) | NBC_BIT(GATHER). */
#define NBC_BIT(COLL) (UINT32_C(1) << NBC_##COLL)

/* Returns the name as in the standard, in lower case ("allreduce"): for tables, messages and
 * variables. */
const char *nbc_coll_name(enum nbc_coll coll);

/* Writes the name of an MPI function and returns its length, as snprintf() does. coll: as
 * nbc_coll_name(). nonblocking: MPI_Ibcast and not MPI_Bcast. suffix: "", "_c", "_init" … */
int nbc_coll_function(const char *coll, bool nonblocking, const char *suffix, char *text,
                      size_t room);

/* Change the case of an ASCII letter. tolower() and toupper() depend on the program's locale: in
 * Turkish, 'I' is not the upper case of 'i'. */
static inline char nbc_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static inline char nbc_upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

/* Whether two words are equal but for the case of their ASCII letters. */
bool nbc_same_word(const char *a, const char *b);

/* Returns the collective of that name, in any case of letters, or NBC_NCOLLS if there is none. */
enum nbc_coll nbc_coll_by_name(const char *name);

/* Whether the collective has a root. */
static inline bool nbc_coll_has_root(enum nbc_coll coll)
{
    return (coll >= NBC_BCAST && coll <= NBC_SCATTERV) || coll == NBC_REDUCE;
}

/* Whether all ranks send and only the root receives: gather, gatherv, reduce. */
static inline bool nbc_coll_is_to_root(enum nbc_coll coll)
{
    return coll == NBC_GATHER || coll == NBC_GATHERV || coll == NBC_REDUCE;
}

/* Whether the collective communicates along the edges of the communicator's topology. */
static inline bool nbc_coll_is_neighborhood(enum nbc_coll coll)
{
    return coll >= NBC_NEIGHBOR_ALLGATHER;
}

/* Whether the collective has a reduction operator. */
bool nbc_coll_reduces(enum nbc_coll coll);

/* Whether patterns are for it (pattern.h): neighborhoods, alltoall, alltoallv and alltoallw. */
bool nbc_coll_has_edges(enum nbc_coll coll);

/* Whether the arguments of the side that sends, or of that which receives, have an array of counts.
 */
bool nbc_coll_has_counts(enum nbc_coll coll, bool send);

/* Whether the call passes one datatype per peer (the w collectives). */
bool nbc_coll_has_types(enum nbc_coll coll);

/* Buffers of a call. Addresses are bound when a schedule runs; schedules hold (buffer, offset). */
enum nbc_buf { NBC_BUF_SEND, NBC_BUF_RECV, NBC_BUF_TEMP, NBC_NBUFS };

/* Type slots: indices into a shape's array of layouts, and into the array of datatype handles that
 * the transport of an operation holds. Per-peer types (the w collectives) start at FIRST_PEER:
 * first those of the send side, then those of the receive side. A collective with one datatype
 * (bcast, reductions) has the same layout in SEND and RECV. */
enum { NBC_TYPE_BYTE, NBC_TYPE_SEND, NBC_TYPE_RECV, NBC_TYPE_FIRST_PEER };

/* The layout of a datatype. All sizes are in bytes; lb and extent may be negative. */
struct nbc_type {
    int64_t size;        /* bytes of data in one element */
    int64_t extent;      /* distance from one element to the next */
    int64_t true_lb;     /* lowest byte of an element, relative to its address */
    int64_t true_extent; /* distance from there to its highest byte + 1 */
    bool packed;         /* memory order is type-map order and there are no gaps, nor between */
                         /* elements: bytes may be moved instead of elements */
};

/* A view of an argument array with elements of int or 64 bits. data = NULL: there is no array. */
struct nbc_ints {
    const void *data;
    int width; /* bytes of an element: 4 or 8 */
};

static inline int64_t nbc_ints_at(struct nbc_ints v, int64_t i)
{
    return v.width == 4 ? ((const int32_t *)v.data)[i] : ((const int64_t *)v.data)[i];
}

/* The send side or the receive side of a call: one block per peer. Without arrays, every block has
 * `count` elements, and the blocks are contiguous, `count` extents apart. */
struct nbc_side {
    int64_t count;
    struct nbc_ints counts;
    struct nbc_ints displs;
    int type;            /* slot of the type, or of the first per-peer type */
    bool peer_types;     /* block i has type slot `type` + i */
    bool displs_bytes;   /* displacements are in bytes, not in extents */
    bool displs_implied; /* counts without displs: blocks are contiguous (reduce_scatter) */
};

/* A neighborhood, in the order of the standard (MPI-4.1 section 8.6): the k-th block goes to
 * destinations[k], or comes from sources[k]. A negative rank is MPI_PROC_NULL. A process may appear
 * more than once. */
struct nbc_neighbors {
    const int *sources, *destinations;
    int indegree, outdegree;
    bool cartesian; /* two neighbors per dimension: negative, then positive direction */
};

/* A node map: which node each rank is on, for hierarchical algorithms; its functions are in
 * nodes.h. Nodes are numbered in the order of their lowest ranks. A shape has none (NULL) when all
 * ranks share a node or no two ranks do. */
struct nbc_nodes {
    int size, nnodes;
    int block;          /* > 0: node r has the ranks from r · block on, and arrays are NULL */
    bool ordered;       /* each node has a contiguous range of ranks */
    const int *node_of; /* node of each rank */
    const int *member;  /* the ranks, node by node, ascending within a node */
    const int *first;   /* per node: index of its first rank in member; first[nnodes] = size */
};

/* The order in which a reduction combines the contributions of the ranks. Floating-point addition
 * is not associative, so results of different orders differ in their last digits. Except for
 * NBC_ORDER_ANY the order depends on the number of ranks and, of scans, on the rank alone; on
 * neither the algorithm nor the root, nodes, processors, or the length of the vector. */
enum nbc_order {
    NBC_ORDER_ANY, /* whatever order is fastest; that of ranks, if the operator does not commute */
    NBC_ORDER_RANKS, /* ((0 + 1) + 2) + … */
    NBC_ORDER_TREE   /* (0 + 1) + (2 + 3), …: that of recursive doubling (doc/reductions.md) */
};

/* Returns the name of an order: "any", "ranks", "tree". */
const char *nbc_order_name(enum nbc_order order);

/* Sets *order, an enum nbc_order, to that of a name, in any case of letters. Returns false if there
 * is none. */
bool nbc_order_by_name(const char *name, void *order);

/* The shape of a call: the call without handles and addresses. A builder depends on nothing else.
 */
struct nbc_shape {
    enum nbc_coll coll;
    int rank, size;   /* in the local group */
    int remote_size;  /* 0: intracommunicator */
    int root;         /* of rooted collectives: its rank; in intercommunicators its rank in the */
                      /* remote group, or NBC_ROOT_HERE (MPI_ROOT), NBC_ROOT_IDLE (MPI_PROC_NULL) */
    bool in_place;    /* this rank passed MPI_IN_PLACE */
    bool commutative; /* never if an order is required */
    enum nbc_order order; /* of reductions */
    struct nbc_side send, recv;
    const struct nbc_type *types; /* by slot */
    int ntypes;
    const struct nbc_neighbors *neighbors;
    const struct nbc_nodes *nodes;
    const struct nbc_pattern *pattern; /* pattern.h; NULL: unknown */
    bool local;          /* all ranks are known to share a node; never between two groups */
    bool sockets;        /* not local, and no node has a network faster than sockets */
    bool oversubscribed; /* local, and more ranks of the job are on that node than processors */
    bool handshake;      /* local, and the MPI begins messages of more than 4 KiB by a handshake */
    bool by_mpi;         /* the MPI below may carry out the call itself */
    int64_t segment;     /* bytes that a pipelined algorithm moves at a time; 0: its default */
    int64_t eager;       /* longest message between nodes that the MPI sends without asking the */
                         /* receiver first, which takes several latencies; 0: unknown */
};

enum { NBC_ROOT_HERE = -3, NBC_ROOT_IDLE = -4 };

/* Returns the bytes by which an algorithm is selected. They are the same on every rank by the
 * standard's matching rules; -1 if ranks cannot know them of each other (gatherv, scatterv,
 * alltoallv, alltoallw, neighborhood collectives).
 *
 * bcast, reduce, allreduce, scan, exscan: the vector. gather, scatter, allgather, alltoall: one
 * block. reduce_scatter_block: one block. allgatherv, reduce_scatter: the mean block, rounded down.
 * In intercommunicators, allgather and alltoall: the mean of both directions; reduce_scatter_block
 * and reduce_scatter: the mean block over both groups; rooted collectives: -1, since the other
 * ranks of the root's group do not know the bytes. */
int64_t nbc_shape_bytes(const struct nbc_shape *s);

#endif
