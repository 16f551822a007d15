# SPDX-License-Identifier: MIT
"""Opens the MPI of mpi4py, and nbcshim in front of it."""

import ctypes
import importlib.util
import os
import pathlib
import sys

from ._elf import Needs, mpi_needed

NOLOAD = 4  # RTLD_NOLOAD of glibc: finds a library that is loaded already

_info = {"active": False, "library": None, "mpi": None, "why": "not loaded"}


class Refused(Exception):
    """nbcshim cannot be loaded, the program runs without it; says why."""


def info():
    """Whether nbcshim is in front of the MPI, the files of both, and why or why not."""
    return dict(_info)


def is_first_rank(environ):
    names = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
    return next((environ[name] for name in names if name in environ), "0") == "0"


def load(environ, stderr):
    try:
        _info.update(active=True, **_load(environ))
        line = f"nbcshim: {_info['library']} in front of {_info['mpi']} ({_info['why']})"
        say = environ.get("NBCSHIM_STATS", "").lower() == "verbose"
    except (Refused, OSError) as error:
        _info["why"] = str(error)
        line = f"nbcshim: the program runs without nbcshim: {error}"
        say = environ.get("NBCSHIM", "").lower() != "off"
    if say and is_first_rank(environ):
        print(line, file=stderr, flush=True)


def _load(environ):
    if environ.get("NBCSHIM", "").lower() == "off":
        raise Refused("NBCSHIM=off")
    if "mpi4py.MPI" in sys.modules:
        raise Refused("import nbcshim before mpi4py.MPI")
    process = ctypes.CDLL(None)
    if hasattr(process, "nbcshim_version"):
        return {"library": file_of(process.nbcshim_version), "mpi": file_of(process.PMPI_Init),
                "why": "preloaded, or opened before"}
    if hasattr(process, "MPI_Init"):
        raise Refused(f"{file_of(process.MPI_Init)} was opened before it, with RTLD_GLOBAL")
    extension, name = find_mpi4py()
    library = find_library(name)
    mpi = open_mpi(extension, name, environ)
    if ctypes.CDLL(name, mode=os.RTLD_LAZY | NOLOAD)._handle != mpi._handle:
        raise Refused(f"mpi4py takes {file_of(mpi.MPI_Init)}, but nbcshim would take another {name}")
    ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    return {"library": library, "mpi": file_of(mpi.MPI_Init), "why": f"mpi4py needs {name}"}


class Symbol(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


def file_of(function):
    symbol = Symbol()
    address = ctypes.cast(function, ctypes.c_void_p)
    found = ctypes.CDLL(None).dladdr(address, ctypes.byref(symbol))
    return os.path.realpath(os.fsdecode(symbol.file)) if found else None


def find_mpi4py():
    """The file of mpi4py.MPI, and the name of the MPI's library that it needs. Where mpi4py has a
    module for each of several MPIs, it opens the MPI to choose one (MPI4PY_LIBMPI, its settings)."""
    try:
        spec = importlib.util.find_spec("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise Refused(f"mpi4py finds no MPI: {str(error).splitlines()[0]}") from None
    if spec is None or not spec.origin:
        raise Refused("mpi4py is not installed, or has no module for this MPI")
    name = mpi_needed(spec.origin)
    if name is None:
        raise Refused(f"{spec.origin} is linked with no MPI's shared library")
    return spec.origin, name


def libraries():
    """nbcshim's libraries: the wheel has them in the environment's lib/nbcshim."""
    for directory in pathlib.Path(__file__).resolve().parents:
        found = sorted(directory.glob("lib/nbcshim/*/libnbcshim*.so"))
        if found:
            return found
    return []


def find_library(name):
    """That for an MPI whose library has this name."""
    known = {mpi_needed(library): str(library) for library in libraries()}
    if not known:
        raise Refused("its libraries are not installed (pip install --target leaves them out)")
    if name not in known:
        raise Refused(f"mpi4py needs {name}, nbcshim is built for {', '.join(known)}")
    return known[name]


def open_mpi(extension, name, environ):
    """As the dynamic linker does for mpi4py.MPI: takes what is loaded, else searches."""
    try:
        return ctypes.CDLL(name, mode=os.RTLD_LAZY | NOLOAD)
    except OSError:
        pass
    needs = Needs(extension)
    here = environ.get("LD_LIBRARY_PATH", "").split(":")
    for directory in ([] if needs.runpath else needs.rpath) + here + needs.runpath:
        origin = os.path.dirname(os.path.realpath(extension))
        file = os.path.join(directory.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", origin), name)
        if directory and os.path.isfile(file):
            return ctypes.CDLL(file, mode=os.RTLD_LAZY)
    return ctypes.CDLL(name, mode=os.RTLD_LAZY)
