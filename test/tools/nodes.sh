#!/usr/bin/env bash
# A node map declared by NBCSHIM_TEST=nodes=N: the hierarchical algorithms run where there is one, give right
# results, and do not run where there is none.

. "$(dirname "$0")/../lib.sh"

colls='BARRIER BCAST REDUCE ALLREDUCE ALLGATHER ALLTOALL'
forced=NBCSHIM_STATS=1
for coll in $colls; do
    forced="$forced NBCSHIM_ALGORITHM_$coll=hierarchical"
done

# run NAME VARIABLES: the collectives test passes for these.
run()
{
    mpi_command 4 "$(sanitizer_runtime) $library" "$2" "$PWD/test/mpi/collectives.preload" ${colls,,} same_bits
    ends_well "$1: right results" 120
}

run "two nodes of two ranks" "$forced NBCSHIM_TEST=nodes=2"
for coll in $colls; do
    log_has 1 "two nodes of two ranks: ${coll,,}" "^nbcshim: ${coll,,} +hierarchical "
done
run "two nodes, parts" "$forced NBCSHIM_TEST=nodes=2 NBCSHIM_ALGORITHM_ALLREDUCE=hierarchical_split NBC_FEW=1"
log_has 1 "two nodes, parts: allreduce" "^nbcshim: allreduce +hierarchical_split "
# Their rules are for collectives, too, none of whose algorithms needs the node map.
mpi_command 4 "$(sanitizer_runtime) $library" "NBCSHIM_STATS=1 NBCSHIM_TEST=nodes=2" \
    env NBC_FEW=1 "$PWD/test/mpi/collectives.preload" reduce_scatter_block
ends_well "two nodes, rules: right results" 120
log_has 1 "two nodes, rules: reduce_scatter_block" "^nbcshim: reduce_scatter_block +recursive_halving "
run "nodes of three ranks and of one" "$forced NBCSHIM_TEST=nodes=3 NBC_FEW=1"
for coll in $colls; do
    log_has 1 "nodes of three ranks and of one: ${coll,,}" "^nbcshim: ${coll,,} +hierarchical "
done
run "nodes of three ranks and of one, rules" "NBCSHIM_STATS=1 NBCSHIM_TEST=nodes=3 NBC_FEW=1"
log_has 1 "nodes of three ranks and of one, rules: allreduce" "^nbcshim: allreduce +hierarchical_split "
log_has 1 "nodes of three ranks and of one, rules: alltoall" "^nbcshim: alltoall +hierarchical "
run "all on one node" "$forced NBCSHIM_TEST=nodes=4 NBC_FEW=1"
log_has 0 "all on one node: none of these" "^nbcshim: [a-z]+ +hierarchical"
run "each on a node" "$forced NBCSHIM_TEST=nodes=1 NBC_FEW=1"
log_has 0 "each on a node: none of these" "^nbcshim: [a-z]+ +hierarchical"
log_has 1 "each on a node: that is no network of sockets" "^nbcshim: allreduce +two_rounds +1 +5000 "

finish
