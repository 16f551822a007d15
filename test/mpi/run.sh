#!/usr/bin/env bash
# Runs the MPI test programs of tests.list on the MPI of this build tree, one case a line.
#
#   run.sh              runs the cases
#   run.sh --list       prints their names
#   run.sh --programs   prints the programs that they need
#
# A program passes when it exits with 0. Each is run
#   preload  linked with the MPI alone, our library given to the ranks by LD_PRELOAD
#   link     linked with the shared library
#   static   linked with the static one
#
# NBC_TESTS=REGEX runs only the cases whose line matches, NBC_SKIP=REGEX all but those; NBC_SOAK=1,
# or a fraction, gives ten times the time; NBC_UNDER=COMMAND runs the programs under that, valgrind
# for example.

srcdir=${srcdir:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
list=$srcdir/test/mpi/tests.list

# --- the cases ------------------------------------------------------------------------------------

# One element a case.
case_name=() case_mode=() case_program=() case_ranks=() case_variables=() case_limit=()
case_arguments=()
complaints=()

add_case() # mode program ranks variables seconds label arguments...
{
    local mode=$1 program=$2 ranks=$3 label=$6 name
    name="$program${7:+ ${*:7}}, $ranks ranks, $mode${label:+, $label}"
    [[ $name =~ ${NBC_TESTS:-.} ]] || return
    [ -z "$NBC_SKIP" ] || [[ ! $name =~ $NBC_SKIP ]] || return
    case_name+=("$name")
    case_mode+=("$mode")
    case_program+=("$program")
    case_ranks+=("$ranks")
    case_variables+=("$4")
    case_limit+=("$5")
    case_arguments+=("${*:7}")
}

# Settings that force algorithms, one line of NAME=VALUE words each: the k-th line has the k-th
# algorithm of every collective of intracommunicators, so that all lines together have them all.
forced_algorithms()
{
    awk -F '[(, ]+' '
        /^ALG\(/ && !/NBC_INTER/ {
            name[$2, count[$2]++] = $3
            if (count[$2] > lines)
                lines = count[$2]
        }
        END {
            for (k = 0; k < lines; k++) {
                line = ""
                for (c in count)
                    line = line " NBCSHIM_ALGORITHM_" c "=" name[c, k % count[c]]
                print line
            }
        }' "$srcdir/src/algs.def"
}

read_line() # program words...
{
    local program=$1 ranks='' variables='' modes="preload link" limit=60 word n mode
    local arguments=() forced=() k
    shift
    for word; do
        case $word in
        all) ranks="$ranks 1 2 3 4 5 7 8" ;;
        [0-9]*) ranks="$ranks $word" ;;
        env=*) variables="$variables ${word#env=}" ;;
        arg=*) arguments+=("${word#arg=}") ;;
        algorithms) forced=("${all_forced[@]}") ;;
        soak) [ -n "$NBC_SOAK" ] || return ;;
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
    [ -z "$NBC_SOAK" ] || limit=$((limit * 10))
    for mode in $modes; do
        for n in $ranks; do
            if [ ${#forced[@]} = 0 ]; then
                add_case "$mode" "$program" "$n" "${variables# }" "$limit" "${variables# }" \
                    "${arguments[@]}"
            fi
            for k in "${!forced[@]}"; do
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
    for program in $(grep -l '^int main(' "$srcdir"/test/mpi/*.c); do
        program=$(basename "$program" .c)
        grep -q "^$program " "$list" || complaints+=("tests.list has a line for $program")
    done
}

read_list()
{
    local line all_forced
    mapfile -t all_forced < <(forced_algorithms)
    set -f
    while read -r line; do
        case $line in
        '' | '#'*) ;;
        *) read_line $line ;;
        esac
    done <"$list"
    set +f
}

read_list
if [ ${#case_name[@]} = 0 ]; then
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
hung=0

run_case() # number of the case
{
    local mode=${case_mode[$1]} log=$scratch/log preload='' variables=${case_variables[$1]} status
    [ "$mode" != preload ] || preload="$(sanitizer_runtime) $library"
    [ "$mode" != link ] || [ -z "$NBC_LIBRARY" ] ||
        variables="$variables LD_LIBRARY_PATH=${NBC_LIBRARY%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    mpi_command "${case_ranks[$1]}" "$preload" "$variables" $NBC_UNDER \
        "$PWD/test/mpi/${case_program[$1]}.$mode" ${case_arguments[$1]}
    guarded "${case_limit[$1]}" "$log" "${launch[@]}"
    status=$?
    [ $status != 0 ] || [ -z "$(own_leaks "$log")" ] || status=leaks
    result "$status" "${case_name[$1]}"
    [ $status = 0 ] && return
    comment "status $status: ${launch[*]}"
    comment "$(head -c 20000 "$log")"
    [ $status != 124 ] || hung=$((hung + 1))
    if [ $hung = 5 ]; then
        echo "Bail out! five cases hung, the rest is not run"
        exit 1
    fi
}

for complaint in "${complaints[@]}"; do
    result 1 "$complaint"
done
for i in "${!case_name[@]}"; do
    run_case "$i"
done

finish
