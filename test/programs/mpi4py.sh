# mpi4py: every collective that a Python program calls most, on arrays and on objects.
packages="python3-mpi4py python3-numpy" mpi=openmpi ranks=3
gain="Allreduce_init, which Open MPI 4.1 lacks (not in Debian's mpi4py 3.1: doc/python.md)"
prepare()
{
    cat >collectives.py <<'END'
from mpi4py import MPI
import numpy as np
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
a = np.arange(1000, dtype='d') * (rank + 1)
b = np.empty_like(a)
comm.Allreduce(a, b)
r = comm.Iallreduce(a, c := np.empty_like(a))
r.Wait()
g = np.empty((size, 1000))
comm.Iallgather(a, g).Wait()
t = np.empty(size * 2)
comm.Ialltoall(np.arange(size * 2, dtype='d') + 10 * rank, t).Wait()
words = comm.allgather({'rank': rank})
total = comm.reduce(float(g.sum() + t.sum()), root=0)
comm.Barrier()
if rank == 0:
    print(b.sum(), c.sum(), g.sum(), total, *[w['rank'] for w in words])
END
}
command_line="/usr/bin/python3 collectives.py"
