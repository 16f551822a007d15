# SPDX-License-Identifier: MIT
"""For test/wheel.sh: test/wheel.py WORD... does what its words say, then calls collectives."""
import ctypes
import sys

for word in sys.argv:
    if word.startswith("global="):
        ctypes.CDLL(word[7:], mode=ctypes.RTLD_GLOBAL)
if "early" in sys.argv:
    import nbcshim
from mpi4py import MPI

if "late" in sys.argv:
    import nbcshim
if "info" in sys.argv:
    print(nbcshim.info(), flush=True)

world = MPI.COMM_WORLD
total = bytearray(8)
world.Iallreduce([world.rank.to_bytes(8, sys.byteorder), MPI.INT64_T], [total, MPI.INT64_T]).Wait()
assert int.from_bytes(total, sys.byteorder) == world.size * (world.size - 1) // 2
if world.rank == 0:
    print("over", MPI.Get_library_version().replace("\n", " ")[:40], flush=True)
