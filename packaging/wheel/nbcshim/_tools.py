# SPDX-License-Identifier: MIT
"""nbcinfo is a program for one MPI: this starts that of the MPI which mpi4py takes."""

import ctypes
import os
import pathlib
import sys

from . import _load
from ._elf import mpi_needed


def choose():
    """The directory of nbcshim's library, and of the MPI's if that must be said."""
    try:
        extension, name = _load.find_mpi4py()
        mpi = _load.file_of(_load.open_mpi(extension, name, os.environ).MPI_Init)
        return pathlib.Path(_load.find_library(name)).parent, os.path.dirname(mpi)
    except (_load.Refused, OSError):
        return first_that_opens(), None


def first_that_opens():
    for library in _load.libraries():
        try:
            ctypes.CDLL(str(library))
            return library.parent
        except OSError:
            continue
    names = ", ".join(mpi_needed(library) for library in _load.libraries())
    sys.exit(f"nbcinfo: the dynamic linker finds no MPI: {names}")


def nbcinfo():
    directory, mpi = choose()
    environ = dict(os.environ)
    if mpi:
        environ["LD_LIBRARY_PATH"] = mpi + ":" + environ.get("LD_LIBRARY_PATH", "")
    os.execve(directory / "nbcinfo", ["nbcinfo", *sys.argv[1:]], environ)
