#!/usr/bin/env bash
# At MPI_Init the ranks find out that one of them has no nbcshim, another build of it, or other
# settings. What a rank has is set by a script around the program.

. "$(dirname "$0")/../lib.sh"
forget_settings
host='[^ ,()]+'

compile() # program flags...
{
    local name=$1
    shift
    expect "$name compiles" $CC -std=gnu11 $MPI_CPPFLAGS $newer_calls "$@" "$srcdir/test/tools/agreement.c" \
        -o "$scratch/$name" $MPI_LIBS
}
compile agreement
compile plain -DPLAIN
expect "the late MPI_Init compiles" $CC -std=gnu11 $MPI_CPPFLAGS -shared -fPIC \
    "$srcdir/test/tools/late.c" -o "$scratch/late.so" $MPI_LIBS -ldl

# A library of another build: in a copy the checksum of the sources is another one.
checksum=$(sed 's/.*"\(.*\)"/\1/' fingerprint.h)
other_sum=${checksum//[0-9]/7}
LC_ALL=C sed "s/sources $checksum/sources $other_sum/" "$(readlink -f "$library")" >"$scratch/other.so"
! cmp -s "$library" "$scratch/other.so"
result $? "a library of another build is there"

# launch RANKS PROGRAM VARIABLES SHELL-CASES [ARGUMENT]: the cases set the variables of single ranks.
launch()
{
    each=$scratch/each${beside_others:-}
    cat >"$each" <<END2
#!/bin/sh
silent()
{
    LD_PRELOAD=\$(echo "\$LD_PRELOAD" | sed 's|$library||; s|^:||')
    SILENT=\$1
    export LD_PRELOAD SILENT
}
case \${PMI_RANK:-\$OMPI_COMM_WORLD_RANK} in
$4
esac
exec $scratch/$2 $5
END2
    chmod +x "$each"
    mpi_command "$1" "$(sanitizer_runtime) $library${late:+ $late}" "$3" "$each"
}

# beside NAME RANKS VARIABLES SHELL-CASES: starts a job that mostly waits, beside the others. It has a
# copy of the program, since stopped processes of a program concern all jobs that run it.
beside()
{
    local beside_others=.$1 late=$scratch/late.so
    cp "$scratch/agreement" "$scratch/$1"
    launch "$2" "$1" "$3" "$4"
    { guarded 60 "$scratch/log$beside_others" "${launch[@]}"; echo $? >"$each.status"; } &
    pids="$pids $!"
}

# ended_well NAME: such a job did. Its output is then that of log_has.
ended_well()
{
    cp "$scratch/log.$1" "$scratch/log"
    result "$(cat "$scratch/each.$1.status")" "$2"
}

# ends NAME: the job ends with an error, before the guard ends it.
ends()
{
    ends_badly "$1: the job ends" 40
}

# --- jobs that start slowly, beside the other tests -----------------------------------------------

pids=
beside slow 2 "" '1) sleep 12 ;;'
beside stopped 2 "LATE=stop LATE_RANK=1 NBCSHIM_INIT_TIMEOUT=2" \
    '1) (sleep 8; kill -CONT $$) & ;;'
# Rank 0 has called the others after 8 seconds, and would end the job after 20.
beside suspended 2 "LATE=21 LATE_RANK=1 NBCSHIM_INIT_TIMEOUT=20" \
    '0) (sleep 11; kill -STOP $$; sleep 12; kill -CONT $$) & ;;
     1) (sleep 11; kill -STOP $$; sleep 14; kill -CONT $$) & ;;'

# --- a rank without nbcshim -----------------------------------------------------------------------

launch 3 agreement NBCSHIM_INIT_TIMEOUT=2 '1) silent sleep ;;'
ends "rank 1 without nbcshim"
log_has 1 "one line names it, and those that have nbcshim, with their hosts" \
    "^nbcshim: no answer from rank 1 of 3 at MPI_Init for [2-9] s; nbcshim runs on ranks 0, 2 \($host\). The job ends"
log_has 1 "rank 1 without nbcshim: one line" '^nbcshim:'

launch 4 agreement NBCSHIM_INIT_TIMEOUT=2 '0|1) silent sleep ;;'
ends "rank 0 and its neighbor without nbcshim"
log_has 1 "one line names them" \
    "^nbcshim: no answer from ranks 0-1 of 4 at MPI_Init for [2-9] s; nbcshim runs on ranks 2-3 \($host\). The job ends"

launch 2 agreement "" '1) silent send ;;'
ends "a rank without nbcshim that sends"
log_has 1 "within ten seconds it is named" \
    "^nbcshim: no answer from rank 1 of 2 at MPI_Init for (9|1[0-9]) s: .* runs on rank 0 \($host\); they wait for 300 s"
log_has 1 "its message shows that it has no nbcshim" \
    "^nbcshim: rank 1 of 2 runs without nbcshim: it has sent a message; nbcshim runs on rank 0 \($host\). The job ends"

# --- a rank that is late --------------------------------------------------------------------------

late=$scratch/late.so
launch 3 agreement "LATE=12 LATE_RANK=1 NBCSHIM_INIT_TIMEOUT=0" ""
ends_well "a rank that comes 12 s late: the program runs" 40
log_has 1 "a line names the rank" '^nbcshim: no answer from rank 1 of 3 at MPI_Init for (9|1[0-9]) s: .*late\?.*; they wait, since NBCSHIM_INIT_TIMEOUT=0$'
log_has 1 "a rank that comes late: one line" '^nbcshim:'
launch 3 agreement "LATE=1 LATE_RANK=0" ""
ends_well "a rank that comes 1 s late: the program runs" 40
log_has 0 "no line" '^nbcshim:'
late=

# --- builds and settings --------------------------------------------------------------------------

launch 3 agreement "" "2) LD_PRELOAD=\$(echo \"\$LD_PRELOAD\" | sed 's|$library|$scratch/other.so|') ;;"
ends "another build on rank 2"
log_has 1 "one line names the builds, ranks and hosts" \
    "^nbcshim: ranks have different builds of nbcshim: $VERSION, sources $checksum on ranks 0-1 \($host\), $VERSION, sources $other_sum on rank 2 \($host\). The job ends"
launch 3 plain "" "2) LD_PRELOAD=\$(echo \"\$LD_PRELOAD\" | sed 's|$library|$scratch/other.so|') ;;"
ends_well "another build, and a program that needs no nbcshim: it runs" 40

launch 2 agreement "" ""
ends_well "no difference: the program runs" 40
log_has 0 "no difference: no line" '^nbcshim:'

printf 'barrier * * one_round\n' >"$scratch/rules"
launch 3 agreement "NBCSHIM_STATS=1 NBCSHIM_DYNAMIC=1" "1) export NBCSHIM_ALGORITHM_ALLREDUCE=ring \
NBCSHIM_SEGMENT_SIZE=4k NBCSHIM_BLOCKING=own NBCSHIM_CHECK=1 NBCSHIM_DYNAMIC=0 NBCSHIM_HOOK=off NBCSHIM_SHARED_MEMORY=0 \
NBCSHIM_TEST=nodes=2,tag_ub=20000 NBCSHIM_REDUCTION_ORDER=tree NBCSHIM_TRACE=$scratch/trace \
NBCSHIM_TUNING=$scratch/rules NBCSHIM_TIMEOUT=50 NBCSHIM_PROGRESS=calls ;;"
ends_well "other settings on rank 1: the program runs" 60
differs() # VARIABLE VALUE-OF-RANK-1 OTHER-VALUE OUTCOME
{
    log_has 1 "$1: told of, with what is done" \
        "^nbcshim: $1 differs: $3 on ranks 0, 2 \($host\), $2 on rank 1 \($host\); $4\$"
}
differs NBCSHIM_ALGORITHM_ALLREDUCE ring "not set" "all ranks ignore it"
differs NBCSHIM_SEGMENT_SIZE 4k "not set" "all ranks ignore it"
differs NBCSHIM_BLOCKING own "not set" "all ranks take own"
differs NBCSHIM_CHECK 1 "not set" "all ranks take 1"
differs NBCSHIM_DYNAMIC 0 1 "all ranks take 0"
differs NBCSHIM_HOOK off "not set" "all ranks take off"
differs NBCSHIM_REDUCTION_ORDER tree "not set" "all ranks take tree"
differs NBCSHIM_SHARED_MEMORY 0 "not set" "all ranks take 0"
differs NBCSHIM_TEST nodes=2,tag_ub=20000 "not set" "all ranks ignore it"
differs NBCSHIM_TRACE ".*/trace" "not set" "all ranks ignore it"
differs NBCSHIM_TUNING ".*/rules" "not set" "all ranks ignore it, .* different rules"
log_has 11 "of the others none" ' differs: '
log_has 0 "the algorithm of rank 1 is not used" '^nbcshim: allreduce +ring '

launch 2 agreement "" "1) export NBCSHIM=off ;;"
ends_well "NBCSHIM=off on one rank: the program runs" 40
log_has 1 "NBCSHIM: told of" \
    "^nbcshim: NBCSHIM differs: not set on rank 0 .*, off on rank 1 .*; nbcshim is active on all ranks\$"
launch 2 plain "" "1) export NBCSHIM=off NBCSHIM_SEGMENT_SIZE=4k ;;"
ends_well "settings of a program that needs no nbcshim: it runs" 40
log_has 0 "nobody says anything" '^nbcshim:'

# --- sessions -------------------------------------------------------------------------------------

if mpi_has Session_init; then
    compile session -DSESSION
    differ='1) export NBCSHIM_CHECK=1 ;;'
    launch 2 session "" "$differ"
    ends_well "a communicator of a session, whose ranks differ: the program runs" 40
    log_has 1 "told of, once" "^nbcshim: NBCSHIM_CHECK differs: .* the MPI itself runs the collectives"
    launch 2 session "" "$differ" init
    ends "MPI_Init later"
    log_has 1 "told of, once" "^nbcshim: NBCSHIM_CHECK differs: .* the job ends"
    launch 2 session NBCSHIM_CHECK=1 "" init
    ends_well "all ranks alike: the program runs" 40
    log_has 0 "no line" '^nbcshim:'
fi

# --- another job (Debian's MPICH starts none) -------------------------------------------------------

spawns() # NAME LIBRARY
{
    printf '#!/bin/sh\nLD_PRELOAD=$(echo "$LD_PRELOAD" | sed "s|%s|%s|")\nexport LD_PRELOAD\nexec %s\n' \
        "$library" "$2" "$scratch/spawning" >"$scratch/child"
    chmod +x "$scratch/child"
    launch 1 spawning "" "" "$scratch/child"
    ends_well "a job that is started has $1: both run" 40
}
if [ "$MPI_FLAVOR" = openmpi ]; then
    compile spawning -DSPAWN
    other_jobs='^nbcshim: two connected jobs have different NBCSHIM_ variables or builds: the MPI itself'
    spawns "another build" "$scratch/other.so"
    log_has 2 "told of by both" "$other_jobs"
    spawns "the same build" "$library"
    log_has 0 "no line" '^nbcshim:'
fi

# --- what has become of the jobs that started slowly ----------------------------------------------

wait $pids
ended_well slow "a rank that calls MPI_Init 12 s late: the program runs"
log_has 0 "no line" '^nbcshim:'
ended_well stopped "a rank that is stopped in MPI_Init: the program runs when it continues"
log_has 1 "a line says why the others wait" \
    '^nbcshim: no answer from rank 1 of 2 at MPI_Init for [2-4] s; the others wait, since a process of the program is stopped or traced$'
ended_well suspended "a job all of whose ranks are stopped for longer than they would wait: it runs"

finish
