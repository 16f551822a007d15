#!/usr/bin/env bash
# nbcinfo --selftest: it passes on 1, 2 and 4 ranks and with threads, and fails if a collective gives a
# wrong result, if a call hangs, or if nbcshim does nothing.

. "$(dirname "$0")/../lib.sh"
forget_settings
allow_late_sanitizer
nbcinfo=$PWD/tools/nbcinfo
if [ -x tools/.libs/nbcinfo ]; then
    nbcinfo=$PWD/tools/.libs/nbcinfo
    export LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

# selftest RANKS PRELOAD VARIABLES ARGUMENT...: its output is in $scratch/log, its exit status in $status. On a busy
# machine a second is too short.
selftest()
{
    local ranks=$1 preload=$2 variables=$3 seconds
    shift 3
    for seconds in 1 6 40; do
        mpi_command "$ranks" "$(sanitizer_runtime)${preload:+ $preload}" "$variables" \
            "$nbcinfo" --selftest --seconds $seconds "$@"
        guarded 120 "$scratch/log" "${launch[@]}"
        status=$?
        grep -q '^nbcinfo: selftest: NOT TESTED: the time was too short' "$scratch/log" || break
    done
}

# says NAME succeeds|fails PATTERN: it does, with a line like that.
says()
{
    local ended=fails as_expected
    [ $status != 0 ] || ended=succeeds
    [ "$2" = $ended ] && grep -qE -- "$3" "$scratch/log"
    result $? "$1" "status $status: $(tail -n 30 "$scratch/log")"
}

for ranks in 1 2 4; do
    selftest $ranks "" ""
    says "$ranks ranks: all is right" succeeds "^nbcinfo: selftest: right: [1-9][0-9]* operations .* ranks: $ranks, nodes: 1,"
done
says "where the ranks are" succeeds "^  $(hostname) +4 +"
says "every kind of call" succeeds '^  between groups +[1-9]'
selftest 2 "" NBC_SEED=2
says "a rank outside of the first grid" succeeds '^nbcinfo: selftest: right: '
selftest 2 "" "" --threads
if grep -q 'no MPI_THREAD_MULTIPLE' "$scratch/log"; then
    says "this MPI has no MPI_THREAD_MULTIPLE" fails '^nbcinfo: --threads'
else
    says "two threads: all is right" succeeds '^nbcinfo: selftest: right: '
fi

# A rule whose segments are far too short.
echo 'bcast * * chain 8' >"$scratch/rules"
for seconds in 2 6 40; do # a busy machine needs the last, and disturbs a measurement now and then
    selftest 2 "" "NBCSHIM_TUNING=$scratch/rules" --json --seconds $seconds
    ! grep -q '"bcast".*"bytes": *1024.*"instead"' "$scratch/log" || break
done
says "times beside the MPI's" succeeds '.'
sed -n '/^{/,$p' "$scratch/log" >"$scratch/json"
json_says "the result as JSON" "$scratch/json" <<END
assert d["right"] is True and d["verdict"].startswith("right: ")
assert sum(n["ranks"] for n in d["nodes"]) == 2 and d["nodes"][0]["processors"] > 0
assert [k["kind"] for k in d["results"]] == ["nonblocking", "persistent", "between groups"]
assert all(k["operations"] > 0 for k in d["results"]) and d["wrong"] == []
times = {(t["collective"], t["bytes"]): t for t in d["times"]}
assert times["barrier", 0]["nbcshim_us"] > 0
if ("gather", 1024) in times: # there was time for the cell before it
    assert times["bcast", 1024]["instead"] and "bcast" in d["remedy"]
END

selftest 2 "" "NBCSHIM=off"
says "nbcshim does nothing" fails '^nbcinfo: selftest: NOT TESTED: nbcshim does nothing here'

# A tool in front that damages what one collective receives.
$MPICC -shared -fPIC -o "$scratch/corrupt.so" "$srcdir/test/tools/corrupt.c" -ldl || exit 1
selftest 2 "$scratch/corrupt.so" ""
says "a wrong result: which collective" fails '^nbcinfo: selftest: WRONG: [1-9][0-9]* failures of allgather on 2 ranks'
says "and where" fails 'nonblocking: allgather.* receive buffer wrong in '
export NBC_NAP=500000 # ranks that hang for seconds; see test/mpi/yield.c
threads=2
selftest 2 "$scratch/corrupt.so" NBC_CORRUPT=hang --seconds 1
says "a call that hangs: what waits for whom" fails 'rank 0: allgather:.* waits for a message from rank 1'
says "and that it hangs" fails '^nbcinfo: selftest: WRONG: a call hangs'
mpi_command 2 "$(sanitizer_runtime) $scratch/corrupt.so" NBC_CORRUPT=hang "$nbcinfo" --selftest --seconds 1 --json
guarded 120 "$scratch/log" bash -c '"${@:2}" >"$1"' _ "$scratch/output" "${launch[@]}"
sed -n '/^{/,/"verdict"/p' "$scratch/output" >"$scratch/json" # the launcher has words of its own
json_says "and as JSON" "$scratch/json" <<<'assert d["verdict"] == "WRONG: a call hangs" and not d["right"] and d["nodes"]'

finish
