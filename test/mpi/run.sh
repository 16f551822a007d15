#!/usr/bin/env bash
# Runs the MPI test programs of tests.list on the MPI of this build tree, one case a line.
#
# A program passes when it exits with 0. Each is run
#   preload  linked with the MPI alone, our library given to the ranks by LD_PRELOAD
#   link     linked with the shared library
#   static   linked with the static one
#
# NBC_TESTS=REGEX runs only the cases whose line matches, NBC_SKIP=REGEX all but those; NBC_SOAK=1,
# or a fraction, gives ten times the time; NBC_UNDER=COMMAND runs the programs under that, valgrind
# for example.

. "$(dirname "$0")/../lib.sh"

list=$srcdir/test/mpi/tests.list
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=1
hung=0

run_case() # mode program ranks variables seconds label arguments...
{
    local mode=$1 program=$2 ranks=$3 variables=$4 limit=$5 label=$6
    shift 6
    local name="$program${*:+ $*}, $ranks ranks, $mode${label:+, $label}"
    local log=$scratch/log preload='' status
    [[ $name =~ ${NBC_TESTS:-.} ]] || return
    [ -z "$NBC_SKIP" ] || [[ ! $name =~ $NBC_SKIP ]] || return
    [ "$mode" != preload ] || preload="$(sanitizer_runtime) $library"
    mpi_command "$ranks" "$preload" "$variables" $NBC_UNDER "$PWD/test/mpi/$program.$mode" "$@"
    guarded "$limit" "$log" "${launch[@]}"
    status=$?
    [ $status != 0 ] || [ -z "$(own_leaks "$log")" ] || status=leaks
    result "$status" "$name"
    [ $status = 0 ] && return
    comment "status $status: ${launch[*]}"
    comment "$(head -c 20000 "$log")"
    [ $status != 124 ] || hung=$((hung + 1))
    if [ $hung = 5 ]; then
        echo "Bail out! five cases hung, the rest is not run"
        exit 1
    fi
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

run_line() # program words...
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
        algorithms) mapfile -t forced < <(forced_algorithms) ;;
        soak) [ -n "$NBC_SOAK" ] || return ;;
        timeout=*) limit=${word#timeout=} ;;
        mode=both) ;;
        mode=all) modes="preload link static" ;;
        mode=*) modes=$(echo "${word#mode=}" | tr , ' ') ;;
        *)
            result 1 "tests.list: $program: what is '$word'?"
            return
            ;;
        esac
    done
    [ -z "$NBC_SOAK" ] || limit=$((limit * 10))
    for mode in $modes; do
        for n in $ranks; do
            if [ ${#forced[@]} = 0 ]; then
                run_case "$mode" "$program" "$n" "${variables# }" "$limit" "${variables# }" \
                    "${arguments[@]}"
            fi
            for k in "${!forced[@]}"; do
                run_case "$mode" "$program" "$n" "$variables ${forced[k]}" "$limit" \
                    "algorithms $((k + 1)) of ${#forced[@]}" "${arguments[@]}"
            done
        done
    done
}

# A program that no line runs is a test that cannot fail.
for program in test/mpi/*.preload; do
    program=$(basename "$program" .preload)
    grep -q "^$program " "$list" || result 1 "tests.list has a line for $program"
done

while read -r line <&3; do
    case $line in
    '' | '#'*) ;;
    *)
        set -f
        run_line $line
        set +f
        ;;
    esac
done 3<"$list"

finish
