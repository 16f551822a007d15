/* SPDX-License-Identifier: MIT */
/* The handshake: whether all ranks run with nbcshim, and what they must have alike, the build of
 * nbcshim, since ranks with different builds could run different schedules for the same call, and
 * the settings that determine what all ranks do.
 *
 * A rank without nbcshim, because the library is missing on its host or is not preloaded there,
 * takes part in no exchange and is silent forever. So the others first exchange empty messages, in
 * ceil(log2 P) rounds: in round k a rank sends one to the rank 2^k behind it and waits for the one
 * from 2^k before it. A rank that is through knows that all others have arrived.
 *
 * Why point-to-point messages on MPI_COMM_WORLD. They can be waited for with a limit, on every MPI.
 * A collective, also a nonblocking one or MPI_Comm_idup, would be matched by the first such call of
 * the program on a rank without nbcshim, which would then get an error, or the data of another
 * call. These messages are visible there too, but only to a receive or probe that gives
 * MPI_ANY_TAG; they have the largest tags, and no data that could be longer than the buffer.
 *
 * What happens after a silence. Nothing tells a rank without nbcshim from one that comes late,
 * because of a slow file system or a debugger; MPI_Init of the MPI below need not have waited for
 * it. So after 9 s one rank calls all others, and those that wait answer with the name of their
 * host. Within 10 s it names the silent ranks in one line. It goes on waiting, since a job that
 * only starts slowly must run, and ends the job when NBCSHIM_INIT_TIMEOUT has passed (but not while
 * a process of the program is stopped or in a debugger on its host), or when it sees a message of
 * the program from a silent rank: no rank with nbcshim sends one before its MPI_Init is through.
 *
 * The caller is rank 0; if it does not call, the first rank behind a silent one. Times count from
 * the moment when MPI_Init of the MPI below has returned on this rank; time for which this rank was
 * stopped does not count. */
#ifndef NBC_HANDSHAKE_H
#define NBC_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "below/next.h"

/* What a rank may say of itself. */
enum {
    NBC_WANTS = 1,         /* it wants nbcshim to be active */
    NBC_WITHOUT_STATS = 4, /* NBCSHIM_STATS is not set */
    NBC_IN_USE = 8,        /* a session has created communicators with its settings */
    NBC_OF_TWO_JOBS = 16,  /* these ranks share no MPI_COMM_WORLD */
    NBC_UNKNOWN = 32,      /* the communicator from which its job connects has no context */
};

struct nbc_comparison {
    uint32_t said;      /* what any rank says */
    uint32_t large;     /* nbc_program_large of any rank */
    uint32_t offloaded; /* nbc_offload_find of all ranks */
    bool same_build, same_settings;
};

/* Returns when all ranks have arrived: the first exchange of MPI_Init, collective over
 * MPI_COMM_WORLD. Like the functions below without the lock, and with an MPI error code. */
int nbc_handshake(void);

/* Exchanges digests of the build and the settings, and what ranks say. Of two jobs, compares the
 * settings that concern the operations between them. Only if ranks differ, others find out which.
 * By the blocking collectives of the MPI below, like the functions below, right after the call that
 * has created the communicator. */
int nbc_compare_ranks(MPI_Comm comm, uint32_t says, uint32_t large, uint32_t offloaded,
                      struct nbc_comparison *all);

/* Does nothing if ranks do not differ. Where builds differ, reports that and ends the job. The
 * exchange until then is the same in all versions. Where settings differ, reports them, one line
 * each. If `settle`, makes all ranks take the same then, or ends the job if they are in use. */
int nbc_compare_ranks_report(MPI_Comm comm, const struct nbc_comparison *all, bool settle);

/* Sets all[] to the bitwise AND of the words of all ranks, of both groups of an
 * intercommunicator; at most NBC_RANGE_WORDS (ranges.h). */
int nbc_agree_and(MPI_Comm comm, const uint64_t *mine, uint64_t *all, int words);

#endif
