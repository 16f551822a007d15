#!/usr/bin/env bash
# NBCSHIM_TRACE and the file of NBCSHIM_STATS are JSON, and what they say is what the program of
# traced_run.c does.

. "$(dirname "$0")/../lib.sh"

if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP no python3"
    exit 0
fi

compiled traced_run
# Of programs that call what an MPI may lack.
linked="-I$srcdir/include -include nbcshim/mpi.h -Wl,--no-as-needed $library"

# One that works, and shows what is in the files that it is given.
mpi_program says <<'END'
char line[80] = "";
int rank;
MPI_Request r;
MPI_Comm_rank(MPI_COMM_WORLD, &rank);
MPI_Ibarrier(MPI_COMM_WORLD, &r);
MPI_Wait(&r, MPI_STATUS_IGNORE);
if (rank == 0)
    fprintf(stderr, "works\n");
for (int i = 1; rank == 0 && i < argc; i++) {
    FILE *f = fopen(argv[i], "r");
    if (f && fgets(line, sizeof line, f))
        fprintf(stderr, "has: %s", line);
    else
        fprintf(stderr, f ? "is empty\n" : "is not there\n");
}
END

run() # NAME VARIABLES
{
    preloaded "$1: the program ends well" 4 \
        "NBCSHIM_ALGORITHM_ALLREDUCE=ring NBCSHIM_ALGORITHM_BARRIER=dissemination $2" "$scratch/traced_run"
}

for progress in calls thread; do
    run "NBCSHIM_TRACE, progress by $progress" \
        "NBCSHIM_PROGRESS=$progress NBCSHIM_TRACE=$scratch/trace.$progress"
    expect "the trace with progress by $progress is right" \
        python3 "$srcdir/test/tools/trace.py" "$scratch/trace.$progress" 4
done

run "a trace in which not all ranks have all" "NBCSHIM_TRACE=$scratch/cut NBCSHIM_TEST=trace_events=333"
expect "each arrow has both ends, in slices" python3 "$srcdir/test/tools/trace.py" "$scratch/cut" 4 arrows

run "a trace that gets full" "NBCSHIM_TRACE=$scratch/full NBCSHIM_TEST=trace_events=50"
json_says "it has as many events as it may, and counts the others" "$scratch/full" <<'END'
for name in (e['args'] for e in d['traceEvents'] if e['name'] == 'process_name'):
    assert name['events'] == 50 and name['dropped'] > 400, name
END

mpi_program copied <<'END'
int mine[100] = {1}, all[400];
MPI_Request r;
MPI_Iallgather(mine, 100, MPI_INT, all, 100, MPI_INT, MPI_COMM_WORLD, &r);
MPI_Wait(&r, MPI_STATUS_IGNORE);
END
preloaded "copies: the program ends well" 4 "NBCSHIM_ALGORITHM_ALLGATHER=ring NBCSHIM_TRACE=$scratch/copies" \
    "$scratch/copied"
json_says "each rank copies its own block" "$scratch/copies" <<'END'
copies = [e for e in d['traceEvents'] if e['name'] == 'copy']
assert sorted(e['pid'] for e in copies) == [0, 1, 2, 3], copies
assert all(e['args']['bytes'] == 400 for e in copies), copies
END

# Files that cannot be written: reported once, at init, and the job goes on without them.
mkdir "$scratch/directory.json"
for name in "$scratch/nothing/there.json" "$scratch/directory.json"; do
    for variable in NBCSHIM_TRACE NBCSHIM_STATS; do
        why="No such file or directory"
        [ -d "$name" ] && why="Is a directory"
        preloaded "$variable=$name: the program ends well" 2 "$variable=$name" "$scratch/says"
        log_has 1 "a line, with the reason" \
            "^nbcshim: $variable=$name ignored: cannot write the file: $why\$"
        log_has 1 "no other" '^nbcshim:'
        expect "before the program does anything" awk '/^nbcshim:/ { said = 1 }
            /^works/ { exit !said }' "$scratch/log"
    done
done
echo precious >"$scratch/kept.json"
preloaded "files that can be written" 2 "NBCSHIM_STATS=$scratch/kept.json NBCSHIM_TRACE=$scratch/new" \
    "$scratch/says" "$scratch/kept.json" "$scratch/new"
log_has 0 "nothing is said" '^nbcshim:'
log_has 1 "until the end a file is as it was" '^has: precious$'
log_has 1 "and is not there if it was not" '^is not there$'
expect "then they are written" grep -q traceEvents "$scratch/new"
expect "both" grep -q histogram "$scratch/kept.json"

run "NBCSHIM_STATS" "NBCSHIM_STATS=$scratch/stats.json"
json_says "NBCSHIM_STATS: calls, times, overlap" "$scratch/stats.json" <<'END'
d = d['algorithms']
rows = {(r['collective'], r['algorithm']): r for r in d}
for r in d:
    assert r['completed'] == r['calls'] == sum(r['histogram_ns'].values()), r
    assert all(int(c) & (int(c) - 1) == 0 for c in r['histogram_ns']), r
ring = rows['allreduce', 'ring']
assert ring['calls'] == 40 and ring['bytes'] == 40 * 4096 * 8, ring # not those of nbcshim
[barrier] = [r for r in d if r['collective'] == 'barrier']
assert barrier['seconds'] > 0.15 and barrier['overlap'] < 0.3, barrier
[bcast] = [r for r in d if r['collective'] == 'bcast']
# Rank 0 is the root: its part ends at once where the messages are sent eagerly, or, since nothing is
# polled meanwhile, when it has computed.
assert bcast['overlap'] > 0.8, bcast
END

mpi_program restarted $linked <<'END'
int in[64] = {0}, out[64], many[4096] = {0}, all[4096];
MPI_Request r[2];
MPI_Allreduce_init(in, out, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
MPI_Allreduce_init(many, all, 4096, MPI_INT, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL, &r[1]);
for (int i = 0; i < 3; i++) {
    MPI_Start(&r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}
MPI_Startall(2, r);
MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
MPI_Request_free(&r[0]);
MPI_Request_free(&r[1]);
END
preloaded "it ends well" 2 "NBCSHIM_STATS=$scratch/restarted.json" "$scratch/restarted"
json_says "NBCSHIM_STATS counts the starts of persistent operations" "$scratch/restarted.json" <<'END'
d = d['algorithms']
rows = [r for r in d if r['collective'] == 'allreduce' and r['bytes'] != 0]
assert sum(r['calls'] for r in rows) == 5, d
assert sum(r['bytes'] for r in rows) == 4 * 256 + 16384, d
for r in d:
    assert r['completed'] == r['calls'], r
END

# An init call whose ranks tell one another their edges.
mpi_program edges $linked <<'END'
int to[] = {0, 1, 2, 3}, in[4] = {0}, out[4];
MPI_Comm graph;
MPI_Request r;
MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, to, MPI_UNWEIGHTED, 4, to, MPI_UNWEIGHTED,
                               MPI_INFO_NULL, 0, &graph);
MPI_Neighbor_alltoall_init(in, 1, MPI_INT, out, 1, MPI_INT, graph, MPI_INFO_NULL, &r);
MPI_Start(&r);
MPI_Wait(&r, MPI_STATUS_IGNORE);
MPI_Request_free(&r);
MPI_Comm_free(&graph);
END
preloaded "a neighborhood: the program ends well" 4 \
    "NBCSHIM_TRACE=$scratch/edges.json NBCSHIM_TEST=nodes=2 NBCSHIM_ALGORITHM_NEIGHBOR_ALLTOALL=locality" "$scratch/edges"
json_says "operations of its init call have names" "$scratch/edges.json" <<'END'
names = [e['name'] for e in d['traceEvents']]
assert names.count('neighbor_alltoall:locality') >= 4, names
assert names.count('neighbor_allgather:linear') >= 4, names
END

# More pairs of ranks and tags than the table of messages has room for at first, while a persistent
# operation is started before and after.
mpi_program channels $linked <<'END'
enum { OPERATIONS = 700 };
static int all[OPERATIONS][2], sum;
int mine = 1;
MPI_Request again, r[OPERATIONS];
MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &again);
for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < 5; i++) {
        MPI_Start(&again);
        MPI_Wait(&again, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < OPERATIONS; i++)
        MPI_Iallgather(&mine, 1, MPI_INT, all[i], 1, MPI_INT, MPI_COMM_WORLD, &r[i]);
    MPI_Waitall(OPERATIONS, r, MPI_STATUSES_IGNORE);
}
MPI_Request_free(&again);
END
preloaded "many messages: the program ends well" 2 "NBCSHIM_TRACE=$scratch/channels.json" "$scratch/channels"
json_says "each of them is told from the others" "$scratch/channels.json" <<'END'
sent, received = ([e['id'] for e in d['traceEvents'] if e['ph'] == end] for end in 'sf')
assert len(sent) >= 2 * 2 * (5 + 700), len(sent)
assert len(set(sent)) == len(sent) and sorted(sent) == sorted(received), (len(set(sent)), len(received))
END

# Between two groups, where the other ranks of the root's group do not know the bytes. With an argument, the
# directory of the trace is gone when the trace is written.
mpi_program between $linked <<'END'
int rank, data = 5;
MPI_Comm half, between;
MPI_Request r;
MPI_Comm_rank(MPI_COMM_WORLD, &rank);
MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &half);
MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0, 3, &between);
MPI_Ibcast(&data, 1, MPI_INT, rank == 0 ? MPI_ROOT : 0, between, &r);
MPI_Wait(&r, MPI_STATUS_IGNORE);
MPI_Comm_free(&between);
MPI_Comm_free(&half);
if (rank == 0 && argc > 1 && rmdir(argv[1]) != 0)
    return 1;
END
preloaded "two groups: the program ends well" 3 "NBCSHIM_TRACE=$scratch/between.json" "$scratch/between"
json_says "the bytes of the bcast are not known" "$scratch/between.json" <<'END'
found = [e['args'] for e in d['traceEvents'] if e['name'].startswith('bcast:')]
assert len({a['operation'] for a in found if a['bytes'] is None}) == 3, found
END
mkdir "$scratch/gone"
preloaded "the directory of the trace is gone: the program ends well" 3 "NBCSHIM_TRACE=$scratch/gone/trace.json" \
    "$scratch/between" "$scratch/gone"
log_has 1 "which is told of" "^nbcshim: NBCSHIM_TRACE: cannot write $scratch/gone/trace.json: No such file or directory\$"

run "NBCSHIM_STATS and NBCSHIM_CHECK" "NBCSHIM_STATS=$scratch/stats.json NBCSHIM_CHECK=1"
json_says "NBCSHIM_STATS does not count what checks take" "$scratch/stats.json" <<'END'
[ring] = [r for r in d['algorithms'] if r['collective'] == 'allreduce']
assert ring['calls'] == ring['completed'] == 40, ring
END

run "NBCSHIM_STATS=1" NBCSHIM_STATS=1
log_has 1 "NBCSHIM_STATS=1: a table" '^nbcshim: allreduce +ring +40 +1310720 +[0-9.]+ +[0-9]+%'

if [ "$MPI_FLAVOR" = openmpi ]; then # Debian's MPICH cannot spawn
    preloaded "jobs that a job starts end well" 2  \
        "NBCSHIM_TRACE=$scratch/spawn NBCSHIM_STATS=$scratch/spawn.json" "$PWD/test/mpi/dynamic.preload"
    expect "each has a trace and statistics of its own" python3 -c "import glob, json
files = glob.glob('$scratch/spawn*')
traces = [f for f in files if 'json' not in f]
assert len(traces) > 3 and len(files) == 2 * len(traces), files
for f in files:
    json.load(open(f))"
fi

if mpi_has Session_init; then
    preloaded "a program of sessions alone ends well" 2 "NBCSHIM_TRACE=$scratch/none" "$PWD/test/mpi/sessions.preload"
    log_has 1 "which has no trace, as it is told" '^nbcshim: NBCSHIM_TRACE ignored'
fi

finish
