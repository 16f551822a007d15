#!/usr/bin/env bash
# nbcshim.h alone compiles, as C99, C11 and C++, under the MPI's own mpi.h, also when mpi.h comes
# first, and its declarations agree with those of mpi.h.

. "$(dirname "$0")/../lib.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

compile() # name compiler... : what is on standard input
{
    local name=$1
    shift
    cat >"$scratch/source"
    expect "$name" "$@" -Wall -Wextra -Werror -I"$srcdir/include" $MPI_CPPFLAGS -fsyntax-only \
        "$scratch/source"
}

only='#include <nbcshim.h>
int main(void) { return NBCSHIM_VERSION == 0; }'
both="#include <mpi.h>
$only"
# Using every kind of function that is declared.
use='#include <nbcshim.h>
int use(void *b, MPI_Comm c, MPI_Info i, MPI_Request *r);
int use(void *b, MPI_Comm c, MPI_Info i, MPI_Request *r)
{
    MPI_Count n = 1;
    return MPI_Ibcast(b, 1, MPI_INT, 0, c, r) + MPI_Bcast_init(b, 1, MPI_INT, 0, c, i, r) +
           MPI_Ibcast_c(b, n, MPI_INT, 0, c, r) + MPI_Bcast_init_c(b, n, MPI_INT, 0, c, i, r) +
           PMPI_Ibcast(b, 1, MPI_INT, 0, c, r) + nbcshim_version();
}'

for standard in c99 c11; do
    compile "as $standard" $CC -x c -std=$standard -pedantic <<<"$only"
    compile "as $standard behind mpi.h" $CC -x c -std=$standard -pedantic <<<"$both"
    compile "a program of all four kinds, $standard" $CC -x c -std=$standard <<<"$use"
done

# Open MPI's C++ binding is not ours to judge.
cxx=$(command -v g++ || command -v clang++)
if [ -n "$cxx" ]; then
    skip="-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX"
    for standard in c++11 c++17; do
        compile "as $standard" "$cxx" -x c++ -std=$standard $skip <<<"$only"
        compile "a program of all four kinds, $standard" "$cxx" -x c++ -std=$standard $skip <<<"$use"
    done
fi

finish
