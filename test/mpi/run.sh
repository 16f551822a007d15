#!/usr/bin/env bash
# Runs the MPI test programs of tests.list on the MPI of this build tree, one case a line.
#
#   run.sh              runs the cases
#   run.sh --list       prints their names
#   run.sh --programs   prints the programs that they need
#
# A program passes when it exits with 0. Each is run
#   preload  linked with the MPI alone, our library given to the ranks by LD_PRELOAD
#   link     linked with the shared library, and without shared memory between ranks
#   static   linked with the static one
#
# NBC_TESTS=REGEX runs only the cases whose line matches, NBC_TESTS='REGEX: NAME' of these the test of that
# name (TEST(NAME) in the program), NBC_TESTS=--failed those that failed in the last run, NBC_SKIP=REGEX all
# but those, NBC_FAST=1 those that the list marks as fast; NBC_SOAK=1, or a fraction, gives ten times the
# time; NBC_AGAIN=1 leaves out those that the list marks as run once; NBC_UNDER=COMMAND runs the programs
# under that, valgrind for example.

srcdir=${srcdir:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
list=$srcdir/test/mpi/tests.list
failed=test/mpi/failed # the names of the cases that failed in the last run
only_test=''
if [[ $NBC_TESTS == *': '* ]]; then
    only_test=${NBC_TESTS##*: } NBC_TESTS=${NBC_TESTS%: *}
fi
. ./test/settings || exit 2

# --- the cases ------------------------------------------------------------------------------------

# One element a case.
case_name=() case_mode=() case_program=() case_ranks=() case_threads=() case_variables=() case_limit=()
case_arguments=()
complaints=()

add_case() # mode program ranks variables seconds label arguments...
{
    local mode=$1 program=$2 ranks=$3 label=$6 name
    name="$program${7:+ ${*:7}}, $ranks ranks, $mode${label:+, $label}"
    if [ "$NBC_TESTS" = --failed ]; then
        grep -qsxF -- "$name" "$failed" || return
    else
        [[ $name =~ ${NBC_TESTS:-.} ]] || return
    fi
    [ -z "$NBC_SKIP" ] || [[ ! $name =~ $NBC_SKIP ]] || return
    [ -z "$only_test" ] || grep -qs "^TEST($only_test[,)]" "$srcdir/test/mpi/$program.c" || return
    case_name+=("$name")
    case_mode+=("$mode")
    case_program+=("$program")
    case_ranks+=("$ranks")
    case_threads+=("$of_each")
    case_variables+=("$4")
    case_limit+=("$5")
    case_arguments+=("${*:7} $unnamed${only_test:+ --only=$only_test}")
}

# Settings that force algorithms, one line of NAME=VALUE words each: the k-th line has the k-th
# algorithm of every collective of intracommunicators, so that all lines together have them all. Then
# as many lines that name the collectives which have a k-th one, without those of neighborhoods: for
# the others the k-th line repeats an earlier one.
forced_algorithms()
{
    awk -F '[(, ]+' '
        /^ALG\(/ && !/NBC_INTER|NBC_BY_MPI/ {
            name[$2, count[$2]++] = $3
            if (count[$2] > lines)
                lines = count[$2]
        }
        END {
            for (k = 0; k < lines; k++) {
                line = ""
                for (c in count) {
                    line = line " NBCSHIM_ALGORITHM_" c "=" name[c, k % count[c]]
                    if (k < count[c] && c !~ /^NEIGHBOR/)
                        named[k] = named[k] " " tolower(c)
                }
                print line
            }
            for (k = 0; k < lines; k++)
                print named[k]
        }' "$srcdir/src/algs.def"
}

# Linked programs differ from preloaded ones in how they reach nbcshim, not in what their ranks exchange:
# except in the soak, they run on 2 ranks if the line has these, or else on 3.
is_wanted() # mode ranks all-ranks fast
{
    [[ $4 != *",$1:$2,"* ]] || return 0
    [ -z "$NBC_FAST" ] || return 1
    [ -z "$NBC_SOAK" ] && [ "$1" != preload ] || return 0
    [ "$2" = 2 ] || [[ $2 = 3 && $3 != *" 2"* || ! " $3 " =~ \ [23]\  ]]
}

read_line() # program words...
{
    local program=$1 ranks='' variables='' modes="preload link" limit=60 word n mode
    local arguments=() forced=() named=() unnamed='' fast='' k only='' of_each=1
    shift
    for word; do
        case $word in
        all) ranks="$ranks 1 2 3 4 5${NBC_SOAK:+ 7 8}" ;;
        [0-9]*) ranks="$ranks $word" ;;
        env=*libze_loader*) # hwloc or UCX may load the real one, which nbcshim finds first
            ! /sbin/ldconfig -p | grep -q 'libze_loader\.so' || return
            ;;&
        env=*) variables="$variables ${word#env=}" ;;
        arg=*) arguments+=("${word#arg=}") ;;
        algorithms) forced=("${all_forced[@]}") ;;
        algorithms=each)
            forced=("${all_forced[@]}")
            named=("${all_named[@]}")
            ;;
        soak) [ -n "$NBC_SOAK" ] || return ;;
        once) [ -z "$NBC_AGAIN" ] || return ;;
        hook) [ "$NBC_HOOK" != no ] || return ;;
        only=*) only=${word#only=} ;;
        threads=*) of_each=${word#threads=} ;;
        fast=*) fast=,${word#fast=}, ;;
        timeout=*) limit=${word#timeout=} ;;
        mode=both) ;;
        mode=all) modes="preload link static" ;;
        mode=*) modes=${word#mode=} && modes=${modes//,/ } ;;
        *)
            complaints+=("tests.list: $program: what is '$word'?")
            return
            ;;
        esac
    done
    [ "$SIMULATED" = no ] || [ "$only" = smpi ] || return
    [ -z "$only" ] || [ "$only" = "$MPI_FLAVOR" ] || return
    for word in ${fast//,/ }; do
        [[ " $modes " == *" ${word%:*} "* && " $ranks " == *" ${word#*:} "* ]] ||
            complaints+=("tests.list: $program: there is no case '$word'")
    done
    [ -z "$NBC_SOAK" ] || limit=$((limit * 10))
    for mode in $modes; do
        for n in $ranks; do
            is_wanted "$mode" "$n" "$ranks" "$fast" || continue
            if [ ${#forced[@]} = 0 ]; then
                add_case "$mode" "$program" "$n" "${variables# }" "$limit" "${variables# }" \
                    "${arguments[@]}"
            fi
            for k in "${!forced[@]}"; do
                unnamed=${named[k]}
                add_case "$mode" "$program" "$n" "$variables ${forced[k]}" "$limit" \
                    "algorithms $((k + 1)) of ${#forced[@]}" "${arguments[@]}"
            done
        done
    done
}

# A program that no line runs is a test that cannot fail.
look_for_lines()
{
    local program
    for program in $(grep -lE '^(int main|TEST|BLOCKED)\(' "$srcdir"/test/mpi/*.c); do
        program=$(basename "$program" .c)
        grep -q "^$program " "$list" || complaints+=("tests.list has a line for $program")
        grep -qE "^($program .*only=smpi|not-smpi ([a-z_]+ )*$program( [a-z_]+)*: .)" "$list" ||
            complaints+=("tests.list says whether $program runs on SMPI, or why not")
    done
}

read_list()
{
    local line all_forced all_named
    mapfile -t all_forced < <(forced_algorithms)
    all_named=("${all_forced[@]:${#all_forced[@]} / 2}")
    all_forced=("${all_forced[@]:0:${#all_forced[@]} / 2}")
    set -f
    while read -r line; do
        case $line in
        '' | '#'* | 'not-smpi '*) ;;
        *) read_line $line ;;
        esac
    done <"$list"
    set +f
}

read_list
if [ "$NBC_TESTS" = --failed ] && [ ! -s "$failed" ]; then
    echo "run.sh: no case failed in the last run" >&2
    exit 1
elif [ ${#case_name[@]} = 0 ]; then
    echo "run.sh: no case is named like '$NBC_TESTS'${NBC_SKIP:+ and unlike '$NBC_SKIP'}" >&2
    exit 1
fi
case $1 in
'') look_for_lines ;;
--list)
    printf '%s\n' "${case_name[@]}"
    exit
    ;;
--programs)
    for i in "${!case_name[@]}"; do
        echo "test/mpi/${case_program[i]}.${case_mode[i]}"
    done | sort -u
    exit
    ;;
*)
    echo "run.sh: what is $1?" >&2
    exit 2
    ;;
esac

# --- running --------------------------------------------------------------------------------------

. "$srcdir/test/lib.sh"
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=1
# Ranks keep the memory that they free. Page faults and unmapping took a sixth of the processors' time. That
# nothing freed is used is for the sanitizers to see.
export MALLOC_TOP_PAD_=$((32 << 20)) MALLOC_MMAP_THRESHOLD_=$((1 << 30)) MALLOC_TRIM_THRESHOLD_=$((1 << 30))
hung=0

# Of consecutive lines in which fuzz names its programs, the last: what follows must not lie behind hundreds of lines.
last_seed_only()
{
    awk '/^program of seed/ { seed = $0 "\n"; next } { printf "%s%s\n", seed, $0; seed = "" } END { printf "%s", seed }'
}

# Into $scratch/NUMBER.result: the status, how long it took, and what it wrote if it failed.
run_case() # number of the case
{
    local mode=${case_mode[$1]} log=$scratch/$1.log preload='' variables="${case_variables[$1]} ${NBC_VARIABLES:-}" status
    local threads=${case_threads[$1]} took TIMEFORMAT='%R s, %U + %S s of processors'
    [ "$mode" != preload ] || preload="$(sanitizer_runtime) $library"
    [ "$mode" != link ] || [[ $variables = *NBCSHIM_SHARED_MEMORY* ]] || variables="$variables NBCSHIM_SHARED_MEMORY=0"
    [[ $variables != *NBC_AWARE=yes* ]] || preload="$preload $PWD/test/device/aware.so"
    [ "$mode" != link ] || [ -z "$NBC_LIBRARY" ] ||
        variables="$variables LD_LIBRARY_PATH=${NBC_LIBRARY%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    mpi_command "${case_ranks[$1]}" "$preload" "$variables" $NBC_UNDER \
        "$PWD/test/mpi/${case_program[$1]}.$mode" ${case_arguments[$1]}
    { time guarded "${case_limit[$1]}" "$log" "${launch[@]}"; } 2>"$scratch/$1.time"
    status=$?
    [ $status != 0 ] || [ "$SANITIZE" = no ] || [ -z "$(own_leaks "$log")" ] || status=leaks
    mapfile -t took <"$scratch/$1.time"
    {
        echo "$status"
        echo "# ${took[-1]}: ${case_name[$1]}"
        if [ $status != 0 ]; then
            comment "status $status: ${launch[*]}"
            comment "$(last_seed_only <"$log" | head -c 20000)"
        fi
    } >"$scratch/$1.result"
    rm -f "$log" "$scratch/$1.time"
}

# Prints what is known of a case that has ended.
report() # number
{
    local lines=()
    [ ! -f "$scratch/$1.result" ] || mapfile -t lines <"$scratch/$1.result"
    [ "${lines[0]:=no result}" = 0 ] || echo "${case_name[$1]}" >>"$failed"
    result "${lines[0]}" "${case_name[$1]}${only_test:+: $only_test}"
    [ ${#lines[@]} = 1 ] || printf '%s\n' "${lines[@]:1}"
}

# Cases run side by side while there is a processor for each of their ranks. Of those with more ranks
# than processors, whose ranks yield or sleep, four run at a time: alone, one leaves processors idle while its
# launcher works or ranks sleep. The launcher of Open MPI works for long, so there the ranks of all cases
# leave a processor to another case. Those with few ranks come first, the results in the order of the list.
[ "$MPI_LAUNCHER" != openmpi ] || beside=1
places=${NBC_PLACES:-$cores}
free=$((4 * places)) # quarters of a processor
next=0 # to be reported
declare -A running # process: case

weigh_cases()
{
    local i
    for i in "${!case_name[@]}"; do
        weight[i]=$((4 * case_ranks[i]))
        [ $((case_ranks[i] + beside)) -le "$places" ] || weight[i]=$((places > 1 ? places : 4))
    done
}

by_ranks()
{
    local i
    for i in "${!case_ranks[@]}"; do
        echo "${case_ranks[i]} $i"
    done | sort -sn -k 1,1 | cut -d ' ' -f 2
}

start() # number
{
    run_case "$1" &
    running[$!]=$1
    free=$((free - weight[$1]))
}

# Waits until a case has ended, and reports all that can be.
collect()
{
    local pid i status
    wait -n
    for pid in "${!running[@]}"; do
        kill -0 "$pid" 2>/dev/null && continue
        i=${running[$pid]}
        unset "running[$pid]"
        free=$((free + weight[i]))
        ended[i]=1
        read -r status <"$scratch/$i.result"
        [ "$status" != 124 ] || hung=$((hung + 1))
    done
    while [ "${ended[next]}" ]; do
        report $next
        next=$((next + 1))
    done
}

run_cases()
{
    local i weight=() ended=()
    weigh_cases
    for i in $(by_ranks); do
        while [ $free -lt "${weight[i]}" ]; do
            collect
        done
        [ $hung -lt 5 ] || break
        start "$i"
    done
    while [ ${#running[@]} -gt 0 ]; do
        collect
    done
    [ $hung -lt 5 ] && return
    for i in "${!ended[@]}"; do
        [ "$i" -lt $next ] || report "$i"
    done
    echo "Bail out! five cases hung, the rest is not run"
    exit 1
}

# Nothing outlives an interrupted run.
end_all()
{
    kill -KILL $(marked "$$") 2>/dev/null
    exit 1
}
trap end_all INT TERM

for complaint in "${complaints[@]}"; do
    result 1 "$complaint"
done
: >"$failed"
run_cases

finish
