#!/usr/bin/env bash
# nbcsim as people call it, and nbctune --loggp, whose output it reads.

. "$(dirname "$0")/../lib.sh"
sim=tools/nbcsim/nbcsim

# drawn NAME TITLE TICKS OPTIONS...: the figure has for each algorithm a line with as many points as
# it has times, in a colour of its own, markers, a ring for each selected one, the title, the ticks.
drawn()
{
    local name=$1 title=$2 ticks=$3
    shift 3
    $sim --plot "$scratch/drawn.svg" "$@" && $sim --json "$@" >"$scratch/drawn.json"
    result $? "$name"
    title=$title ticks=$ticks json_says "$name: what the figure shows" "$scratch/drawn.json" <<END
import os, re
svg = open('$scratch/drawn.svg').read()
points, rings = {}, 0
for cell in d['cells']:
    for a in cell['algorithms']:
        if a.get('seconds'):
            points[a['name']] = points.get(a['name'], 0) + 1
            rings += a['chosen']
parts = re.split(r'<g id="gnuplot_plot_\d+" ?><title>', svg)[1:]
shown = {p.split('</title>')[0]: p for p in parts}
assert set(shown) == set(points) | {'selected by the rules'}, (set(shown), points)
colours = set()
for name, n in points.items():
    # The sample in the legend, then the line; a single point is none.
    paths = re.findall(r"<path stroke='(rgb[^']*)'[^>]*? d='([^']*)'", shown[name])
    assert n < 2 or len(paths[0][1].split('L')) - 1 == n, (name, n, paths)
    assert shown[name].count('<use') == n + 1, (name, 'markers')
    colours.add(paths[0][0])
assert len(colours) == len(points), colours
assert shown['selected by the rules'].count('<use') == rings + 1, 'rings'
text = re.findall(r'<t(?:span|ext)\b[^>]*>\s*([^<]*?)\s*</t', svg)
for word in [os.environ['title']] + os.environ['ticks'].split():
    assert word in text, (word, text)
END
}

# L 2500, o 1500, G 6 ns: 5500 + 7 × 6 a message, three of them
shows "a binomial broadcast of 8 bytes on 8 ranks" 'binomial +16\.63 ' \
    $sim -n 8 -b 8 --network infiniband bcast:binomial
shows "a parameter changed" 'binomial +9\.13 ' $sim -n 8 -b 8 --set L=0 bcast:binomial
shows "the chosen one is marked" '^\* ' $sim -n 8 -b 8 allreduce
shows "a large run of one rank for all" 'ring ' $sim -n 65536 -b 64K allgather:ring
shows "JSON" '"name": "ring", "chosen": (true|false), "seconds": ' $sim -n 8 --json allgather
shows "--help" '^Usage: nbcsim' $sim --help
shows "--version" "^nbcsim \\(nbcshim\\) ${VERSION//./\\.}\$" $sim --version
shows "regret" '^[0-9]+ calls, [0-9]+ judged' $sim -n 2..16 -b 8,64K --regret bcast
# A network, the numbers of ranks, and the digits with which the mean may begin
for ppn in 1 8; do
    while read -r network n below; do
        shows "the built-in rules on $network, $ppn ranks per node: mean regret" ", mean [$below]\\.[0-9]%" \
            $sim --network $network --ppn $ppn -n $n -b 8,1K,16K,256K,1M --regret all
    done <<'END'
infiniband 5,16,24,64 0-9
slingshot  5,16,24,64 0-9
ethernet   16,24,64   0-3
END
done
shows "nodes of 32 ranks and of 4: alltoall" '^\* hierarchical ' $sim --ppn 32 -n 100 alltoall
shows "nodes of 32 ranks and of 4: allreduce" '^\* hierarchical_split ' $sim --ppn 32 -n 100 -b 64K allreduce
shows "an estimate of what is too large" 'chain +about [0-9]' \
    $sim -n 16..1024 -b 1M --limit 40K --estimate bcast:chain
$sim --rules --limit 20K -n 2..32,3..24 -b 8..512K:8 barrier bcast allgather >"$scratch/rules"
result $? "--rules"
shows "rules from a file decide" ': 0 more than 10% worse' \
    $sim --tuning "$scratch/rules" --limit 20K -n 2..32,3..24 -b 8..512K:8 --regret bcast
expect "they tell powers of two from others" grep -q '^allgather .* pow2 spread$' "$scratch/rules"
shows "a rule ends where handshakes begin" '^bcast +[*] +0-50[0-9][0-9] +linear' \
    $sim --set L=1000000 --set eager=5000 --set handshake=4000000 --rules -n 8 -b 8..32K:4 bcast
$sim --rules --ppn 4 --limit 20K -n 2..32 -b 8 barrier >"$scratch/places"
grep -q ' local$' "$scratch/places" && grep -q ' nodes$' "$scratch/places"
result $? "and ranks on one node from ranks on several"
echo 'bcast 2 8 ring' >"$scratch/bad"
refuses "rules that are none" 'bad: line 1: bcast has no algorithm ring' $sim --tuning "$scratch/bad" bcast
refuses "rules that are not there" 'nowhere: No such file' $sim --tuning "$scratch/nowhere" bcast
refuses "rules that cannot be read" 'Is a directory' $sim --tuning "$scratch" bcast
: >"$scratch/empty"
shows "a file without rules changes nothing" '^\* ' $sim --tuning "$scratch/empty" -n 8 bcast
shows "a call that takes no time is as long as the best" '^\* binomial +0\.00 +1\.00 ' $sim -n 1 bcast
shows "the critical path" 'waited' $sim -n 8 --path bcast
shows "nodes" '^. hierarchical +[0-9]' $sim -n 16 --ppn 4 bcast
shows "a former name of an algorithm" '^. linear +[0-9]' $sim -n 16 barrier:tree
shows "the cost of building" 'binomial ' $sim --build-cost -n 1024 bcast:binomial
shows "GOAL" '^l1: send 8b to ' $sim -n 4 --goal - bcast:binomial
shows "networks" 'slingshot' $sim --networks
refuses "a collective that is none" 'allredeuce' $sim allredeuce
refuses "an algorithm that is none" 'bcast:ring' $sim bcast:ring
refuses "a network that is none" 'neither a file nor a network' $sim --network nowhere bcast
refuses "a list that is none" '' $sim -n 4,x bcast
refuses "more bytes than can be counted" 'bytes times ranks must be at most' \
    $sim -n 64 -b 9223372036854775807 allgatherv
refuses "in a list, too" 'bytes times ranks must be at most' $sim -n 2,1048576 -b 8,1024G bcast
refuses "a number above all that there are" '' $sim -n 2 -b 9223372036854775808 bcast
shows "as many bytes as can be" 'linear ' \
    $sim -n 64 -b 2251799813685247 allgatherv alltoall reduce_scatter bcast allreduce:rabenseifner
for what in bcast:hierarchical bcast:inter_linear allgather:neighbor_exchange; do
    refuses "--goal of what does not apply: $what" 'does not apply' $sim -n 5 --goal - $what
done
refuses "an algorithm that applies to no call" 'bcast:hierarchical does not apply' $sim -n 4,8 bcast:hierarchical
shows "one that applies to some" 'scatter_doubling ' $sim -n 3,4 bcast:scatter_doubling
refuses "all calls for --goal" 'one call' $sim -n 4 --goal - all
refuses "all calls for --plot" 'one collective' $sim -n 4,8 --plot "$scratch/all.svg" all
refuses "an option that is none" '^see nbcsim --help$' $sim --nothing bcast
! $sim --nothing bcast 2>&1 | grep -q '^Usage'
result $? "without the usage"
refuses "no collective" 'no collective given' $sim --ranks 8
refuses "a range that is empty" 'invalid arguments: --ranks 8\.\.4; see' $sim -n 8..4 bcast
refuses "a value that an option does not take" 'invalid arguments: --ppn 0; see' $sim --ppn 0 bcast
refuses "an option without its value, behind a collective" "option '--ranks' requires" $sim bcast --ranks
refuses "a root that is no rank" '^nbcsim: invalid arguments: --root ' $sim -n 2,4 --root 4 bcast
refuses "a picture of a kind that is not drawn" '\.png, \.svg or \.pdf' $sim -n 4 --plot "$scratch/x.eps" bcast
refuses "a network that is a directory" 'Is a directory' $sim --network "$scratch" bcast
refuses "a network without an end" 'no network parameters' timeout 20 $sim --network /dev/zero bcast
refuses "a network without parameters" 'no network parameters' $sim --network "$scratch/empty" bcast
printf '#%300s\nL = 7\n' x >"$scratch/long"
shows "a long line in a network" 'L 7 ' $sim --network "$scratch/long" -n 2 bcast
shows "--network leaves what stands before it" '^slingshot, 4 ranks per node' \
    $sim --ppn 4 --network slingshot -n 8 bcast
echo 'L = 7' >"$scratch/quoted\"name"
shows "a network's name as JSON" '/quoted\\"name", ' \
    $sim --network "$scratch/quoted\"name" -n 2 --json bcast
refuses "two kinds of output" 'only one of' $sim --plot "$scratch/two.svg" --json bcast
refuses "and others" 'only one of' $sim --rules --json -n 2..8 -b 8 bcast
refuses "two calls for --goal" 'one call' $sim -n 4,8 --goal - bcast
for option in '' --json --regret --rules --build-cost --goal=- --networks; do
    $sim -n 4 -b 8 $option bcast 2>"$scratch/why" >/dev/full
    [ $? = 1 ] && grep -q 'standard output' "$scratch/why"
    result $? "output that is lost is told: ${option:-a table}"
done
$sim -n 4 --goal /dev/full bcast 2>"$scratch/why"
[ $? = 1 ] && grep -q '/dev/full' "$scratch/why"
result $? "output that is lost is told: a file"
if command -v gnuplot >/dev/null; then
    echo 'L = 7' >"$scratch/machine's"
    expect "a picture with apostrophes" \
        $sim -n 2..64 --network "$scratch/machine's" --plot "$scratch/it's.svg" bcast
    expect "they are there" grep -q "machine's" "$scratch/it's.svg"
    $sim -n 2..64 --plot "$scratch/no/x.svg" bcast >"$scratch/out" 2>&1
    [ $? = 1 ] && grep -q 'no/x.svg: No such file' "$scratch/out" && ! grep -q '<svg' "$scratch/out"
    result $? "a picture that cannot be written"
    expect "a picture" $sim -n 2..64 --plot "$scratch/x.svg" bcast
    grep -q '<svg' "$scratch/x.svg"
    result $? "it is there"
    if command -v python3 >/dev/null; then
        drawn "lines against ranks" "bcast, 64K bytes, simulated on infiniband, 1 rank per node" \
            "2 4 8 16 32 64" -n 2..64 -b 64K bcast
        drawn "lines against bytes" "allreduce, 16 ranks, simulated on slingshot, 4 ranks per node" \
            "8 64 512 4K 32K" --network slingshot --ppn 4 -n 16 -b 8..32K:8 allreduce
        drawn "the lines of a barrier" \
            "barrier, no data, simulated on infiniband, 1 rank per node" "4 16 64" -n 4..64:4 barrier
    fi
fi

finish
