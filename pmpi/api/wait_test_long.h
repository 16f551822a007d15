/* SPDX-License-Identifier: MIT */
/* The completion calls for one or some requests of an array of NBC_WATCHED_LEAST entries or
 * more, which is watched (request/watched.h). What a call costs for each completion does not grow
 * with the array. */
#ifndef NBC_WAIT_TEST_LONG_H
#define NBC_WAIT_TEST_LONG_H

#include <stdbool.h>

#include "below/next.h"

/* MPI_Waitany if flag is NULL, else MPI_Testany. Sets *error to the result of the call. Returns
 * false if the array is not watched; then nothing has been done. Without the lock. */
bool nbc_long_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status,
                  int *error);

/* The same for MPI_Waitsome and MPI_Testsome. */
bool nbc_long_some(int n, MPI_Request *requests, bool waits, int *outcount, int *indices,
                   MPI_Status *statuses, int *error);

#endif
