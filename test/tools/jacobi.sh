#!/usr/bin/env bash
# examples/jacobi.c as its head says: it links with the library, also where the MPI lacks persistent
# collectives, and its answer does not depend on the number of ranks.

. "$(dirname "$0")/../lib.sh"

compile() # flags...
{
    $CC -std=gnu11 -I"$srcdir/include" $MPI_CPPFLAGS "$srcdir/examples/jacobi.c" \
        -o "$scratch/jacobi" "$@" $MPI_LIBS -lm
}

answer() # ranks
{
    mpi_command "$1" "$(sanitizer_runtime)" "" "$scratch/jacobi" 48 60
    guarded 60 "$scratch/log.$1" "${launch[@]}" &&
        grep -o 'change of the last one [0-9.e+-]*, falling' "$scratch/log.$1" >"$scratch/answer.$1"
}

if ! mpi_has Allreduce_init; then
    ! compile 2>"$scratch/link" && grep -q MPI_Allreduce_init "$scratch/link"
    result $? "without the library jacobi does not link on Open MPI"
fi
expect "jacobi links with the library" compile -L"$PWD/.libs" -l$NBC_NAME -Wl,-rpath,"$PWD/.libs"
expect "jacobi converges on 1 rank" answer 1
for ranks in 2 4; do
    expect "jacobi converges on $ranks ranks" answer $ranks
    expect "and to the same on $ranks ranks as on one" \
        cmp "$scratch/answer.1" "$scratch/answer.$ranks"
done
finish
