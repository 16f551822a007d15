#!/usr/bin/env bash
# Writes doc/algorithms.md, or the pictures that it shows, by asking nbcinfo: so both say what the
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
    name="\`$2\`"
    [[ " "$(echo $pictures)" " != *" $1:$2 "* ]] || name="[\`$2\`](pictures/$1-$2.svg)"
    echo "| $name | $3 | $4 | $(field rounds) | $(field messages) | $mean |"
}

cat <<'END'
# nbcshim: algorithms

Written by `doc/algorithms.sh`, which asks `nbcinfo`: the numbers are counted in the schedules that
the library runs. `make algorithms` writes this file again, `make doc-pictures` draws the pictures
that it refers to into `doc/pictures` (Graphviz). Any other is drawn by

    nbcinfo --schedule allreduce:ring --ranks 4 --bytes 64K --svg >ring.svg

A picture has a column for each rank and time runs downwards: blue boxes send, green ones receive,
orange ones reduce; blue arrows are messages, gray ones say what waits for what. The ideas, the
papers and the costs as formulas stand at the heads of the functions in `src/alg_*.c`.

Columns: *rounds* is the number of messages that follow one another on the longest path, *messages*
is their number over all ranks, *sends* is what the rank that sends most sends, in vectors (bcast,
reductions) or blocks (others). All for 8 ranks (between groups: 4 and 4; nodes: two of 4) and 64 KiB; a pipelined
algorithm has more messages the longer the vector. Which one runs when: `nbcinfo --rules`, and
`nbcinfo --choose allreduce --ranks 64 --bytes 8192`.
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
