#!/usr/bin/env bash
# MPI_Finalize while a session is open, on an MPI that deletes the attributes of MPI_COMM_SELF then
# (sessions.c), three of nbcshim's and one of the program's: nbcshim goes on serving the session.

. "$(dirname "$0")/../lib.sh"
forget_settings

bent_mpi sessions

run() # ranks
{
    mpi_command "$1" "$(sanitizer_runtime) $library $bent" NBCSHIM_STATS=1 \
        "$PWD/test/mpi/sessions.preload" behind
    ends_well "a session that ends behind MPI_Finalize, $1 ranks" 60
    log_has "$1" "the attributes were deleted in MPI_Finalize" '^deleted early: 4$'
}

if mpi_has Session_init; then
    run 1
    run 3
fi
finish
