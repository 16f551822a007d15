# SLEPc: the four smallest eigenvalues of a Laplacian, by Krylov-Schur and shift and invert with MUMPS.
packages="slepc-dev petsc-dev" mpi=openmpi ranks=4
tolerance=1e-8 why="another order of sums changes the last digits of an eigenvalue"
gain="nothing on one node: orthogonalization waits for each of its allreduces, which are blocking"
prepare()
{
    cat >chain.c <<'END'
#include <slepceps.h>
int main(int argc, char **argv)
{
    Mat A;
    EPS eps;
    ST st;
    PetscInt n = 400, first, last, found;
    SlepcInitialize(&argc, &argv, NULL, NULL);
    MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, NULL, 1, NULL, &A);
    MatGetOwnershipRange(A, &first, &last);
    for (PetscInt i = first; i < last; i++)
        for (PetscInt j = PetscMax(0, i - 1); j < PetscMin(n, i + 2); j++)
            MatSetValue(A, i, j, i == j ? 2.0 + (double)i / (double)n : -1.0, INSERT_VALUES);
    MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY);
    MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY);
    EPSCreate(PETSC_COMM_WORLD, &eps);
    EPSSetOperators(eps, A, NULL);
    EPSSetProblemType(eps, EPS_HEP);
    EPSSetDimensions(eps, 4, PETSC_DEFAULT, PETSC_DEFAULT);
    EPSGetST(eps, &st);
    STSetType(st, STSINVERT);
    EPSSetTarget(eps, 0.0);
    EPSSetFromOptions(eps);
    EPSSolve(eps);
    EPSGetConverged(eps, &found);
    for (PetscInt i = 0; i < PetscMin(found, 4); i++) {
        PetscScalar k;
        EPSGetEigenvalue(eps, i, &k, NULL);
        PetscPrintf(PETSC_COMM_WORLD, "%.12e ", (double)k);
    }
    EPSDestroy(&eps);
    MatDestroy(&A);
    SlepcFinalize();
    return 0;
}
END
    # shellcheck disable=SC2046
    $CC -O1 -o chain chain.c $(pkg-config --cflags --libs slepc PETSc) -lm
}
command_line="./chain"
