/* SPDX-License-Identifier: MIT */
/* Whether hosts have a network faster than sockets. */
#ifndef NBC_FAST_NETWORK_H
#define NBC_FAST_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether this host has a network adapter that MPIs use without the system: InfiniBand and
 * what shares its interface (RoCE, Omni-Path, EFA), Slingshot, Aries, BXI. */
bool nbc_has_fast_network(void);

/* Writes the names of these adapters, with spaces between them. Returns their number. */
int nbc_fast_adapters(char *text, size_t size);

#endif
