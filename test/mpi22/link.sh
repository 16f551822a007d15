#!/usr/bin/env bash
# On the stand-in for an MPI-2.2: it has what it should, and a program of MPI-3 and -4 collectives
# does not link on it alone, but with nbcshim.

. "$(dirname "$0")/../lib.sh"
export LC_ALL=C

cat >"$scratch/program.c" <<'END'
#ifdef HEADER
#include <nbcshim.h>
#else
#include <mpi.h>
int MPI_Iallreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
int MPI_Allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                       MPI_Request *);
#endif

int main(int argc, char **argv)
{
    int rank, size, sum = 0, again = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef BLOCKING
    sum = again = size * (size - 1) / 2;
#else
    MPI_Request request[2];
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[0]);
    MPI_Allreduce_init(&rank, &again, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request[1]);
    MPI_Start(&request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    MPI_Request_free(&request[1]);
#endif
#ifdef HEADER
    {
        MPI_Count one = 1;
        int left = -1, up, down, periodic = 1;
        MPI_Comm ring;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
        MPI_Cart_shift(ring, 0, 1, &up, &down);
        int got[2];
        MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, ring);
        MPI_Bcast_c(&left, one, MPI_INT, 0, ring);
        MPI_Comm_free(&ring);
        if (got[0] != up || got[1] != down)
            sum = -1;
    }
#endif
    MPI_Finalize();
    return sum != size * (size - 1) / 2 || again != sum;
}
END

compile() # flags...
{
    $CC -std=gnu11 -Werror=implicit-function-declaration -I"$srcdir/include" $MPI_CPPFLAGS \
        "$scratch/program.c" -o "$scratch/program" "$@" $MPI_LIBS
}

run() # ranks
{
    mpi_command "$1" "" "" "$scratch/program"
    guarded 60 "$scratch/log" "${launch[@]}"
}

standin=$(dirname "$(dirname "$MPICC")")
nm -D --defined-only "$standin/lib/libmpi22.so" | sed 's/.* //' | grep '^MPI_' | grep -vE '_(c2f|f2c)$' |
    sort >"$scratch/has"
# Macros in the header, no symbols: conversions to Fortran's handles, functions from MPICH 4.2 on, and empty callbacks.
mpi22_functions | grep -vE '_(c2f|f2c)$|_FN(_NULL)?$' >"$scratch/standard"
expect "the stand-in has the functions of MPI-2.2 and no others" \
    cmp "$scratch/has" "$scratch/standard"
! grep -qE 'const (void|int)|MPI_Count|MPI_Message|MPI_Iallreduce' "$standin/include/mpi.h"
result $? "nor has its header what is newer"

! compile 2>"$scratch/errors" &&
    grep -q 'undefined reference to .MPI_Iallreduce' "$scratch/errors" &&
    grep -q 'undefined reference to .MPI_Allreduce_init' "$scratch/errors"
result $? "a program of MPI_Iallreduce and MPI_Allreduce_init does not link without nbcshim"
expect "it links with it" compile -L.libs -lnbcshim -Wl,-rpath,"$PWD/.libs"
expect "it passes on 1 rank" run 1
expect "it passes on 3 ranks" run 3

expect "nbcshim.h declares all that it needs, blocking neighborhoods and MPI_Count too" \
    compile -DHEADER -L.libs -lnbcshim -Wl,-rpath,"$PWD/.libs"
expect "it passes on 2 ranks" run 2
expect "a program of blocking collectives alone links, of those that the MPI lacks" \
    compile -DHEADER -DBLOCKING -L.libs -lnbcshim -Wl,-rpath,"$PWD/.libs"
expect "it passes on 3 ranks" run 3
expect "it links with the static library" compile -DHEADER .libs/libnbcshim.a
expect "it passes on 4 ranks" run 4
finish
