/* SPDX-License-Identifier: MIT */
/* Whether the launcher has started several processes of which each is alone in MPI_COMM_WORLD: the
 * launcher and the MPI do not understand each other. */
#ifndef NBC_LAUNCHER_H
#define NBC_LAUNCHER_H

/* Writes a line if the launcher's variables say so; of those processes only the first one does.
 * `size` is that of MPI_COMM_WORLD, which no other job has spawned. */
void nbc_launcher_check(int size);

#endif
