# SPDX-License-Identifier: MIT
"""nbcshim: MPI collectives for Python programs. Import it before mpi4py.MPI:

    import nbcshim
    from mpi4py import MPI

This opens the MPI that mpi4py would open, and nbcshim in front of it. With NBCSHIM=on in the
environment an unchanged program does the same. nbcshim.info() and "python -m nbcshim" tell which
files were taken; with NBCSHIM_STATS=verbose a line on stderr does."""

import os
import sys

from ._load import info, load

__version__ = "@VERSION@"
__all__ = ["info"]

load(os.environ, sys.stderr)
