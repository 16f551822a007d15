# deal.II: the Poisson equation on an L-shaped domain, refined three times towards the corner (p4est below).
packages="libdeal.ii-dev" mpi=openmpi ranks=4
tolerance=1e-7 why="another order of sums changes the last digits of a norm"
gain="nothing on one node: its MPI_Ibarrier ends an exchange between unknown partners, of which there are few"
prepare()
{
    cat >poisson.cc <<'END'
#include <deal.II/base/function.h>
#include <deal.II/base/quadrature_lib.h>
#include <deal.II/distributed/tria.h>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/fe_values.h>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/lac/affine_constraints.h>
#include <deal.II/lac/la_parallel_vector.h>
#include <deal.II/lac/precondition.h>
#include <deal.II/lac/solver_cg.h>
#include <deal.II/lac/trilinos_sparse_matrix.h>
#include <deal.II/lac/trilinos_sparsity_pattern.h>
#include <deal.II/numerics/vector_tools.h>
#include <iostream>
using namespace dealii;
using Solution = LinearAlgebra::distributed::Vector<double>;
int main(int argc, char **argv)
{
    Utilities::MPI::MPI_InitFinalize init(argc, argv, 1);
    const MPI_Comm comm = MPI_COMM_WORLD;
    parallel::distributed::Triangulation<2> mesh(comm);
    GridGenerator::hyper_L(mesh);
    mesh.refine_global(3);
    FE_Q<2> fe(2);
    DoFHandler<2> dofs(mesh);
    for (int cycle = 0; cycle < 3; cycle++) {
        for (const auto &cell : mesh.active_cell_iterators())
            if (cell->is_locally_owned() && cell->center().norm() < 0.4)
                cell->set_refine_flag();
        mesh.execute_coarsening_and_refinement();
        dofs.distribute_dofs(fe);
        IndexSet relevant;
        DoFTools::extract_locally_relevant_dofs(dofs, relevant);
        AffineConstraints<double> constraints(relevant);
        DoFTools::make_hanging_node_constraints(dofs, constraints);
        VectorTools::interpolate_boundary_values(dofs, 0, Functions::ZeroFunction<2>(), constraints);
        constraints.close();
        TrilinosWrappers::SparsityPattern pattern(dofs.locally_owned_dofs(), dofs.locally_owned_dofs(), relevant, comm);
        DoFTools::make_sparsity_pattern(dofs, pattern, constraints, false, Utilities::MPI::this_mpi_process(comm));
        pattern.compress();
        TrilinosWrappers::SparseMatrix matrix;
        matrix.reinit(pattern);
        Solution x(dofs.locally_owned_dofs(), relevant, comm), b(x);
        QGauss<2> points(3);
        FEValues<2> values(fe, points, update_values | update_gradients | update_JxW_values);
        FullMatrix<double> a(fe.n_dofs_per_cell(), fe.n_dofs_per_cell());
        Vector<double> f(fe.n_dofs_per_cell());
        std::vector<types::global_dof_index> at(fe.n_dofs_per_cell());
        for (const auto &cell : dofs.active_cell_iterators()) {
            if (!cell->is_locally_owned())
                continue;
            values.reinit(cell);
            a = 0;
            f = 0;
            for (unsigned q = 0; q < points.size(); q++)
                for (unsigned i = 0; i < fe.n_dofs_per_cell(); i++) {
                    for (unsigned j = 0; j < fe.n_dofs_per_cell(); j++)
                        a(i, j) += values.shape_grad(i, q) * values.shape_grad(j, q) * values.JxW(q);
                    f(i) += values.shape_value(i, q) * values.JxW(q);
                }
            cell->get_dof_indices(at);
            constraints.distribute_local_to_global(a, f, at, matrix, b);
        }
        matrix.compress(VectorOperation::add);
        b.compress(VectorOperation::add);
        SolverControl control(2000, 1e-10);
        SolverCG<Solution> solver(control);
        solver.solve(matrix, x, b, PreconditionIdentity());
        constraints.distribute(x);
        double norm = x.l2_norm();
        if (Utilities::MPI::this_mpi_process(comm) == 0)
            std::cout << mesh.n_global_active_cells() << " " << dofs.n_dofs() << " " << norm << std::endl;
    }
}
END
    $CXX -O1 -w -std=c++17 -I/usr/include/trilinos -I/usr/lib/petsc/include -I/usr/lib/slepc/include \
        -I/usr/include/suitesparse -o poisson poisson.cc -Wl,--copy-dt-needed-entries -ldeal.ii -ltbb \
        -ltrilinos_epetra -ltrilinos_teuchoscore
}
command_line="./poisson"
