#!/usr/bin/env bash
# nbcrun --compare: the verdict of given runs, then real ones of compared.c.

. "$(dirname "$0")/../lib.sh"
forget_settings
allow_late_sanitizer
unset LD_PRELOAD

# --- given runs -----------------------------------------------------------------------------------

# record FILE WALL LATE: two ranks; rank 1 comes LATE s after rank 0 to each of ten allreduces, which
# take a tenth of the wall time, and are in flight for twice as long.
record()
{
    awk -v wall="$2" -v late="$3" 'BEGIN {
        print "nbcprofile 1 2"
        for (rank = 0; rank < 2; rank++) {
            printf "rank %d %.0f host %d\n", rank, wall * 1e9, rank
            printf "call %d allreduce 1 13 10 40960 0 %.0f %.0f %.0f 1234 f /no/program x\n", rank,
                wall * 1e8, wall * 2e8, (1 + rank * late * 10) * 1e9
        }
        print "end"
    }' >"$1"
}

# judged VERDICT LATE WALLS-WITHOUT WALLS-WITH: what is said of these runs.
judged()
{
    local n=0 wall files=() said
    for wall in $3; do
        record "$scratch/without.$n" "$wall" "$2"
        files+=("without=$scratch/without.$n")
        n=$((n + 1))
    done
    n=0
    for wall in $4; do
        record "$scratch/nbcshim.$n" "$wall" "$2"
        files+=("nbcshim=$scratch/nbcshim.$n")
        n=$((n + 1))
    done
    tools/nbccompare --json="$scratch/json" --html="$scratch/html" "mpiexec <app>" "${files[@]}" \
        >"$scratch/log" 2>&1
    said=$(tail -n 1 "$scratch/log")
    [[ $said == $1 ]]
    said=$?
    result $said "verdict of $3 and $4: $1"
    [ $said = 0 ] || comment "$(cat "$scratch/log")"
}

judged "With nbcshim the program is faster: 1.000 s instead of 2.000 s, 50% less *" 0.001 \
    "2.0 2.1 2.0 1.9 2.0" "1.0 1.1 1.0 1.0 0.9"
log_has 1 "call site, function, bytes, calls, times, share hidden" \
    '^program x f +MPI_Iallreduce +4K +10 +200\.000 +50% +100\.000 +50%$'
log_has 1 "the rank that comes late" '^rank 1 \(host 1\) comes late to collectives: 0\.500 ms after the mean'
judged "With nbcshim the program is slower: 2.000 s instead of 1.000 s, 100% more *" 0 \
    "1 1.1 1 1 0.9" "2 2.1 2 1.9 2"
log_has 1 "none comes late" '^no rank comes late'
judged "No difference: 1.900 s with nbcshim, 2.000 s without, and runs of the same kind vary by 0.500 s." 0 \
    "1.5 1.8 2.0 2.3 2.5" "1.4 1.7 1.9 2.2 2.4"
judged "No difference: *" 0 "2 2 2 2 2" "1.99 1.99 1.99 1.99 1.99"
judged "No difference: *" 0 "2 2 2 3 3" "2.2 1.8 2.1 1.5 1.5"
judged "Too few runs to tell *" 0 "2 2" "1 1"
judged "With nbcshim the program is faster: *" 0 "2 2 2" "1 1 1"
expect "the page is whole" grep -q '</html>' "$scratch/html"
expect "it says what was run" grep -q 'mpiexec &lt;app&gt;' "$scratch/html"
expect "it has its plots" test "$(grep -c '^</svg>' "$scratch/html")" = 3
! grep -oE '(src|href)=|url\(|@import|https?://[^"]*' "$scratch/html" | grep -v '^http://www.w3.org/2000/svg$'
result $? "it refers to nothing else"
head -n 3 "$scratch/without.0" >"$scratch/cut"
! tools/nbccompare x "without=$scratch/cut" "nbcshim=$scratch/nbcshim.0" >"$scratch/log" 2>&1
result $? "half a record is refused"
log_has 1 "with the reason" 'cut: is not a complete record of a run$'

if command -v python3 >/dev/null; then
    judged "With nbcshim the program is faster: *" 0.001 "2 2 2" "1 1 1"
    json_says "JSON" "$scratch/json" <<'END2'
assert d['schema'] == 1 and d['ranks'] == 2 and d['turns'] == 3 and 'faster' in d['verdict'], d
assert d['without']['runs'] == [2, 2, 2] and d['nbcshim']['wall_seconds']['median'] == 1, d
assert abs(d['without']['late_seconds'][1] - 0.0005) < 1e-9, d
[s] = d['sites']
assert (s['function'], s['bytes'], s['calls']) == ('MPI_Iallreduce', 4096, 10), s
assert abs(s['without']['seconds']['median'] - 0.2) < 1e-9 and s['nbcshim']['hidden'] == 0.5, s
END2
    python3 - "$scratch/html" <<'END2'
import re, sys, xml.etree.ElementTree as tree
for svg in re.findall(r'(?s)<svg.*?</svg>', open(sys.argv[1]).read()):
    tree.fromstring(svg)
END2
    result $? "the plots are XML"
fi

# --- real runs ------------------------------------------------------------------------------------

# Without nbcshim too, so with what the MPI has. On an MPI-2.2 the program does not run without nbcshim.
persistent=$(sed -n 's/^#define HAVE_MPI_ALLREDUCE_INIT 1$/-DPERSISTENT/p' config.h)
expect "the program compiles" $CC -std=gnu11 -g -rdynamic $persistent $MPI_CPPFLAGS $newer_calls "$srcdir/test/tools/compared.c" \
    -o "$scratch/compared" $MPI_LIBS
mpi_command 2 "" "" "$scratch/compared" "$scratch/file"

# compare NAME STATUS OPTION... -- ARGUMENT...: of the program.
compare()
{
    local name=$1 wanted=$2 options=() status
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    guarded 120 "$scratch/log" tools/nbcrun --library="$library" --compare "${options[@]}" "${launch[@]}" "$@"
    status=$?
    [ $status = "$wanted" ]
    result $? "$name"
    [ $status = "$wanted" ] || comment "status $status: $(cat "$scratch/log")"
}

if mpi_has Iallreduce; then
compare "the program is compared" 0 --runs=1 --thread --json "$scratch/json" --html="$scratch/html" --
log_has 1 "each way is told of" '^nbcshim, thread +[0-9.]+ '
log_has 1 "who comes late" '^rank 1 .* comes late to collectives'
log_has 1 "one run is too few" '^Too few runs to tell .*; too few runs to tell .* progress thread'
if command -v python3 >/dev/null; then
    json_says "collectives, bytes, calls, whatever completes them" "$scratch/json" <<END2
wanted = [('MPI_Bcast', 24, 1), ('MPI_Iallreduce', 8192, 18), ('MPI_Reduce_scatter', 24, 1)]
if '$persistent':
    wanted.append(('MPI_Allreduce_init', 4096, 5))
sites = sorted((s['function'], s['bytes'], s['calls']) for s in d['sites'])
assert sites == sorted(wanted), sites
for s in d['sites']:
    for way in 'without', 'nbcshim', 'thread':
        f = s[way]
        blocks = '_I' not in s['function'] and '_init' not in s['function']
        assert 0 < f['seconds']['median'] < 60 and (f['hidden'] is None) == blocks, s
        assert f['hidden'] is None or 0 < f['hidden'] < 1, s
assert d['without']['late_seconds'][1] > 0.001, d
END2
fi
if command -v addr2line >/dev/null; then
    log_has 1 "the line of the call" '^compared\.c:[0-9]+ start_an_[a-z_]* +MPI_Iallreduce +8K +18 '
fi
expect "the page is there" grep -q '</html>' "$scratch/html"
compare "a program that calls from many places is compared" 0 --runs=1 --json "$scratch/json" -- places
if command -v python3 >/dev/null; then
    json_says "each place is a site, and bytes are known but between groups" "$scratch/json" <<END2
sites = [(s['function'], s['bytes'], s['calls']) for s in d['sites']]
wanted = [('MPI_Barrier', 0, 1)] * 256 + [('MPI_Iallreduce', 8192, 2), ('MPI_Ibarrier', 0, 500), ('MPI_Alltoallw', 16, 1),
    ('MPI_Allreduce', 56, 1), ('MPI_Allgather', None, 1)]
assert sorted(sites, key=str) == sorted(wanted, key=str), sites
assert len({s['address'] for s in d['sites']}) == 261, sites
END2
fi
compare "a program that fails" 1 --runs=1 -- fail
log_has 1 "is told of" '^nbcrun: the run "without" failed with exit status [0-9]+: nothing to compare$'
for record in /dev/full "$scratch/nothing/there"; do
    mpi_command 2 "$(sanitizer_runtime) ${library%/*}/libnbcprofile.so" "NBCPROFILE=$record" \
        "$scratch/compared" "$scratch/file" places
    ends_well "the program ends well though $record cannot be written" 60
    log_has 1 "which is told of" "^$record: (No space left on device|No such file or directory)\$"
done
mpi_command 2 "$(sanitizer_runtime) ${library%/*}/libnbcprofile.so" "" "$scratch/compared" "$scratch/file" places
ends_well "so it does if no record is wanted" 60
log_has 0 "of which nothing is said" '^'
mpi_command 2 "" "" "$scratch/compared" "$scratch/file"
fi
export NBCSHIM=off
compare "NBCSHIM=off is refused" 2 --
unset NBCSHIM
compare "a file that cannot be written is refused" 2 --html="$scratch/nothing/there" --
log_has 1 "before anything runs" '^'
log_has 1 "with its name" "^nbcrun: cannot write $scratch/nothing/there\$"
tools/nbcrun --library="$library" --runs=3 true >"$scratch/log" 2>&1
[ $? = 2 ]
result $? "--runs without --compare is refused"
for runs in 0 x ''; do
    tools/nbcrun --library="$library" --compare --runs=$runs true >"$scratch/log" 2>&1
    [ $? = 2 ]
    result $? "--runs=$runs is refused"
done

# A program that calls what the MPI lacks runs only with nbcshim.
if ! mpi_has Allreduce_init; then
    echo '#include <nbcshim.h>
    int main(int n, char **v)
    {
        MPI_Request r;
        MPI_Init(&n, &v);
        MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        return MPI_Finalize();
    }' >"$scratch/lacks.c"
    expect "a program for nbcshim compiles" $CC -I"$srcdir/include" $MPI_CPPFLAGS "$scratch/lacks.c" \
        -o "$scratch/lacks" "$library" $MPI_LIBS -Wl,-rpath,"${library%/*}"
    mpi_command 2 "" "" "$scratch/lacks"
    compare "it cannot be compared" 1 --
    expect "and the function is named" grep -q 'MPI_Barrier_init failed: this MPI lacks it' "$scratch/log"
    expect "it can be linked with the library that writes records alone" $CC -I"$srcdir/include" $MPI_CPPFLAGS \
        "$scratch/lacks.c" -o "$scratch/lacks" "${library%/*}/libnbcprofile.so" $MPI_LIBS -Wl,-rpath,"${library%/*}"
    mpi_command 1 "" "NBCPROFILE=$scratch/record" "$scratch/lacks"
    guarded 60 "$scratch/log" "${launch[@]}"
    [ $? = 3 ]
    result $? "it ends where it calls what the MPI lacks"
    log_has 1 "with its name" '^nbcprofile: this MPI lacks MPI_Barrier_init, which the program calls$'
fi

finish
