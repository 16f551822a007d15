# SPDX-License-Identifier: MIT
"""NBCSHIM=on: nbcshim.pth imports this when Python starts. nbcshim is imported with mpi4py.MPI."""

import sys


class BeforeMPI:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "mpi4py.MPI":
            sys.meta_path.remove(cls)
            import nbcshim  # noqa: F401
        return None


sys.meta_path.insert(0, BeforeMPI)
