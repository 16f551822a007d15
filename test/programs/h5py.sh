# h5py over parallel HDF5: each rank writes its rows of a file, then reads its columns.
packages="python3-h5py-mpi python3-mpi4py python3-numpy" mpi=openmpi ranks=3
gain="nothing: the collectives are those of the MPI's own MPI-IO"
prepare()
{
    cat >rows.py <<'END'
from mpi4py import MPI
import h5py._debian_h5py_mpi as h5py
import numpy as np
comm = MPI.COMM_WORLD
n = 30 // comm.size
with h5py.File('rows.h5', 'w', driver='mpio', comm=comm) as f:
    d = f.create_dataset('a', (30, 30), dtype='d', chunks=(10, 10))
    with d.collective:
        d[comm.rank * n:(comm.rank + 1) * n, :] = np.arange(n * 30.).reshape(n, 30) + comm.rank
with h5py.File('rows.h5', 'r', driver='mpio', comm=comm) as f:
    with f['a'].collective:
        mine = f['a'][:, comm.rank * n:(comm.rank + 1) * n]
total = comm.gather(float((mine * np.arange(30.)[:, None]).sum()))
if comm.rank == 0:
    print(*total)
END
}
command_line="/usr/bin/python3 rows.py"
