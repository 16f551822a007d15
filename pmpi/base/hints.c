/* SPDX-License-Identifier: MIT */
#include "base/hints.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "base/state.h"
#include "below/quirks.h"

#include "coll.h"

/* Returns false if the key is absent or its value is longer than any valid one. */
static bool hint_get(MPI_Info info, const char *key, char *value, int room)
{
    int found, length;
    /* The casts are for MPI-2.2, whose prototypes lack const. */
    if (NEXT(Info_get_valuelen)(info, (char *)key, &length, &found) || !found || length >= room)
        return false;
    return !NEXT(Info_get)(info, (char *)key, room - 1, value, &found) && found;
}

static void hint_set(const struct nbc_alg *alg, struct nbc_hints *hints)
{
    if (alg)
        hints->algorithm[alg->coll] = alg;
}

static void hint_read_algorithm(char *name, struct nbc_hints *hints)
{
    char *colon = strchr(name, ':');
    if (!colon) {
        for (int c = 0; c < NBC_NCOLLS; c++)
            hint_set(nbc_alg_by_name(c, name), hints);
        return;
    }
    *colon = '\0';
    enum nbc_coll coll = nbc_coll_by_name(name);
    if (coll != NBC_NCOLLS)
        hint_set(nbc_alg_by_name(coll, colon + 1), hints);
}

/* The MPI is asked by a look for a key. */
int nbc_hints_check(MPI_Info info)
{
    MPI_Errhandler kept[2];
    int length, found;
    if (info == MPI_INFO_NULL || !nbc_world_initialized) /* nowhere to keep them from */
        return MPI_SUCCESS;
    nbc_quirks_mute(kept);
    int error = NEXT(Info_get_valuelen)(info, (char *)"nbcshim_algorithm", &length, &found);
    nbc_quirks_unmute(kept);
    return error ? MPI_ERR_INFO : MPI_SUCCESS;
}

void nbc_hints_read(MPI_Info info, struct nbc_hints *hints)
{
    char value[256], *rest, *name;
    if (info == MPI_INFO_NULL)
        return;
    if (hint_get(info, "nbcshim_segment_size", value, sizeof value))
        nbc_parse_size(value, &hints->segment_size);
    if (hint_get(info, "nbcshim_reduction_order", value, sizeof value))
        nbc_order_by_name(value, &hints->order);
    if (hint_get(info, "nbcshim_device", value, sizeof value))
        nbc_device_by_name(value, &hints->device);
    if (!hint_get(info, "nbcshim_algorithm", value, sizeof value))
        return;
    for (name = strtok_r(value, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest))
        hint_read_algorithm(name, hints);
}

/* Whether the hints have this name for every collective that knows it. */
static bool is_general(const struct nbc_hints *hints, const char *name)
{
    for (int c = 0; c < NBC_NCOLLS; c++) {
        const struct nbc_alg *alg = nbc_alg_by_name(c, name);
        if (alg && hints->algorithm[c] != alg)
            return false;
    }
    return true;
}

static bool has_before(const struct nbc_hints *hints, int coll, const char *name)
{
    for (int c = 0; c < coll; c++)
        if (hints->algorithm[c] && strcmp(hints->algorithm[c]->name, name) == 0)
            return true;
    return false;
}

/* Adds a word to a list, if there is room. */
static void add(char *list, size_t room, const char *coll, const char *name)
{
    size_t used = strlen(list), length;
    length = (size_t)snprintf(list + used, room - used, "%s%s%s%s", used ? "," : "", coll,
                              *coll ? ":" : "", name);
    if (length >= room - used)
        list[used] = '\0';
}

/* Shows a hint, or that it is not in force: Intel MPI gives a duplicate the keys of its original,
 * those that no longer hold too. value: empty if it is not in force. */
static int show(MPI_Info info, const char *key, const char *value)
{
    int length, found;
    if (*value)
        return NEXT(Info_set)(info, (char *)key, (char *)value);
    int error = NEXT(Info_get_valuelen)(info, (char *)key, &length, &found);
    return error || !found ? error : NEXT(Info_delete)(info, (char *)key);
}

static void list_algorithms(const struct nbc_hints *hints, char *list, size_t room)
{
    for (int c = 0; c < NBC_NCOLLS; c++) {
        const struct nbc_alg *alg = hints->algorithm[c];
        bool general = alg && is_general(hints, alg->name);
        if (alg && !(general && has_before(hints, c, alg->name)))
            add(list, room, general ? "" : nbc_coll_name(c), alg->name);
    }
}

int nbc_hints_write(const struct nbc_hints *hints, MPI_Info info)
{
    char algorithms[MPI_MAX_INFO_VAL] = "", segment[32] = "";
    list_algorithms(hints, algorithms, sizeof algorithms);
    if (hints->segment_size)
        snprintf(segment, sizeof segment, "%" PRId64, hints->segment_size);
    int error = show(info, "nbcshim_algorithm", algorithms);
    if (!error)
        error = show(info, "nbcshim_segment_size", segment);
    if (!error)
        error = show(info, "nbcshim_device", hints->device ? nbc_device_name(hints->device) : "");
    if (!error)
        error =
            show(info, "nbcshim_reduction_order", hints->order ? nbc_order_name(hints->order) : "");
    return error;
}
