#!/usr/bin/env bash
# A node map declared by NBCSHIM_NODES: the algorithms for nodes run where there is one, give right
# results, and do not run where there is none.

. "$(dirname "$0")/../lib.sh"

colls='BARRIER BCAST REDUCE ALLREDUCE ALLGATHER ALLTOALL'
forced=NBCSHIM_STATS=1
for coll in $colls; do
    forced="$forced NBCSHIM_ALGORITHM_$coll=nodes"
done

# run NAME VARIABLES: the collectives test passes.
run()
{
    mpi_command 4 "$(sanitizer_runtime) $library" "$2" "$PWD/test/mpi/collectives.preload"
    ends_well "$1: right results" 120
}

run "two nodes of two ranks" "$forced NBCSHIM_NODES=2"
for coll in $colls; do
    log_has 1 "two nodes of two ranks: ${coll,,}" "^nbcshim: ${coll,,} +nodes "
done
run "two nodes, parts" "$forced NBCSHIM_NODES=2 NBCSHIM_ALGORITHM_ALLREDUCE=nodes_split"
log_has 1 "two nodes, parts: allreduce" "^nbcshim: allreduce +nodes_split "
run "nodes of three ranks and of one" "$forced NBCSHIM_NODES=3"
log_has 0 "no equal nodes: no such alltoall" "^nbcshim: alltoall +nodes "
log_has 1 "no equal nodes: allgather" "^nbcshim: allgather +nodes "
run "all on one node" "$forced NBCSHIM_NODES=4"
log_has 0 "all on one node: none of these" "^nbcshim: [a-z]+ +nodes"
run "each on a node" "$forced NBCSHIM_NODES=1"
log_has 0 "each on a node: none of these" "^nbcshim: [a-z]+ +nodes"

finish
