/* SPDX-License-Identifier: MIT */
/* Solves -Δu = f on the unit square, with u = 0 on the boundary, by Jacobi's method. The persistent
 * collectives of MPI-4 are set up once and started in every step.
 *
 *     nbcc -O2 jacobi.c -o jacobi -lm       (or mpicc with the flags of pkg-config nbcshim)
 *     mpiexec -n 4 ./jacobi [N [STEPS]]
 *
 * Open MPI 4.1 has neither MPI_Neighbor_alltoallw_init nor MPI_Allreduce_init, so that the program
 * links there with nbcshim only. On an MPI that has them it can be built without nbcshim
 * (-DWITHOUT_NBCSHIM).
 *
 * The square has N × N inner points (N is 64 by default), distributed over a two-dimensional grid
 * of ranks. A step sends the outer rows and columns of each rank's block to its neighbors, with one
 * datatype for rows and one for columns. Meanwhile it computes the inner points, and then the rest.
 * The change of a step is summed over all ranks during the next step.
 *
 * Exit status: 0 if each step changes less than the one before. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef WITHOUT_NBCSHIM
#include <mpi.h>
#else
#include <nbcshim.h>
#endif

struct block {
    MPI_Comm grid;
    int rank, rows, columns, stride; /* inner points; stride: from row to row, with the halo */
    int first_row, first_column;
    double h;
    double *now, *next; /* with a halo of one point */
};

static int first_of(int n, int parts, int i)
{
    return (int)((long)n * i / parts);
}

static double *at(const struct block *b, double *field, int row, int column)
{
    return field + (size_t)row * b->stride + column;
}

static int make_block(struct block *b, int n)
{
    int ranks, dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &b->grid);
    MPI_Comm_rank(b->grid, &b->rank);
    MPI_Cart_coords(b->grid, b->rank, 2, coords);
    b->first_row = first_of(n, dims[0], coords[0]);
    b->first_column = first_of(n, dims[1], coords[1]);
    b->rows = first_of(n, dims[0], coords[0] + 1) - b->first_row;
    b->columns = first_of(n, dims[1], coords[1] + 1) - b->first_column;
    b->stride = b->columns + 2;
    b->h = 1.0 / (n + 1);
    b->now = calloc((size_t)(b->rows + 2) * b->stride, sizeof *b->now);
    b->next = calloc((size_t)(b->rows + 2) * b->stride, sizeof *b->next);
    return b->now && b->next;
}

/* Sets up the halo exchange of one of the two fields. The neighbors are in the order of the
 * standard: north, south, west, east. The datatypes may be freed as soon as the call returns. */
static MPI_Request make_halo(const struct block *b, double *field)
{
    MPI_Datatype row, column;
    MPI_Request request;
    MPI_Type_contiguous(b->columns, MPI_DOUBLE, &row);
    MPI_Type_vector(b->rows, 1, b->stride, MPI_DOUBLE, &column);
    MPI_Type_commit(&row);
    MPI_Type_commit(&column);
    const double *inner[] = {at(b, field, 1, 1), at(b, field, b->rows, 1), at(b, field, 1, 1),
                             at(b, field, 1, b->columns)};
    const double *halo[] = {at(b, field, 0, 1), at(b, field, b->rows + 1, 1), at(b, field, 1, 0),
                            at(b, field, 1, b->columns + 1)};
    const int ones[4] = {1, 1, 1, 1};
    const MPI_Datatype types[4] = {row, row, column, column};
    MPI_Aint from[4], to[4];
    for (int k = 0; k < 4; k++) {
        from[k] = (const char *)inner[k] - (const char *)field;
        to[k] = (const char *)halo[k] - (const char *)field;
    }
    MPI_Neighbor_alltoallw_init(field, ones, from, types, field, ones, to, types, b->grid,
                                MPI_INFO_NULL, &request);
    MPI_Type_free(&row);
    MPI_Type_free(&column);
    return request;
}

/* Updates one point and returns the square of its change. With f = 2π² sin πx sin πy the solution
 * is u = sin πx sin πy. */
static double update(const struct block *b, int row, int column)
{
    const double pi = 3.14159265358979323846;
    const double *u = at(b, b->now, row, column);
    double x = (b->first_row + row) * b->h, y = (b->first_column + column) * b->h;
    double f = 2 * pi * pi * sin(pi * x) * sin(pi * y);
    double new = 0.25 * (u[-1] + u[1] + u[-b->stride] + u[b->stride] + b->h * b->h * f);
    *at(b, b->next, row, column) = new;
    return (new - *u) * (new - *u);
}

static int on_edge(const struct block *b, int row, int column)
{
    return row == 1 || row == b->rows || column == 1 || column == b->columns;
}

static double sweep(const struct block *b, int edge)
{
    double change = 0;
    for (int row = 1; row <= b->rows; row++)
        for (int column = 1; column <= b->columns; column++)
            if (on_edge(b, row, column) == edge)
                change += update(b, row, column);
    return change;
}

int main(int argc, char **argv)
{
    struct block b;
    double change = 0, total = 0, last = INFINITY;
    int falls = 1;
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 64, steps = argc > 2 ? atoi(argv[2]) : 200;
    if (!make_block(&b, n))
        MPI_Abort(MPI_COMM_WORLD, 2);
    double *fields[2] = {b.now, b.next};
    MPI_Request halo[2] = {make_halo(&b, fields[0]), make_halo(&b, fields[1])}, sum;
    MPI_Allreduce_init(&change, &total, 1, MPI_DOUBLE, MPI_SUM, b.grid, MPI_INFO_NULL, &sum);
    for (int step = 0; step < steps; step++) {
        b.now = fields[step % 2];
        b.next = fields[(step + 1) % 2];
        MPI_Start(&halo[step % 2]);
        double mine = sweep(&b, 0);
        if (step > 0) { /* the sum of the last step ran during this sweep */
            MPI_Wait(&sum, MPI_STATUS_IGNORE);
            falls = falls && total < last;
            last = total;
        }
        MPI_Wait(&halo[step % 2], MPI_STATUS_IGNORE);
        change = mine + sweep(&b, 1);
        MPI_Start(&sum);
    }
    MPI_Wait(&sum, MPI_STATUS_IGNORE);
    if (b.rank == 0)
        printf("jacobi: %d steps, change of the last one %.6e, %s\n", steps, sqrt(total),
               falls ? "falling in every step" : "NOT falling in every step");
    MPI_Request_free(&halo[0]);
    MPI_Request_free(&halo[1]);
    MPI_Request_free(&sum);
    MPI_Comm_free(&b.grid);
    free(fields[0]);
    free(fields[1]);
    MPI_Finalize();
    return !falls;
}
