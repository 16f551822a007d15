/* SPDX-License-Identifier: MIT */
/* What ranks must have alike: the build of nbcshim, since ranks with different builds could run
 * different schedules for the same call, and the settings that determine what all ranks do. One
 * small exchange compares digests; only if these differ, further ones find out which ranks differ,
 * and one rank reports that. By the blocking collectives of the MPI below. All functions are
 * collective over the communicator, right after the call that has created it, and without the lock;
 * they return MPI error codes. */
#ifndef NBC_COMPARE_RANKS_H
#define NBC_COMPARE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "below/next.h"

/* What a rank may say of itself. */
enum {
    NBC_WANTS = 1,         /* it wants nbcshim to be active */
    NBC_CALLED = 2,        /* see init_handshake.h */
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

/* Exchanges the digests, and what ranks say. Of two jobs, compares the settings that concern the
 * operations between them. */
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
