/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/collect.h"

#include <stdlib.h>

#include "base/in_mpi.h"

MPI_Comm nbc_collect_comm = MPI_COMM_NULL;
int64_t nbc_collect_offset;

enum { PINGS = 10, PIECE = 65536 };

static void clock_answer(int peer)
{
    for (int i = 0; i < PINGS; i++) {
        int64_t now;
        NEXT(Recv)(&now, 0, MPI_BYTE, peer, 0, nbc_collect_comm, MPI_STATUS_IGNORE);
        now = nbc_now();
        NEXT(Send)(&now, sizeof now, MPI_BYTE, peer, 0, nbc_collect_comm);
    }
}

/* Takes the fastest of some round trips and assumes that rank 0 read its clock in its middle. */
static void clock_ask(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < PINGS; i++) {
        int64_t there, begin = nbc_now();
        NEXT(Send)(&there, 0, MPI_BYTE, 0, 0, nbc_collect_comm);
        NEXT(Recv)(&there, sizeof there, MPI_BYTE, 0, 0, nbc_collect_comm, MPI_STATUS_IGNORE);
        int64_t trip = nbc_now() - begin;
        if (trip >= least)
            continue;
        least = trip;
        nbc_collect_offset = there - (begin + trip / 2);
        if (llabs(nbc_collect_offset) <= trip / 2)
            nbc_collect_offset = 0; /* as a rule the same clock */
    }
}

bool nbc_collect_begin(void)
{
    int rank, size;
    if (NEXT(Comm_dup)(MPI_COMM_WORLD, &nbc_collect_comm))
        return false; /* unreached: no memory */
    NEXT(Comm_rank)(nbc_collect_comm, &rank);
    NEXT(Comm_size)(nbc_collect_comm, &size);
    for (int peer = 1; rank == 0 && peer < size; peer++)
        clock_answer(peer);
    if (rank > 0)
        clock_ask();
    return true;
}

void nbc_collect_end(void)
{
    NEXT(Comm_free)(&nbc_collect_comm);
}

static ssize_t send_piece(void *unused, const char *text, size_t length)
{
    (void)unused;
    for (size_t at = 0; at < length; at += PIECE) {
        size_t left = length - at;
        NEXT(Send)
        ((void *)(uintptr_t)(text + at), left < PIECE ? (int)left : PIECE, MPI_CHAR, 0, 0,
         nbc_collect_comm);
    }
    return (ssize_t)length;
}

/* The last piece of each rank is empty. */
static void receive_pieces(FILE *file, int peer, char *piece)
{
    MPI_Status status;
    int length;
    do {
        NEXT(Recv)(piece, PIECE, MPI_CHAR, peer, 0, nbc_collect_comm, &status);
        NEXT(Get_count)(&status, MPI_CHAR, &length);
        if (file)
            fwrite(piece, 1, length, file);
    } while (length);
}

void nbc_collect(FILE *file, void (*write)(FILE *out, int rank))
{
    static char piece[PIECE];
    int rank, size;
    NEXT(Comm_rank)(nbc_collect_comm, &rank);
    NEXT(Comm_size)(nbc_collect_comm, &size);
    if (rank > 0)
        file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = send_piece});
    if (file && rank > 0)
        setvbuf(file, piece, _IOFBF, sizeof piece);
    if (file)
        write(file, rank);
    if (file && rank > 0)
        fclose(file);
    if (rank > 0)
        NEXT(Send)(NULL, 0, MPI_CHAR, 0, 0, nbc_collect_comm);
    for (int peer = 1; rank == 0 && peer < size; peer++)
        receive_pieces(file, peer, piece);
}
