#!/usr/bin/env bash
# nbcinfo: what it says is what the library, its tables and the environment say.

. "$(dirname "$0")/../lib.sh"
forget_settings
nbcinfo=$PWD/tools/nbcinfo
# The program itself, where libtool made a script of it, which takes longer to start than the program to run.
if [ -x tools/.libs/nbcinfo ]; then
    nbcinfo=$PWD/tools/.libs/nbcinfo
    export LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

shows "it runs alone and tells its version" "^nbcshim +${VERSION//./\\.}\$" "$nbcinfo"
shows "and the MPI that it finds" '^found +(MPICH|Open MPI|.*MPI)' "$nbcinfo"
shows "and the runtimes of GPUs" '^GPU memory given to an MPI that takes it, else copied to that of the host; (neither CUDA nor HIP is found|found lib.*)$' "$nbcinfo"
LD_LIBRARY_PATH=$PWD/test/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NBCSHIM_DEVICE=off \
    shows "or CUDA's" '^GPU memory taken for memory of the host; found libcuda.so.1' "$nbcinfo"
LD_LIBRARY_PATH=$PWD/test/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NBCSHIM_LEVEL_ZERO=1 \
    shows "and Level Zero's, if that is asked for" '; found libcuda.so.1, (libamdhip64.so, )?libze_loader.so.1$' "$nbcinfo"
for option in '--ranks 8' '--bytes 1K' '--rank 0' --ordered --oversubscribed --svg; do
    refuses "$option without a call" "^nbcinfo: ${option%% *}: needs --choose, --costs or --schedule; see" "$nbcinfo" $option
done
refuses "--seconds without --selftest" '^nbcinfo: --seconds: needs --selftest; see' "$nbcinfo" --seconds 5
refuses "an option that is none: no usage" '^see nbcinfo --help$' "$nbcinfo" --nothing
shows "--version" "^nbcinfo \(nbcshim\) ${VERSION//./\\.}\$" "$nbcinfo" --version
shows "--cures" '^           .*(mpich|ompi)#[0-9]' "$nbcinfo" --cures
expect "--cures: first what goes wrong on this MPI" awk '/^  [a-z]/ && $1 == "right" { right = 1 }
    /^  [a-z]/ && $1 != "right" && right { late = 1 }
    END { exit late || !right }' <("$nbcinfo" --cures)
shows "--help" '^Usage: nbcinfo' "$nbcinfo" --help

for arguments in '' --help --version --json '--choose bcast' '--costs bcast' '--schedule bcast:chain'; do
    "$nbcinfo" $arguments 2>"$scratch/why" >/dev/full
    [ $? = 1 ] && grep -q 'standard output' "$scratch/why"
    result $? "output that is lost is told: ${arguments:-no option}"
done

# --- JSON -----------------------------------------------------------------------------------------

json() # NAME ARGUMENT... <<< python that checks d
{
    local name=$1
    shift
    "$nbcinfo" "$@" --json >"$scratch/json" || echo broken >"$scratch/json"
    json_says "$name" "$scratch/json"
}

if command -v python3 >/dev/null; then
    "$nbcinfo" --json >"$scratch/all"
    expect "--json is JSON" python3 -m json.tool "$scratch/all"
    json "it has every row of the tables" <<END
algs = $(grep -c '^ALG(' "$srcdir/src/algs.def")
rules = $(sed -n 's/^RULES/RULE\n&/; s/^RULE/&/p' "$srcdir/src/tuning.def" | wc -l)
assert algs > 80 and len(d['algorithms']) == algs, len(d['algorithms'])
assert rules > 10 and len(d['rules']) == rules, len(d['rules'])
END
    # What configure found by linking, nbcinfo finds in the MPI that is there.
    json "functions that the MPI lacks are those that configure did not find" <<END
import re
probed = set(re.findall(r'\b[A-Z][a-z]\w*', re.search(r'NBC_MPI_NAMES\], \[(.*?)\]\)',
    open('$srcdir/m4/nbc_probe.m4').read(), re.S).group(1)))
has = set(re.findall(r'^#define HAVE_MPI_(\w+) 1', open('config.h').read(), re.M))
seen = 0
for f in d['functions']:
    name = f['name'][4:]
    if name in probed:
        seen += 1
        assert f['mpi_has'] == (name.upper() in has), f
assert seen >= 86, seen
END
    export NBCSHIM_PROGRESS=thread NBCSHIM_STATS=perhaps NBCSHIM_ALGORITHM_BCAST=chain
    export NBCSHIM_ALGORITHM_SCAN='no"such\'
    json "variables: value, origin, what is not taken" <<'END'
v = {x['name']: x for x in d['variables']}
assert v['NBCSHIM_PROGRESS']['value'] == 'thread', v['NBCSHIM_PROGRESS']
assert v['NBCSHIM_PROGRESS']['origin'] == 'environment'
assert v['NBCSHIM_STATS']['origin'] == 'not taken', v['NBCSHIM_STATS']
assert v['NBCSHIM_STATS']['environment'] == 'perhaps'
assert v['NBCSHIM_STATS']['value'] == v['NBCSHIM_STATS']['default'] == '0'
assert v['NBCSHIM_ALGORITHM_BCAST']['value'] == 'chain'
assert v['NBCSHIM_ALGORITHM_SCAN']['environment'] == 'no"such\\'
assert v['NBCSHIM_BLOCKING']['origin'] == 'default'
assert len([n for n in v if n.startswith('NBCSHIM_ALGORITHM_')]) == 22
END
    unset NBCSHIM_PROGRESS NBCSHIM_STATS NBCSHIM_ALGORITHM_BCAST NBCSHIM_ALGORITHM_SCAN
    json "--choose as JSON" --choose allreduce --ranks 64 --bytes 8K <<'END'
assert d['collective'] == 'allreduce' and d['ranks'] == 64 and d['bytes'] == 8192, d
assert any(a in d['algorithm'] for a in ('doubling', 'multiplying', 'rabenseifner', 'round', 'ring'))
assert d['why']
END
    json "--schedule as JSON" --schedule barrier:dissemination --ranks 8 <<'END'
assert (d['rounds'], d['messages'], d['bytes']) == (3, 24, 0), d
END
else
    echo "ok $((cases += 1)) - JSON # SKIP no python3"
fi

# --- choosing -------------------------------------------------------------------------------------

shows "--choose: a tuning rule" '^rabenseifner: tuning rule [0-9]+: ranks 3 or more' "$nbcinfo" \
    --choose reduce --ranks 16 --bytes 1M
shows "--choose: no rule" '^binomial: no tuning rule matches' "$nbcinfo" --choose reduce --ranks 16 --bytes 8
export NBCSHIM_ALGORITHM_REDUCE=chain NBCSHIM_ALGORITHM_ALLREDUCE=ring
shows "--choose: the environment asks" '^chain: requested by NBCSHIM_ALGORITHM_REDUCE' "$nbcinfo" \
    --choose reduce --ranks 16 --bytes 1M
shows "--choose: what the environment asks for does not apply" \
    '^rabenseifner: NBCSHIM_ALGORITHM_ALLREDUCE requests ring, which requires a commutative operator; tun' "$nbcinfo" \
    --choose allreduce --ranks 16 --bytes 512K --ordered
unset NBCSHIM_ALGORITHM_REDUCE NBCSHIM_ALGORITHM_ALLREDUCE
echo 'reduce 16 * linear' >"$scratch/tuning"
shows "--choose: the order of ranks" '^two_rounds: ' "$nbcinfo" --choose reduce --ranks 8 --bytes 64K --order ranks
shows "--choose: the order of a tree" '^rabenseifner: ' "$nbcinfo" --choose reduce --ranks 8 --bytes 64K --order=tree
NBCSHIM_ALGORITHM_REDUCE=chain shows "--choose: what the environment asks for has another order" \
    'requests chain, which requires any order' "$nbcinfo" --choose reduce --ranks 8 --order tree
refuses "an unknown order" '--order line: no such value' "$nbcinfo" --choose reduce --order line
NBCSHIM_TUNING=$scratch/tuning shows "--choose: a rule of the user's own file" \
    '^linear: tuning rule 1: ranks 16 to 16' "$nbcinfo" --choose reduce --ranks 16 --bytes 1M
NBCSHIM_TUNING=$scratch/tuning shows "--rules: those in force" \
    '^  reduce +ranks 16 to 16 .* linear' "$nbcinfo" --rules
NBCSHIM_TUNING=$scratch/nothing shows "--choose: a tuning file that is not there" \
    'built-in rules are in force' "$nbcinfo" --choose reduce --ranks 16
: >"$scratch/empty"
[ "$(NBCSHIM_TUNING=$scratch/empty "$nbcinfo" --choose reduce 2>&1)" = "$("$nbcinfo" --choose reduce)" ]
result $? "--choose: a tuning file without rules is none, as for the library"
shows "--choose: ranks per node" '^hierarchical' "$nbcinfo" --choose bcast --ranks 64 --per-node 2 --bytes 8
shows "--choose: all ranks on a node" '^[^h]' "$nbcinfo" --choose bcast --ranks 64 --bytes 8
shows "--choose: slow networks" '^circulant: tuning rule' "$nbcinfo" \
    --choose allreduce --ranks 50 --per-node 1 --sockets --bytes 64K
shows "--choose: slow networks, in order" '^two_rounds: tuning rule' "$nbcinfo" \
    --choose allreduce --ranks 50 --per-node 1 --sockets --ordered --bytes 64K
NBCSHIM_ALGORITHM_BARRIER=tree shows "--choose: a former name that the environment asks for" \
    '^linear: requested by NBCSHIM_ALGORITHM_BARRIER' "$nbcinfo" --choose barrier --ranks 64
shows "--choose: --oversubscribed" '^linear: tuning rule' "$nbcinfo" --choose barrier --ranks 16 --oversubscribed
shows "--schedule: a former name" '^barrier:linear, 4 ranks: ' "$nbcinfo" --schedule barrier:tree
echo 'bcast * * chain 32K' >"$scratch/tuning"
export NBCSHIM_TUNING=$scratch/tuning
shows "--choose: the rule's segment" '"segment": 32768' "$nbcinfo" --choose bcast --json
shows "--choose: another one" '"segment": 8192' "$nbcinfo" --choose bcast --json --segment 8K
NBCSHIM_SEGMENT_SIZE=4K shows "--choose: the environment's segment" '"segment": 4096' "$nbcinfo" --choose bcast --json
unset NBCSHIM_TUNING
[ "$MPI_FLAVOR" = openmpi ] && longest=61440 || longest=15360 # as the library: 60 KiB, 16 KiB
shows "--schedule: segments need no handshake over sockets" "^ *0 send recv\+0 $longest bytes to 1" "$nbcinfo" \
    --schedule bcast:two_rounds --ranks 3 --per-node 1 --sockets --bytes 240K
shows "--choose: between groups" '^inter_' "$nbcinfo" --choose bcast --ranks 3 --remote 2
NBCSHIM_ALGORITHM_BCAST=chain shows "--choose: an algorithm that is not for two groups" \
    'requests chain, which requires an intracommunicator;' "$nbcinfo" --choose bcast --remote 2
refuses "--schedule: an algorithm that is not for two groups" 'it requires: an intracommunicator$' "$nbcinfo" \
    --schedule bcast:chain --remote 2
for coll in scan exscan neighbor_alltoallw; do
    refuses "--choose: no $coll between groups" 'not defined on intercommunicators' "$nbcinfo" --choose $coll --remote 3
done
refuses "two things at once" 'only one of these is possible' "$nbcinfo" --choose bcast --costs bcast
refuses "--choose: no such collective" 'no such collective' "$nbcinfo" --choose nothing

# --- schedules ------------------------------------------------------------------------------------

shows "a ring's rounds, messages and bytes" \
    '^allreduce:ring, 4 ranks: 6 rounds, 24 messages, 6291456 bytes, at most 1572864 from one rank' "$nbcinfo" \
    --schedule allreduce:ring --ranks 4 --bytes 1M
shows "what a rank does" '^ *[0-9]+ reduce ' "$nbcinfo" --schedule allreduce:ring --ranks 4 --bytes 1M --rank 2
expect "one rank only" test "$("$nbcinfo" --schedule allreduce:ring --ranks 4 --rank 2 | grep -c '^rank ')" = 1

refuses "a rank that is not there" 'no such rank' "$nbcinfo" --schedule allreduce:ring --ranks 4 --rank 4

# nbcinfo fails where a send is not received. Every algorithm applies on one of these numbers of ranks.
for ranks in 1 2 4 5; do
    for remote in '' "--remote $ranks"; do
        "$nbcinfo" --costs all --ranks $ranks $remote --bytes 24 >>"$scratch/costs" || echo failed
    done
done >"$scratch/bad" 2>&1
expect "the costs of every algorithm on 1, 2, 4 and 5 ranks" diff "$scratch/bad" /dev/null
"$nbcinfo" --algorithms | awk '/^  / { print $1, $2 }' >"$scratch/algorithms"
# The MPI's own has no schedule.
sed -i '/ mpi$/d' "$scratch/algorithms"
refuses "a schedule of the MPI's own" 'which is not simulated' "$nbcinfo" --schedule allreduce:mpi
expect "every algorithm has costs" \
    diff <(sort "$scratch/algorithms") <(awk '/^  / { print $1, $2 }' "$scratch/costs" | sort -u)
shows "they are those of the schedule" '^  allreduce +ring +6 +24 +6291456 +1572864$' "$nbcinfo" \
    --costs allreduce --ranks 4 --bytes 1M
refuses "costs of no collective" 'no such collective' "$nbcinfo" --costs nothing
refuses "costs for too many ranks" 'limited to 1024 ranks' "$nbcinfo" --costs bcast --ranks 1025

bad=
while read -r coll alg; do
    output=$("$nbcinfo" --schedule "$coll:$alg" --ranks 4 --bytes 24 --dot 2>&1) || bad="$bad $coll:$alg: $output"
done <"$scratch/algorithms"
[ -z "$bad" ]
result $? "every algorithm can be drawn" "$bad"

# Arrows that are messages, one for each.
count=$("$nbcinfo" --schedule alltoall:pairwise --ranks 5 --bytes 64 --dot | grep -c 'penwidth=1.4')
expect "a picture has an arrow for each message" test "$count" = 20
if command -v dot >/dev/null; then
    "$nbcinfo" --schedule bcast:binomial --ranks 4 --svg >"$scratch/svg"
    grep -q '^</svg>' "$scratch/svg" && [ "$(grep -c '>recv from' "$scratch/svg")" = 3 ]
    result $? "--svg draws"
else
    echo "ok $((cases += 1)) - --svg # SKIP no dot"
fi
mkdir "$scratch/bin"
printf '#!/bin/sh\nexit 127\n' >"$scratch/bin/dot"
chmod +x "$scratch/bin/dot"
PATH=$scratch/bin:$PATH refuses "--svg without Graphviz" 'dot failed' "$nbcinfo" \
    --schedule bcast:binomial --svg

refuses "a schedule without algorithm" 'COLLECTIVE:ALGORITHM' "$nbcinfo" --schedule bcast
refuses "no such algorithm" 'no such algorithm' "$nbcinfo" --schedule bcast:nothing
refuses "an algorithm that does not apply" 'even number of ranks' "$nbcinfo" \
    --schedule allgather:neighbor_exchange --ranks 3
refuses "a number out of its range" '--ranks 0: .* out of range' "$nbcinfo" --choose bcast --ranks 0
refuses "more bytes than can be counted" 'too many for all ranks' "$nbcinfo" --choose allgatherv --ranks 100M --bytes 256G
refuses "an unknown option" 'nbcinfo --help' "$nbcinfo" --nonsense
refuses "an argument" 'not an option' "$nbcinfo" nonsense

# --- documents ------------------------------------------------------------------------------------

"$srcdir/doc/algorithms.sh" "$nbcinfo" >"$scratch/algorithms.md"
expect "doc/algorithms.md is what nbcinfo says (else: make algorithms)" \
    diff "$srcdir/doc/algorithms.md" "$scratch/algorithms.md"
"$nbcinfo" --variables | awk '/^  NBCSHIM/ { print $1 }' | sort -u >"$scratch/known"
for file in doc/guide.md doc/nbcshim.7; do
    sed -n 's/^| `\(NBCSHIM[A-Z_<>]*\)` .*/\1/p; s/^\.It Ev \(NBCSHIM[A-Z_]*\).*/\1/p' \
        "$srcdir/$file" | sed 's/_$/_<COLLECTIVE>/' | sort -u >"$scratch/told"
    expect "$file tells of every variable and of no other" diff "$scratch/known" "$scratch/told"
done

finish
