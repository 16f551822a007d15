#!/usr/bin/env bash
# An MPI whose MPI_Testsome writes into all of its arrays, not only into what it reports: MVAPICH2 2.3 writes
# one status more. And it reports the requests from the last to the first, which the standard permits. The library
# that does so defines PMPI_Testsome alone, so it is no tool.

. "$(dirname "$0")/../lib.sh"

cat >"$scratch/behind.c" <<'END'
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>
typedef int testsome(int, MPI_Request *, int *, int *, MPI_Status *);
int PMPI_Testsome(int n, MPI_Request *requests, int *count, int *indices, MPI_Status *statuses)
{
    static testsome *below;
    void *address = dlsym(RTLD_NEXT, "PMPI_Testsome");
    memcpy(&below, &address, sizeof below);
    int error = below(n, requests, count, indices, statuses);
    if (error)
        return error;
    for (int i = 0, k = *count - 1; i < k; i++, k--) {
        int index = indices[i];
        indices[i] = indices[k];
        indices[k] = index;
        if (statuses != MPI_STATUSES_IGNORE) {
            MPI_Status status = statuses[i];
            statuses[i] = statuses[k];
            statuses[k] = status;
        }
    }
    for (int i = *count == MPI_UNDEFINED ? 0 : *count; i < n; i++) {
        indices[i] = -7;
        if (statuses != MPI_STATUSES_IGNORE)
            memset(&statuses[i], 0x55, sizeof statuses[i]);
    }
    return error;
}
END
expect "the library compiles" $CC -std=gnu11 -D_GNU_SOURCE -O2 $MPI_CPPFLAGS -shared -fPIC \
    "$scratch/behind.c" -o "$scratch/behind.so"
mpi_command 3 "$(sanitizer_runtime) $library $scratch/behind.so" "" test/mpi/fuzz.preload
ends_well "fuzz passes" 60
finish
