#!/usr/bin/env bash
# On an MPI that has MPI_Request_get_status_any, _some and _all of MPI-4.1, nbcshim's own take their
# place: below, its requests would look as if nothing was pending. MPI_Buffer_flush progresses its
# operations. The MPI is the installed one with these functions added (mpi41.c).

. "$(dirname "$0")/../lib.sh"
here=$(cd "$srcdir/test/mpi41" && pwd)
configure=$(cd "$srcdir" && pwd)/configure

newer="-I$here $MPI_CPPFLAGS"
libs="-L$scratch -Wl,-rpath,$scratch -lmpi41 $MPI_LIBS"
expect "the MPI is made" \
    $CC -O1 -fPIC -shared $newer "$here/mpi41.c" -o "$scratch/libmpi41.so" $MPI_LIBS

build()
{
    mkdir "$scratch/build" && cd "$scratch/build" &&
        "$configure" -q --disable-static CFLAGS=-O0 CC="$CC" MPICC="$MPICC" \
            MPIEXEC="$MPIEXEC" MPI_CPPFLAGS="$newer" MPI_LIBS="$libs" &&
        grep -q 'define HAVE_MPI_REQUEST_GET_STATUS_ANY 1' config.h && make -s -j2 libnbcshim.la
}

expect "nbcshim is built for it" build
expect "the program is built" $CC $newer -I"$srcdir/include" \
    -include "$srcdir/include/nbcshim.h" "$here/look.c" -o "$scratch/look" \
    -L"$scratch/build/.libs" -Wl,-rpath,"$scratch/build/.libs" -lnbcshim $libs

mpi_command 2 "" "NBCSHIM_ALGORITHM_ALLREDUCE=ring" "$scratch/look"
ends_well "collectives pending and complete, among other requests; a flush" 60
finish
