/* SPDX-License-Identifier: MIT */
#include "op/rings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/in_mpi.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/quirks.h"
#include "below/segment.h"

#include "hash.h"
#include "nodes.h"

MPI_Comm nbc_shared_comm = MPI_COMM_NULL;
int64_t nbc_shared_piece, nbc_shared_most;
int16_t *nbc_shared_index;
struct nbc_shared_peer *nbc_shared_peers;
int nbc_shared_npeers;

static int not_asked;
int *nbc_shared_asked = &not_asked;

/* The memory of a node: a line with a number by which its ranks know it, a line for each rank, in
 * which others ask it to receive, and the rings to rank 0 of the node from each, those to rank 1,
 * and so on. Those to a rank have at most MOST_BYTES. */
enum { MOST_LINES = 2048, MOST_BYTES = 2 << 20 };

/* A message in pieces is copied twice. Between two ranks the MPI takes twice the time for 256 KiB,
 * and two thirds for 1 MiB (MPICH 4.0.2, Open MPI 4.1.4). */
enum { PIECES = 8 };

static struct {
    char *memory;
    size_t bytes, head, ring; /* of the memory, of the lines, of a ring */
    uint32_t nlines;          /* of a ring; 0: none */
    int n, own;               /* ranks of the node, this one's index */
} node;

/* What a rank tells the others: rank 0 of a node has its memory. */
struct offer {
    int process, descriptor;
    uint64_t number;
};

static uint32_t choose_lines(int n)
{
    uint32_t nlines = MOST_LINES;
    while (nlines >= NBC_RING_FEWEST && (size_t)n * nbc_ring_bytes(nlines) > MOST_BYTES)
        nlines /= 2;
    return nlines < NBC_RING_FEWEST ? 0 : nlines;
}

static bool can_share(void)
{
    const int one = 1;
    bool handles_have_the_bit = sizeof(uintptr_t) == 8 && *(const char *)&one;
    return handles_have_the_bit && nbc_settings.shared_memory && !nbc_quirks_tolerates_faults() &&
           node.n > 1 && node.nlines > 0;
}

static void make_offer(struct offer *o)
{
    *o = (struct offer){.process = getpid(), .descriptor = -1};
    if (node.own > 0 || !can_share())
        return;
    o->number = nbc_hash_pair((uint64_t)nbc_now(), (uint64_t)getpid()) | 1;
    o->descriptor = nbc_segment_create(node.bytes);
    if (o->descriptor < 0 || !nbc_segment_provide(o->descriptor, 0, node.head))
        return;
    node.memory = nbc_segment_map(o->descriptor, node.bytes);
    if (node.memory)
        memcpy(node.memory, &o->number, sizeof o->number);
}

/* Returns whether this rank shares the memory now; the caller closes the descriptor. */
static bool accept_offer(const struct offer *o, int *descriptor)
{
    *descriptor = node.own == 0 ? o->descriptor : -1;
    if (o->descriptor < 0 || !can_share())
        return false;
    if (node.own > 0) {
        *descriptor = nbc_segment_open(o->process, o->descriptor);
        node.memory = *descriptor < 0 ? NULL : nbc_segment_map(*descriptor, node.bytes);
    }
    return node.memory && !memcmp(node.memory, &o->number, sizeof o->number) &&
           nbc_segment_provide(*descriptor, node.head + (size_t)node.own * node.n * node.ring,
                               node.n * node.ring);
}

static int *line_of(int rank)
{
    return (int *)(void *)(node.memory + (size_t)(1 + rank) * NBC_RING_LINE);
}

/* Of the ring to one rank of the node from another. */
static struct nbc_ring ring_of(int to, int from)
{
    return nbc_ring_end(node.memory + node.head + (size_t)(to * node.n + from) * node.ring,
                        node.nlines);
}

static bool make_peers(const struct nbc_nodes *world, int which)
{
    nbc_shared_peers = calloc((size_t)node.n, sizeof *nbc_shared_peers);
    nbc_shared_index = malloc((size_t)world->size * sizeof *nbc_shared_index);
    if (!nbc_shared_peers || !nbc_shared_index)
        return false; /* unreached: no memory */
    nbc_shared_npeers = node.n;
    nbc_shared_asked = line_of(node.own);
    for (int rank = 0; rank < world->size; rank++)
        nbc_shared_index[rank] = -1;
    for (int i = 0; i < node.n; i++) {
        nbc_shared_peers[i].to = ring_of(i, node.own);
        nbc_shared_peers[i].from = ring_of(node.own, i);
        nbc_shared_peers[i].asked = line_of(i);
        if (i != node.own)
            nbc_shared_index[nbc_node_member(world, which, i)] = (int16_t)i;
    }
    return true;
}

/* Whether a rank that is blocked in the MPI receives what fills its rings, as the MPI receives what
 * is sent to it: in the hook, or in loops that replace blocking calls. */
static bool receives_while_blocked(void)
{
    return nbc_hooked || (nbc_threaded && nbc_settings.progress != NBC_PROGRESS_THREAD);
}

int nbc_rings_setup(const struct nbc_nodes *world, int rank)
{
    int which = nbc_node_of(world, rank), descriptor = -1;
    node.n = nbc_node_size(world, which);
    node.own = nbc_node_index(world, rank);
    node.nlines = choose_lines(node.n);
    node.ring = nbc_ring_bytes(node.nlines);
    node.head = (size_t)(1 + node.n) * NBC_RING_LINE;
    node.bytes = node.head + (size_t)node.n * node.n * node.ring;
    struct offer mine, *all = malloc((size_t)world->size * sizeof *all);
    if (!all)
        return MPI_ERR_NO_MEM; /* unreached: no memory */
    make_offer(&mine);
    int error =
        NEXT(Allgather)(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    int alone = node.n == 1, good = 0, agreed = 0;
    if (!error)
        good = alone || (receives_while_blocked() &&
                         accept_offer(&all[nbc_node_member(world, which, 0)], &descriptor) &&
                         make_peers(world, which));
    free(all);
    if (!error)
        error = NEXT(Allreduce)(&good, &agreed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (descriptor >= 0)
        close(descriptor);
    nbc_shared_piece = nbc_ring_longest(node.nlines);
    nbc_shared_most = PIECES * nbc_shared_piece;
    if (!agreed || alone)
        nbc_rings_cleanup();
    return error;
}

void nbc_rings_begin(MPI_Comm duplicate)
{
    if (node.memory)
        nbc_shared_comm = duplicate;
}

void nbc_rings_cleanup(void)
{
    nbc_shared_asked = &not_asked; /* which the hook reads without the lock */
    nbc_shared_npeers = 0;
    nbc_segment_unmap(node.memory, node.bytes);
    free(nbc_shared_peers);
    free(nbc_shared_index);
    node.memory = NULL;
    nbc_shared_peers = NULL;
    nbc_shared_index = NULL;
    nbc_shared_comm = MPI_COMM_NULL;
}
