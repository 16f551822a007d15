# ELPA: the eigenvectors of a matrix in blocks on 2 x 2 ranks, with its nonblocking collectives (nbc_...).
packages="libelpa-dev" mpi=openmpi ranks=4
tolerance=1e-7 why="another order of sums changes the last digits"
gain="nothing on one node: it waits for each MPI_Ibcast and MPI_Iallreduce soon after its start"
prepare()
{
    cat >eigen.c <<'END'
#include <elpa/elpa.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = 240, BLOCK = 16, SIDE = 2 };
/* The index in the whole matrix of a row or a column of a rank. */
static int whole(int own, int mine)
{
    return (own / BLOCK * SIDE + mine) * BLOCK + own % BLOCK;
}
static int count(int mine)
{
    int n = 0;
    while (whole(n, mine) < N)
        n++;
    return n;
}
int main(int argc, char **argv)
{
    static const char *const names[] = {"global_gather", "global_product", "elpa1_full_to_tridi", "elpa1_tridi_to_full",
                                        "solve_tridi", "transpose_vectors"};
    int given, rank, error;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int row = rank % SIDE, column = rank / SIDE, rows = count(row), columns = count(column);
    size_t bytes = sizeof(double) * rows * columns;
    double *a = malloc(bytes), *copy = malloc(bytes), *q = malloc(bytes), value[N];
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++) {
            int x = whole(i, row), y = whole(j, column);
            a[j * rows + i] = (x < y ? x : y) + 1.0;
        }
    if (elpa_init(20171201) != ELPA_OK)
        return 1;
    elpa_t e = elpa_allocate(&error);
    elpa_set(e, "na", N, &error);
    elpa_set(e, "nev", N, &error);
    elpa_set(e, "nblk", BLOCK, &error);
    elpa_set(e, "local_nrows", rows, &error);
    elpa_set(e, "local_ncols", columns, &error);
    elpa_set(e, "mpi_comm_parent", MPI_Comm_c2f(MPI_COMM_WORLD), &error);
    elpa_set(e, "process_row", row, &error);
    elpa_set(e, "process_col", column, &error);
    if (elpa_setup(e) != ELPA_OK)
        return 1;
    for (size_t k = 0; k < 2 * sizeof names / sizeof *names; k++) {
        char name[64];
        snprintf(name, sizeof name, "nbc_%s_%s", k % 2 ? "row" : "col", names[k / 2]);
        elpa_set(e, name, 1, &error); /* not every one has both */
    }
    for (int stages = ELPA_SOLVER_1STAGE; stages <= ELPA_SOLVER_2STAGE; stages++) {
        memcpy(copy, a, bytes);
        elpa_set(e, "solver", stages, &error);
        elpa_eigenvectors(e, copy, value, q, &error);
        if (rank == 0)
            printf("%d %.9e %.9e %.9e\n", error, value[0], value[N / 2], value[N - 1]);
    }
    elpa_deallocate(e, &error);
    elpa_uninit(&error);
    MPI_Finalize();
}
END
    # shellcheck disable=SC2046
    $CC -O1 -o eigen eigen.c $(pkg-config --cflags elpa) -lelpa
}
command_line="./eigen"
