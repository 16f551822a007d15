#!/usr/bin/env bash
# nbcshim.h alone compiles, as C99, C11 and C++, under the MPI's own mpi.h, also when mpi.h comes
# first, and its declarations agree with those of mpi.h.

. "$(dirname "$0")/../lib.sh"

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
           PMPI_Ibcast(b, 1, MPI_INT, 0, c, r) + MPI_Bcast_c(b, n, MPI_INT, 0, c) +
           PMPI_Bcast_init_c(b, n, MPI_INT, 0, c, i, r) +
           MPI_Neighbor_alltoall_c(b, n, MPI_INT, b, n, MPI_INT, c) +
           MPIX_Bcast_init(b, 1, MPI_INT, 0, c, i, r) +
           PMPIX_Neighbor_alltoallw_init(b, 0, 0, 0, b, 0, 0, 0, c, i, r) + nbcshim_version();
}'

claim='#define NBCSHIM_CLAIM_MPI_VERSION
#include <nbcshim.h>
#if MPI_VERSION != 4 || MPI_SUBVERSION != 0
#error
#endif
#if !NBCSHIM_HAVE_NONBLOCKING_COLLECTIVES || !NBCSHIM_HAVE_PERSISTENT_COLLECTIVES || \
    !NBCSHIM_HAVE_NEIGHBORHOOD_COLLECTIVES || !NBCSHIM_HAVE_LARGE_COUNT_COLLECTIVES
#error
#endif
int main(void) { return 0; }'
extension='#include <mpi-ext.h>
'

for standard in c99 c11; do
    compile "as $standard" $CC -x c -std=$standard -pedantic <<<"$only"
    compile "as $standard behind mpi.h" $CC -x c -std=$standard -pedantic <<<"$both"
    compile "a program of all kinds, $standard" $CC -x c -std=$standard <<<"$use"
    compile "NBCSHIM_CLAIM_MPI_VERSION, $standard" $CC -x c -std=$standard <<<"$claim"
done
if $CC $MPI_CPPFLAGS -E -x c - >/dev/null 2>&1 <<<"$only$extension"; then
    behind="#include <mpi.h>
$extension$use"
    before="$use
$extension"
    compile "behind mpi-ext.h" $CC -x c -std=c11 <<<"$behind"
    compile "before mpi-ext.h" $CC -x c -std=c11 <<<"$before"
fi
# configure.ac and the header name one version.
[ "$(echo "#include <nbcshim.h>
NBCSHIM_VERSION_MAJOR NBCSHIM_VERSION_MINOR NBCSHIM_VERSION_PATCH" |
    $CC -E -P -I"$srcdir/include" $MPI_CPPFLAGS - | tail -n 1)" = "${VERSION//./ }" ]
result $? "the header says version $VERSION"


# Open MPI's C++ binding is not ours to judge.
cxx=$(command -v g++ || command -v clang++)
if [ -n "$cxx" ]; then
    skip="-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX"
    for standard in c++11 c++17; do
        compile "as $standard" "$cxx" -x c++ -std=$standard $skip <<<"$only"
        compile "a program of all kinds, $standard" "$cxx" -x c++ -std=$standard $skip <<<"$use"
    done
fi

finish
