#!/usr/bin/env bash
# A node map declared by NBCSHIM_NODES: the algorithms for nodes run where there is one, give right
# results, and do not run where there is none.

. "$(dirname "$0")/../lib.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

colls='BARRIER BCAST REDUCE ALLREDUCE ALLGATHER ALLTOALL'
forced=NBCSHIM_STATS=1
for coll in $colls; do
    forced="$forced NBCSHIM_ALGORITHM_$coll=nodes"
done

# run NAME VARIABLES: the collectives test passes; what it says is in $scratch/log.
run()
{
    local status
    mpi_command 4 "$(sanitizer_runtime) $library" "$2" "$PWD/test/mpi/collectives.preload"
    guarded 120 "$scratch/log" "${launch[@]}"
    status=$?
    result $status "$1: right results"
    [ $status = 0 ] || comment "$(head -c 20000 "$scratch/log")"
}

# ran NAME NUMBER PATTERN: so many lines of the log match.
ran()
{
    local found
    found=$(grep -cE "$3" "$scratch/log")
    [ "$found" = "$2" ]
    result $? "$1"
    [ "$found" = "$2" ] || comment "$found lines: $(grep '^nbcshim:' "$scratch/log")"
}

run "two nodes of two ranks" "$forced NBCSHIM_NODES=2"
for coll in $colls; do
    ran "two nodes of two ranks: ${coll,,}" 1 "^nbcshim: ${coll,,} +nodes "
done
run "two nodes, parts" "$forced NBCSHIM_NODES=2 NBCSHIM_ALGORITHM_ALLREDUCE=nodes_split"
ran "two nodes, parts: allreduce" 1 "^nbcshim: allreduce +nodes_split "
run "nodes of three ranks and of one" "$forced NBCSHIM_NODES=3"
ran "no equal nodes: no such alltoall" 0 "^nbcshim: alltoall +nodes "
ran "no equal nodes: allgather" 1 "^nbcshim: allgather +nodes "
run "all on one node" "$forced NBCSHIM_NODES=4"
ran "all on one node: none of these" 0 "^nbcshim: [a-z]+ +nodes"
run "each on a node" "$forced NBCSHIM_NODES=1"
ran "each on a node: none of these" 0 "^nbcshim: [a-z]+ +nodes"

finish
