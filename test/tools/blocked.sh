#!/usr/bin/env bash
# SIGUSR1 names the function of MPI in which a rank is blocked, whichever it is (blocked.c).

. "$(dirname "$0")/../lib.sh"
forget_settings

expect "the program compiles" $CC -std=gnu11 $MPI_CPPFLAGS $newer_calls "$srcdir/test/tools/blocked.c" \
    -o "$scratch/blocked" $MPI_LIBS

# A report has a line with the function and the place of the call. One before it may say that the rank has not
# come to the call.
each_call_is_named()
{
    awk -v least="$1" '
    function done() { if (call != "" && !named) { print call ": " said; wrong++ } }
    /^call / { done(); call = $2; named = 0; said = ""; calls++ }
    /^nbcshim: rank 1: / && !/: last calls on / { said = said "\n" $0; named += $0 ~ ": in MPI_" call " at blocked[+]0x[0-9a-f]+(;|$)" }
    END { done(); print calls " calls"; exit wrong || calls < least }' "$scratch/shared.said"
}

# Otherwise a collective call on a file does not wait for the others.
export OMPI_MCA_fcoll=vulcan

blocked() # NAME LEAST VARIABLES [ARGUMENT]
{
    local name=$1 least=$2
    rm -f "$scratch/shared" "$scratch/shared.said"
    mpi_command 2 "$(sanitizer_runtime) $library" "NBCSHIM=on $3" "$scratch/blocked" "$scratch/shared" $4
    ends_well "$name: the program ends well" 120
    expect "$name: each function is named" each_call_is_named "$least"
}

blocked "blocked" 57 ""
[ "$MPI_FLAVOR" != openmpi ] || blocked "blocked in jobs that meet" 2 "" spawn
blocked "blocked, with a collective pending" 57 "" pending
blocked "blocked in nbcshim, with a collective pending" 57 NBCSHIM_BLOCKING=own pending
blocked "blocked, without the hook, with a collective pending" 57 NBCSHIM_HOOK=off pending
if [ -z "$newer_calls" ]; then
    expect "the program compiles with the static library" $CC -std=gnu11 $MPI_CPPFLAGS \
        "$srcdir/test/tools/blocked.c" -o "$scratch/blocked" ".libs/lib$NBC_NAME.a" $MPI_LIBS
    library=
    blocked "blocked in the static library" 57 "" pending
fi

finish
