/* SPDX-License-Identifier: MIT */
#include "base/state.h"

#include "below/next.h"

bool nbc_enabled, nbc_world_initialized;
MPI_Comm nbc_home;
