#!/usr/bin/env bash
# An operation of which the MPI refuses all messages makes its communicator unusable, and no other one
# (lost.c). So does an operation of which the MPI frees a message that is under way (freed.c).

. "$(dirname "$0")/../lib.sh"
forget_settings

bent_mpi refuse
expect "the program is made" $MPICC -std=gnu11 -O1 $newer_calls "$srcdir/test/tools/lost.c" \
    -o "$scratch/lost" -ldl
for settings in "" NBCSHIM_PROGRESS=thread; do
    mpi_command 2 "$(sanitizer_runtime) $library $bent" "NBCSHIM_BLOCKING=own NBCSHIM_SHARED_MEMORY=0 $settings" "$scratch/lost"
    ends_well "other communicators are usable${settings:+, $settings}" 60
done

# That is in MPI_Testsome, which nbcshim does not call where it tests messages one by one (nbc_quirks_tests_each).
mpich=$(ldd "$library" | sed -nE 's/^[[:space:]]*libmpich\.so[^ ]* => ([^ ]*).*/\1/p')
if [ -n "$mpich" ] && ! readelf -rW "$mpich" | grep ' MPIR_Err_return_comm ' >/dev/null; then
    finish
    exit
fi
bent_mpi freeing
expect "another program is made" $MPICC -std=gnu11 -O1 $newer_calls "$srcdir/test/tools/freed.c" \
    -o "$scratch/freed" -ldl
mpi_command 4 "$(sanitizer_runtime) $library $bent" \
    "NBCSHIM_ALGORITHM_ALLTOALLV=linear NBCSHIM_SHARED_MEMORY=0" "$scratch/freed"
ends_well "a message that the MPI frees under way is not waited for" 60
finish
