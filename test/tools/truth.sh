#!/usr/bin/env bash
# What statistics and comparison say of programs of which the truth is known (truth.c): the overlap within
# 5 points.

. "$(dirname "$0")/../lib.sh"
forget_settings

compiled truth

run() # NAME VARIABLES ARGUMENT
{
    rm -f "$scratch/overlap"
    preloaded "$1: the program ends well" 2 "NBCSHIM_STATS=1 $2" "$scratch/truth" "$3" "$scratch/overlap"
}

# Whether the overlap of the allreduce of the program is the true one, and no operation is counted but those of the
# program.
overlap_is_true()
{
    grep "^nbcshim: allreduce" "$scratch/log"
    awk -v truth="$(tee /dev/stderr <"$scratch/overlap")" '/^nbcshim: allreduce / { n++; calls += $4
        good = $NF ~ /%$/ && $NF - truth <= 5 && truth - $NF <= 5 }
        END { exit !(n == 1 && calls == 10 && good) }' "$scratch/log"
}

for progress in calls thread; do
    for share in 0 50 100; do
        run "$share percent, $progress" NBCSHIM_PROGRESS=$progress $share
        expect "$share percent, $progress: the overlap is true" overlap_is_true
    done
done
run "a receive meanwhile" "" messages
expect "a receive meanwhile: no time of it is overlap" overlap_is_true
run "blocking calls" "NBCSHIM=on NBCSHIM_BLOCKING=own" blocking
log_has 1 "blocking calls: no overlap" '^nbcshim: allreduce +[a-z_0-9]+ +10 +40 +[0-9.]+ +-$'

if mpi_has Iallreduce && command -v python3 >/dev/null; then
    for share in 0 50 100; do
        rm -f "$scratch/overlap"
        mpi_command 2 "" "" "$scratch/truth" $share "$scratch/overlap" all
        expect "$share percent: the program is compared" guarded 60 "$scratch/log" tools/nbcrun \
            --library="$library" --compare --runs=1 --json="$scratch/json" "${launch[@]}"
        json_says "$share percent: what is hidden is true" "$scratch/json" <<END2
truth = [float(line) / 100 for line in open('$scratch/overlap')]
hidden = [d[way]['hidden'] for way in ('without', 'nbcshim')]
assert len(truth) == 2 and all(abs(t - h) < 0.05 for t, h in zip(truth, hidden)), (truth, hidden)
END2
    done
fi

finish
