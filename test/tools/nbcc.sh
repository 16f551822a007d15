#!/usr/bin/env bash
# nbcc, nbccxx and nbcfort, installed: what nbcc tells, what it compiles and links, and an application's configure with it.

. "$(dirname "$0")/../lib.sh"
export LC_ALL=C
unset CPPFLAGS CFLAGS LDFLAGS LIBS

# --- an installation ------------------------------------------------------------------------------

install()
{
    make install-libLTLIBRARIES install-includeHEADERS install-pkgincludeHEADERS \
        install-binSCRIPTS install-nodist_fortranHEADERS prefix="$scratch/installed"
}

expect "nbcc can be installed" install
mv "$scratch/installed" "$scratch/moved"
nbcc=$scratch/moved/bin/nbcc
include=$scratch/moved/include
lib=$scratch/moved/lib
[ -f "$lib/lib$NBC_NAME.so" ] || lib=$(dirname "$(find "$scratch/moved" -name lib$NBC_NAME.so)")

# tells NAME PATTERN... -- ARGUMENT...: nbcc prints one line that has all patterns, in their order.
tells()
{
    local name=$1 pattern='*' output
    shift
    while [ "$1" != -- ]; do
        pattern="$pattern$1*"
        shift
    done
    shift
    output=$("$nbcc" "$@" 2>&1)
    [[ $output == $pattern ]]
    result $? "$name" "$output"
}

show=-show question=-compile_info answer=-link_info
[ "$MPI_FLAVOR" != openmpi ] || show=--showme question=--showme:compile answer=--showme:link
tells "$show: ours before the MPI's" "-I$include/nbcshim" -l$NBC_NAME a.c -l$NBC_NAME -lmpi -- $show a.c
tells "$show -c: no library" "-I$include/nbcshim" "a.c" -- $show -c a.c
tells "$show alone: all flags" "-I$include" "-L$lib" -l$NBC_NAME -I -lmpi -- $show
tells "$question" "-I$include/nbcshim" -I -- $question
tells "$answer" "-L$lib" -l$NBC_NAME -lmpi -- $answer
tells "--nbcc-version" "$VERSION" -- --nbcc-version
tells "a compiler's own question goes through" "[0-9]" -- -dumpversion
! "$nbcc" $show -c a.c | grep -q -- -l$NBC_NAME
result $? "$show -c: no library of ours"

# --- programs -------------------------------------------------------------------------------------

cat >"$scratch/program.c" <<'END'
#include <mpi.h>
#ifdef TWICE
#include <nbcshim.h>
#include <mpi.h>
#endif
int main(int argc, char **argv)
{
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Finalize();
    return nbcshim_version() != NBCSHIM_VERSION;
}
END

# Nothing but blocking collectives, which not every MPI has.
cat >"$scratch/blocking.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Count one = 1;
    int rank, size, sum = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef NEIGHBORHOODS
    int periodic = 1, got[2];
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Neighbor_allgather(&rank, (int)one, MPI_INT, got, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
    sum = got[0] + got[1] == 2 * (1 - rank) && size == 2 ? 1 : -1;
#else
    MPI_Allreduce_c(&rank, &sum, one, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#endif
    MPI_Finalize();
    return sum != size * (size - 1) / 2;
}
END

run() # program ranks [NAME=value...]
{
    mpi_command "$2" "$(sanitizer_runtime)" "${3:-}" $1
    guarded 60 "$scratch/log" "${launch[@]}" || { cat "$scratch/log"; return 1; }
}

cd "$scratch" || exit 1
build=$OLDPWD
flags="-Wall -Werror=implicit-function-declaration"
expect "compiles and links at once" "$nbcc" $flags -o at-once program.c
expect "compiles" "$nbcc" $flags -c -o program.o program.c
expect "links" "$nbcc" -o apart program.o
expect "preprocesses" bash -c "$nbcc -E program.c | grep -q MPI_Iallreduce_c"
expect "compiles a program that includes all headers twice" "$nbcc" $flags -DTWICE -o twice program.c
expect "links where the program names the MPI's library first" \
    "$nbcc" -o named $MPI_LIBS program.o
cp -R moved "a place"
expect "compiles and links in a place with a blank in its name" \
    "$scratch/a place/bin/nbcc" $flags -o "a place/program" program.c
expect "links with -Wl,--as-needed" "$nbcc" -Wl,--as-needed -o needed program.o
cd "$build" || exit 1
before_the_mpi at-once apart twice named needed
expect "a program built at once runs on 2 ranks" run "$scratch/at-once" 2
expect "one that names the MPI's library first runs on 2 ranks" run "$scratch/named" 2

expect "compiles a program of MPI_Allreduce_c alone" \
    "$nbcc" $flags "$scratch/blocking.c" -o "$scratch/blocking"
expect "which runs on 2 ranks" run "$scratch/blocking" 2
expect "compiles a program of MPI_Neighbor_allgather alone" \
    "$nbcc" $flags -DNEIGHBORHOODS "$scratch/blocking.c" -o "$scratch/blocking"
expect "which runs on 2 ranks" run "$scratch/blocking" 2
expect "compiles examples/jacobi.c as its head says" \
    "$nbcc" -O1 "$srcdir/examples/jacobi.c" -o "$scratch/jacobi" -lm
expect "which runs on 2 ranks" run "$scratch/jacobi 48 60" 2

# --- C++ and Fortran ------------------------------------------------------------------------------

cat >"$scratch/program.cpp" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Request request;
    int one = 1, sum = 0, size;
#ifdef OLD_BINDINGS
    MPI::Init(argc, argv);
    size = MPI::COMM_WORLD.Get_size();
    MPI::COMM_WORLD.Barrier();
#else
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#endif
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
#ifdef OLD_BINDINGS
    MPI::Request(request).Wait();
#else
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    MPI_Request_free(&request);
    MPI_Finalize();
    return sum != size;
}
END

installed() # the script's name, to which configure may have added the MPI's
{
    printf '%s\n' "$scratch/moved/bin/$1" "$scratch/moved/bin/$1".* | while read -r file; do
        [ ! -x "$file" ] || echo "$file"
    done | head -n 1
}

nbccxx=$(installed nbccxx)
nbcfort=$(installed nbcfort)
[ "$MPIFC" != no ] || nbcfort= # it says that nbcshim was built without Fortran
for script in "$nbcc" "$nbccxx" $nbcfort; do
    name=$(basename "$script")
    output=$("$script" --help)
    [[ $output == "Usage: ${name%%.*} ARGUMENT"* && $output == *"--${name%%.*}-version"* ]]
    result $? "$name --help is its own"
    expect "$name tells its version" test "$("$script" --${name%%.*}-version)" = "${name%%.*} (nbcshim) $VERSION"
done

mpicxx=$(sed -n "s/^nbccxx) mpicc='\([^']*\)'.*/\1/p" "$nbccxx")
if command -v "$mpicxx" >/dev/null; then
    expect "nbccxx compiles and links a C++ program" \
        "$nbccxx" -Wall -o "$scratch/cpp" "$scratch/program.cpp"
    before_the_mpi cpp
    expect "which runs on 2 ranks" run "$scratch/cpp" 2
fi

# Exceptions that leave functions of MPI (exceptions.cc). MPICH keeps its lock then: no progress thread there.
throws() # WHICH [NAME=value...]
{
    expect "exceptions of $1: the program runs on 2 ranks" run "$scratch/exceptions $1" 2 "${2:-}"
    # The lines of two ranks may come one in the other.
    expect "with right results" test "$(grep -o right "$scratch/log" | wc -l)" = 2
}
if command -v "$mpicxx" >/dev/null; then
    expect "exceptions.cc compiles" "$nbccxx" -o "$scratch/exceptions" "$srcdir/test/tools/exceptions.cc"
    throws files
    throws communicators
    threaded=
    [ "$MPI_FLAVOR" != openmpi ] || threaded=NBCSHIM_PROGRESS=thread
    throws duplicates "$threaded"
    throws arrays 'NBCSHIM_HOOK=off NBCSHIM_STATS=1'
    grep -Eq '^nbcshim: scan .* ([5-9][0-9]|100)%$' "$scratch/log"
    result $? "and the time between calls is that of the program"
fi
# Open MPI 5 has them no more.
has_old_bindings()
{
    printf '#include <mpi.h>\nint main() { MPI::Init(); }\n' | "$mpicxx" -fsyntax-only -x c++ - 2>/dev/null
}
if [ "$MPI_FLAVOR" = openmpi ] && has_old_bindings; then
    expect "nbccxx compiles a program of the old C++ bindings" \
        "$nbccxx" -Wall -DOLD_BINDINGS -o "$scratch/old" "$scratch/program.cpp"
    before_the_mpi old
    expect "which runs on 2 ranks" run "$scratch/old" 2
fi
if [ -f "$lib/fortran/nbcshim_f08.mod" ]; then
    expect "nbcfort compiles and links examples/persistent.f90" \
        "$nbcfort" -o "$scratch/fortran" "$srcdir/examples/persistent.f90"
    before_the_mpi fortran
    expect "which runs on 2 ranks" run "$scratch/fortran" 2
fi

# --- an application's configure -------------------------------------------------------------------

# A configure runs what it has linked, which a library with a sanitizer in it does not allow. Where the MPI lacks
# nothing that it looks for, the soak has it.
if mpi_has Allreduce_init && [ -z "${NBC_SOAK:-}" ]; then
    comment "examples/autoconf is left to an MPI without persistent collectives, or to the soak"
elif command -v autoconf >/dev/null && [ "$SANITIZE" = no ]; then
    mkdir "$scratch/app"
    cp "$srcdir"/examples/autoconf/* "$scratch/app"
    application() # CC=compiler
    (
        cd "$scratch/app" && { [ -x configure ] || autoreconf -f -i; } && ./configure "$1" && make clean all
    )
    expect "examples/autoconf builds with CC=nbcc" application CC="$nbcc"
    for name in MPI_IALLREDUCE MPI_ALLREDUCE_INIT MPI_NEIGHBOR_ALLTOALLW_INIT MPI_BCAST_C; do
        expect "its configure finds $name" grep -q "^#define HAVE_$name 1" "$scratch/app/config.h"
    done
    grep -q '^#define HAVE_DECL_MPI_ALLREDUCE_INIT 1' "$scratch/app/config.h"
    result $? "and the declaration of MPI_Allreduce_init in <mpi.h>"
    expect "it runs on 3 ranks" run "$scratch/app/residual" 3
    expect "with persistent collectives" grep -q '^persistent: 55$' "$scratch/log"
    if ! mpi_has Allreduce_init; then
        expect "it builds with the MPI's wrapper too" application CC="$MPICC"
        expect "and runs on 3 ranks" run "$scratch/app/residual" 3
        expect "but without persistent collectives, which the MPI lacks" grep -q '^blocking: 55$' "$scratch/log"
    fi
else
    comment "no autoconf, or a sanitized library: examples/autoconf is left out"
fi
finish
