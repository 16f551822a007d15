#!/usr/bin/env bash
# Programs after public reports of faults in MPIs (cures.list), natively and under nbcshim. Run in a build
# tree.
#
#   test/cures/run.sh            each case in one way under nbcshim, all in one program, on 1, 2 and 4 ranks
#   test/cures/run.sh --all      each case natively and in four ways under nbcshim (quickstart soak cures)
#   test/cures/run.sh --native   each case natively, and nothing more: prints "case ranks result"
#   NBC_CURES=REGEX              only the cases whose names match
#
# A case that fails under nbcshim is a failure. Natively it has the result of cures.list; another result is
# said in a comment: what an MPI does by chance, or in another version, is no failure of nbcshim.

. "$(dirname "$0")/../lib.sh"
here=$srcdir/test/cures
seconds=${NBC_CURES_SECONDS:-20} # of a native run; under nbcshim three times as many

ways=(default= on=NBCSHIM=on "own=NBCSHIM=on NBCSHIM_BLOCKING=own" "thread=NBCSHIM=on NBCSHIM_PROGRESS=thread")

compile()
{
    $MPICC -g -O1 -w -DHAVE_CONFIG_H -I. -I"$srcdir/include" -iquote "$here" -iquote "$srcdir/test/mpi/common" \
        -iquote "$srcdir/src" $MPI_CPPFLAGS -Wl,--unresolved-symbols=ignore-in-object-files \
        -o "$scratch/cures" "$here"/*.c "$srcdir/test/mpi/common/util.c" -pthread &&
        { [ "${MPIFC:-no}" = no ] || $MPIFC -g -O1 "$here/ialltoallw.f90" -o "$scratch/fortran_ialltoallw"; }
}

# A case is a program of its own, or a test of the one that has the others.
command_of() # case
{
    if [ -x "$scratch/$1" ]; then
        command=("$scratch/$1")
    else
        command=("$scratch/cures" "--only=$1")
    fi
}

rows() # "case ranks" of the chosen cases
{
    awk -F ' *[|] *' '!/^#/ && NF > 3 && $2 != "-" { print $1, $2 }' "$here/cures.list" | sort -u |
        grep -E "^(${NBC_CURES:-.*}) " | if [ "${MPIFC:-no}" = no ]; then grep -v ^fortran; else cat; fi
}

# What a native run has come to.
native_result() # status
{
    if grep -q ' no MPI_.* in MPI ' "$scratch/log"; then
        echo lacks
    elif [ "$1" = 0 ]; then
        echo right
    elif [ "$1" = 124 ]; then
        echo hangs
    elif grep -qiE 'signal|segmentation|EXIT CODE: (6|11|134|139)' "$scratch/log"; then
        echo crashes
    elif grep -qE '\.c:[0-9]+: [a-z_0-9]+: .* \[cures|^ wrong:' "$scratch/log"; then
        echo wrong
    else
        echo aborts
    fi
}

run_native() # case ranks
{
    local NBC_LIBRARY=
    command_of "$1"
    mpi_command "$2" "" "NBC_TEST_NATIVE=1" "${command[@]}"
    guarded "$seconds" "$scratch/log" "${launch[@]}"
    native_result $?
}

run_shim() # name ranks variables command...
{
    local name=$1 ranks=$2 variables=$3
    shift 3
    mpi_command "$ranks" "$(sanitizer_runtime) $library" "$variables" "$@"
    ends_well "$name" $((seconds * 3))
}

expected() # case ranks: the native result that is recorded for this MPI
{
    awk -F ' *[|] *' -v name="$1" -v ranks="$2" -v mpi="$(mpi_column)" '
        /^# columns/ { sub(/^# columns: */, ""); n = split($0, names, / *[|] */); next }
        /^#/ || $1 != name || $2 != ranks { next }
        { for (i = 1; i <= n; i++) if (names[i] == mpi) print $i; exit }' "$here/cures.list"
}

# The name of the MPI in the head of cures.list, by its version.
mpi_column()
{
    printf '#include <mpi.h>\n%s\n' \
        'have OMPI_MAJOR_VERSION OMPI_MINOR_VERSION MPICH_VERSION I_MPI_VERSION' |
        $MPICC -E $MPI_CPPFLAGS - 2>/dev/null | awk '/^have/ {
            if ($2 ~ /^[0-9]/) print "Open MPI " $2 "." $3
            else if ($NF !~ /^I_MPI_VERSION/) print "Intel MPI"
            else { gsub(/"/, "", $4); split($4, v, "."); print "MPICH " v[1] "." v[2] } }'
}

if ! mpi_has Iallreduce || [ "$SIMULATED" = yes ]; then
    echo "1..0 # SKIP the MPI has no nonblocking collectives"
    exit 0
fi
expect "compiled" compile
[ $failures = 0 ] || finish || exit

case ${1:-} in
--all) ;;
--native)
    while read -r name ranks; do
        echo "$name $ranks $(run_native "$name" "$ranks")"
    done < <(rows)
    exit
    ;;
*)
    for ranks in 1 2 4; do
        run_shim "all cases, $ranks ranks" $ranks NBCSHIM=on "$scratch/cures"
    done
    expect "every case has a row, and every row a case" diff \
        <("$scratch/cures" --list | sort) <(rows | sed '/^fortran/d;s/ .*//' | sort -u)
    expect "doc/cures.md is up to date: test/cures/page" "$here/page" --check
    finish
    exit
    ;;
esac

changed=0
while read -r name ranks; do
    command_of "$name"
    was=$(expected "$name" "$ranks")
    now=$(run_native "$name" "$ranks")
    [ -z "$was" ] || [ "$now" = "$was" ] || changed=$((changed + 1))
    comment "$name, $ranks ranks, natively: $now${was:+ (recorded: $was)}"
    for way in "${ways[@]}"; do
        run_shim "$name, $ranks ranks, ${way%%=*}" "$ranks" "${way#*=}" "${command[@]}"
    done
done < <(rows)
comment "$changed native results are not what is recorded"
finish
