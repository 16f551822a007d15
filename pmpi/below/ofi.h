/* SPDX-License-Identifier: MIT */
/* Devices of the kind ch4:ofi (Cray MPICH, Intel MPI between hosts, many builds of MPICH) read a
 * completion queue of libfabric in each turn of their progress loop. The MPI reaches the queue
 * through tables of functions: a fabric opens domains, a domain opens queues. While the MPI
 * initializes, each object that it opens gets a copy of its table; that of a queue calls a function
 * of nbcshim before it reads. The copies belong to these objects: other users of libfabric in the
 * process keep the original.
 *
 * Not under the lock; nbc_ofi_watch and nbc_ofi_unwatch are called by one thread at init. Local. */
#ifndef NBC_OFI_H
#define NBC_OFI_H

#include <stdbool.h>

/* Notices the queues that the MPI opens. Before the MPI's init. */
void nbc_ofi_watch(void);

/* Ends that. After the MPI's init. */
void nbc_ofi_unwatch(void);

/* Whether a queue was noticed. */
bool nbc_ofi_has_queue(void);

/* Whether the MPI is linked with libfabric. Before the MPI's init. */
bool nbc_ofi_may_open(void);

/* What is called before each read, by the thread that reads; NULL: nothing. */
void nbc_ofi_call(int (*function)(void));

#endif
