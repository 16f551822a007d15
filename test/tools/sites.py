# SPDX-License-Identifier: MIT
"""Collectives from lines of Python that are known: MPI_Barrier, by ctypes."""
import ctypes

mpi = ctypes.CDLL(None)  # preloaded libraries are in it
comm = ctypes.c_int(0x44000000)
try:
    world = ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")
    comm = ctypes.c_void_p(ctypes.addressof(world))
except ValueError:
    pass  # MPICH: a number


def wrapper():
    for _ in range(3):

        mpi.MPI_Barrier(comm)


def first():
    wrapper()


def later():
    wrapper()


mpi.MPI_Init(None, None)
mpi.MPI_Barrier(comm)
first()
later()
mpi.MPI_Finalize()
