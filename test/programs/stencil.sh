# mpi4py 4 of PyPI: conjugate gradients for a chain, by persistent collectives where the MPI has them.
packages="python3-venv python3-numpy libopenmpi3" mpi=openmpi ranks=3
tolerance=1e-9 why="another order of sums changes the last digits of a residual"
gain="persistent collectives, which Open MPI 4.1 lacks: natively the program falls back to blocking ones"
prepare()
{
    cat >chain.py <<'END'
import sys
from mpi4py import MPI
import numpy as np
ring = MPI.COMM_WORLD.Create_cart([MPI.COMM_WORLD.size], periods=[True])
n, steps = int(sys.argv[1]), int(sys.argv[2])
edge, ghost, mine, dot = np.zeros(2), np.zeros(2), np.zeros(1), np.zeros(1)
try:
    halo = ring.Neighbor_alltoall_init(edge, ghost)
    add = ring.Allreduce_init(mine, dot)
except NotImplementedError:
    halo = add = None
def product(a, b):
    mine[0] = a @ b
    if add:
        add.Start()
        add.Wait()
    else:
        ring.Allreduce(mine, dot)
    return dot[0]
x, q, r = np.zeros(n), np.zeros(n), np.sin(np.arange(n) + ring.rank * n)
p, old = r.copy(), product(r, r)
for _ in range(steps):
    edge[:] = p[0], p[-1]
    if halo:
        halo.Start()
    else:
        request = ring.Ineighbor_alltoall(edge, ghost)
    q[1:-1] = 2.1 * p[1:-1] - p[:-2] - p[2:]
    (halo or request).Wait()
    q[0] = 2.1 * p[0] - p[1] - ghost[0]
    q[-1] = 2.1 * p[-1] - p[-2] - ghost[1]
    a = old / product(p, q)
    x += a * p
    r -= a * q
    new = product(r, r)
    p = r + new / old * p
    old = new
total = product(x, x)
if ring.rank == 0:
    print('%.12e' % total)
END
    /usr/bin/python3 -m venv --system-site-packages venv && venv/bin/pip install -q 'mpi4py>=4' >pip.log 2>&1 ||
        { grep -q 'from versions: none' pip.log && return 77; }
    version=$(venv/bin/python -c 'import mpi4py; print("mpi4py", mpi4py.__version__)')
}
command_line="venv/bin/python chain.py 100 40"
