#!/usr/bin/env bash
# find_package(nbcshim) of CMake: the targets put nbcshim before the MPI in whatever order a project
# names them; versions, components and other MPIs are told apart. And MPI_C_COMPILER=nbcc.

. "$(dirname "$0")/../lib.sh"
forget_settings
export LC_ALL=C
unset CPPFLAGS CFLAGS CXXFLAGS FFLAGS LDFLAGS LIBS CC CXX FC MAKEFLAGS MFLAGS MAKELEVEL
if ! command -v cmake >/dev/null; then
    echo "ok 1 - find_package # SKIP no cmake"
    echo "1..1"
    exit
fi
if [ "$SANITIZE" != no ]; then
    result 0 "a sanitized library: programs of CMake are left out"
    finish
    exit
fi

prefix="$scratch/a place"
expect "nbcshim can be installed" ${MAKE:-make} install-libLTLIBRARIES install-includeHEADERS \
    install-pkgincludeHEADERS install-binSCRIPTS install-nodist_fortranHEADERS install-cmakeDATA \
    prefix="$scratch/installed" exec_prefix="$scratch/installed" libdir="$scratch/installed/lib"
mv "$scratch/installed" "$prefix"

cp "$srcdir/test/tools/app.c" "$scratch"
cp "$scratch/app.c" "$scratch/app.cpp"
cp "$srcdir/examples/persistent.f90" "$scratch"

# The heading of a project, and its targets.
cat >"$scratch/orders" <<'END'
add_executable(first app.c)
target_link_libraries(first nbcshim::nbcshim MPI::MPI_C)
add_executable(last app.c)
target_link_libraries(last MPI::MPI_C nbcshim::nbcshim)
add_executable(alone app.c)
target_link_libraries(alone nbcshim::nbcshim)
add_library(inner STATIC app.c)
target_link_libraries(inner PRIVATE MPI::MPI_C nbcshim::nbcshim)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty.c "")
add_executable(outer empty.c)
target_link_libraries(outer MPI::MPI_C inner)
install(TARGETS last DESTINATION bin)
END

project() # name languages lines...
{
    mkdir -p "$scratch/$1"
    cp "$scratch"/app.* "$scratch/persistent.f90" "$scratch/$1"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.17)' "project(app LANGUAGES $2)" "${@:3}" \
        >"$scratch/$1/CMakeLists.txt"
}

configure() # name options...
{
    local name=$1
    shift
    cmake -S "$scratch/$name" -B "$scratch/$name/build" -D CMAKE_PREFIX_PATH="$prefix" \
        -D MPIEXEC_EXECUTABLE=false "$@"
}

build() # name options...
{
    configure "$@" && cmake --build "$scratch/$1/build"
}

runs() # program
{
    before_the_mpi "$1"
    mpi_command 2 "" NBCSHIM_STATS=1 "$scratch/$1"
    ends_well "$1 runs on 2 ranks" 60
    log_has 1 "$1: by nbcshim" '^nbcshim: allreduce '
}

mpi="find_package(MPI REQUIRED COMPONENTS C)"
ours="find_package(nbcshim ${VERSION%.*} REQUIRED)"

project c C "$ours" "$mpi" "$(cat "$scratch/orders")"
expect "a C project builds that names nbcshim and the MPI in each order" build c \
    -D CMAKE_INSTALL_PREFIX="$scratch/c/installed" -D CMAKE_INSTALL_RPATH_USE_LINK_PATH=ON
before_the_mpi c/build/first c/build/alone
runs c/build/outer
expect "it installs" cmake --install "$scratch/c/build"
runs c/installed/bin/last

languages=CXX fortran=
if [ -f "$prefix/lib/fortran/nbcshim.mod" ]; then
    languages="CXX Fortran"
    fortran='add_executable(fortran persistent.f90)
        target_link_libraries(fortran MPI::MPI_Fortran nbcshim::fortran)'
fi
project cxx "$languages" "find_package(nbcshim REQUIRED${fortran:+ COMPONENTS fortran})" \
    "find_package(MPI REQUIRED)" 'add_executable(app app.cpp)' \
    'target_link_libraries(app MPI::MPI_CXX nbcshim::nbcshim)' "$fortran"
expect "a project in $languages builds" build cxx
runs cxx/build/app
[ -z "$fortran" ] || runs cxx/build/fortran

# refused NAME SAYS OPTION...: the project NAME is not configured, and CMake says why.
refused()
{
    local name=$1 says=$2
    shift 2
    ! configure "$name" "$@" >"$scratch/log" 2>&1 && tr -s '\n ' ' ' <"$scratch/log" | grep -q "$says"
    result $? "$name is refused" "$(cat "$scratch/log")"
}

project newer NONE 'find_package(nbcshim 99.0 REQUIRED)'
refused newer "version: $VERSION"
project older NONE 'find_package(nbcshim 0.0.1 REQUIRED)'
refused older "version: $VERSION"
project lacking C 'find_package(nbcshim REQUIRED COMPONENTS fortran)'
refused lacking "no component fortran"

other=mpicc.mpich
[ "$MPI_FLAVOR" != mpich ] || other=mpicc.openmpi
if command -v $other >/dev/null; then
    project other C "$mpi" "$ours"
    refused other "is for the MPI of $MPICC" -D MPI_C_COMPILER="$(command -v $other)"
fi

# nbcc as the MPI's compiler wrapper, for a project that does not refer to nbcshim.
sed -i 's/nbcshim.h/mpi.h/' "$scratch/app.c"
project wrapper C "$mpi" 'add_executable(app app.c)' 'target_link_libraries(app MPI::MPI_C)'
cp -R "$prefix" "$scratch/moved" # CMake reads the flags as words
expect "a project builds with MPI_C_COMPILER=nbcc" build wrapper \
    -D MPI_C_COMPILER="$(printf '%s\n' "$scratch"/moved/bin/nbcc* | head -n 1)"
runs wrapper/build/app
finish
