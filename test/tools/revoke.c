/* Preloaded where the MPI cannot tell whether a communicator is revoked, or not revoke it: one that
 * has a name is revoked on all ranks when a file of this name exists in the directory REVOKED. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int file_of(MPI_Comm comm, char *file, size_t room)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    PMPI_Comm_get_name(comm, name, &length);
    return length > 0 && snprintf(file, room, "%s/%s", getenv("REVOKED"), name) < (int)room;
}

int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag)
{
    char file[4096];
    *flag = file_of(comm, file, sizeof file) && access(file, F_OK) == 0;
    return MPI_SUCCESS;
}

int MPIX_Comm_revoke(MPI_Comm comm)
{
    char file[4096];
    FILE *made = file_of(comm, file, sizeof file) ? fopen(file, "w") : NULL;
    return made ? fclose(made) : MPI_ERR_OTHER;
}
