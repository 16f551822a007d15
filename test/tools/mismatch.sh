#!/usr/bin/env bash
# examples/mismatch.c as its head says: with NBCSHIM_CHECK=1 it ends, and is told why.

. "$(dirname "$0")/../lib.sh"

compile()
{
    $CC -std=gnu11 $MPI_CPPFLAGS $newer_calls "$srcdir/examples/mismatch.c" -o "$scratch/mismatch" $MPI_LIBS
}
expect "mismatch compiles" compile

mpi_command 3 "$(sanitizer_runtime) $library" NBCSHIM_CHECK=1 "$scratch/mismatch"
ends_badly "it ends with an error" 60
grep -q 'collective call 1 on MPI_COMM_WORLD of 3 ranks: MPI_Ibcast: rank . gives root ., rank . gives' \
    "$scratch/log"
result $? "which names the call, the communicator, the ranks and their roots" "$(cat "$scratch/log")"
finish
