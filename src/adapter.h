/* SPDX-License-Identifier: MIT */
/* Whether hosts have a network faster than sockets. */
#ifndef NBC_ADAPTER_H
#define NBC_ADAPTER_H

#include <stdbool.h>

/* Returns whether this host has a network adapter that MPIs use without the system: InfiniBand and
 * what shares its interface (RoCE, Omni-Path, EFA), Slingshot, Aries, BXI. */
bool nbc_has_adapter(void);

#endif
