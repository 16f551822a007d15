/* SPDX-License-Identifier: MIT */
#include "state.h"

bool nbc_enabled, nbc_world_initialized;
MPI_Comm nbc_home;
