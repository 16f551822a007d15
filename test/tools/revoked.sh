#!/usr/bin/env bash
# Collectives on revoked communicators (revoked.c), on an MPI that can revoke them, or on one that is made as if
# it could (revoke.c).

. "$(dirname "$0")/../lib.sh"

bent=
flags=
echo 'int PMPIX_Comm_is_revoked(void); int main(void) { return PMPIX_Comm_is_revoked(); }' >"$scratch/has.c"
if ! $MPICC "$scratch/has.c" -o "$scratch/has" 2>/dev/null; then
    bent=$scratch/revoke.so
    expect "the MPI is made" $MPICC -std=gnu11 -O1 -fPIC -shared "$srcdir/test/tools/revoke.c" -o "$bent"
    flags=$bent
fi
expect "the program is made" $MPICC -std=gnu11 -O1 -I"$srcdir/include" -include nbcshim.h $newer_calls \
    "$srcdir/test/tools/revoked.c" -o "$scratch/revoked" "$library" $flags
for settings in "" NBCSHIM_PROGRESS=thread NBCSHIM_CHECK=1 "NBCSHIM_TRACE=$scratch/trace.json"; do
    rm -rf "$scratch/files"
    mkdir "$scratch/files"
    # Without this variable Open MPI 5 does not tell other ranks. UCX 1.16, below MPICH, does not bear long
    # messages that are never received: they are sent as short ones.
    mpi_command 2 "$(sanitizer_runtime) $library $bent" \
        "NBCSHIM_BLOCKING=own REVOKED=$scratch/files OMPI_MCA_mpi_ft_enable=1 UCX_RNDV_THRESH=inf $settings" "$scratch/revoked"
    ends_well "operations on revoked communicators end${settings:+, $settings}" 60
done
finish
