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
`nbcinfo --choose allreduce --ranks 64 --bytes 8192` which one runs for a call. All but those of neighborhoods
also have `mpi`, the MPI's own operation, which has no schedule ([guide.md](guide.md#collectives-in-the-networks-hardware)).
END

# The tables: the costs, by collective and algorithm, in front of the list of all algorithms. JSON of nbcinfo
# has the fields of a row in a fixed order, one row a line.
{
    "$nbcinfo" --costs all --ranks 8 --bytes 64K --json || echo failed
    "$nbcinfo" --costs all --ranks 4 --remote 4 --bytes 64K --json || echo failed
    "$nbcinfo" --algorithms --json
} | tr -d '\n' | sed 's/}/}\n/g' | awk '
    function field(name,    text) {
        if (!match($0, "\"" name "\": (\"[^\"]*\"|[0-9]+)"))
            return ""
        text = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
        gsub("\"", "", text)
        return text
    }
    /failed/ { exit 1 }
    /"rounds"/ {
        sends = field("collective") == "barrier" ? "-" : sprintf("%.4g", field("most_bytes") / 65536)
        costs[field("collective"), field("algorithm")] = \
            field("rounds") " | " field("messages") " | " sends
    }
    /"purpose"/ {
        if (field("name") == "mpi")
            next
        if (!((field("collective"), field("name")) in costs))
            exit 1
        if (field("collective") != last) {
            last = field("collective")
            printf "\n## %s\n\n", last
            print "| algorithm | for | needs | rounds | messages | sends |"
            print "|---|---|---|---:|---:|---:|"
        }
        printf "| `%s` | %s | %s | %s |\n", field("name"), field("purpose"), field("needs"),
            costs[last, field("name")]
    }'

cat <<'END'

## Neighborhoods and personalized exchanges on several nodes

In `MPI_Neighbor_alltoallv_init` and the other four, and in `MPI_Alltoall_init`, `MPI_Alltoallv_init` and
`MPI_Alltoallw_init` without `MPI_IN_PLACE`, the ranks of a communicator on several nodes agree whether
`locality` is worth it: an allreduce of a few numbers and, if a rank has at least four edges to other nodes, an exchange
of the edges' ranks and bytes within each node, and two allreduces. The largest guess of any rank's time decides; it must
be a fifth less than with a message for each edge. The choice is the same on all ranks. If a node has more than 131,072
edges, its ranks times the most edges of one, the agreement ends with the first allreduce. Nonblocking collectives are
local, and never use it. `NBCSHIM_ALGORITHM_NEIGHBOR_ALLTOALLV=linear` (and so on) avoids the agreement, as does an
info key or a tuning rule.

`bench/locality` (commit 212eca69) simulated 32 nodes of 8 ranks in nbcsim's model: the seven exchanges of a multigrid hierarchy together
take 0.72 of the time of `linear` on `infiniband` and 0.50 on `slingshot`, and no pattern there takes more than 1.00.
An alltoallv of 8 bytes takes 0.06 and 0.11, of 64 bytes 0.37 and 0.19 of the time with a message for each pair of ranks.
The init call takes 17 to 28 µs for the first allreduce alone, and 53 to 98 µs for everything
(`doc/performance/locality.tsv`).
END
