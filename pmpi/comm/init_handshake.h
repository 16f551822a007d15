/* SPDX-License-Identifier: MIT */
/* Whether all ranks of MPI_COMM_WORLD run with nbcshim: the first exchange of MPI_Init.
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
#ifndef NBC_INIT_HANDSHAKE_H
#define NBC_INIT_HANDSHAKE_H

#include <stdbool.h>

/* Returns when all ranks have arrived. Sets *called to whether this rank has called the others
 * meanwhile. Collective over MPI_COMM_WORLD. Returns an MPI error code. */
int nbc_init_handshake(bool *called);

/* Receives the calls and answers that are left over, so that the program never sees one. Called by
 * all ranks if one of them has called. Collective over MPI_COMM_WORLD. Returns an MPI error code.
 */
int nbc_init_handshake_clear(void);

#endif
