#!/usr/bin/env bash
# A variable that is unknown, or has a value that it cannot have, is told of in one line, by one rank,
# and changes nothing; a good one is not told of.

. "$(dirname "$0")/../lib.sh"

# run VARIABLES: a program on two ranks passes.
run()
{
    preloaded "$1: right results" 2 "$1" "$PWD/test/mpi/orders.preload"
}

told() # NAME COMPLAINT...: one line for each, and no other
{
    diff <(grep '^nbcshim:' "$scratch/log" | sort) <(printf 'nbcshim: %s\n' "${@:2}" | sort) >"$scratch/diff"
    result $? "$1: told of, once" "$(cat "$scratch/diff")"
}

# refused VARIABLE REASON VALUE...: the first values of all variables together, then the second ones.
refused()
{
    local i name=$1 reason=$2
    shift 2
    for ((i = 1; i <= $#; i++)); do
        settings[i]+="${settings[i]:+ }$name=${!i}"
        complaints[i]+="$name=${!i} ignored: $reason"$'\n'
    done
}

refused NBCSHIM "expected auto, on or off" perhaps
refused NBCSHIM_BLOCKING "expected auto, own or native" mine
refused NBCSHIM_CHECK "expected 0 or 1" 2
refused NBCSHIM_DYNAMIC "expected 0 or 1" no
refused NBCSHIM_PROGRESS "expected calls or thread" sometimes
refused NBCSHIM_INIT_TIMEOUT "expected a number of seconds up to 1000000" -1
refused NBCSHIM_STATS "expected 0, 1, verbose or a file name ending in .json" file
refused NBCSHIM_SEGMENT_SIZE "expected a positive number of bytes, with K, M or G" \
    0 -5 12X 12KB K 9223372036854775808 99999999999999999999G 9223372036854775807K
refused NBCSHIM_TIMEOUT "expected a number of seconds from 1 to 1000000" 0 1s
refused NBCSHIM_TEST "expected options of doc/testing.md" \
    nodes=0 nodes=1000001 trace_events=17M tag_ub=2 colour=3 tag_ub tag_ub=60,nodes=0
refused NBCSHIM_ALGORITHM_SCAN "expected one of $(awk -F '[(, ]+' \
    '$1 == "ALG" && $2 == "SCAN" { all = all (all ? ", " : "") $3 } END { print all }' \
    "$srcdir/src/algs.def")" fastest
refused NBCSHIM_ALGORITHM_SHOUT "expected the name of a collective after NBCSHIM_ALGORITHM_" ring
refused NBCSHIM_COLOUR "unknown variable; nbcinfo lists the known ones" red
for i in "${!settings[@]}"; do
    run "${settings[i]}"
    readarray -t lines <<<"${complaints[i]%$'\n'}"
    told "${settings[i]}" "${lines[@]}"
done

# NBCSHIMMER is no variable of nbcshim.
for good in "NBCSHIM_SEGMENT_SIZE=4k NBCSHIMMER=1 NBCSHIM_INIT_TIMEOUT=0 NBCSHIM_ALGORITHM_BCAST=chain \
NBCSHIM_TEST=tag_ub=60,trace_events=16M" \
    "NBCSHIM_SEGMENT_SIZE=1G NBCSHIM_PROGRESS=thread NBCSHIM_TEST=nodes=1" \
    NBCSHIM_SEGMENT_SIZE=9223372036854775807; do
    run "$good"
    log_has 0 "$good: not told of" '^nbcshim:'
done

# As a person means them. The words of mpi_command cannot be empty or contain blanks, so these are
# inherited.
meant() # [VARIABLE=VALUE NBCINFO-LINE]...
{
    local name
    while [ $# -gt 0 ]; do
        export "$1"
        shown[${1%%=*}]=$2
        shift 2
    done
    run ""
    log_has 0 "${!shown[*]}: not complained of" '^nbcshim:'
    tools/nbcinfo --variables >"$scratch/log"
    for name in "${!shown[@]}"; do
        log_has 1 "'$name=${!name}': nbcinfo says the same" "^  $name +${shown[$name]}\$"
        unset "$name"
    done
    shown=()
}
declare -A shown

meant NBCSHIM=ON 'ON +environment +activate .*' NBCSHIM_PROGRESS=Thread 'Thread +environment .*' \
    NBCSHIM_BLOCKING=NATIVE 'NATIVE +environment .*' NBCSHIM_ALGORITHM_BCAST=Chain 'Chain +environment .*' \
    "NBCSHIM_SEGMENT_SIZE=$(printf '\t')4k " '4k +environment .*' "NBCSHIM_CHECK=1 " '1 +environment .*'
meant "NBCSHIM= on " 'on +environment .*' "NBCSHIM_ALGORITHM_BCAST= chain " 'chain +environment .*' \
    NBCSHIM_STATS= '0 +default .*' "NBCSHIM_TIMEOUT= " 'none +default .*' NBCSHIM_TRACE= 'none +default .*'
export NBCSHIM_ALGORITHM_BCAST= NBCSHIM_COLOUR=
meant NBCSHIM= 'auto +default .*'
unset NBCSHIM_ALGORITHM_BCAST NBCSHIM_COLOUR

export NBCSHIM_STATS=" $scratch/stats.json "
run ""
expect "a file name without the blanks around it" test -s "$scratch/stats.json"
unset NBCSHIM_STATS

export NBCSHIM_ALGORITHM_REDUCE=CHAIN NBCSHIM_SEGMENT_SIZE=" 4k "
tools/nbcinfo --choose Reduce --ranks 16 --bytes 1M --json >"$scratch/log"
log_has 1 "nbcinfo --choose takes them" '"algorithm": "chain"'
log_has 1 "and the segment size" '"segment": 4096'
unset NBCSHIM_ALGORITHM_REDUCE NBCSHIM_SEGMENT_SIZE

finish
