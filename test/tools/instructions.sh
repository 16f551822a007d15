#!/usr/bin/env bash
# How many instructions nbcshim adds to each call that it wraps, on one rank: by callgrind, whose counts
# do not depend on the machine's load. No number may exceed its limit in instructions.limits. After an
# intended change, in a build tree, this prints the file with the limits of its MPI:
#
#   test/tools/instructions.sh --print

. "$(dirname "$0")/../lib.sh"
forget_settings
limits=$srcdir/test/tools/instructions.limits
times=8 # instructions.c: TIMES

# Other builds have other numbers.
if [ "$SANITIZE" != no ] || [[ " $CFLAGS " != *" -O2 "* ]]; then
    result 0 "instructions are counted in plain builds with -O2 only"
    finish
    exit
fi
if ! command -v valgrind >/dev/null; then
    echo "1..0 # SKIP valgrind is not installed"
    exit 0
fi

# Callgrind writes a file after each count, .1, .2 ...: see instructions.c. Open MPI must not look for rare
# events by the clock.
options=(--tool=callgrind --collect-atstart=no "--toggle-collect=counted_*"
    --dump-after=counted_native --dump-after=counted_shim --dump-after=counted_held)
export OMPI_MCA_mpi_event_tick_rate=0

# counts SIDE NUMBER: writes $scratch/SIDE: in each line so many counts and the call.
counts()
{
    local side=$1 number=$2 status files
    guarded 120 "$scratch/log" valgrind -q "${options[@]}" "--callgrind-out-file=$scratch/$side.count" \
        test/tools/instructions "$side" "$scratch/$side.calls"
    status=$?
    if [ $status = 77 ]; then
        echo "1..0 # SKIP the calls are those of an MPI-3.1"
        exit 0
    fi
    [ "$print" ] || result $status "$side: a program makes each call under callgrind"
    [ $status = 0 ] || comment "$(head -c 20000 "$scratch/log")"
    files=$(seq -f "$scratch/$side.count.%.0f" 1 $((number * $(wc -l <"$scratch/$side.calls"))))
    sed -n 's/^totals: //p' $files | paste -d' ' $(yes - | head -n "$number") >"$scratch/$side.totals"
}

# The MPI is counted where nbcshim is inactive, and not called in the progress loop of the MPI.
print=
[ "${1:-}" != --print ] || print=yes
export NBCSHIM=off
counts native 2
export NBCSHIM=on
counts shim 4

# Lines: what nbcshim adds to a call while no request of its own is held, while one is, the call.
paste -d' ' "$scratch/native.totals" "$scratch/shim.totals" "$scratch/shim.calls" |
    awk -v times=$times 'function less(a, b) { return a < b ? a : b }
        { native = less($1, $2); free = int((less($3, $4) - native) / times)
          held = int((less($5, $6) - native) / times)
          sub(/^[^ ]* [^ ]* [^ ]* [^ ]* [^ ]* [^ ]* /, ""); print free, held, $0 }' >"$scratch/counted"

# The columns of this MPI in the file, and the call of a line that has so many columns before it.
column=1
[ "$MPI_FLAVOR" = mpich ] || column=3
call='function call(columns, line) { for (line = $0; columns > 0; columns--) sub(/^[^ ]* /, "", line); return line }'
# A limit leaves room for another compiler, and more for Open MPI's constructors, which vary from run to run by 10
# percent. A call that takes fewer instructions than the MPI's may become the MPI's again.
if [ "$print" ]; then
    awk -v column=$column "$call"'
        function limit(n) { return n < 0 ? 120 : n + 10 + int(n / (n < 2000 ? 10 : 5)) }
        function line_of(name, mine, others) { print column == 1 ? mine " " others : others " " mine, name }
        NR == FNR { now[call(2)] = limit($1) " " limit($2); next }
        /^#/ { print; next }
        { name = call(4); others = column == 1 ? $3 " " $4 : $1 " " $2
          line_of(name, name in now ? now[name] : "- -", others); delete now[name] }
        END { for (name in now) line_of(name, now[name], "- -") }' "$scratch/counted" "$limits"
    exit
fi

# Another compiler makes other code, and another version of the MPI other calls: where nbcshim takes the place of one,
# by all that this takes. The room for them shows no more than that a call has become something else.
room=100 # percent
[ "$($CC -dumpversion | cut -d. -f1)" = 12 ] || room=125
tools/nbcinfo | grep -qE '^built for +(MPICH 4\.0\.2|Open MPI 4\.1\.4)\>' || room=200
[[ $($CC -dumpmachine) = x86_64-* ]] || room=400
more=$((room > 100 ? 20 : 0))
[ "$NBC_HOOK" != fi_cq_read ] || more=150 # nbcshim is in each turn of the loop

# Lines: the limits, the counts, the call; a call without a limit has the limit "none".
awk -v column=$column "$call"' !/^#/ && $column != "-" { print $column, $(column + 1), call(4) }' "$limits" >"$scratch/limits"
awk -v room=$room -v more=$more '{ first = $1 " " $2; name = $0; sub(/^[^ ]* [^ ]* /, "", name) }
    NR == FNR { limit[name] = int($1 * room / 100) + more " " int($2 * room / 100) + more; next }
    { print name in limit ? limit[name] : "none none", first, name }' \
    "$scratch/limits" "$scratch/counted" >"$scratch/compared"
while read -r most_free most_held free held call; do
    [ "$most_free" != none ] && [ "$free" -le "$most_free" ] && [ "$held" -le "$most_held" ]
    result $? "$call: $free instructions more, $held with a request held (limits: $most_free, $most_held)"
done <"$scratch/compared"
expect "every limit has been checked" test "$(wc -l <"$scratch/limits")" = $((cases - 2))

finish
