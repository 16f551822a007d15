# Trilinos: AztecOO's conjugate gradient method on an Epetra matrix.
packages="libtrilinos-aztecoo-dev libtrilinos-epetra-dev" mpi=openmpi ranks=4
tolerance=1e-7 why="another order of sums changes the last digits of a residual"
gain="nothing on one node: it sums by messages and barriers of its own"
prepare()
{
    cat >chain.cc <<'END'
#include <AztecOO.h>
#include <Epetra_CrsMatrix.h>
#include <Epetra_Map.h>
#include <Epetra_MpiComm.h>
#include <Epetra_Vector.h>
#include <cstdio>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    {
        Epetra_MpiComm comm(MPI_COMM_WORLD);
        Epetra_Map map(2000, 0, comm);
        Epetra_CrsMatrix A(Copy, map, 3);
        for (int k = 0; k < map.NumMyElements(); k++) {
            int i = map.GID(k), column[3] = {i, i - 1, i + 1};
            double value[3] = {2.0001, -1, -1};
            if (i == 0)
                column[1] = column[2];
            A.InsertGlobalValues(i, i % 1999 ? 3 : 2, value, column);
        }
        A.FillComplete();
        Epetra_Vector x(map), b(map);
        b.PutScalar(1);
        Epetra_LinearProblem problem(&A, &x, &b);
        AztecOO solver(problem);
        solver.SetAztecOption(AZ_solver, AZ_cg);
        solver.SetAztecOption(AZ_precond, AZ_Jacobi);
        solver.SetAztecOption(AZ_output, AZ_none);
        solver.Iterate(1000, 1e-10);
        double norm;
        x.Norm2(&norm);
        if (comm.MyPID() == 0)
            std::printf("%d %.10e\n", solver.NumIters() / 10, norm);
    }
    MPI_Finalize();
}
END
    $CXX -O1 -w -I/usr/include/trilinos -o chain chain.cc -ltrilinos_aztecoo -ltrilinos_epetra
}
command_line="./chain"
