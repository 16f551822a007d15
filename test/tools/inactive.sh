#!/usr/bin/env bash
# Arrays with inactive requests (inactive.c), on the MPI as it is, and on one that takes some of them for
# complete (null.c), as Intel MPI does.

. "$(dirname "$0")/../lib.sh"

bent=$scratch/null.so
expect "the MPI is made" $CC -std=gnu11 -O1 -fPIC -shared $MPI_CPPFLAGS "$srcdir/test/tools/null.c" \
    -o "$bent" -ldl
expect "the program is made" $MPICC -std=gnu11 -O1 -I"$srcdir/include" -include nbcshim.h $newer_calls \
    "$srcdir/test/tools/inactive.c" -o "$scratch/inactive" "$library"
for mpi in "" "$bent"; do
    for settings in "" NBCSHIM_PROGRESS=thread; do
        mpi_command 2 "$(sanitizer_runtime) $library $mpi" "$settings" "$scratch/inactive"
        ends_well "inactive requests${mpi:+, complete to the MPI}${settings:+, $settings}" 60
    done
done
for program in fuzz requests_mix; do
    mpi_command 3 "$(sanitizer_runtime) $library $bent" "" test/mpi/$program.preload
    ends_well "$program passes" 60
done
finish
