# FFTW: a transform in three dimensions and back; it transposes by pairs of messages here.
packages="libfftw3-mpi-dev" mpi=openmpi ranks=4
gain="nothing: its transposition is messages; a program of its own can overlap (examples/fft2d.c)"
prepare()
{
    cat >fft.c <<'END'
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    const ptrdiff_t n = 32;
    ptrdiff_t mine, first;
    double sum = 0, total, error = 0, most;
    int rank;
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ptrdiff_t room = fftw_mpi_local_size_3d(n, n, n, MPI_COMM_WORLD, &mine, &first);
    fftw_complex *data = fftw_alloc_complex((size_t)room);
    fftw_plan there = fftw_mpi_plan_dft_3d(n, n, n, data, data, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_plan back = fftw_mpi_plan_dft_3d(n, n, n, data, data, MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_ESTIMATE);
    for (ptrdiff_t i = 0; i < mine * n * n; i++) {
        data[i][0] = sin((double)(first * n * n + i));
        data[i][1] = 0;
    }
    fftw_execute(there);
    for (ptrdiff_t i = 0; i < mine * n * n; i++)
        sum += data[i][0] * data[i][0] + data[i][1] * data[i][1];
    fftw_execute(back);
    for (ptrdiff_t i = 0; i < mine * n * n; i++)
        error = fmax(error, fabs(data[i][0] / (double)(n * n * n) - sin((double)(first * n * n + i))));
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&error, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.12e %d\n", total, most < 1e-13);
    MPI_Finalize();
}
END
    $CC -O1 -o fft fft.c -lfftw3_mpi -lfftw3 -lm
}
tolerance=1e-13 why="the last sum is over ranks in another order"
command_line="./fft"
