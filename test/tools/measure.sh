#!/usr/bin/env bash
# nbcbench and nbctune do what they say; not how fast anything is.

. "$(dirname "$0")/../lib.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# run SECONDS NAME COMMAND...: on two ranks; standard output is in $scratch/out.
run()
{
    local limit=$1 name=$2 status
    shift 2
    mpi_command 2 "" "" "$@"
    guarded "$limit" "$scratch/out" "${launch[@]}"
    status=$?
    result $status "$name"
    [ $status = 0 ] || comment "$(head -c 20000 "$scratch/out")"
}

mkdir "$scratch/pictures"
run 120 "nbcbench" bench/nbcbench -c barrier,bcast,allreduce,neighbor_alltoall -s 8,4096 -n 3 \
    --all-algorithms --json "$scratch/json" --plot "$scratch/pictures"
expect "a line a cell" test "$(grep -cE '^(barrier|bcast|allreduce|neighbor_alltoall) ' "$scratch/out")" = 7
expect "every algorithm" test "$(grep -cE '^    (tree|dissemination|dissemination4) ' "$scratch/out")" = 3
expect "JSON" python3 "$srcdir/test/tools/measure.py" time "$scratch/json"
for picture in bcast allreduce neighbor_alltoall ratio; do
    expect "picture of $picture" grep -q '</svg>' "$scratch/pictures/$picture.svg"
done

# measures NAME OPTIONS...
measures()
{
    local name=$1
    shift
    run 120 "nbcbench -m $name $*" bench/nbcbench -m "$name" -n 3 -j "$scratch/json" "$@"
    expect "rows" python3 "$srcdir/test/tools/measure.py" "$name" "$scratch/json"
}

measures calls -c barrier,allreduce -s 64
measures overlap -c bcast,alltoall -s 4096 -g "$scratch/pictures"
measures overlap -c bcast,alltoall -s 4096 --idle
measures outstanding -g "$scratch/pictures"
for picture in overlap outstanding; do
    expect "picture of $picture" grep -q '</svg>' "$scratch/pictures/$picture.svg"
done

run 240 "nbctune --rules" tools/nbctune --rules
cp "$scratch/out" "$scratch/rules"
expect "a rule for every collective" test "$(grep -v '^#' "$scratch/rules" | cut -d' ' -f1 | sort -u |
    wc -l)" = 22
mpi_command 2 "" "NBCSHIM_TUNING=$scratch/rules" bench/nbcbench -c barrier -n 1
guarded 60 "$scratch/out" "${launch[@]}"
expect "rules that nbcshim takes" test $? = 0
expect "and does not complain of" sh -c "! grep NBCSHIM_TUNING '$scratch/out'"

finish
