/* SPDX-License-Identifier: MIT */
/* What nbcshim.h has beside the collectives, for Fortran: the value of MPI_ICOLL_MAX_OUTSTANDING,
 * and nbcshim's own functions. The modules (fortran/modules.awk) declare the names.
 *
 * In C the attribute is a pointer to an int. The Fortran bindings of the MPIs do not know it as a
 * predefined one and would return the address, so their functions are wrapped; they need not call
 * MPI_Comm_get_attr. All pass handles and optional arguments as fortran.c says.
 *
 * The ABI of MPI-5 is for C; its header has neither MPI_Fint nor conversions. */
#include "nbcshim.h"

#include "below/next.h"

#if defined PIC && !defined NBC_ABI
#include <string.h>

typedef void getter(const MPI_Fint *comm, const MPI_Fint *keyval, void *value, MPI_Fint *flag,
                    MPI_Fint *ierror);

/* Returns the value if the attribute is MPI_ICOLL_MAX_OUTSTANDING and has been found, else 0. */
static int get(getter *next, const MPI_Fint *comm, const MPI_Fint *keyval, void *value,
               MPI_Fint *flag, MPI_Fint *ierror)
{
    MPI_Fint error = MPI_ERR_INTERN;
    int *most, found = 0;
    if (next)
        next(comm, keyval, value, flag, &error);
    if (ierror)
        *ierror = error;
    if (error || !*flag || *keyval != nbcshim_icoll_max_outstanding)
        return 0;
    error = NEXT(Comm_get_attr)(MPI_Comm_f2c(*comm), *keyval, &most, &found);
    return error || !found ? 0 : *most;
}

/* A wrapper for one spelling; Integer is the type of the value. */
#define GETTER(name, Integer)                                                               \
    void name(const MPI_Fint *comm, const MPI_Fint *keyval, Integer *value, MPI_Fint *flag, \
              MPI_Fint *ierror)                                                             \
    {                                                                                       \
        static void (*kept)(void);                                                          \
        getter *next = (getter *)nbc_next_kept(&kept, #name, __builtin_return_address(0));  \
        int most = get(next, comm, keyval, value, flag, ierror);                            \
        if (most)                                                                           \
            *value = most;                                                                  \
    }

GETTER(mpi_comm_get_attr, MPI_Aint) /* unreached: other Fortran compilers */
GETTER(mpi_comm_get_attr_, MPI_Aint)
GETTER(mpi_comm_get_attr__, MPI_Aint) /* unreached: other Fortran compilers */
GETTER(mpi_comm_get_attr_f08_, MPI_Aint)
GETTER(mpi_attr_get, MPI_Fint) /* unreached: other Fortran compilers */
GETTER(mpi_attr_get_, MPI_Fint)
GETTER(mpi_attr_get__, MPI_Fint) /* unreached: other Fortran compilers */

/* --- nbcshim's own functions ------------------------------------------------------------------ */

/* Compilers append the length of a CHARACTER argument, some as an int. */
static void set_text(char *to, size_t length, const char *text)
{
    size_t room = (unsigned)length, n = text ? strlen(text) : 0;
    memset(to, ' ', room);
    memcpy(to, text ? text : "", n < room ? n : room);
}

void nbcshim_algorithm_(const MPI_Fint *request, char *name, long long *segment, size_t length)
{
    *segment = 0;
    set_text(name, length, nbcshim_algorithm(MPI_Request_f2c(*request), segment));
}

void nbcshim_hook_(MPI_Fint *hooked, char *text, size_t length)
{
    int is_hooked;
    set_text(text, length, nbcshim_hook(&is_hooked));
    *hooked = is_hooked;
}
#endif
