#!/usr/bin/env bash
# nbcbench and nbctune do what they say; not how fast anything is.

. "$(dirname "$0")/../lib.sh"

# run SECONDS NAME COMMAND...: on two ranks.
run()
{
    local limit=$1 name=$2
    shift 2
    mpi_command 2 "" "" "$@"
    ends_well "$name" "$limit"
}

# A directory that cannot be written is refused before anything is measured.
: >"$scratch/file"
for directory in "$scratch/nothing/there" "$scratch/file" "$scratch/$(printf 'x%.0s' {1..300})"; do
    mpi_command 2 "" "" bench/nbcbench -c barrier -n 1 -g "$directory"
    ends_badly "nbcbench -g ${directory:0:60}: refused" 60
    log_has 1 "with the reason" '^nbcbench: --plot .*: cannot write there: [A-Z].*$'
    log_has 0 "and nothing is measured" '^barrier'
done

# Where it can be opened, but not written.
mpi_command 2 "" "" bench/nbcbench -c barrier -n 1 -j /dev/full
ends_badly "nbcbench -j /dev/full: fails" 60
log_has 1 "with the reason" '^nbcbench: --json /dev/full: cannot write: No space left on device$'
mpi_command 2 "" "" bench/nbcbench -c barrier -n 1 -j "$scratch/nothing/there"
ends_badly "nbcbench -j: refused" 60
log_has 1 "with the reason" '^nbcbench: --json .*: cannot write: No such file or directory$'
log_has 0 "and nothing is measured" '^barrier'

run 120 "nbcbench" bench/nbcbench -c barrier,bcast,allreduce,neighbor_alltoall -s 8,4K -n 3 \
    --repeat 7 --all-algorithms --json "$scratch/json" --plot "$scratch/pictures"
expect "a line a cell" test "$(grep -cE '^(barrier|bcast|allreduce|neighbor_alltoall) ' "$scratch/log")" = 7
expect "every algorithm" test "$(grep -cE '^    (dissemination|dissemination4|binomial|ring|combined) ' "$scratch/log")" = 8
# An MPI-2.2 has nothing to compare nbcshim with: there the figures are nbcshim's alone.
compares=
! mpi_has Iallreduce || compares=yes
[ ! "$compares" ] || expect "JSON" python3 "$srcdir/test/tools/measure.py" time "$scratch/json"
for picture in bcast allreduce neighbor_alltoall ${compares:+ratio}; do
    expect "picture of $picture" grep -q '</svg>' "$scratch/pictures/$picture.svg"
done

[ ! "$compares" ] || expect "what they say" python3 -c "import re
def text(picture):
    return re.findall(r'<t(?:span|ext)\\b[^>]*>\\s*([^<]*?)\\s*</t', open('$scratch/pictures/' + picture).read())
bcast, ratio = text('bcast.svg'), text('ratio.svg')
for word in 'bcast', '8', '64', '4K', 'bytes', 'nbcshim', 'the MPI':
    assert word in bcast, (word, bcast)
for start in '2 ranks, ', 'median of 3 samples', 'floor: ', 'rounds: ':
    assert any(t.startswith(start) for t in bcast), (start, bcast)
for side in 'above 1: the MPI is faster', 'below 1: nbcshim is faster', '1/2', '1', '2':
    assert side in ratio, (side, ratio)
assert any('bars: quartiles' in t for t in ratio), ratio
ticks = [t for t in bcast if re.fullmatch('[0-9]+K?', t)]
assert {'8', '16', '32', '1K', '2K', '4K'} <= set(ticks), ticks
shown = re.split(r'<title>', open('$scratch/pictures/bcast.svg').read())
colours = [re.search(r'(?s)</title>.*?stroke=.(rgb[^\\x27]*)', p).group(1) for p in shown[2:]]
assert len(set(colours)) == len(colours) > 4, colours"

# measures NAME OPTIONS...
measures()
{
    local name=$1
    shift
    run 120 "nbcbench -m $name $*" bench/nbcbench -m "$name" -n 3 -j "$scratch/json" "$@"
    [ ! "$compares" ] || expect "rows" python3 "$srcdir/test/tools/measure.py" "$name" "$scratch/json"
}

measures calls -c barrier,allreduce -s 64
measures overlap -c bcast,alltoall -s 4096 -g "$scratch/pictures"
measures overlap -c bcast,alltoall -s 4096 -n 1
measures overlap -c bcast,alltoall -s 4096 --idle

# Buffers on a GPU, over the look-alike of its runtime; without one it says so.
refuses_device()
{
    mpi_command 2 "" "" bench/nbcbench --device -n 1
    ends_badly "nbcbench --device without a GPU: refused" 60
    log_has 1 "with the reason" '^nbcbench: device: no GPU with libcuda.so.1 or libamdhip64.so$'
}
[ -e /dev/nvidia0 ] || [ -e /dev/kfd ] || refuses_device
device_is_measured() # what, library to preload or none, what is in the column of direct ones
{
    mpi_command 2 "$2" "LD_LIBRARY_PATH=$PWD/test/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" bench/nbcbench --device \
        -n 3 -c allreduce,gather,reduce -s 8,8192 -j "$scratch/json"
    ends_well "nbcbench --device, $1" 120
    log_has 6 "a line a cell" \
        "^[a-z]+ +(8|8192) +[0-9.]+ +$3 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +- +- +-?[0-9]+%\$"
}
device_is_measured "an MPI that takes no buffers of a GPU" "" -
expect "rows" python3 "$srcdir/test/tools/measure.py" device "$scratch/json"
device_is_measured "one that takes them" "$(sanitizer_runtime) $library $PWD/test/device/aware.so" '[0-9.]+'
expect "rows" python3 "$srcdir/test/tools/measure.py" device "$scratch/json" direct

measures halo -s 0,64 -n 3

measures outstanding -n 1 -g "$scratch/pictures"
for picture in overlap outstanding; do
    expect "picture of $picture" grep -q '</svg>' "$scratch/pictures/$picture.svg"
done

if [ "$compares" ]; then
# Every call that nbcshim wraps is measured, but for those that start or end MPI, deal with other jobs, are
# collectives of which nbcshim is the purpose, have counts of type MPI_Count, are of MPI-4.1, or that are named here.
threads=2 # Some hundred kinds of calls wait for each other: ranks yield, in case that others are busy.
measures untouched -s 8 -n 1
threads=1
log_has 1 "what it is measured with" '^# NBCSHIM_BLOCKING=[a-z]+; progress in waits of the MPI: (yes|no) \(.+\)$'
log_has 0 "no call fails" '^# .* fails$'
log_has 3 "means over all cells" '^# [a-z]+ / native over [0-9]+ cells: geometric mean [0-9.]+; above 1.03: [0-9]+, above 1.10: [0-9]+$'
exempt='Init(_thread)?|Finalize|Session_.*|Comm_(accept|connect|join|spawn|spawn_multiple|create_from_group)'
exempt="$exempt|Intercomm_create_from_groups|Comm_idup_with_info|Parrived|File_preallocate"
exempt="$exempt|Request_get_status_.*|Buffer_(detach|flush)|Comm_(detach|flush)_buffer"
exempt="$exempt|I(barrier|bcast|gather|scatter|all|reduce|scan|exscan|neighbor).*|.*_init|.*_c"
python3 -c "import json
for row in json.load(open('$scratch/json')):
    print(row['calls'].split()[0].replace('+', '\n'))" | sort -u >"$scratch/measured"
nm -D --defined-only "$library" | sed -n 's/.* MPI_\([A-Z][a-z]*[a-z_]*\)$/\1/p' |
    grep -vxE "$exempt" | sort -u >"$scratch/wrapped"
expect "every other call" test "$(wc -l <"$scratch/wrapped")" -gt 100
expect "every call that nbcshim wraps is measured" diff <(comm -23 "$scratch/wrapped" "$scratch/measured") /dev/null
run 60 "nbcbench -u" bench/nbcbench -m untouched -u local -n 1
log_has 0 "no other group" '^(collectives|communicators|messages|requests|windows|files) '
mpi_command 2 "" "" bench/nbcbench -m untouched -u nothing
ends_badly "nbcbench -u nothing: refused" 60
fi

for program in bench/nbcbench tools/nbctune; do
    name=${program#*/}
    run 60 "$name --help" $program --help
    log_has 1 "$name: the usage once" "^[Uu]sage: mpiexec -n RANKS $name"
    run 60 "$name --version" $program --version
    expect "$name: the version once" test "$(cat "$scratch/log")" = "$name (nbcshim) $VERSION"
done

# What is wrong is said in one line, by one rank, without the usage.
refuses() # says command...
{
    local says=$1 status
    shift
    mpi_command 2 "" "" "$@"
    guarded 60 "$scratch/log" "${launch[@]}"
    status=$?
    [ $status != 0 ] && [ "$(grep -cE "^$says" "$scratch/log")" = 1 ] && ! grep -q '^[Uu]sage' "$scratch/log"
    result $? "$*: refused" "$(cat "$scratch/log")"
}
refuses "nbcbench: unknown measurement nothing; see nbcbench --help$" bench/nbcbench -m nothing
refuses "nbcbench: invalid size 4: expected a multiple of 8, .*; see nbcbench --help$" bench/nbcbench -s 8,4
refuses "nbctune: no such mode: --rule; see nbctune --help$" tools/nbctune --rule
refuses "nbctune: unknown collective sum; see nbctune --help$" tools/nbctune --rules bcast sum
refuses "nbctune: expected one mode; see nbctune --help$" tools/nbctune --loggp bcast

# terminal COMMAND...: what it writes on a terminal, and the exit status.
terminal()
{
    python3 - "$@" <<'END'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0)
END
}

# On a terminal, and only there, a line says how far it is.
step='[0-9]+% \([0-9]+ of [0-9]+\) bcast, 64 bytes'
mpi_command 1 "" "" bench/nbcbench -c barrier,bcast -s 8,64 -n 1
guarded 60 "$scratch/log" "${launch[@]}"
log_has 0 "without a terminal, nbcbench does not say how far it is" "$step"
guarded 60 "$scratch/log" terminal "${launch[@]}"
result $? "nbcbench runs on a terminal"
expect "and says how far it is" grep -aqE "$step" "$scratch/log"
tools/nbcsim/nbcsim -n 2,4 -b 8,64 bcast >"$scratch/log" 2>&1
log_has 0 "without a terminal, nbcsim does not say how far it is" '% \('
guarded 60 "$scratch/log" terminal tools/nbcsim/nbcsim -n 2,4 -b 8,64 bcast
expect "on a terminal it does" grep -aq '75% (4 of 4) bcast, 4 ranks, 64 bytes' "$scratch/log"

# All collectives in a soak only: that takes a minute. Here of each kind the one with the fewest algorithms.
tuned="barrier gatherv exscan neighbor_alltoallw"
[ -z "${NBC_SOAK:-}" ] || tuned=
run 240 "nbctune --rules" tools/nbctune --rules $tuned
cp "$scratch/log" "$scratch/rules"
expect "rules for these collectives and no others, or for all" diff \
    <(grep -v '^#' "$scratch/rules" | cut -d' ' -f1 | uniq) \
    <(tr ' ' '\n' <<<"${tuned:-$(sed -nE 's/^COLL\([A-Z_]+, *([a-z_]+).*/\1/p' "$srcdir/src/colls.def")}")
mpi_command 2 "" "NBCSHIM_TUNING=$scratch/rules" bench/nbcbench -c barrier -n 1
ends_well "rules that nbcshim takes" 60
log_has 0 "and does not complain of" NBCSHIM_TUNING

run 120 "nbctune --loggp" tools/nbctune --loggp
for key in L o g G within.L reduce copy ppn; do
    log_has 1 "it tells $key" "^$key = [0-9.e+-]+$"
done
log_has 0 "and on one host nothing of a network" "^(eager|handshake|sockets) "
cp "$scratch/log" "$scratch/machine"
tools/nbcsim/nbcsim -n 2 --network "$scratch/machine" bcast:binomial >"$scratch/log" 2>&1
result $? "nbcsim reads what it wrote"
log_has 1 "and simulates it" 'binomial '

finish
