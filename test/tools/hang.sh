#!/usr/bin/env bash
# A hang explains itself: NBCSHIM_TIMEOUT, and SIGUSR1 on demand. In the program of hang.c the last
# rank is late; the others wait, compute, or are blocked below nbcshim.

. "$(dirname "$0")/../lib.sh"

compiled hang

program=hang
export NBC_NAP=500000 # ranks wait for seconds; see test/mpi/yield.c

# run NAME VARIABLES ARGUMENT...: the program ends well.
run()
{
    local name=$1 variables=$2
    shift 2
    preloaded "$name: the program ends well" "${ranks:-4}" \
        "${blocking-NBCSHIM_BLOCKING=native} NBCSHIM_ALGORITHM_ALLREDUCE=one_round $variables" "$scratch/$program" "$@"
}

pending='allreduce:one_round, number 2 on MPI_COMM_WORLD'
waits='round 1 of 1: waits for a message from rank 3\b'

run "NBCSHIM_TIMEOUT" NBCSHIM_TIMEOUT=1
for rank in 0 1 2; do
    log_has 1 "NBCSHIM_TIMEOUT: rank $rank says once what it waits for" \
        "^nbcshim: rank $rank: $pending \(rank $rank of 4\), pending for [1-9]\.[0-9] s, $waits"
done
log_has 0 "NBCSHIM_TIMEOUT: the late rank has nothing to say" 'nbcshim: rank 3:'
log_has 3 "NBCSHIM_TIMEOUT: what was only slow says so" \
    "^nbcshim: rank [012]: $pending \(rank [012] of 4\), completed after [2-9]\.[0-9] s\$"

run "SIGUSR1" "" signal
for rank in 0 1 2; do
    log_has 1 "SIGUSR1: rank $rank says what it waits for" \
        "^nbcshim: rank $rank: $pending \(rank $rank of 4\), $waits"
done
log_has 1 "SIGUSR1: the late rank has called one operation only" \
    '^nbcshim: rank 3: outside MPI; no operation is pending; nonblocking .* MPI_COMM_WORLD so far: 1$'

for stats in 0 1; do
    run "SIGUSR1, NBCSHIM_STATS=$stats" NBCSHIM_STATS=$stats signal
    log_has 3 "SIGUSR1, NBCSHIM_STATS=$stats: where the last calls are" \
        '^nbcshim: rank [012]: last calls on MPI_COMM_WORLD: 1 .*iallreduce of .* at (main\+0x[0-9a-f]+ \()?hang\b'
done

run "SIGUSR1 during MPI_Test" "" test
log_has 3 "SIGUSR1 during MPI_Test: three ranks say what they wait for" \
    "^nbcshim: rank [012]: $pending .*$waits"

# What nbcshim does alike on every MPI; the second one has it in the soak.
on_any_mpi()
{
    run "NBCSHIM_TIMEOUT that is not reached" NBCSHIM_TIMEOUT=30
    log_has 0 "NBCSHIM_TIMEOUT: nobody says anything" 'nbcshim:'

    blocking="NBCSHIM_BLOCKING=own NBCSHIM_SEGMENT_SIZE=4k"
    run "a vector in segments" "NBCSHIM_TIMEOUT=1 NBCSHIM_ALGORITHM_ALLREDUCE=two_rounds" long
    log_has 1 "a vector in segments: rank 0 says that it waits for rank 3" \
        '^nbcshim: rank 0: allreduce:two_rounds, .* waits for a message from rank .*\b3\b'
    log_has 0 "a vector in segments: no rank is named twice" 'from rank [^;]*\b([0-9]),[^;]* \1\b'
    unset blocking

    for ranks in 13 15; do
        run "$ranks ranks" NBCSHIM_TIMEOUT=1 first
        [ $ranks = 13 ] && more= || more=' and 2 more'
        log_has 1 "$ranks ranks: rank 0 names twelve of those for which it waits" \
            "^nbcshim: rank 0: .*: waits for a message from rank ([0-9]+, ){11}[0-9]+$more\$"
    done
    unset ranks

    run "SIGUSR1 while the lock is in use" NBCSHIM_TIMEOUT=30 signal
    log_has 3 "SIGUSR1: three ranks say what they wait for" "^nbcshim: rank [012]: $pending .*$waits"

    # Each operator ends before the next report of rank 0 begins, and there is a report.
    operator_is_undisturbed()
    {
        awk '/^the operator / { inside = $3 == "begins" }
             /^nbcshim: rank 0:/ { reports++; wrong += inside }
             /^the sum is/ { wrong++ }
             END { exit wrong || !reports }' "$scratch/log"
    }

    for timeout in "" NBCSHIM_TIMEOUT=30; do
        run "SIGUSR1 in an operator${timeout:+, $timeout}" "$timeout" operator
        expect "SIGUSR1 in an operator${timeout:+, $timeout}: the report comes after it" operator_is_undisturbed
        log_has 0 "SIGUSR1 in an operator${timeout:+, $timeout}: the rank is not outside MPI" 'rank 0: outside MPI'
    done

    blocking=NBCSHIM_BLOCKING=own
    kinds()
    {
        log_has 1 "$1: rank 0 says that it waits in the nonblocking call" \
            "^nbcshim: rank 0: $pending .*waits for a message from rank [123], [123], [123]\b"
        for rank in 1 2 3; do
            log_has 1 "$1: rank $rank says that it waits in the blocking call" \
                "^nbcshim: rank $rank: blocking $pending .*waits for a message from rank 0\b"
        done
    }
    run "a blocking and a nonblocking call" NBCSHIM_TIMEOUT=1 kinds
    kinds "a blocking and a nonblocking call"
    run "a blocking and a nonblocking call, SIGUSR1" "" signal kinds
    kinds "a blocking and a nonblocking call, SIGUSR1"
    unset blocking

    blocking="NBCSHIM_TEST=tag_ub=30 NBCSHIM_ALGORITHM_BARRIER=linear NBCSHIM_ALGORITHM_BCAST=linear"
    run "SIGUSR1, operations of many kinds" "" signal rare
    rare() # what rank pattern
    {
        log_has 1 "SIGUSR1, operations of many kinds: rank $2: $1" "^nbcshim: rank $2: $3"
    }
    rare "more operations than tags" 0 \
        '52 more operations on a communicator \(rank 0 of 4\) are queued until earlier ones complete$'
    rare "a freed communicator" 0 'barrier:linear, number 1 on a freed communicator \(rank 0 of 4\), .*from rank [123, ]*3$'
    rare "between two groups" 0 \
        'barrier:[a-z_]+, number 1 on a communicator \(rank 0 of 2\).*; peers in the other group: waits for a message from rank 1$'
    rare "persistent" 1 'persistent barrier:linear, number [0-9]+ on MPI_COMM_WORLD \(rank 1 of 4\), .*$'
    ! mpi_has Comm_idup || rare "a duplicate" 2 'MPI_Comm_idup$'
    rare "a message that is not received" 0 'bcast:linear, number [0-9]+ on MPI_COMM_WORLD .*: waits for a receive on rank 3$'
    unset blocking

    run "an operation that has failed" "NBCSHIM_TIMEOUT=1 NBCSHIM_ALGORITHM_GATHER=linear" fails
    log_has 1 "an operation that has failed: rank 0 says so, and that it waits for rank 3" \
        '^nbcshim: rank 0: gather:linear, number 2 on MPI_COMM_WORLD .*, has failed on this rank, .*waits for a message from rank 3$'
    log_has 0 "an operation that has failed: its errors are right" '^rank .*: class'
    log_has 1 "an operation that has failed: no other has" 'has failed on this rank'
}
[ -n "${NBC_AGAIN:-}" ] || on_any_mpi

compiled culprit -g -pthread

# Ranks end without MPI_Finalize, so that the job does not end well. If they all end at once, mpiexec of Open MPI
# may never end, or crash.
culprit() # VARIABLES ARGUMENT
{
    [ "$MPI_LAUNCHER" != openmpi ] || local NBC_NAP=
    mpi_command 4 "$(sanitizer_runtime) $library" "NBCSHIM=on $1" "$scratch/culprit" "$2"
    guarded 25 "$scratch/log" "${launch[@]}"
}

# MPI_Finalize of MPICH does not wait for the others.
so_far='nonblocking collectives called on MPI_COMM_WORLD so far'
culprit NBCSHIM_CHECK=0 bcast
log_has 1 "the culprit is in MPI_Finalize, and says so" \
    "^nbcshim: rank 3: (in|after) MPI_Finalize since [0-9]+\.[0-9] s; $so_far: 7\$"
log_has 4 "every rank says where it is" \
    '^nbcshim: rank [0-3]: ((in|after) MPI_Finalize since|allreduce:[a-z_]+, number 7 on .* waits for a message from rank .*3)'
tools/nbcrun --hang="$scratch/log" >"$scratch/sorted"
mv "$scratch/sorted" "$scratch/log"
place='at culprit\+0x[0-9a-f]+'
[[ " $CFLAGS " == *" -O2 "* ]] || place='at .*' # without tail calls nbcshim's own function
log_has 1 "side by side: the call that differs, its bytes, its root and its place" \
    "^MPI_COMM_WORLD: call 7 differs: ranks 0-2: iallreduce of 4 bytes $place; rank 3: ibcast of 4 bytes root 3 $place\$"
culprit "NBCSHIM_BLOCKING=own" blocking
log_has 1 "blocking collectives count where nbcshim carries them out" \
    '^nbcshim: rank 0: in MPI_Recv at culprit\+0x[0-9a-f]+; no operation is pending; collectives called on MPI_COMM_WORLD so far: 6$'
culprit "" calls
log_has 1 "a rank in MPI_Recv" "^nbcshim: rank 0: in MPI_Recv at culprit\+0x[0-9a-f]+; no operation is pending; $so_far: 0\$"
# The line of the call, and not the next one.
receives_at() # NAME
{
    local site
    site=$(sed -nE 's/^nbcshim: rank 0: in MPI_Recv at culprit\+(0x[0-9a-f]+);.*/\1/p' "$scratch/log")
    expect "$1: addr2line knows the place" grep -q "MPI_Recv(" \
        <(sed -n "$(addr2line -e "$scratch/culprit" "$site" | grep -oE '[0-9]+' | tail -n 1)p" "$srcdir/test/tools/culprit.c")
}
! command -v addr2line >/dev/null || receives_at "a rank in MPI_Recv"
log_has 1 "a rank that computes" "^nbcshim: rank 1: outside MPI; no operation is pending; $so_far: 0\$"
log_has 1 "a rank in MPI_Probe" "^nbcshim: rank 2: in MPI_Probe at culprit\+0x[0-9a-f]+; no operation is pending; $so_far: 0\$"
log_has 1 "a rank in MPI_Wait" "^nbcshim: rank 3: in MPI_Wait at culprit\+0x[0-9a-f]+; no operation is pending; $so_far: 0\$"
culprit "" threads
log_has 1 "MPI_THREAD_SERIALIZED: a rank in MPI_Recv" '^nbcshim: rank 0: in MPI_Recv at culprit\+0x'
log_has 1 "another thread gets the signal: the rank says what it knows" '^nbcshim: rank 1: no operation is pending; '
log_has 0 "and not that it is outside MPI" 'outside MPI'
culprit "NBCSHIM_CHECK=0" halves
log_has 1 "each half of a split communicator has its number, and its name" \
    '^nbcshim: rank 0: last calls on communicator [0-9]+\.0 "even": 1 ibarrier .*, 2 ibarrier '
log_has 1 "also a name that could mislead" \
    '^nbcshim: rank 1: last calls on communicator [0-9]+\.1 "odd: \?1\?": 1 ibcast '
log_has 1 "and so in what is pending" '^nbcshim: rank 0: barrier:.*, number 2 on a communicator "even" \(rank 0 of 2\), '
tools/nbcrun --hang="$scratch/log" >"$scratch/sorted"
mv "$scratch/sorted" "$scratch/log"
log_has 0 "calls on two communicators are not compared" ' differs: '
log_has 1 "a rank without operations says what it has called, which is less" \
    '^communicator [0-9.]+ "even": the last calls .*, rank 0 has made 2 calls, rank 2 has made 1 calls;'
log_has 1 "a rank that has called nothing is not compared" \
    '^communicator [0-9.]+ "odd: \?1\?": one rank only has reported its last calls'
if command -v addr2line >/dev/null && $CC -std=gnu11 -g -fno-pie -no-pie $MPI_CPPFLAGS $newer_calls \
    "$srcdir/test/tools/culprit.c" -o "$scratch/culprit" $MPI_LIBS 2>/dev/null; then
    culprit "" calls
    receives_at "a program that is loaded where its file says"
fi
culprit "" init
log_has 3 "ranks in MPI_Init" '^nbcshim: rank [012]: in MPI_Init since [0-9]+\.[0-9] s$'

if mpi_has Ibarrier; then
    run "a program that nbcshim stands aside of" NBCSHIM=off
    log_has 0 "NBCSHIM=off: nobody says anything" '^nbcshim:'
fi

if mpi_has Session_init; then
    program=session
    expect "the program of a session compiles" $CC -std=gnu11 -DSESSION $MPI_CPPFLAGS \
        "$srcdir/test/tools/hang.c" -o "$scratch/$program" $MPI_LIBS
    run "SIGUSR1, without MPI_Init" "" signal
    for rank in 0 1 2; do
        log_has 1 "SIGUSR1, without MPI_Init: rank $rank says what it waits for" \
            "^nbcshim: rank $rank: ${pending% on *} on a communicator \(rank $rank of 4\), $waits"
    done
fi

# Debian's MPICH cannot spawn.
if [ "$MPI_FLAVOR" = openmpi ]; then
    compiled alone
    mpi_command 1 "$(sanitizer_runtime) $library" "" "$scratch/alone"
    guarded 60 "$scratch/log" "${launch[@]}"
    log_has 1 "a job that runs without nbcshim: the other says once that it waits for it" \
        '^nbcshim: still waiting after 10 s for the other job .* NBCSHIM_DYNAMIC=0$'
    for parent in auto on; do
        for child in auto on off; do
            preloaded "a job with NBCSHIM=$parent starts one with NBCSHIM=$child" 1 NBCSHIM=$parent \
                "$scratch/alone" NBCSHIM=$child
            log_has 0 "of which nothing is said" '^nbcshim:'
        done
    done
fi

finish
