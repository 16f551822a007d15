/* SPDX-License-Identifier: MIT */
/* What all ranks of a communicator must have alike: the build of nbcshim, and the settings of
 * base/alike.h. One small exchange compares digests; only if these differ, further ones find out
 * which ranks differ, and one rank reports that. Collective over the communicator. Without the
 * lock. The functions return MPI error codes. */
#ifndef NBC_CONSENT_H
#define NBC_CONSENT_H

#include <stdbool.h>

#include "below/next.h"

struct nbc_consent {
    bool any_wants;      /* a rank wants nbcshim to be active */
    bool any_called;     /* see arrival.h */
    bool all_have_stats; /* NBCSHIM_STATS is set on all ranks */
    bool same_build, same_settings;
};

/* Exchanges the digests. `wants`, `called`: of this rank. */
int nbc_consent_ask(MPI_Comm comm, bool wants, bool called, struct nbc_consent *all);

/* Reports that ranks have different builds, and ends the job. The exchange of this function is the
 * same in all versions, like that of nbc_consent_ask. */
int nbc_consent_refuse(MPI_Comm comm);

/* Reports the settings that differ, one line each, and makes all ranks take the same. Ends the job
 * if that is too late, since a session has created communicators with the settings of some rank:
 * `in_use`, of this rank. */
int nbc_consent_settle(MPI_Comm comm, bool in_use);

/* Reports that the ranks of a communicator differ, which has therefore no context. */
int nbc_consent_report(MPI_Comm comm);

#endif
