/* SPDX-License-Identifier: MIT */
#include "base/state.h"

#include "below/next.h"

bool nbc_enabled, nbc_world_initialized;
MPI_Comm nbc_home;
MPI_Comm nbc_alone = MPI_COMM_NULL;
