# PnetCDF: a variable whose columns the ranks write, by nonblocking puts, and read by rows.
packages="libpnetcdf-dev" mpi=openmpi ranks=4
gain="nothing: the collectives are those of the MPI's own MPI-IO"
prepare()
{
    cat >columns.c <<'END'
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    enum { N = 64 };
    int rank, size, f, v, dim[2], request, status, bad = 0;
    double a[N * N], sum = 0, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Offset n = N / size, start[2] = {0, rank * n}, count[2] = {N, n};
    bad |= ncmpi_create(MPI_COMM_WORLD, "columns.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &f);
    bad |= ncmpi_def_dim(f, "y", N, &dim[0]) | ncmpi_def_dim(f, "x", N, &dim[1]);
    bad |= ncmpi_def_var(f, "a", NC_DOUBLE, 2, dim, &v) | ncmpi_enddef(f);
    for (int i = 0; i < N * n; i++)
        a[i] = rank + 0.001 * i;
    bad |= ncmpi_iput_vara_double(f, v, start, count, a, &request);
    bad |= ncmpi_wait_all(f, 1, &request, &status) | status;
    bad |= ncmpi_close(f);
    bad |= ncmpi_open(MPI_COMM_WORLD, "columns.nc", NC_NOWRITE, MPI_INFO_NULL, &f);
    MPI_Offset first[2] = {rank * n, 0}, rows[2] = {n, N};
    bad |= ncmpi_get_vara_double_all(f, v, first, rows, a) | ncmpi_close(f);
    for (int i = 0; i < N * n; i++)
        sum += (i % N + 1) * a[i];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d %.12e\n", bad, all);
    MPI_Finalize();
}
END
    $CC -O1 -o columns columns.c -lpnetcdf
}
tolerance=1e-13 why="the last sum is over ranks in another order"
command_line="./columns"
