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
        print "nbcprofile 2 2"
        for (rank = 0; rank < 2; rank++) {
            printf "rank %d %.0f host %d\n", rank, wall * 1e9, rank
            printf "call %d allreduce 1 13 10 40960 0 %.0f %.0f %.0f %.0f\t1234 f /no/program x\n", rank,
                wall * 1e8, wall * 2e8, wall * 1e8, (1 + rank * late * 10) * 1e9
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
    result $? "verdict of $3 and $4: $1" "$(cat "$scratch/log")"
}

judged "With nbcshim the program is faster: 1.000 s instead of 2.000 s, 50% less *" 0.001 \
    "2.0 2.1 2.0 1.9 2.0" "1.0 1.1 1.0 1.0 0.9"
log_has 1 "call site, function, bytes, calls, times, share hidden" \
    '^program x f +MPI_Iallreduce +4K +10 +200\.000 +50% +100\.000 +50%$'
log_has 1 "the rank that comes late" '^rank 1 \(host 1\) comes late to collectives: 0\.500 ms after the mean'
judged "With nbcshim the program is slower: 2.000 s instead of 1.000 s, 100% more *" 0 \
    "1 1.1 1 1 0.9" "2 2.1 2 1.9 2"
log_has 1 "none comes late" '^no rank comes late'
judged "Cannot tell: 1.900 s with nbcshim, 2.000 s without, but runs of the same kind vary by 25%; 1 more of each*" 0 \
    "1.5 1.8 2.0 2.3 2.5" "1.4 1.7 1.9 2.2 2.4"
judged "No difference: *" 0 "2 2 2 2 2" "1.99 1.99 1.99 1.99 1.99"
judged "Cannot tell: 1.920 s with nbcshim, 2.010 s without, *vary by 3%*" 0 "2.00 2.02 2.01" "1.90 1.92 2.03"
judged "Cannot tell: *" 0 "2 2 2 3 3" "2.2 1.8 2.1 1.5 1.5"
# Twelve of fifteen pairs are slower by 30 percent, under noise that is larger.
fifteen="0.42 0.9 0.41 0.8 0.43 0.44 0.40 0.7 0.39 0.42 0.45 0.43 0.41 0.42 0.40"
judged "With nbcshim the program is slower: 0.55* s instead of 0.420 s, 3?% more (12 of 15 *" 0 "$fifteen" \
    "0.55 0.5 0.54 0.6 0.56 0.57 0.53 0.5 0.52 0.55 0.58 0.56 0.54 0.55 0.53"
judged "With nbcshim the program is faster: 1.360 ms instead of 2.130 ms, 36% less *" 0 \
    "0.00213 0.00214 0.00213" "0.00136 0.00137 0.00136"
judged "*: 0.121 s * 0.090 s*" 0 "0.0902 0.0844 0.119" "0.1215 0.0993 0.128" # one unit
judged "Too few runs to tell *" 0 "2 2" "1 1"
judged "With nbcshim the program is faster: *" 0 "2 2 2" "1 1 1"
expect "the page is whole" grep -q '</html>' "$scratch/html"
expect "it says what was run" grep -q 'mpiexec &lt;app&gt;' "$scratch/html"
expect "it has its plots" test "$(grep -c '^</svg></div>' "$scratch/html")" = 3
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
    result $? "$name" "status $status: $(cat "$scratch/log")"
}

if mpi_has Iallreduce; then
compare "the program is compared" 0 --runs=1 --thread --json "$scratch/json" --html="$scratch/html" --
log_has 1 "each way is told of" '^nbcshim, thread +[0-9.]+ '
log_has 1 "who comes late" '^rank 1 .* comes late to collectives'
log_has 1 "one run is too few" '^Too few runs to tell .*; too few runs to tell .* progress thread'
if command -v python3 >/dev/null; then
    json_says "collectives, bytes, calls, whatever completes them" "$scratch/json" <<END2
wanted = [('MPI_Bcast', 24, 1), ('MPI_Reduce_scatter', 24, 1)]
wanted += [('MPI_Iallreduce', 8192, n) for n in (4, 4, 5, 5)] # by the callers of their wrapper
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
    log_has 4 "the lines of the calls" '^compared\.c:[0-9]+ \.\.records < compared\.c:[0-9]+ .*(one|several) +MPI_Iallreduce +8K +[45] '
fi
expect "the page is there" grep -q '</html>' "$scratch/html"
# What a browser cuts off at the right: of the page, and of what scrolls by itself; on a phone only that may.
cut_at() # WIDTH
{
    sed 's|</body>|<script>document.title = "cut " + [document.documentElement, ...document.querySelectorAll(".wide")]\
        .map(e => e.scrollWidth - e.clientWidth)</script></body>|' "$scratch/html" >"$scratch/measured.html"
    timeout 60 chromium --headless --no-sandbox --disable-gpu --window-size="$1",900 --dump-dom \
        "file://$scratch/measured.html" 2>/dev/null | sed -n 's/.*<title>cut \([0-9,]*\)<.*/\1/p'
}
if command -v chromium >/dev/null; then
    cut=$(cut_at 800)
    expect "the page has room at 800 pixels ($cut)" test "$cut" = 0,0,0,0,0
    cut=$(cut_at 500)
    expect "and on a phone but for what scrolls by itself ($cut)" test "${cut%%,*}" = 0
fi
expect "the program compiles with -O2" $CC -std=gnu11 -g -O2 -rdynamic $persistent $MPI_CPPFLAGS $newer_calls \
    "$srcdir/test/tools/compared.c" -o "$scratch/inlined" $MPI_LIBS
mpi_command 2 "" "" "$scratch/inlined" "$scratch/file"
compare "it is compared, with functions that the compiler has put into their callers" 0 --runs=1 --json "$scratch/json" --
if command -v python3 >/dev/null && command -v addr2line >/dev/null; then
    json_says "no two sites look alike, and the callers are named" "$scratch/json" <<'END2'
sites = [(s['site'], s['function'], s['bytes']) for s in d['sites']]
assert len(set(sites)) == len(sites) and sum(' < compared.c:' in s[0] for s in sites) >= 4, sites
END2
fi
mpi_command 2 "" "" "$scratch/compared" "$scratch/file"
compare "a program that calls from many places is compared" 0 --runs=1 --json "$scratch/json" -- places
if command -v python3 >/dev/null; then
    json_says "each place is a site, and bytes are known but between groups" "$scratch/json" <<END2
sites = [(s['function'], s['bytes'], s['calls']) for s in d['sites']]
wanted = [('MPI_Barrier', 0, 1)] * 256 + [('MPI_Iallreduce', 8192, 1), ('MPI_Iallreduce', 8192, 1), ('MPI_Ibarrier', 0, 500), ('MPI_Alltoallw', 16, 1),
    ('MPI_Allreduce', 56, 1), ('MPI_Allgather', None, 1)]
assert sorted(sites, key=str) == sorted(wanted, key=str), sites
assert len({s['address'] for s in d['sites']}) == 261, sites
END2
fi
compare "a program that fails" 1 --runs=1 -- fail
log_has 0 "of which it is not said that the MPI lacks something" 'lacks'
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

# What a start and its wait cost more with the library: in instructions, which do not depend on the load.
if [ "$SANITIZE" = no ] && [[ " $CFLAGS " == *" -O2 "* ]] && command -v valgrind >/dev/null; then
    echo '#include <mpi.h>
    int one = 1, sum;
    __attribute__((noinline)) void counted(void)
    {
        for (int i = 0; i < 1000; i++) {
            MPI_Request r;
            MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
        }
    }
    int main(int n, char **v)
    {
        MPI_Init(&n, &v);
        counted();
        counted();
        return MPI_Finalize();
    }' >"$scratch/cost.c"
    expect "a program that starts and waits compiles" $CC -O2 $MPI_CPPFLAGS "$scratch/cost.c" -o "$scratch/cost" $MPI_LIBS
    counts=()
    for preload in "" "${library%/*}/libnbcprofile.so"; do
        env LD_PRELOAD="$preload" NBCPROFILE="$scratch/record" OMPI_MCA_mpi_event_tick_rate=0 timeout 120 \
            valgrind -q --tool=callgrind --collect-atstart=no --toggle-collect=counted \
            --callgrind-out-file="$scratch/cost.out" "$scratch/cost" >"$scratch/log" 2>&1
        counts+=("$(sed -n 's/^totals: //p' "$scratch/cost.out")")
    done
    more=$(((counts[1] - counts[0]) / 2000))
    limit=1100
    [ "$($CC -dumpversion | cut -d. -f1)" = 12 ] || limit=1300
    [[ $($CC -dumpmachine) = x86_64-* ]] || limit=2200
    [ "$more" -gt 500 ] && [ "$more" -le $limit ]
    result $? "a start and its wait take $more instructions more with libnbcprofile.so (at most $limit)"
fi

# A module for Python refers to all functions, whatever the program calls.
for refers in "" -DREFERS; do
    mpi_program blocks $refers <<'END'
static int (*volatile f)(MPI_Comm, MPI_Request *);
#ifdef REFERS
f = MPI_Ibarrier;
#endif
MPI_Barrier(MPI_COMM_WORLD);
END
    mpi_command 2 "" "" "$scratch/blocks"
    compare "it is compared$refers" 0 --runs=1 --
    [ -n "$refers" ] && inactive=0 || inactive=1
    log_has $inactive "whether nbcshim was inactive$refers" '^Nothing to compare: nbcshim was inactive, .* NBCSHIM=on\.$'
    log_has $((1 - inactive)) "only then there is a verdict$refers" '^(Too few|Cannot tell|No difference|With nbcshim)'
done
mpi_command 2 "" "" "$scratch/compared" "$scratch/file"
fi

export NBCSHIM=off
compare "NBCSHIM=off is refused" 2 --
unset NBCSHIM
compare "a file that cannot be written is refused" 2 --html="$scratch/nothing/there" --
log_has 1 "before anything runs" '^'
log_has 1 "with its name" "^nbcrun: cannot write $scratch/nothing/there\$"
tools/nbcrun --library="$library" --runs=3 true >"$scratch/log" 2>&1
expect "--runs without --compare is refused" test $? = 2
for runs in 0 x ''; do
    tools/nbcrun --library="$library" --compare --runs=$runs true >"$scratch/log" 2>&1
    expect "--runs=$runs is refused" test $? = 2
done

# A signal ends the job of the run, and is not waited out.
tools/nbcrun --library="$library" --compare sh -c 'echo $$ >"$0.part"; mv "$0.part" "$0"; exec sleep 100' \
    "$scratch/job" >"$scratch/log" 2>&1 &
until [ -s "$scratch/job" ] || [ "$SECONDS" -gt 300 ]; do
    sleep 0.1
done
kill $!
wait $!
[ $? = 130 ] && ! kill -0 "$(cat "$scratch/job")" 2>/dev/null
result $? "SIGTERM ends the run and its job" "$(cat "$scratch/log")"

# A program that calls what the MPI lacks runs only with nbcshim.
if ! mpi_has Allreduce_init; then
    mpi_program lacks -I"$srcdir/include" -include nbcshim.h -Wl,--no-as-needed "$library" -Wl,-rpath,"${library%/*}" <<'END'
MPI_Request r;
MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r);
END
    mpi_command 2 "" "" "$scratch/lacks"
    compare "it cannot be compared" 1 --
    expect "and the function is named" grep -q 'MPI_Barrier_init failed: this MPI lacks it' "$scratch/log"
    expect "it can be linked with the library that writes records alone" $CC -I"$srcdir/include" -include nbcshim.h $MPI_CPPFLAGS \
        "$scratch/lacks.c" -o "$scratch/lacks" "${library%/*}/libnbcprofile.so" $MPI_LIBS -Wl,-rpath,"${library%/*}"
    mpi_command 1 "" "NBCPROFILE=$scratch/record" "$scratch/lacks"
    guarded 60 "$scratch/log" "${launch[@]}"
    expect "it ends where it calls what the MPI lacks" test $? = 127
    log_has 1 "with its name" 'undefined symbol: MPI_Barrier_init$'
    # mpi4py asks, and has another way if the answer is no.
    echo '#define _GNU_SOURCE
    #include <dlfcn.h>
    #include <mpi.h>
    #include <stdio.h>
    int main(int n, char **v)
    {
        MPI_Init(&n, &v);
        printf("MPI has%s MPI_Barrier_init,%s MPI_Ibarrier\n", dlsym(RTLD_DEFAULT, "MPI_Barrier_init") ? "" : " no",
               dlsym(RTLD_DEFAULT, "MPI_Ibarrier") ? "" : " no");
        return MPI_Finalize();
    }' >"$scratch/asks.c"
    expect "a program that asks for functions compiles" $CC $MPI_CPPFLAGS "$scratch/asks.c" -o "$scratch/asks" \
        $MPI_LIBS -ldl
    for preload in "" ":$library"; do
        mpi_command 1 "$(sanitizer_runtime) ${library%/*}/libnbcprofile.so$preload" "" "$scratch/asks"
        guarded 60 "$scratch/log" "${launch[@]}"
        log_has 1 "it is told the truth about ${preload:-the MPI alone}" \
            "^MPI has$([ "$preload" ] || echo ' no') MPI_Barrier_init, MPI_Ibarrier\$"
    done
fi

finish
