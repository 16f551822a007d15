#!/usr/bin/env bash
# NBCSHIM_STATS=verbose and the JSON file: what they say of a job in which rank 1 is late (statistics.c).

. "$(dirname "$0")/../lib.sh"
forget_settings
ranks=3

compiled statistics

run() # NAME VARIABLES ARGUMENT...
{
    local name=$1 variables=$2
    shift 2
    preloaded "$name: the program ends well" $ranks "NBCSHIM_ALGORITHM_ALLREDUCE=ring $variables" \
        "$scratch/statistics" "$@"
}

mpi_name="MPICH Version: *4"
mpi_has Get_library_version || mpi_name="MPICH2 1"
[ "$MPI_FLAVOR" = mpich ] || mpi_name="Open MPI v[45]"
verbose=NBCSHIM_STATS=Verbose
run "NBCSHIM_STATS=verbose" $verbose
log_has 1 "versions and ranks" "^nbcshim: version $VERSION, over $mpi_name.*, 3 ranks\$"
log_has 1 "active, and why" '^nbcshim: active: the program references a collective'
log_has 1 "nodes, threads" '^nbcshim: nodes: 1; thread level of the MPI: MPI_THREAD_[A-Z]+; progress thread: no$'
log_has 1 "messages within a node" '^nbcshim: messages within a node: in shared memory up to [1-9][0-9]* bytes$'
log_has 1 "hook or fallback" '^nbcshim: blocking collectives: .*; progress in the MPI.s own waits: (by|no) '
log_has 1 "rules" '^nbcshim: rules: built-in$'
log_has 1 "wall time" '^nbcshim: 3 ranks, [0-9]+\.[0-9]+ s from MPI_Init to MPI_Finalize$'
log_has 1 "who waits least" '^nbcshim: waiting while collectives were pending: minimum [0-9]+\.[0-9]+ s \(rank 1\)'
expect "by about as long as it is late" awk '/minimum .* s \(rank 1\), mean / {
    sub(/.*minimum /, ""); least = $1; sub(/.*maximum /, ""); exit !($1 - least > 0.3) }' "$scratch/log"
log_has 1 "started and completed, of all ranks" '^nbcshim: allreduce +ring +3 +6[0-9] +6[0-9] '
log_has 1 "only of those ranks that have it" '^nbcshim: barrier +[a-z_0-9]+ +2 +2 +2 '

echo "bcast * * chain" >"$scratch/rules"
run "with other settings" "$verbose NBCSHIM=on NBCSHIM_PROGRESS=thread NBCSHIM_TEST=nodes=2 \
    NBCSHIM_TUNING=$scratch/rules"
log_has 1 "NBCSHIM=on" '^nbcshim: active: NBCSHIM=on$'
log_has 1 "two nodes, and the thread" '^nbcshim: nodes: 2; .*MPI_THREAD_MULTIPLE; progress thread: yes$'
log_has 1 "a file of rules" "^nbcshim: rules: $scratch/rules, then built-in\$"

printf '%s\n' '#!/bin/sh' '[ "${PMI_RANK-$OMPI_COMM_WORLD_RANK}" != 1 ] || export NBCSHIM_SHARED_MEMORY=0' 'exec "$@"' \
    >"$scratch/one_refuses"
chmod +x "$scratch/one_refuses"
preloaded "one rank refuses shared memory" $ranks $verbose "$scratch/one_refuses" "$scratch/statistics"
log_has 1 "so all do without" '^nbcshim: messages within a node: by the MPI$'

run "nothing happens" $verbose none
log_has 1 "the head of the table remains" '^nbcshim: collective '
log_has 0 "no row" '^nbcshim: (allreduce|barrier) '
if mpi_has Iallreduce; then
    run "NBCSHIM=off" "$verbose NBCSHIM=off"
    log_has 1 "inactive, and why" '^nbcshim: inactive: NBCSHIM=off$'
    log_has 2 "nothing else is said" '^nbcshim: '
fi

echo 'int MPI_Init(int *, char ***); int MPI_Finalize(void);
    int main(int n, char **v) { MPI_Init(&n, &v); return MPI_Finalize(); }' >"$scratch/nothing.c"
expect "a program without collectives compiles" $CC "$scratch/nothing.c" -o "$scratch/nothing" $MPI_LIBS
preloaded "it ends well" 2 $verbose "$scratch/nothing"
log_has 1 "inactive, since it references none" '^nbcshim: inactive: no rank references .*NBCSHIM=on'
for asked in NBCSHIM_STATS=1 NBCSHIM_TRACE="$scratch/trace" NBCSHIM_TIMEOUT=1000; do
    preloaded "$asked: it ends well" 2 $asked "$scratch/nothing"
    log_has 1 "inactive, which a user of that variable learns" '^nbcshim: inactive: .*NBCSHIM=on'
    log_has 1 "nothing else is said" '^nbcshim: '
done
preloaded "NBCSHIM=off NBCSHIM_STATS=1: it ends well" 2 "NBCSHIM=off NBCSHIM_STATS=1" "$scratch/nothing"
log_has 0 "a user of NBCSHIM=off knows" '^nbcshim: '
for asked in NBCSHIM_CHECK=1 NBCSHIM_REDUCTION_ORDER=ranks NBCSHIM_BLOCKING=own; do
    preloaded "$asked: it ends well" 2 "$verbose $asked" "$scratch/nothing"
    log_has 1 "active, since the variable asks for blocking collectives" \
        '^nbcshim: active: NBCSHIM_CHECK, NBCSHIM_REDUCTION_ORDER or NBCSHIM_BLOCKING asks for it$'
done

# Rank 0 alone runs this program; that of the others refers to collectives, and calls none.
cat >"$scratch/two" <<END2
#!/bin/sh
[ "\${PMI_RANK:-\$OMPI_COMM_WORLD_RANK}" = 0 ] && exec $scratch/nothing
exec $scratch/statistics none
END2
chmod +x "$scratch/two"
preloaded "a job of two programs ends well" 3 $verbose "$scratch/two"
log_has 1 "active, since another rank references one" '^nbcshim: active: another rank asks for it, or its program '

if command -v python3 >/dev/null; then
    run "NBCSHIM_STATS=FILE.json" "NBCSHIM_STATS=$scratch/stats.json"
    json_says "schema, MPI, ranks, nodes, wall time" "$scratch/stats.json" <<'END2'
assert d['schema'] == 2 and d['ranks'] == 3 and d['nodes'] == 1, d
assert 'MPI' in d['mpi'] and d['nbcshim'] and d['blocking'] in ("the MPI's", "nbcshim's"), d
assert 0.6 < d['wall_seconds'] < 60, d
END2
    json_says "figures over all ranks" "$scratch/stats.json" <<'END2'
rows = {r['collective']: r for r in d['algorithms']}
ring, barrier = rows['allreduce'], rows['barrier']
over = ring['all_ranks']
assert over['started'] == over['completed'] == 3 * ring['calls'] and over['ranks'] == 3, ring
for s in over['seconds_each'], over['waited_seconds'], d['waited_seconds']:
    assert s['minimum'] <= s['mean'] <= s['maximum'], d
# Ranks 0 and 2 wait for rank 1, 20 times 30 ms; where ranks share processors, it waits for these, too.
least, most = over['waited_seconds']['minimum'], over['waited_seconds']['maximum']
assert most > 0.5 and least < 0.7 * most and 0.1 < over['imbalance'] < 2, over
assert abs(over['share_of_wall'] - over['waited_seconds']['mean'] / d['wall_seconds']) < 0.01, d
assert barrier['calls'] == 0 and barrier['all_ranks']['started'] == barrier['all_ranks']['ranks'] == 2, d
END2
fi

# A rank that has no statistics does not keep the others waiting.
cat >"$scratch/some" <<END3
#!/bin/sh
[ "\${PMI_RANK:-\$OMPI_COMM_WORLD_RANK}" = 1 ] || export NBCSHIM_STATS=verbose
exec "$scratch/statistics"
END3
chmod +x "$scratch/some"
preloaded "NBCSHIM_STATS on some ranks: the program ends well" $ranks "" "$scratch/some"
log_has 1 "the table is that of rank 0" '^nbcshim: allreduce +[a-z_0-9]+ +2[0-9] +160[0-9]+ '

finish
