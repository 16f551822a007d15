# SPDX-License-Identifier: MIT
"""Spack recipe. Install it in a Spack repository as packages/nbcshim/package.py. It builds from an
archive of "make dist" in the directory in which Spack is called."""

import os

from spack.package import *


class Nbcshim(AutotoolsPackage):
    """Nonblocking and persistent MPI collectives for any MPI, through the profiling interface."""

    manual_download = True
    url = "file://{0}/nbcshim-0.3.0.tar.xz".format(os.getcwd())

    license("MIT")

    version("0.3.0")

    depends_on("c", type="build")
    depends_on("mpi")
    depends_on("uthash", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("check", type="test")

    def configure_args(self):
        return ["MPICC={0}".format(self.spec["mpi"].mpicc)]
