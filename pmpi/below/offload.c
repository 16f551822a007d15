/* SPDX-License-Identifier: MIT */
/* Libraries to which the MPI hands collectives, and which have switches and adapters carry them
 * out: where the MPI itself says so. */
#include "below/detect.h"

#include "below/next.h"

#include "coll.h"

/* In the static library the MPI's own collectives on Open MPI are not used (by_mpi.c). */
#if defined OPEN_MPI && defined PIC
#include <string.h>

/* Components of Open MPI, with the nonblocking collectives that all their versions have. A
 * component that is not there has no variable, and clears it if its library does not work on this
 * machine. */
static const struct {
    const char *name, *variable;
    uint32_t colls;
} libraries[] = {
    {"HCOLL", "coll_hcoll_enable",
     NBC_BIT(BARRIER) | NBC_BIT(BCAST) | NBC_BIT(ALLGATHER) | NBC_BIT(ALLREDUCE)},
    {"UCC", "coll_ucc_enable",
     NBC_BIT(BARRIER) | NBC_BIT(BCAST) | NBC_BIT(ALLTOALL) | NBC_BIT(ALLREDUCE)},
};

typedef int finds(const char *name, int *index);
typedef int reads(int index, const void *value, void *source, const char **file);

/* The value of an int that has an MCA parameter, 0 if there is none. MPI_T_cvar_read has it too,
 * but MPI_T_init_thread opens all components of Open MPI (0.2 s for 4.1.4 on a local disk), and
 * sets the thread level of MPI. */
static int value_of(const char *variable, finds *find, reads *read)
{
    int index;
    const int *value = NULL;
    if (find(variable, &index) < 0 || read(index, &value, NULL, NULL) < 0)
        return 0;
    return value ? *value : 0;
}

uint32_t nbc_offload_find(const char **name)
{
    void *found[] = {nbc_next_object("mca_base_var_find_by_name"),
                     nbc_next_object("mca_base_var_get_value")};
    finds *find;
    reads *read;
    memcpy(&find, &found[0], sizeof find); /* POSIX permits the conversion */
    memcpy(&read, &found[1], sizeof read);
    for (size_t i = 0; find && read && i < sizeof libraries / sizeof *libraries; i++)
        if (value_of(libraries[i].variable, find, read) > 0) {
            *name = libraries[i].name;
            return libraries[i].colls;
        }
    return 0;
}
#else
uint32_t nbc_offload_find(const char **name)
{
    (void)name;
    return 0;
}
#endif
