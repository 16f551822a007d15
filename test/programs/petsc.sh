# PETSc: a pipelined conjugate gradient method, whose sums are nonblocking allreduces.
packages="petsc-dev" mpi=openmpi ranks=4
tolerance=1e-6 why="another order of sums changes the last digits of a residual"
gain="pipelined solvers between hosts with a slow network (below)"
prepare()
{
    cat >pipe.c <<'END'
#include <petscksp.h>
int main(int argc, char **argv)
{
    Mat A;
    Vec x, b;
    KSP solver;
    PetscInt n = 64, solves = 1, first, last, its;
    PetscReal norm;
    PetscInitialize(&argc, &argv, NULL, NULL);
    PetscOptionsGetInt(NULL, NULL, "-solves", &solves, NULL);
    MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, 5, NULL, 5, NULL, &A);
    MatGetOwnershipRange(A, &first, &last);
    for (PetscInt i = first; i < last; i++) {
        PetscInt column[4] = {i - n, i - 1, i + 1, i + n};
        PetscBool there[4] = {i >= n, i % n > 0, i % n < n - 1, i < n * (n - 1)};
        for (int k = 0; k < 4; k++)
            if (there[k])
                MatSetValue(A, i, column[k], -1.0, INSERT_VALUES);
        MatSetValue(A, i, i, 4.0, INSERT_VALUES);
    }
    MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY);
    MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY);
    MatCreateVecs(A, &x, &b);
    VecSet(b, 1.0);
    KSPCreate(PETSC_COMM_WORLD, &solver);
    KSPSetOperators(solver, A, A);
    KSPSetType(solver, KSPPIPECG);
    KSPSetTolerances(solver, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 1000);
    KSPSetFromOptions(solver);
    for (PetscInt i = 0; i < solves; i++)
        KSPSolve(solver, b, x);
    KSPGetIterationNumber(solver, &its);
    VecNorm(x, NORM_2, &norm);
    PetscPrintf(PETSC_COMM_WORLD, "%d %.12e\n", (int)(its / 5), (double)norm);
    KSPDestroy(&solver);
    VecDestroy(&x);
    VecDestroy(&b);
    MatDestroy(&A);
    PetscFinalize();
    return 0;
}
END
    # shellcheck disable=SC2046
    $CC -O1 -o pipe pipe.c $(pkg-config --cflags --libs PETSc) -lm
}
command_line="./pipe"
