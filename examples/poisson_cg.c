/* SPDX-License-Identifier: MIT */
/* Solves -Δu = f on the unit square, with u = 0 on the boundary, by conjugate gradients. This is an
 * ordinary MPI-3 program that does not refer to nbcshim.
 *
 *     mpicc -O2 poisson_cg.c -o poisson_cg -lm
 *     mpiexec -n 4 ./poisson_cg [N [TOLERANCE]]
 *
 * The square has N × N inner points (N is 96 by default), distributed over a two-dimensional grid
 * of ranks. Each rank holds a block of them, surrounded by a halo of one point that its neighbors
 * fill.
 *
 * The pipelined form of the method (Ghysels and Vanroose, 2014) needs one global sum in each
 * iteration, and does not need it immediately: MPI_Iallreduce runs during the next matrix product.
 * The halo of that product is transferred during the computation of its inner points. At the end
 * MPI_Igatherv collects the solution on rank 0, which compares it with the exact one.
 *
 * Exit status: 0 if the residual meets TOLERANCE and the error is that of the 5-point stencil,
 * O(h²). */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X, Y };
enum { WEST, EAST, SOUTH, NORTH, SIDES };

/* The part of the square that a rank holds. */
struct domain {
    MPI_Comm comm;
    int ranks, rank, grid[2];
    int n;                 /* inner points along each side of the square */
    double h;              /* from one point to the next */
    int first[2], size[2]; /* of the inner points of this rank */
    int stride;            /* from one row to the next in a field */
    int neighbor[SIDES];   /* MPI_PROC_NULL at the border of the square */
    MPI_Datatype row, column;
};

/* A field is a block with its halo, stored by rows. The indices i and j of its points count from 1;
 * 0 and size + 1 are the halo. */
static size_t at(const struct domain *d, int i, int j)
{
    return (size_t)j * (size_t)d->stride + (size_t)i;
}

static double *new_field(const struct domain *d)
{
    double *field = calloc((size_t)d->stride * (size_t)(d->size[Y] + 2), sizeof *field);
    if (!field) {
        fprintf(stderr, "poisson_cg: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return field;
}

/* Divides n points into parts and returns the first point and the size of part k. */
static void split(int n, int parts, int k, int *first, int *size)
{
    *first = (int)((long)n * k / parts);
    *size = (int)((long)n * (k + 1) / parts) - *first;
}

static void domain_init(struct domain *d, int n)
{
    int periodic[2] = {0, 0}, place[2];
    d->n = n;
    d->h = 1.0 / (n + 1);
    d->grid[X] = d->grid[Y] = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &d->ranks);
    MPI_Dims_create(d->ranks, 2, d->grid);
    MPI_Cart_create(MPI_COMM_WORLD, 2, d->grid, periodic, 0, &d->comm);
    MPI_Comm_rank(d->comm, &d->rank);
    MPI_Cart_coords(d->comm, d->rank, 2, place);
    MPI_Cart_shift(d->comm, X, 1, &d->neighbor[WEST], &d->neighbor[EAST]);
    MPI_Cart_shift(d->comm, Y, 1, &d->neighbor[SOUTH], &d->neighbor[NORTH]);
    for (int k = X; k <= Y; k++)
        split(n, d->grid[k], place[k], &d->first[k], &d->size[k]);
    d->stride = d->size[X] + 2;
    MPI_Type_contiguous(d->size[X], MPI_DOUBLE, &d->row);
    MPI_Type_vector(d->size[Y], 1, d->stride, MPI_DOUBLE, &d->column);
    MPI_Type_commit(&d->row);
    MPI_Type_commit(&d->column);
}

static void domain_free(struct domain *d)
{
    MPI_Type_free(&d->row);
    MPI_Type_free(&d->column);
    MPI_Comm_free(&d->comm);
}

/* --- the problem ---------------------------------------------------------------------------------
 * u(x, y) = g(x) g(y) with g(t) = t (1 - t) exp(t), so that -Δu = -g''(x) g(y) - g(x) g''(y). */

static double g(double t)
{
    return t * (1 - t) * exp(t);
}

static double minus_g2(double t)
{
    return t * (3 + t) * exp(t);
}

static double solution(double x, double y)
{
    return g(x) * g(y);
}

static double right_side(double x, double y)
{
    return minus_g2(x) * g(y) + g(x) * minus_g2(y);
}

static void fill(const struct domain *d, double *field, double (*value)(double, double))
{
    for (int j = 1; j <= d->size[Y]; j++)
        for (int i = 1; i <= d->size[X]; i++)
            field[at(d, i, j)] = value((d->first[X] + i) * d->h, (d->first[Y] + j) * d->h);
}

/* --- the matrix ------------------------------------------------------------------------------- */

/* Sends the outermost points of a field to the neighbors and receives theirs. The tag of a message
 * is the side on which it leaves the sender. */
static void halo_begin(const struct domain *d, double *f, MPI_Request request[2 * SIDES])
{
    const int sx = d->size[X], sy = d->size[Y];
    const size_t inner[SIDES] = {at(d, 1, 1), at(d, sx, 1), at(d, 1, 1), at(d, 1, sy)};
    const size_t halo[SIDES] = {at(d, 0, 1), at(d, sx + 1, 1), at(d, 1, 0), at(d, 1, sy + 1)};
    static const int opposite[SIDES] = {EAST, WEST, NORTH, SOUTH};
    for (int side = 0; side < SIDES; side++) {
        MPI_Datatype type = side == WEST || side == EAST ? d->column : d->row;
        MPI_Irecv(f + halo[side], 1, type, d->neighbor[side], opposite[side], d->comm,
                  &request[side]);
        MPI_Isend(f + inner[side], 1, type, d->neighbor[side], side, d->comm,
                  &request[SIDES + side]);
    }
}

/* Applies the 5-point stencil to the points (i0 … i1, j0 … j1). */
static void stencil(const struct domain *d, const double *f, double *out, int i0, int i1, int j0,
                    int j1)
{
    const double scale = 1 / (d->h * d->h);
    for (int j = j0; j <= j1; j++) {
        for (int i = i0; i <= i1; i++) {
            size_t k = at(d, i, j);
            out[k] = scale * (4 * f[k] - f[k - 1] - f[k + 1] - f[k - (size_t)d->stride] -
                              f[k + (size_t)d->stride]);
        }
    }
}

/* out = A f. The points that need no halo are computed during its transfer. */
static void apply(const struct domain *d, double *f, double *out)
{
    const int sx = d->size[X], sy = d->size[Y];
    MPI_Request request[2 * SIDES];
    halo_begin(d, f, request);
    stencil(d, f, out, 2, sx - 1, 2, sy - 1);
    MPI_Waitall(2 * SIDES, request, MPI_STATUSES_IGNORE);
    stencil(d, f, out, 1, sx, 1, 1);
    if (sy > 1)
        stencil(d, f, out, 1, sx, sy, sy);
    stencil(d, f, out, 1, 1, 2, sy - 1);
    if (sx > 1)
        stencil(d, f, out, sx, sx, 2, sy - 1);
}

/* --- vectors ---------------------------------------------------------------------------------- */

static double dot(const struct domain *d, const double *a, const double *b)
{
    double sum = 0;
    for (int j = 1; j <= d->size[Y]; j++)
        for (int i = 1; i <= d->size[X]; i++)
            sum += a[at(d, i, j)] * b[at(d, i, j)];
    return sum;
}

/* a = b + factor a */
static void scale_add(const struct domain *d, double *a, const double *b, double factor)
{
    for (int j = 1; j <= d->size[Y]; j++)
        for (int i = 1; i <= d->size[X]; i++)
            a[at(d, i, j)] = b[at(d, i, j)] + factor * a[at(d, i, j)];
}

/* a = a + factor b */
static void add_scaled(const struct domain *d, double *a, const double *b, double factor)
{
    for (int j = 1; j <= d->size[Y]; j++)
        for (int i = 1; i <= d->size[X]; i++)
            a[at(d, i, j)] += factor * b[at(d, i, j)];
}

/* --- the solver ------------------------------------------------------------------------------- */

struct vectors {
    double *r, *w, *v; /* residual; A r; A w */
    double *p, *s, *z; /* direction; A p; A s */
};

static struct vectors vectors_new(const struct domain *d)
{
    return (struct vectors){new_field(d), new_field(d), new_field(d),
                            new_field(d), new_field(d), new_field(d)};
}

static void vectors_free(struct vectors *v)
{
    free(v->r);
    free(v->w);
    free(v->v);
    free(v->p);
    free(v->s);
    free(v->z);
}

/* Solves A x = b from x = 0 until the norm of the residual has shrunk by tolerance. Returns the
 * number of iterations, or -1 when there were too many. */
static int solve(const struct domain *d, double *x, const double *b, double tolerance)
{
    struct vectors k = vectors_new(d);
    double alpha = 0, last = 0, start = 0;
    int iteration, limit = 20 * d->n + 100;

    add_scaled(d, k.r, b, 1);
    apply(d, k.r, k.w);
    for (iteration = 0; iteration < limit; iteration++) {
        const double mine[2] = {dot(d, k.r, k.r), dot(d, k.w, k.r)};
        double sum[2], beta;
        MPI_Request request;

        MPI_Iallreduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, d->comm, &request);
        apply(d, k.w, k.v);
        MPI_Wait(&request, MPI_STATUS_IGNORE);

        if (iteration == 0)
            start = sum[0];
        if (sum[0] <= tolerance * tolerance * start)
            break;
        beta = iteration == 0 ? 0 : sum[0] / last;
        alpha = sum[0] / (iteration == 0 ? sum[1] : sum[1] - beta * sum[0] / alpha);
        last = sum[0];

        scale_add(d, k.z, k.v, beta);
        scale_add(d, k.s, k.w, beta);
        scale_add(d, k.p, k.r, beta);
        add_scaled(d, x, k.p, alpha);
        add_scaled(d, k.r, k.s, -alpha);
        add_scaled(d, k.w, k.z, -alpha);
    }
    vectors_free(&k);
    return iteration < limit ? iteration : -1;
}

/* The norm of b - A x divided by that of b. It is computed from x, because the residual that the
 * solver updates drifts from it by rounding. */
static double residual(const struct domain *d, double *x, const double *b)
{
    double *r = new_field(d), mine[2], sum[2];
    MPI_Request request;
    apply(d, x, r);
    scale_add(d, r, b, -1);
    mine[0] = dot(d, r, r);
    mine[1] = dot(d, b, b);
    MPI_Iallreduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, d->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(r);
    return sqrt(sum[0] / sum[1]);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* The number of points of each rank, and where they begin in the gathered solution. */
static void layout(const struct domain *d, int *count, int *start)
{
    for (int rank = 0, sum = 0; rank < d->ranks; sum += count[rank++]) {
        int place[2], first[2], size[2];
        MPI_Cart_coords(d->comm, rank, 2, place);
        for (int k = X; k <= Y; k++)
            split(d->n, d->grid[k], place[k], &first[k], &size[k]);
        count[rank] = size[X] * size[Y];
        start[rank] = sum;
    }
}

/* Computes a checksum over all points that does not depend on the distribution, but for rounding,
 * and the largest difference from the exact solution. On rank 0. */
static void judge(const struct domain *d, const double *all, const int *start, double *checksum,
                  double *error)
{
    *checksum = *error = 0;
    for (int rank = 0; rank < d->ranks; rank++) {
        int place[2], first[2], size[2];
        MPI_Cart_coords(d->comm, rank, 2, place);
        for (int k = X; k <= Y; k++)
            split(d->n, d->grid[k], place[k], &first[k], &size[k]);
        for (int j = 0; j < size[Y]; j++) {
            for (int i = 0; i < size[X]; i++) {
                double x = (first[X] + i + 1) * d->h, y = (first[Y] + j + 1) * d->h;
                double u = all[start[rank] + j * size[X] + i];
                *checksum += u * (1 + x + 2 * y);
                *error = fmax(*error, fabs(u - solution(x, y)));
            }
        }
    }
    *checksum *= d->h * d->h;
}

/* Gathers the solution on rank 0 and evaluates it there. */
static void collect(const struct domain *d, const double *x, double *checksum, double *error)
{
    const int mine = d->size[X] * d->size[Y];
    double *packed = malloc(sizeof *packed * (size_t)(mine + 1)), *all = NULL;
    int *count = malloc(sizeof *count * (size_t)d->ranks);
    int *start = malloc(sizeof *start * (size_t)d->ranks);
    MPI_Request request;

    if (d->rank == 0)
        all = malloc(sizeof *all * (size_t)d->n * (size_t)d->n);
    if (!packed || !count || !start || (d->rank == 0 && !all))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int j = 0; j < d->size[Y]; j++)
        memcpy(packed + j * d->size[X], x + at(d, 1, j + 1), sizeof *x * (size_t)d->size[X]);
    layout(d, count, start);
    MPI_Igatherv(packed, mine, MPI_DOUBLE, all, count, start, MPI_DOUBLE, 0, d->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (d->rank == 0)
        judge(d, all, start, checksum, error);
    free(packed);
    free(all);
    free(count);
    free(start);
}

static int report(const struct domain *d, int iterations, double tolerance, double rest,
                  double checksum, double error, double seconds)
{
    const double pi = acos(-1);
    /* The relative uncertainty of the solution is the relative residual times the condition number
     * of A. Two correct runs that add in different orders may differ by that much. */
    const double condition = 4 / (pi * pi * d->h * d->h);
    /* The solver's own residual drifts from the true one. */
    int good = iterations >= 0 && rest <= 10 * tolerance && error <= d->h * d->h;

    printf("points      %d x %d on %d x %d ranks\n", d->n, d->n, d->grid[X], d->grid[Y]);
    printf("iterations  %d\n", iterations);
    printf("residual    %.3e\n", rest);
    printf("error       %.6e\n", error);
    printf("checksum    %.15e\n", checksum);
    printf("uncertainty %.1e\n", condition * (tolerance + rest));
    printf("seconds     %.3f\n", seconds);
    printf("result      %s\n", good ? "good" : "WRONG");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct domain d;
    double tolerance, seconds, rest, checksum = 0, error = 0, *x, *b;
    int n, iterations, status = EXIT_SUCCESS;

    MPI_Init(&argc, &argv);
    n = argc > 1 ? atoi(argv[1]) : 96;
    tolerance = argc > 2 ? atof(argv[2]) : 1e-10;
    if (n < 1 || n > 20000 || tolerance <= 0) {
        fprintf(stderr, "usage: poisson_cg [N [TOLERANCE]], N from 1 to 20000\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    domain_init(&d, n);
    if (d.grid[X] > n || d.grid[Y] > n) {
        fprintf(stderr, "poisson_cg: more ranks than points\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    x = new_field(&d);
    b = new_field(&d);
    fill(&d, b, right_side);

    seconds = MPI_Wtime();
    iterations = solve(&d, x, b, tolerance);
    seconds = MPI_Wtime() - seconds;
    rest = residual(&d, x, b);
    collect(&d, x, &checksum, &error);
    if (d.rank == 0)
        status = report(&d, iterations, tolerance, rest, checksum, error, seconds);
    MPI_Bcast(&status, 1, MPI_INT, 0, d.comm);

    free(x);
    free(b);
    domain_free(&d);
    MPI_Finalize();
    return status;
}
