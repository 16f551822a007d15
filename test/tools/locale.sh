#!/usr/bin/env bash
# A program that has set the locale of its user: what nbcshim writes is JSON all the same, and names
# are what they are where they have letters with other small ones (Turkish: I, i).

. "$(dirname "$0")/../lib.sh"

turkish=tr_TR
[ "$MPI_FLAVOR" = openmpi ] || turkish= # MPICH's UCX cannot be initialized in that locale
for locale in de_DE $turkish; do
    if ! command -v python3 >/dev/null ||
        ! localedef -i $locale -f UTF-8 --no-archive "$scratch/$locale.UTF-8" 2>/dev/null; then
        echo "1..0 # SKIP no python3, or no locales to make one of"
        exit 0
    fi
done

compiled barrier

# run LOCALE VARIABLES
run()
{
    preloaded "$1: the program ends well" 2 "LOCPATH=$scratch LC_ALL=$1.UTF-8 $2" "$scratch/barrier" locale
}

run de_DE "NBCSHIM_TRACE=$scratch/trace NBCSHIM_STATS=$scratch/stats.json"
json_says "de_DE: the trace is JSON" "$scratch/trace" <<'END'
assert all(e['dur'] >= 0 for e in d['traceEvents'] if e['ph'] == 'X')
END
json_says "de_DE: the statistics are JSON" "$scratch/stats.json" <<'END'
[barrier] = d['algorithms']
assert 0 < barrier['seconds'] < 60 and 0 <= barrier['overlap'] <= 1, barrier
END

if [ "$turkish" ]; then
    run tr_TR "NBCSHIM_STATS=1 NBCSHIM_ALGORITHM_NEIGHBOR_ALLTOALL=linear"
    log_has 1 "tr_TR: nbcshim does not stand aside" '^nbcshim: barrier '
    log_has 0 "tr_TR: the name of a collective is known" ' ignored: '
fi

finish
