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

# says NAME PATTERN ARGUMENT...: nbcinfo's output matches.
says()
{
    local name=$1 pattern=$2 output status
    shift 2
    output=$("$nbcinfo" "$@" 2>&1) && grep -qE -- "$pattern" <<<"$output"
    status=$?
    result $status "$name"
    [ $status = 0 ] || comment "$output"
}

# refuses NAME PATTERN ARGUMENT...: it exits with 2 and says why on standard error.
refuses()
{
    local name=$1 pattern=$2 output status
    shift 2
    output=$("$nbcinfo" "$@" 2>&1 >/dev/null)
    [ $? = 2 ] && grep -qE -- "$pattern" <<<"$output"
    status=$?
    result $status "$name"
    [ $status = 0 ] || comment "$output"
}

says "it runs alone and tells its version" "^nbcshim +${VERSION//./\\.}\$"
says "and the MPI that it finds" '^found +(MPICH|Open MPI|.*MPI)'
says "and the runtimes of GPUs" '^GPU memory given to an MPI that takes it, else copied to that of the host; (neither CUDA nor HIP is found|found lib.*)$'
LD_LIBRARY_PATH=$PWD/test/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NBCSHIM_DEVICE=off \
    says "or CUDA's" '^GPU memory taken for memory of the host; found libcuda.so.1'
LD_LIBRARY_PATH=$PWD/test/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NBCSHIM_LEVEL_ZERO=1 \
    says "and Level Zero's, if that is asked for" '; found libcuda.so.1, (libamdhip64.so, )?libze_loader.so.1$'
for option in '--ranks 8' '--bytes 1K' '--rank 0' --ordered --oversubscribed --svg; do
    refuses "$option without a call" "^nbcinfo: ${option%% *}: needs --choose, --costs or --schedule; see" $option
done
refuses "--seconds without --selftest" '^nbcinfo: --seconds: needs --selftest; see' --seconds 5
refuses "an option that is none: no usage" '^see nbcinfo --help$' --nothing
says "--version" "^nbcinfo \(nbcshim\) ${VERSION//./\\.}\$" --version
says "--cures" '^           .*(mpich|ompi)#[0-9]' --cures
expect "--cures: first what goes wrong on this MPI" awk '/^  [a-z]/ && $1 == "right" { right = 1 }
    /^  [a-z]/ && $1 != "right" && right { late = 1 }
    END { exit late || !right }' <("$nbcinfo" --cures)
says "--help" '^Usage: nbcinfo' --help

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

says "--choose: a tuning rule" '^rabenseifner: tuning rule [0-9]+: ranks 3 or more' \
    --choose reduce --ranks 16 --bytes 1M
says "--choose: no rule" '^binomial: no tuning rule matches' --choose reduce --ranks 16 --bytes 8
export NBCSHIM_ALGORITHM_REDUCE=chain NBCSHIM_ALGORITHM_ALLREDUCE=ring
says "--choose: the environment asks" '^chain: requested by NBCSHIM_ALGORITHM_REDUCE' \
    --choose reduce --ranks 16 --bytes 1M
says "--choose: what the environment asks for does not apply" \
    '^rabenseifner: NBCSHIM_ALGORITHM_ALLREDUCE requests ring, which requires a commutative operator; tun' \
    --choose allreduce --ranks 16 --bytes 512K --ordered
unset NBCSHIM_ALGORITHM_REDUCE NBCSHIM_ALGORITHM_ALLREDUCE
echo 'reduce 16 * linear' >"$scratch/tuning"
says "--choose: the order of ranks" '^two_rounds: ' --choose reduce --ranks 8 --bytes 64K --order ranks
says "--choose: the order of a tree" '^rabenseifner: ' --choose reduce --ranks 8 --bytes 64K --order=tree
NBCSHIM_ALGORITHM_REDUCE=chain says "--choose: what the environment asks for has another order" \
    'requests chain, which requires any order' --choose reduce --ranks 8 --order tree
refuses "an unknown order" '--order line: no such value' --choose reduce --order line
NBCSHIM_TUNING=$scratch/tuning says "--choose: a rule of the user's own file" \
    '^linear: tuning rule 1: ranks 16 to 16' --choose reduce --ranks 16 --bytes 1M
NBCSHIM_TUNING=$scratch/tuning says "--rules: those in force" \
    '^  reduce +ranks 16 to 16 .* linear' --rules
NBCSHIM_TUNING=$scratch/nothing says "--choose: a tuning file that is not there" \
    'built-in rules are in force' --choose reduce --ranks 16
: >"$scratch/empty"
[ "$(NBCSHIM_TUNING=$scratch/empty "$nbcinfo" --choose reduce 2>&1)" = "$("$nbcinfo" --choose reduce)" ]
result $? "--choose: a tuning file without rules is none, as for the library"
says "--choose: ranks per node" '^hierarchical' --choose bcast --ranks 64 --per-node 2 --bytes 8
says "--choose: all ranks on a node" '^[^h]' --choose bcast --ranks 64 --bytes 8
says "--choose: slow networks" '^circulant: tuning rule' \
    --choose allreduce --ranks 50 --per-node 1 --sockets --bytes 64K
says "--choose: slow networks, in order" '^two_rounds: tuning rule' \
    --choose allreduce --ranks 50 --per-node 1 --sockets --ordered --bytes 64K
NBCSHIM_ALGORITHM_BCAST=nodes says "--choose: a former name that the environment asks for" \
    '^hierarchical: requested by NBCSHIM_ALGORITHM_BCAST' --choose bcast --ranks 64 --per-node 2
for option in --oversubscribed --crowded; do
    says "--choose: $option" '^linear: tuning rule' --choose barrier --ranks 16 $option
done
says "--schedule: a former name" '^bcast:hierarchical, 4 ranks: ' --schedule bcast:nodes
echo 'bcast * * chain 32K' >"$scratch/tuning"
export NBCSHIM_TUNING=$scratch/tuning
says "--choose: the rule's segment" '"segment": 32768' --choose bcast --json
says "--choose: another one" '"segment": 8192' --choose bcast --json --segment 8K
NBCSHIM_SEGMENT_SIZE=4K says "--choose: the environment's segment" '"segment": 4096' --choose bcast --json
unset NBCSHIM_TUNING
[ "$MPI_FLAVOR" = openmpi ] && longest=61440 || longest=15360 # as the library: 60 KiB, 16 KiB
says "--schedule: segments need no handshake over sockets" "^ *0 send recv\+0 $longest bytes to 1" \
    --schedule bcast:two_rounds --ranks 3 --per-node 1 --sockets --bytes 240K
says "--choose: between groups" '^inter_' --choose bcast --ranks 3 --remote 2
NBCSHIM_ALGORITHM_BCAST=chain says "--choose: an algorithm that is not for two groups" \
    'requests chain, which requires an intracommunicator;' --choose bcast --remote 2
refuses "--schedule: an algorithm that is not for two groups" 'it requires: an intracommunicator$' \
    --schedule bcast:chain --remote 2
for coll in scan exscan neighbor_alltoallw; do
    refuses "--choose: no $coll between groups" 'not defined on intercommunicators' --choose $coll --remote 3
done
refuses "two things at once" 'only one of these is possible' --choose bcast --costs bcast
refuses "--choose: no such collective" 'no such collective' --choose nothing

# --- schedules ------------------------------------------------------------------------------------

says "a ring's rounds, messages and bytes" \
    '^allreduce:ring, 4 ranks: 6 rounds, 24 messages, 6291456 bytes, at most 1572864 from one rank' \
    --schedule allreduce:ring --ranks 4 --bytes 1M
says "what a rank does" '^ *[0-9]+ reduce ' --schedule allreduce:ring --ranks 4 --bytes 1M --rank 2
[ "$("$nbcinfo" --schedule allreduce:ring --ranks 4 --rank 2 | grep -c '^rank ')" = 1 ]
result $? "one rank only"

refuses "a rank that is not there" 'no such rank' --schedule allreduce:ring --ranks 4 --rank 4

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
refuses "a schedule of the MPI's own" 'which is not simulated' --schedule allreduce:mpi
expect "every algorithm has costs" \
    diff <(sort "$scratch/algorithms") <(awk '/^  / { print $1, $2 }' "$scratch/costs" | sort -u)
says "they are those of the schedule" '^  allreduce +ring +6 +24 +6291456 +1572864$' \
    --costs allreduce --ranks 4 --bytes 1M
refuses "costs of no collective" 'no such collective' --costs nothing
refuses "costs for too many ranks" 'limited to 1024 ranks' --costs bcast --ranks 1025

bad=
while read -r coll alg; do
    output=$("$nbcinfo" --schedule "$coll:$alg" --ranks 4 --bytes 24 --dot 2>&1) || bad="$bad $coll:$alg: $output"
done <"$scratch/algorithms"
[ -z "$bad" ]
result $? "every algorithm can be drawn"
[ -z "$bad" ] || comment "$bad"

# Arrows that are messages, one for each.
count=$("$nbcinfo" --schedule alltoall:pairwise --ranks 5 --bytes 64 --dot | grep -c 'penwidth=1.4')
[ "$count" = 20 ]
result $? "a picture has an arrow for each message"
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
PATH=$scratch/bin:$PATH refuses "--svg without Graphviz" 'dot failed' \
    --schedule bcast:binomial --svg

refuses "a schedule without algorithm" 'COLLECTIVE:ALGORITHM' --schedule bcast
refuses "no such algorithm" 'no such algorithm' --schedule bcast:nothing
refuses "an algorithm that does not apply" 'even number of ranks' \
    --schedule allgather:neighbor_exchange --ranks 3
refuses "a number out of its range" '--ranks 0: .* out of range' --choose bcast --ranks 0
refuses "more bytes than can be counted" 'too many for all ranks' --choose allgatherv --ranks 100M --bytes 256G
refuses "an unknown option" 'nbcinfo --help' --nonsense
refuses "an argument" 'not an option' nonsense

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
