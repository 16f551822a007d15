#!/usr/bin/env bash
# On an MPI that has MPI_Request_get_status_any, _some and _all of MPI-4.1, nbcshim's own take their
# place: below, its requests would look as if nothing was pending. MPI_Buffer_flush and MPI_Buffer_detach
# progress its operations. The MPI is the installed one with these functions added (mpi41.c).
#
# Its header and its library look like those of the ABI of MPI-5: nothing tells the family of the MPI,
# no handle can be converted to Fortran's, the library is libmpi_abi.so.0. Handles and constants remain
# those of the installed MPI.

. "$(dirname "$0")/../lib.sh"
if ! mpi_has Iallreduce; then
    echo "1..0 # SKIP what has the ABI of MPI-5 is no MPI-2.2"
    exit 0
fi
allow_late_sanitizer
here=$(cd "$srcdir/test/mpi41" && pwd)
configure=$(cd "$srcdir" && pwd)/configure
tree=$PWD

newer="-I$here $MPI_CPPFLAGS"
[ "$MPI_FLAVOR" = mpich ] || newer="-DNBC_TEST_NO_CONST $newer"
libs="-L$scratch -Wl,-rpath,$scratch -lmpi_abi $MPI_LIBS"
expect "the MPI is made" \
    $CC -O1 -fPIC -shared $newer "$here/mpi41.c" -o "$scratch/libmpi_abi.so.0" \
    -Wl,-soname,libmpi_abi.so.0 $MPI_LIBS
ln -s libmpi_abi.so.0 "$scratch/libmpi_abi.so"

build()
{
    mkdir "$scratch/build" && cd "$scratch/build" && unset srcdir &&
        CONFIG_SHELL=/bin/sh /bin/sh "$configure" -q --disable-static CFLAGS=-O0 CC="$CC" MPICC="$MPICC" \
            MPIEXEC="$MPIEXEC" MPIFC=no MPI_CPPFLAGS="-DNBC_TEST_ABI $newer" MPI_LIBS="$libs" &&
        grep -q 'define HAVE_MPI_REQUEST_GET_STATUS_ANY 1' config.h &&
        take_core && make -s -j2 $core libnbcshim_abi.la tools/nbcinfo
}

# What knows no MPI, or only the handles of the installed one, need not be compiled again.
take_core()
{
    core=
    [ "$SANITIZE" = no ] || return 0
    core='libnbc_core_la_OBJECTS= libnbcbench_la_OBJECTS='
    mkdir -p .libs && cp "$tree"/.libs/libnbc_core.a "$tree"/.libs/libnbcbench.a .libs &&
        cp "$tree/libnbc_core.la" "$tree/libnbcbench.la" .
}

expect "nbcshim is built for it" build
expect "the program is built" $CC $newer -I"$srcdir/include" \
    -include "$srcdir/include/nbcshim.h" "$here/look.c" -o "$scratch/look" \
    -L"$scratch/build/.libs" -Wl,-rpath,"$scratch/build/.libs" -lnbcshim_abi -Wl,--no-as-needed $libs

mpi_command 2 "" "NBCSHIM_ALGORITHM_ALLREDUCE=ring" "$scratch/look"
ends_well "collectives pending and complete, among other requests; a flush, a detach" 60

# --- the ABI of MPI-5 -----------------------------------------------------------------------------

shim=$scratch/build/.libs/libnbcshim_abi.so
has() # NAME PATTERN COMMAND...
{
    local name=$1 pattern=$2
    shift 2
    "$@" >"$scratch/log" 2>&1
    log_has 1 "$name" "$pattern"
}
has "the SONAME is libnbcshim_abi.so.0" ' libnbcshim_abi\.so\.0$' sh -c "objdump -p $shim | grep SONAME"
has "it needs libmpi_abi.so.0" 'NEEDED +libmpi_abi\.so\.0$' objdump -p "$shim"
has "nbcinfo says that it is built for the ABI" 'the ABI of MPI-5, version 1\.0' \
    "$scratch/build/tools/nbcinfo"

# It depends on libmpi_abi.so.0 alone, which here has most functions by the installed MPI. The linker
# sees a library that has them itself.
build_barrier()
{
    mkdir "$scratch/stub" &&
        $CC -fPIC -DNBC_TEST_ABI $newer -c "$srcdir/test/tools/barrier.c" -o "$scratch/barrier.o" &&
        nm -u "$scratch/barrier.o" |
        sed -nE 's/^ *U (MPI_[A-Za-z_]*)$/int \1(void) { return 0; }/p
            s/^ *U (ompi_[a-z_0-9]*)$/char \1[1];/p' >"$scratch/stub.c" &&
        $CC -shared -fPIC -Wl,-soname,libmpi_abi.so.0 "$scratch/stub.c" -o "$scratch/stub/libmpi_abi.so" &&
        $CC "$scratch/barrier.o" -o "$scratch/barrier" -L"$scratch/stub" -lmpi_abi -Wl,-rpath,"$scratch" \
            -Wl,--allow-shlib-undefined
}
expect "a program that knows nothing of nbcshim is built" build_barrier
mpi_command 2 "" NBCSHIM_STATS=1 "$scratch/barrier"
launch=("$scratch/build/tools/nbcrun" "${launch[@]}")
ends_well "nbcrun runs it with libnbcshim_abi.so" 60
log_has 1 "with nbcshim" '^nbcshim: barrier '
mpi_command 1 "$library" "" "$scratch/barrier"
"${launch[@]}" >"$scratch/log" 2>&1
log_has 1 "a library that is not for the ABI says so" \
    '^nbcshim: .*/libnbcshim\.so.* is built for .*, but the program uses libmpi_abi\.so\.0'
mpi_command 1 "$shim" "" "$PWD/test/mpi/orders.preload"
"${launch[@]}" >"$scratch/log" 2>&1
log_has 1 "one that is for the ABI says that the program is not" \
    '^nbcshim: .*/libnbcshim_abi\.so.* is built for the ABI of MPI-5, but the program uses lib'
finish
