#!/usr/bin/env bash
# A program has as many communicators under nbcshim as without it, but for a handful. MPICH has some
# 2000; on an MPI that has more, MOST are enough.

. "$(dirname "$0")/../lib.sh"

MOST=3000
HANDFUL=4

compiled communicators

# count NAME PRELOAD VARIABLES ARGUMENT...: sets $count.
count()
{
    local name=$1 preload=$2 variables=$3
    shift 3
    mpi_command 2 "$preload" "$variables" "$scratch/communicators" $MOST "$@"
    ends_well "$name: the program ends well" 60
    count=$(sed -n 's/^\([0-9]*\) communicators$/\1/p' "$scratch/log")
}

ours="$(sanitizer_runtime) $library"

count "without nbcshim" "" ""
native=$count
count "with nbcshim" "$ours" NBCSHIM=on
expect "$count communicators, without nbcshim $native" test "${count:-0}" -ge $((native - HANDFUL))

# With few ranges a range that is lost takes the room of a communicator, where the MPI has an end.
count "few ranges" "$ours" NBCSHIM_TEST=tag_ub=65535
few=$count
# Some 126 ranges serve one communicator each, and what is left serves two each.
[ "$native" = $MOST ] || [ "${count:-0}" -ge $(((native + 120) / 2)) ]
result $? "$count communicators with few ranges"
count "few ranges, after use" "$ours" NBCSHIM_TEST=tag_ub=65535 use
expect "$count communicators after others were freed, before that $few" test "$count" = "$few"
if [ "$native" != $MOST ]; then
    count "few ranges, after failures" "$ours" NBCSHIM_TEST=tag_ub=65535 fail
    expect "$count communicators after others could not be made, before that $few" test "$count" = "$few"
fi

finish
