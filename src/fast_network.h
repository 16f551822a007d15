/* SPDX-License-Identifier: MIT */
/* Whether hosts have a network faster than sockets. */
#ifndef NBC_FAST_NETWORK_H
#define NBC_FAST_NETWORK_H

#include <stddef.h>

/* Returns the number of network adapters of this host that MPIs use without the system: InfiniBand
 * and what shares its interface (RoCE, Omni-Path, EFA), Slingshot, Aries, BXI. Writes their names,
 * with spaces between them. */
int nbc_fast_adapters(char *text, size_t size);

#endif
