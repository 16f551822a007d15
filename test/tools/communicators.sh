#!/usr/bin/env bash
# A program has as many communicators under nbcshim as without it, but for a handful. MPICH has some
# 2000; on an MPI that has more, MOST are enough.

. "$(dirname "$0")/../lib.sh"

MOST=3000
HANDFUL=4

expect "the program compiles" $CC -std=gnu11 $MPI_CPPFLAGS "$srcdir/test/tools/communicators.c" \
    -o "$scratch/communicators" $MPI_LIBS

# count NAME PRELOAD VARIABLES: sets $count.
count()
{
    mpi_command 2 "$2" "$3" "$scratch/communicators" $MOST
    ends_well "$1: the program ends well" 60
    count=$(sed -n 's/^\([0-9]*\) communicators$/\1/p' "$scratch/log")
}

count "without nbcshim" "" ""
native=$count
count "with nbcshim" "$(sanitizer_runtime) $library" NBCSHIM=on
[ "${count:-0}" -ge $((native - HANDFUL)) ]
result $? "$count communicators, without nbcshim $native"

finish
