#!/usr/bin/env bash
# Inactive requests on an MPI that takes some of them for complete (null.c), as Intel MPI does.

. "$(dirname "$0")/../lib.sh"

bent_mpi null
while read -r ranks settings program; do
    mpi_command "$ranks" "$(sanitizer_runtime) $library $bent" "NBCSHIM_PROGRESS=$settings" test/mpi/$program
    ends_well "$program, progress by $settings" 60
done <<'END'
2 calls requests_arrays.preload --only=late_behind_inactive
2 thread requests_arrays.preload --only=late_behind_inactive
2 calls requests.preload --only=inactive_requests
3 calls fuzz.preload
END
finish
