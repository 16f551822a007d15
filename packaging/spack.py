# SPDX-License-Identifier: MIT
"""Spack recipe. Install it in a Spack repository as packages/nbcshim/package.py. It builds from an
archive of "make dist" in the directory in which Spack is called."""

import os

from spack.package import *

try:  # Spack 1 has it in the repository of its packages
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

    has_languages = True
except ImportError:
    has_languages = False


class Nbcshim(AutotoolsPackage):
    """Nonblocking and persistent MPI collectives for any MPI, through the profiling interface."""

    manual_download = True
    url = "file://{0}/nbcshim-0.4.0.tar.xz".format(os.getcwd())

    license("MIT")

    version("0.4.0")

    if has_languages:
        depends_on("c", type="build")
    depends_on("mpi")
    depends_on("uthash", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("check", type="test")

    def configure_args(self):
        return ["MPICC={0}".format(self.spec["mpi"].mpicc)]
