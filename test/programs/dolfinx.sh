# DOLFINx: Poisson's equation on a square, solved by PETSc.
packages="python3-dolfinx python3-petsc4py" mpi=openmpi ranks=3
tolerance=1e-7 why="the partition of the mesh, and sums in another order"
gain="little: neighborhood collectives when a mesh and its vectors are set up; the solver is PETSc's"
prepare()
{
    cat >poisson.py <<'END'
from mpi4py import MPI
import ufl
from dolfinx import fem, mesh
from petsc4py.PETSc import ScalarType
square = mesh.create_unit_square(MPI.COMM_WORLD, 16, 16)
V = fem.FunctionSpace(square, ('Lagrange', 2))
square.topology.create_connectivity(1, 2)
edge = mesh.exterior_facet_indices(square.topology)
zero = fem.dirichletbc(ScalarType(0), fem.locate_dofs_topological(V, 1, edge), V)
u, v, x = ufl.TrialFunction(V), ufl.TestFunction(V), ufl.SpatialCoordinate(square)
problem = fem.petsc.LinearProblem(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, ufl.sin(7 * x[0]) * v * ufl.dx,
                                  bcs=[zero], petsc_options={'ksp_type': 'cg', 'ksp_rtol': 1e-10})
solution = problem.solve()
total = square.comm.allreduce(fem.assemble_scalar(fem.form(solution * solution * ufl.dx)))
if square.comm.rank == 0:
    print('%.9e' % total.real)
END
    # Its code generator calls a compiler, once.
    "mpiexec.$mpi" -n "$ranks" $(program) >compile.log 2>&1
}
program()
{
    echo env "XDG_CACHE_HOME=$PWD/cache" /usr/bin/python3 poisson.py
}
