#!/usr/bin/env bash
# A variable that is unknown, or has a value that it cannot have, is told of in one line, by one rank,
# and changes nothing; a good one is not told of.

. "$(dirname "$0")/../lib.sh"

# run VARIABLES: a program on two ranks passes.
run()
{
    mpi_command 2 "$(sanitizer_runtime) $library" "$1" "$PWD/test/mpi/extension.preload"
    ends_well "$1: right results" 60
}

told() # VARIABLE END-OF-LINE
{
    local lines
    lines=$(grep '^nbcshim:' "$scratch/log")
    [ "$lines" = "nbcshim: $1 ignored: $2" ]
    result $? "$1: told of, once" "$lines"
}

refused() # VARIABLE ACCEPTED
{
    run "$1"
    told "$1" "expected $2"
}

refused NBCSHIM=perhaps "auto, on or off"
refused NBCSHIM_BLOCKING=mine "auto, own or native"
refused NBCSHIM_CHECK=2 "0 or 1"
refused NBCSHIM_DYNAMIC=no "0 or 1"
refused NBCSHIM_PROGRESS=sometimes "calls or thread"
refused NBCSHIM_PROGRESS_CPU=-1 "a processor number up to 1023"
refused NBCSHIM_STATS=file "0, 1, verbose or a file name ending in .json"
for value in 0 -5 12X 12KB K 9223372036854775808 99999999999999999999G 9223372036854775807K; do
    refused NBCSHIM_SEGMENT_SIZE=$value "a positive number of bytes, with K, M or G"
done
refused NBCSHIM_TIMEOUT=0 "a number of seconds from 1 to 1000000"
refused NBCSHIM_TIMEOUT=1s "a number of seconds from 1 to 1000000"
for value in nodes=0 nodes=1000001 trace_events=17M tag_ub=2 colour=3 tag_ub tag_ub=60,nodes=0; do
    refused NBCSHIM_TEST=$value "options of doc/testing.md"
done
refused NBCSHIM_ALGORITHM_SCAN=fastest "one of $(awk -F '[(, ]+' \
    '$1 == "ALG" && $2 == "SCAN" { all = all (all ? ", " : "") $3 } END { print all }' \
    "$srcdir/src/algs.def")"
refused NBCSHIM_ALGORITHM_SHOUT=ring "the name of a collective after NBCSHIM_ALGORITHM_"
run NBCSHIM_COLOUR=red
told NBCSHIM_COLOUR=red "unknown variable; nbcinfo lists the known ones"

# NBCSHIMMER is no variable of nbcshim.
for good in NBCSHIM_SEGMENT_SIZE=4k NBCSHIMMER=1 NBCSHIM_SEGMENT_SIZE=1G \
    NBCSHIM_SEGMENT_SIZE=9223372036854775807 NBCSHIM_TEST=tag_ub=60,trace_events=16M NBCSHIM_PROGRESS_CPU=0 \
    "NBCSHIM_PROGRESS=thread NBCSHIM_PROGRESS_CPU=0" NBCSHIM_ALGORITHM_BCAST=chain NBCSHIM_TEST=nodes=1; do
    run "$good"
    log_has 0 "$good: not told of" '^nbcshim:'
done

# What only the system can refuse.
mpi_command 1 "$(sanitizer_runtime) $library" "NBCSHIM_PROGRESS=thread NBCSHIM_PROGRESS_CPU=1023" \
    "$PWD/test/mpi/extension.preload"
ends_well "NBCSHIM_PROGRESS_CPU=1023: right results" 60
told NBCSHIM_PROGRESS_CPU=1023 "the thread cannot run there"

# As a person means them. The words of mpi_command cannot be empty or contain blanks, so these are
# inherited.
meant() # VARIABLE=VALUE NBCINFO-LINE
{
    export "$1"
    run ""
    log_has 0 "'$1': not complained of" '^nbcshim:'
    tools/nbcinfo --variables >"$scratch/log"
    log_has 1 "'$1': nbcinfo says the same" "^  ${1%%=*} +$2\$"
    unset "${1%%=*}"
}

meant NBCSHIM=ON 'ON +environment +activate .*'
meant NBCSHIM_PROGRESS=Thread 'Thread +environment .*'
meant NBCSHIM_BLOCKING=NATIVE 'NATIVE +environment .*'
meant NBCSHIM_ALGORITHM_BCAST=Chain 'Chain +environment .*'
meant "NBCSHIM_ALGORITHM_BCAST= chain " 'chain +environment .*'
meant "NBCSHIM= on " 'on +environment .*'
meant "NBCSHIM_SEGMENT_SIZE=$(printf '\t')4k " '4k +environment .*'
meant "NBCSHIM_CHECK=1 " '1 +environment .*'
meant NBCSHIM= 'auto +default .*'
meant NBCSHIM_STATS= '0 +default .*'
meant "NBCSHIM_TIMEOUT= " 'none +default .*'
meant NBCSHIM_TRACE= 'none +default .*'
export NBCSHIM_ALGORITHM_BCAST= NBCSHIM_COLOUR=
run ""
log_has 0 "empty variables: not complained of" '^nbcshim:'
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
