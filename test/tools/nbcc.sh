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
    set -- $? "$output"
    result "$1" "$name"
    [ "$1" = 0 ] || comment "$2"
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

# The first library of a program that defines MPI functions is ours.
ours_is_first()
{
    objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }' | grep -E 'nbcshim|mpi' | head -n 1 |
        grep nbcshim
}

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
for program in at-once apart twice named needed; do
    expect "$program: nbcshim comes before the MPI" ours_is_first "$scratch/$program"
done
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
    [ "$("$script" --${name%%.*}-version)" = "${name%%.*} (nbcshim) $VERSION" ]
    result $? "$name tells its version"
done

mpicxx=$(sed -n "s/^nbccxx) mpicc='\([^']*\)'.*/\1/p" "$nbccxx")
if command -v "$mpicxx" >/dev/null; then
    expect "nbccxx compiles and links a C++ program" \
        "$nbccxx" -Wall -o "$scratch/cpp" "$scratch/program.cpp"
    expect "nbcshim comes before the MPI" ours_is_first "$scratch/cpp"
    expect "which runs on 2 ranks" run "$scratch/cpp" 2
fi
# cpp_prints NAME LINE [NAME=value...]: $scratch/NAME.cpp compiles, and each of 2 ranks prints the line.
cpp_prints()
{
    command -v "$mpicxx" >/dev/null || return
    expect "$1.cpp compiles" "$nbccxx" -o "$scratch/$1" "$scratch/$1.cpp"
    expect "it runs on 2 ranks" run "$scratch/$1" 2 "${3:-}"
    # The lines of two ranks may come one in the other.
    expect "with right results" test "$(grep -o "$2" "$scratch/log" | wc -l)" = 2
}

# An exception leaves a call on files, while a request is pending.
cat >"$scratch/thrown.cpp" <<'END'
#include <mpi.h>
#include <cstdio>
static void raise(MPI_File *, int *error, ...)
{
    throw *error;
}
int main(int argc, char **argv)
{
    int one = 1, sum[2] = {-1, -1}, size, caught = 0;
    MPI_Errhandler handler;
    MPI_File file;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File_create_errhandler(raise, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    for (int i = 0; i < 2; i++) {
        MPI_Iallreduce(&one, &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        try {
            MPI_File_open(MPI_COMM_SELF, "/nothing/there", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
        } catch (int) {
            caught++;
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    // In one piece: puts would write twice on MPICH's unbuffered output.
    if (sum[0] == size && sum[1] == size)
        std::printf("caught %d\n", caught);
    MPI_Finalize();
}
END
cpp_prints thrown "caught 2"
# One leaves MPI_Comm_free: MPI_COMM_WORLD cannot be freed, nor, on an MPI that heeds what a callback
# returns, the other communicator.
cat >"$scratch/refused.cpp" <<'END'
#include <mpi.h>
#include <cstdio>
#ifdef OPEN_MPI
enum { LEVEL = MPI_THREAD_MULTIPLE };
#else
enum { LEVEL = MPI_THREAD_SINGLE }; // MPICH keeps its lock when an exception leaves it
#endif
static void raise(MPI_Comm *, int *error, ...)
{
    throw *error;
}
static int refuse(MPI_Comm, int, void *, void *refusals)
{
    return (*static_cast<int *>(refusals))++ ? MPI_SUCCESS : MPI_ERR_OTHER;
}
static int try_to_free(MPI_Comm comm)
{
    int one = 1, sum = -1;
    MPI_Comm handle = comm;
    MPI_Request request;
    try {
        MPI_Comm_free(&handle);
    } catch (int) {
    }
    if (handle == MPI_COMM_NULL)
        comm = MPI_COMM_WORLD;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return sum;
}
int main(int argc, char **argv)
{
    int level, size, keyval, refusals = 0;
    MPI_Comm world = MPI_COMM_WORLD, comm;
    MPI_Errhandler handler;
    MPI_Init_thread(&argc, &argv, LEVEL, &level);
    MPI_Comm_size(world, &size);
    MPI_Comm_create_errhandler(raise, &handler);
    MPI_Comm_set_errhandler(world, handler);
    MPI_Comm_dup(world, &comm);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &keyval, &refusals);
    MPI_Comm_set_attr(comm, keyval, NULL);
    bool right = try_to_free(world) == size && try_to_free(comm) == size;
    MPI_Finalize();
    if (right)
        std::printf("right\n");
}
END
cpp_prints refused right
# One leaves MPI_Testall, MPI_Sendrecv and MPI_Startall: the entries of arrays keep their values, and
# requests of nbcshim among them can be completed and started. The time between calls is not counted as in MPI.
cat >"$scratch/arrays.cpp" <<'END'
#include <mpi.h>
#include <cstdio>
#include <unistd.h>
static int query(void *, MPI_Status *)
{
    throw 1;
}
static int nothing(void *)
{
    return MPI_SUCCESS;
}
static int cancel(void *, int)
{
    return MPI_SUCCESS;
}
static void raise(MPI_Comm *, int *error, ...)
{
    throw *error;
}
static bool test_all(int rank) // rank 1 takes part when rank 0 has tested
{
    int flag = 0;
    MPI_Request request[2], pending;
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &pending);
    request[0] = pending;
    MPI_Grequest_start(query, nothing, cancel, NULL, &request[1]);
    MPI_Grequest_complete(request[1]);
    try {
        if (rank == 0)
            MPI_Testall(2, request, &flag, MPI_STATUSES_IGNORE);
    } catch (int) {
    }
    bool kept = request[0] == pending;
    if (rank == 0)
        MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    return kept;
}
static bool sendrecv(int rank) // to a wrong rank: the next message does not go to its receive
{
    int one = 1, wrong = -1, right = -1;
    MPI_Request pending, request;
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &pending);
    try {
        if (rank == 0)
            MPI_Sendrecv(&one, 1, MPI_INT, 99, 0, &wrong, 1, MPI_INT, 0, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    } catch (int) {
    }
    MPI_Isend(&one, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);
    if (rank == 0)
        MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    if (wrong == -1)
        MPI_Recv(&right, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return right == one;
}
static bool start_all(void)
{
    int caught = 0;
    MPI_Request request[3], active;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request[0]);
    MPI_Send_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request[1]);
    MPI_Recv_init(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF, &request[2]);
    MPI_Start(&request[2]);
    active = request[2];
    try {
        MPI_Startall(3, request);
    } catch (int) {
        caught++;
    }
    MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF);
    bool kept = request[1] != MPI_REQUEST_NULL && request[2] == active;
    MPI_Wait(&active, MPI_STATUS_IGNORE);
    try {
        MPI_Start(&request[0]);
    } catch (int) {
        caught++;
    }
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    return kept && caught == 1;
}
int main(int argc, char **argv)
{
    int rank;
    MPI_Errhandler handler;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_errhandler(raise, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    bool tested = test_all(rank), sent = sendrecv(rank), started = start_all();
    MPI_Iscan(&rank, &argc, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    usleep(200000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (tested && sent && started)
        std::printf("right\n");
    MPI_Finalize();
}
END
cpp_prints arrays right 'NBCSHIM_HOOK=off NBCSHIM_STATS=1'
if command -v "$mpicxx" >/dev/null; then
    grep -Eq '^nbcshim: scan .* ([5-9][0-9]|100)%$' "$scratch/log"
    result $? "and the time between calls is that of the program"
fi
# One leaves MPI_Comm_idup and MPI_Comm_dup: the progress thread goes on. (MPICH keeps its lock then: no thread there.)
cat >"$scratch/duplicates.cpp" <<'END'
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
static void raise(MPI_Comm *, int *error, ...)
{
    throw *error;
}
static int refuse(MPI_Comm, int, void *, void *, void *, int *)
{
    return MPI_ERR_OTHER;
}
static char block[1 << 20], blocks[2 << 20];
int main(int argc, char **argv)
{
    enum { TIMES = 3 };
    int rank, keyval, caught = 0;
    MPI_Comm comm, copy;
    MPI_Errhandler handler;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(raise, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, NULL);
    for (int i = 0; i < 2 * TIMES; i++) {
        try {
            if (i < TIMES)
                MPI_Comm_idup(comm, &copy, &request);
            else
                MPI_Comm_dup(comm, &copy);
        } catch (int) {
            caught++;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    MPI_Igather(block, sizeof block, MPI_CHAR, blocks, sizeof block, MPI_CHAR, 1, MPI_COMM_WORLD,
                &request);
    if (rank == 1 && getenv("NBCSHIM_PROGRESS"))
        sleep(3);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    double seconds = MPI_Wtime() - begin;
    MPI_Comm_delete_attr(comm, keyval);
    MPI_Ibarrier(comm, &request);
    MPI_Comm_disconnect(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    std::printf("caught %d, %s\n", caught, rank == 0 && seconds > 2 ? "late" : "in time");
    MPI_Finalize();
}
END
threaded=
[ "$MPI_FLAVOR" != openmpi ] || threaded=NBCSHIM_PROGRESS=thread
cpp_prints duplicates "caught 6, in time" "$threaded"
if [ "$MPI_FLAVOR" = openmpi ] && command -v "$mpicxx" >/dev/null; then
    expect "nbccxx compiles a program of the old C++ bindings" \
        "$nbccxx" -Wall -DOLD_BINDINGS -o "$scratch/old" "$scratch/program.cpp"
    expect "nbcshim comes before the MPI" ours_is_first "$scratch/old"
    expect "which runs on 2 ranks" run "$scratch/old" 2
fi
if [ -f "$lib/fortran/nbcshim_f08.mod" ]; then
    expect "nbcfort compiles and links examples/persistent.f90" \
        "$nbcfort" -o "$scratch/fortran" "$srcdir/examples/persistent.f90"
    expect "nbcshim comes before the MPI" ours_is_first "$scratch/fortran"
    expect "which runs on 2 ranks" run "$scratch/fortran" 2
fi

# --- an application's configure -------------------------------------------------------------------

# A configure runs what it has linked, which a library with a sanitizer in it does not allow.
if command -v autoconf >/dev/null && [ "$SANITIZE" = no ]; then
    mkdir "$scratch/app"
    cp "$srcdir"/examples/autoconf/* "$scratch/app"
    application() # CC=compiler
    (
        cd "$scratch/app" && { [ -x configure ] || autoreconf -f -i; } && ./configure "$1" && make clean all
    )
    expect "examples/autoconf builds with CC=nbcc" application CC="$nbcc"
    for name in MPI_IALLREDUCE MPI_ALLREDUCE_INIT MPI_NEIGHBOR_ALLTOALLW_INIT MPI_BCAST_C; do
        grep -q "^#define HAVE_$name 1" "$scratch/app/config.h"
        result $? "its configure finds $name"
    done
    grep -q '^#define HAVE_DECL_MPI_ALLREDUCE_INIT 1' "$scratch/app/config.h"
    result $? "and the declaration of MPI_Allreduce_init in <mpi.h>"
    expect "it runs on 3 ranks" run "$scratch/app/residual" 3
    grep -q '^persistent: 55$' "$scratch/log"
    result $? "with persistent collectives"
    if [ "$MPI_FLAVOR" = openmpi ]; then
        expect "it builds with the MPI's wrapper too" application CC="$MPICC"
        expect "and runs on 3 ranks" run "$scratch/app/residual" 3
        grep -q '^blocking: 55$' "$scratch/log"
        result $? "but without persistent collectives, which the MPI lacks"
    fi
else
    comment "no autoconf, or a sanitized library: examples/autoconf is left out"
fi
finish
