#!/usr/bin/env bash
# Writes doc/algorithms.md, or pictures of some schedules, by asking nbcinfo: so both say what the
# code does.
#
#   doc/algorithms.sh NBCINFO > doc/algorithms.md
#   doc/algorithms.sh NBCINFO DIRECTORY      pictures (needs Graphviz's dot)

nbcinfo=$1
# The environment may force algorithms; costs are those of the schedules named here all the same.
pictures="barrier:dissemination bcast:binomial bcast:scatter_allgather bcast:chain gather:binomial
    allgather:recursive_doubling allgather:bruck allgather:ring allgather:neighbor_exchange
    alltoall:bruck alltoall:pairwise reduce:binomial reduce:rabenseifner
    allreduce:recursive_doubling allreduce:recursive_multiplying allreduce:rabenseifner
    allreduce:ring reduce_scatter_block:recursive_halving scan:recursive_doubling
    neighbor_alltoall:linear"

if [ -n "$2" ]; then
    mkdir -p "$2" || exit 1
    for name in $pictures; do
        "$nbcinfo" --schedule "$name" --ranks 4 --bytes 64K --segment 32K --svg \
            >"$2/${name/:/-}.svg" || exit 1
    done
    exit
fi

# field NAME: of the JSON that nbcinfo prints in one line.
field()
{
    sed -n "s/.*\"$1\": \"\{0,1\}\([^\",}]*\).*/\1/p" <<<"$costs"
}

# One row of a collective's table.
row() # collective algorithm purpose needs
{
    local ranks="--ranks 8" mean
    [[ $4 != *intercommunicator* ]] || ranks="--ranks 4 --remote 4"
    costs=$("$nbcinfo" --schedule "$1:$2" $ranks --bytes 64K --json | tr -d '\n') || exit 1
    mean=$(awk -v most="$(field most_bytes)" 'BEGIN { printf "%.4g", most / 65536 }')
    [ "$1" != barrier ] || mean=-
    [ -n "$(field rounds)" ] || exit 1
    echo "| \`$2\` | $3 | $4 | $(field rounds) | $(field messages) | $mean |"
}

cat <<'END'
# nbcshim: algorithms

`doc/algorithms.sh` writes this file (`make algorithms` in a build tree). It asks `nbcinfo`, so the
numbers are those of the schedules that the library runs. Graphviz draws the schedule of any algorithm:

    nbcinfo --schedule allreduce:ring --ranks 4 --bytes 64K --svg >ring.svg

`make doc-pictures` draws twenty of them into `doc/pictures`. A picture has a column for each rank, and
time runs downwards. Blue boxes send, green ones receive, orange ones reduce; blue arrows are messages,
gray arrows are dependencies. The comments before the functions in `src/alg_*.c` have the ideas, the
papers, and the costs as formulas.

In the tables, *rounds* is the number of messages that follow one another on the longest path, *messages*
is the number of messages of all ranks, and *sends* is the amount of data that the busiest sender sends,
in vectors (bcast, reductions) or blocks (others). They are for 8 ranks (between groups: 4 and 4; with
nodes: two nodes of 4) and 64 KiB; a pipelined algorithm has more messages for a longer vector.
`nbcinfo --rules` shows when each algorithm runs, and
`nbcinfo --choose allreduce --ranks 64 --bytes 8192` which one runs for a call.
END

"$nbcinfo" --algorithms --json | tr -d '\n' | sed 's/.*"algorithms": \[//; s/\].*//; s/}, *{/}\n{/g' |
    sed 's/^ *{"collective": "\([^"]*\)", "name": "\([^"]*\)", "purpose": "\([^"]*\)", "needs": "\([^"]*\)"}.*/\1|\2|\3|\4/' |
    {
        last=
        while IFS='|' read -r coll name purpose needs; do
            if [ "$coll" != "$last" ]; then
                printf '\n## %s\n\n' "$coll"
                echo "| algorithm | for | needs | rounds | messages | sends |"
                echo "|---|---|---|---:|---:|---:|"
            fi
            last=$coll
            row "$coll" "$name" "$purpose" "$needs"
        done
    }
