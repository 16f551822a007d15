# HDF5: a data set in chunks, whose columns the ranks write together, and read by rows.
packages="libhdf5-openmpi-dev libhdf5-mpich-dev" mpi=both ranks=4
gain="nothing: the collectives are those of the MPI's own MPI-IO"
prepare()
{
    cat >columns.c <<'END'
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    enum { N = 64 };
    int rank, size, bad = 0;
    double a[N * N], sum = 0, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    hsize_t n = (hsize_t)(N / size), me = (hsize_t)rank * n, dims[2] = {N, N}, chunk[2] = {16, 16};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), make = H5Pcreate(H5P_DATASET_CREATE), together = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_chunk(make, 2, chunk);
    H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
    hid_t f = H5Fcreate("columns.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access), all_of_it = H5Screate_simple(2, dims, NULL);
    hid_t set = H5Dcreate2(f, "a", H5T_NATIVE_DOUBLE, all_of_it, H5P_DEFAULT, make, H5P_DEFAULT);
    hsize_t start[2] = {0, me}, count[2] = {N, n}, first[2] = {me, 0}, rows[2] = {n, N};
    hid_t mine = H5Screate_simple(2, count, NULL);
    for (int i = 0; i < N * (int)n; i++)
        a[i] = rank + 0.001 * i;
    H5Sselect_hyperslab(all_of_it, H5S_SELECT_SET, start, NULL, count, NULL);
    bad |= H5Dwrite(set, H5T_NATIVE_DOUBLE, mine, all_of_it, together, a) < 0;
    bad |= H5Fflush(f, H5F_SCOPE_GLOBAL) < 0;
    mine = H5Screate_simple(2, rows, NULL);
    H5Sselect_hyperslab(all_of_it, H5S_SELECT_SET, first, NULL, rows, NULL);
    bad |= H5Dread(set, H5T_NATIVE_DOUBLE, mine, all_of_it, together, a) < 0;
    bad |= H5Dclose(set) < 0 || H5Fclose(f) < 0;
    for (int i = 0; i < N * (int)n; i++)
        sum += (i % N + 1) * a[i];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d %.12e\n", bad, all);
    MPI_Finalize();
}
END
    # shellcheck disable=SC2046
    $CC -O1 -o columns columns.c $(pkg-config --cflags --libs "hdf5-$mpi")
}
tolerance=1e-13 why="the last sum is over ranks in another order"
command_line="./columns"
