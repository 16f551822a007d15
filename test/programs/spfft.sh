# SpFFT: sparse transforms in three dimensions, by each of its three kinds of nonblocking alltoall.
packages="libspfft-dev" mpi=openmpi ranks=4
tolerance=1e-12 why="the last sum is over ranks in another order"
gain="nothing that can be told from noise: its alltoalls are the same messages in both"
prepare()
{
    cat >planes.cc <<'END'
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <spfft/spfft.hpp>
#include <vector>
int main(int argc, char **argv)
{
    int rank, size, n = argc > 1 ? std::atoi(argv[1]) : 16, turns = argc > 2 ? std::atoi(argv[2]) : 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (auto kind : {SPFFT_EXCH_BUFFERED, SPFFT_EXCH_COMPACT_BUFFERED, SPFFT_EXCH_UNBUFFERED}) {
        std::vector<int> index;
        int first = n * rank / size, planes = n * (rank + 1) / size - first, columns = 0;
        for (int x = 0; x < n; x++)
            for (int y = 0; y < n; y++)
                if ((x * n + y) % size == rank && ++columns)
                    for (int z = 0; z < n; z++)
                        index.insert(index.end(), {x, y, z});
        spfft::Grid grid(n, n, n, columns, planes, SPFFT_PU_HOST, 1, MPI_COMM_WORLD, kind);
        auto fft = grid.create_transform(SPFFT_PU_HOST, SPFFT_TRANS_C2C, n, n, n, planes, index.size() / 3,
                                         SPFFT_INDEX_TRIPLETS, index.data());
        std::vector<double> f(index.size() / 3 * 2);
        for (std::size_t i = 0; i < f.size(); i++)
            f[i] = std::sin(0.1 * i + rank);
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = -MPI_Wtime(), sum = 0, total;
        for (int t = 0; t < turns; t++) {
            fft.backward(f.data(), SPFFT_PU_HOST);
            fft.forward(SPFFT_PU_HOST, f.data(), SPFFT_FULL_SCALING);
        }
        seconds += MPI_Wtime();
        fft.backward(f.data(), SPFFT_PU_HOST);
        for (int i = 0; i < planes * n * n * 2; i++)
            sum += fft.space_domain_data(SPFFT_PU_HOST)[i] * fft.space_domain_data(SPFFT_PU_HOST)[i];
        MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            std::printf("%.12e %.1f us\n", total, 1e6 * seconds / turns);
    }
    MPI_Finalize();
}
END
    $CXX -O1 -fopenmp -o planes planes.cc -lspfft
}
command_line="./planes"
numbers()
{
    awk '{ print $1 }'
}
