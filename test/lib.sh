# For the test scripts (bash), which run in the build tree: results in TAP, and MPI programs under
# guard.

srcdir=${srcdir:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
if [ ! -f test/settings ]; then
    echo "run this in the build tree" >&2
    exit 2
fi
. ./test/settings

# Whether the MPI has a function.
mpi_has() # Iallreduce
{
    grep -qsi "define HAVE_MPI_$1 1" config.h
}

# For programs that call nonblocking collectives, which an MPI-2.2 lacks, and that nbcshim is preloaded
# into.
newer_calls=
mpi_has Iallreduce || newer_calls="-include $srcdir/test/tools/newer.h"

library=${NBC_LIBRARY:-$PWD/.libs/lib$NBC_NAME.so} # test/mutate has its own
cases=0
failures=0

# A directory of the script's own.
scratch=$(mktemp -d) || exit 1
# A process that bash has just forked has this trap too, and obeys it if it is killed before it has dropped it.
trap '[ "$BASHPID" != $$ ] || rm -rf "$scratch"' EXIT

# What the user has set for nbcshim is not for the script.
forget_settings()
{
    local name
    for name in ${!NBCSHIM*}; do
        unset "$name"
    done
}

# result STATUS NAME [TEXT]: one line of TAP; STATUS 0 is success. The text is shown when it is none.
result()
{
    cases=$((cases + 1))
    if [ "$1" = 0 ]; then
        echo "ok $cases - $2"
    else
        failures=$((failures + 1))
        echo "not ok $cases - $2"
        [ $# -lt 3 ] || comment "$3"
    fi
}

# expect NAME COMMAND...: the command succeeds. Its output is shown only when it does not.
expect()
{
    local name=$1 output
    shift
    output=$("$@" 2>&1)
    result $? "$name" "$output"
}

# shows NAME PATTERN COMMAND...: the command succeeds, and a line of its output matches.
shows()
{
    local output
    output=$("${@:3}" 2>&1) && grep -qE -- "$2" <<<"$output"
    result $? "$1" "$output"
}

# refuses NAME PATTERN COMMAND...: it exits with 2, and a line of standard error matches.
refuses()
{
    local output
    output=$("${@:3}" 2>&1 >/dev/null)
    [ $? = 2 ] && grep -qE -- "$2" <<<"$output"
    result $? "$1" "$output"
}

comment()
{
    printf '%s\n' "$1" | sed 's/^/# /'
}

# The functions of MPI-2.2, one a line.
mpi22_functions()
{
    awk '!/^#/ { for (i = 2; i <= NF; i++) print $1 $i }' "$srcdir/test/abi/mpi22.txt" | sort
}

# json_says NAME FILE <<< python: it finds d, what the file has, as it should be.
json_says()
{
    cat >"$scratch/check.py"
    expect "$1" python3 -c "import json, re, sys
d = json.load(open('$2'))
exec(open('$scratch/check.py').read())"
}

# What test/costs reads: the time of this process and of those that it has waited for.
processors_used() # name
{
    times >"$scratch/times" # in a pipe it would be that of a subshell
    tr ms '  ' <"$scratch/times" | awk -v name="$1" -v wall="$SECONDS" '
        { user += 60 * $1 + $2; system_ += 60 * $3 + $4 }
        END { printf "# %.3f s, %.3f + %.3f s of processors: %s\n", wall, user, system_, name }'
}

# The closing lines, and the exit status of the script.
finish()
{
    echo "1..$cases"
    [[ $0 == */mpi/run.sh ]] || processors_used "$(sed -E 's,.*/test/,,; s,\.sh$,,; s,^(tools|abi)/,,' <<<"$0")"
    echo "# $((cases - failures)) passed, $failures failed, $SECONDS s"
    [ $cases -gt 0 ] && [ $failures = 0 ]
}

# --- MPI programs ---------------------------------------------------------------------------------

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Intel MPI crashes in MPI_Comm_spawn without it.
export I_MPI_SPAWN=on
# Without a fast network this is what Open MPI selects, after it has tried the others for 0.2 s.
export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1}
# Both MPIs load what hwloc has for GPUs, which takes a third to a half of the processors' time that a rank needs to
# start and end. In the soak, and under the programs of test/programs, they do.
[ -n "${NBC_SOAK:-}" ] || export HWLOC_PLUGINS_PATH=${HWLOC_PLUGINS_PATH:-/nonexistent}
# Otherwise the processes that MPI_Comm_spawn of Debian's Open MPI 5 starts do not reach their parents if the routing
# table of this machine says nothing of its own address.
export OMPI_MCA_reachable=${OMPI_MCA_reachable:-^netlink}
# Otherwise a process that MPI_Comm_spawn starts may hang in MPI_Init, for a reason that doc/mpis.md tells.
# Open MPI 5, whose launcher is not OpenRTE's, may have a libevent with epoll alone.
[ "$MPI_LAUNCHER" != openmpi ] || [[ $($MPIEXEC --version 2>/dev/null) != *OpenRTE* ]] || export EVENT_NOEPOLL=1
# mpiexec of Open MPI removes this directory when it ends and finds it empty, in which another one, that has just
# made it, then cannot make its own. It is never empty with this one in it.
[ "$MPI_LAUNCHER" != openmpi ] ||
    mkdir -p -m 700 "${TMPDIR:-/tmp}/ompi.$(uname -n | sed 's/\..*//').$(id -u)/keep"
cores=$(nproc)
threads=1 # of each rank
beside=${NBC_BESIDE:-0} # other tests that keep a processor busy

# Where ranks of MPICH outnumber processors, one that is idle sleeps (test/mpi/yield.c): yields took half of the
# processors' time. In a soak it yields. Open MPI's does so too.
[[ " $MPI_FLAVOR $MPI_LAUNCHER " != *" mpich "* ]] || [ -n "${NBC_SOAK:-}" ] || export NBC_NAP=${NBC_NAP:-50000}

# The MPIs leave memory behind at exit, in modules that they have unloaded by then: leaks are no
# failure, and only ours are looked for (own_leaks, where detect_leaks=1 follows). Freed memory is held
# back, but not so much that it looks like growth. exitcode=0 holds for all errors, not only leaks:
# the others abort.
held_back=quarantine_size_mb=1:thread_local_quarantine_size_kb=64
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:$held_back${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export LSAN_OPTIONS=exitcode=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}

# Prints the reports of memory that nbcshim allocated and that nobody refers to. (What hangs on a
# communicator that a program leaves behind is lost with the MPI's.)
own_leaks() # log
{
    awk 'BEGIN { RS = "" } /Direct leak of/ && /#1 [^\n]*\/(pmpi\/[a-z]+|src)\/[a-z_]+\.[ch]:/' "$1"
}

# Else libfabric ends a program that forks, if its provider for EFA is there (Ubuntu 22.04).
export RDMAV_FORK_SAFE=1

# For tests in which nbcrun or a script preloads our library, and no sanitizer's before it.
allow_late_sanitizer()
{
    export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
}

# The hooks of UCX in the allocation of memory run where a thread ends, when the thread sanitizer has
# ended it already.
case $SANITIZE in
*thread*) export UCX_MEM_MMAP_HOOK_MODE=none UCX_MEM_EVENTS=no ;;
esac

# What must be preloaded before our library: a sanitized one needs the sanitizer's runtime first.
# gcc has it as a library; clang puts it into the program.
sanitizer_runtime()
{
    local name file
    case $SANITIZE in
    *address*) name=libasan.so ;;
    *thread*) name=libtsan.so ;;
    *) return ;;
    esac
    file=$($CC -print-file-name=$name)
    case $file in
    /*) echo "$file" ;;
    esac
}

# mpi_command RANKS PRELOAD VARIABLES COMMAND...: sets the array launch to the command line that
# runs COMMAND on that many ranks. PRELOAD is for the ranks, not for the launcher. VARIABLES:
# NAME=VALUE words.
mpi_command()
{
    local ranks=$1 preload=$2 variables=$3 setting crowded=0
    shift 3
    if [ "$SIMULATED" = yes ]; then
        simulated_command "$ranks" "$variables" "$@"
        return
    fi
    # Idle ranks of MPICH spin for their whole time slice: a barrier of 4 ranks on 2 cores takes
    # 15 ms, and 33 µs when they yield.
    [ $((ranks * threads + beside)) -le "$cores" ] || crowded=1
    if [ $crowded = 1 ] && { [[ " $MPI_FLAVOR $MPI_LAUNCHER " == *" mpich "* ]] || [ "${NBC_NAP:-}" ]; }; then
        preload="${preload:-$(sanitizer_runtime)} $PWD/test/mpi/.libs/yield.so"
    fi
    set -f
    set -- $(for setting in $variables; do echo "$setting"; done) -- "$@"
    set +f
    preload=$(echo $preload)
    [ -z "$preload" ] || set -- "LD_PRELOAD=${preload// /:}" "$@"
    launch=($MPIEXEC)
    if [ "$MPI_LAUNCHER" = openmpi ]; then
        launch+=(--oversubscribe --bind-to none)
        [ $crowded = 0 ] || launch+=(--mca mpi_yield_when_idle 1)
    fi
    while [ "$1" != -- ]; do
        case $MPI_LAUNCHER in
        openmpi) launch+=(-x "$1") ;;
        *) launch+=(-genv "${1%%=*}" "${1#*=}") ;;
        esac
        shift
    done
    shift
    launch+=(-n "$ranks" "$@")
}

# On SMPI all ranks are in the launcher's process. They run in virtual time, in which only what MPI
# does takes time, so that a program does the same in each run. A poll is cheap, as on real networks.
simulated_command() # ranks variables command...
{
    local ranks=$1 variables=$2 hosts=$scratch/hosts.$BASHPID
    shift 2
    "$srcdir/test/smpi/platform" cluster "$ranks" >"$hosts.xml"
    seq -f 'n%.0f' 0 $((ranks - 1)) >"$hosts"
    set -f
    launch=(env $variables $MPIEXEC -np "$ranks" -platform "$hosts.xml" -hostfile "$hosts"
        --cfg=smpi/simulate-computation:no --cfg=smpi/test:1e-7 --cfg=smpi/iprobe:1e-7
        --log=root.thres:error "$@")
    set +f
}

# The processes that belong to a guarded command, however deep below it: they inherit its mark.
marked()
{
    local file
    for file in $(grep -lsaF "NBC_TEST_MARK=$1." /proc/[0-9]*/environ 2>/dev/null); do
        file=${file#/proc/}
        echo "${file%/environ}"
    done
}

stacks()
{
    local pid
    command -v gdb >/dev/null || return
    for pid in $(marked "$1"); do
        case $(readlink "/proc/$pid/exe") in
        "$PWD"/*)
            echo "--- stacks of process $pid"
            timeout 30 gdb -batch -nx -p "$pid" -ex 'thread apply all backtrace 25' 2>&1 |
                grep -E '^(#|Thread)'
            ;;
        esac
    done
}

# Sleeps in pieces, so that a virtual machine that is paused, for a minute at times, loses one piece
# only. No process is left when the sleep is ended: read waits for what nobody writes.
#
# Of a piece at whose end eight processes or more wait for each processor, three more are slept: with sixteen, five
# ranks that yield took 54 s for what takes them 2 s.
sleep_in_pieces()
{
    local piece nothing i running late=0
    printf -v piece %.0f "$1e5" # ten microseconds
    printf -v piece %d.%05d $((piece / 30 / 100000)) $((piece / 30 % 100000))
    exec {nothing}<> <(:)
    for ((i = 0; i < 30; i++)); do
        read -rt "$piece" -u "$nothing"
        IFS=' /' read -r _ _ _ running _ </proc/loadavg
        [ "$running" -lt $((8 * cores)) ] || [ $((late += 1)) -gt 90 ] || i=$((i - 1))
    done
}

# guarded SECONDS LOG COMMAND...: runs it with its output in LOG. When it takes too long, the stacks
# of the programs of this tree that it started are put into LOG and all are ended; the status is 124.
guarded()
{
    local limit=$1 log=$2 mark=$$.$BASHPID.$RANDOM pid timer status
    shift 2
    : >"$log"
    NBC_TEST_MARK=$mark. "$@" </dev/null >>"$log" 2>&1 &
    pid=$!
    sleep_in_pieces "$limit" &
    timer=$!
    wait -n $pid $timer
    if kill -0 $timer 2>/dev/null; then
        kill $timer
        wait $timer 2>/dev/null
        wait $pid
        return $?
    fi
    {
        echo "still running after $limit seconds"
        stacks $mark
    } >>"$log" 2>&1
    kill $pid 2>/dev/null || echo "ended while the stacks were taken: it did not hang" >>"$log"
    for timer in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL $(marked $mark) 2>/dev/null
    wait $pid 2>/dev/null
    return 124
}

# compiled NAME [FLAG...]: test/tools/NAME.c, or what the script has written as $scratch/NAME.c, becomes $scratch/NAME,
# into which nbcshim is to be preloaded.
compiled()
{
    local source=$scratch/$1.c
    [ -f "$source" ] || source=$srcdir/test/tools/$1.c
    expect "$1.c compiles" $CC -std=gnu11 "${@:2}" $MPI_CPPFLAGS $newer_calls "$source" -o "$scratch/$1" $MPI_LIBS
}

# mpi_program NAME [FLAG...] <<< C: the same of what main does between MPI_Init and MPI_Finalize.
mpi_program()
{
    {
        printf '#include <%s>\n' mpi.h stdio.h unistd.h
        printf 'int main(int argc, char **argv)\n{\nMPI_Init(&argc, &argv);\n'
        cat
        printf 'return MPI_Finalize();\n}\n'
    } >"$scratch/$1.c"
    compiled "$@"
}

# before_the_mpi PROGRAM...: a case each: the first library with MPI functions that $scratch/PROGRAM needs is ours.
before_the_mpi()
{
    local program first
    for program; do
        first=$(objdump -p "$scratch/$program" | awk '$1 == "NEEDED" && $2 ~ /nbcshim|mpi/ { print $2; exit }')
        [[ $first == *nbcshim* ]]
        result $? "$program: nbcshim comes before the MPI"
    done
}

# bent_mpi NAME: makes test/tools/NAME.c, and sets `bent` to the library, to be preloaded after nbcshim.
bent_mpi()
{
    bent=$scratch/$1.so
    expect "the MPI is made: $1" $CC -std=gnu11 -O1 -fPIC -shared $MPI_CPPFLAGS "$srcdir/test/tools/$1.c" \
        -o "$bent" -ldl
}

# ends_well NAME SECONDS: what mpi_command has set does. Its output is in $scratch/log.
ends_well()
{
    guarded "$2" "$scratch/log" "${launch[@]}"
    result $? "$1" "$(head -c 20000 "$scratch/log")"
}

# preloaded NAME RANKS VARIABLES COMMAND...: with nbcshim preloaded the command does so within a minute.
preloaded()
{
    mpi_command "$2" "$(sanitizer_runtime) $library" "${@:3}"
    ends_well "$1" 60
}

# ends_badly NAME SECONDS: it fails, and does not hang.
ends_badly()
{
    guarded "$2" "$scratch/log" "${launch[@]}"
    [[ $? != @(0|124) ]]
    result $? "$1"
}

# log_has NUMBER NAME PATTERN: so many lines of it match.
log_has()
{
    local found
    found=$(grep -cE "$3" "$scratch/log")
    [ "$found" = "$1" ]
    result $? "$2"
    [ "$found" = "$1" ] || comment "$found lines: $(head -c 20000 "$scratch/log")"
}
