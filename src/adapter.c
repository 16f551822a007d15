/* SPDX-License-Identifier: MIT */
#include "adapter.h"

#include <dirent.h>
#include <stddef.h>

bool nbc_has_adapter(void)
{
    static const char *const classes[] = {"/sys/class/infiniband", "/sys/class/cxi",
                                          "/sys/class/gni", "/sys/class/bxi"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        DIR *adapters = opendir(classes[i]);
        bool any = false;
        for (struct dirent *e; adapters && (e = readdir(adapters));)
            any |= e->d_name[0] != '.'; /* unreached: a network adapter */
        if (adapters)
            closedir(adapters); /* unreached: a network adapter */
        if (any)
            return true; /* unreached: a network adapter */
    }
    return false;
}
