# SPDX-License-Identifier: MIT
"""What a shared library of this machine asks the dynamic linker for."""

import re
import struct

LOAD, DYNAMIC = 1, 2  # kinds of segments
NEEDED, STRTAB, RPATH, RUNPATH = 1, 5, 15, 29  # tags of the dynamic section


class Needs:
    """needed: names of libraries; rpath, runpath: lists of directories."""

    def __init__(self, file):
        with open(file, "rb") as stream:
            image = stream.read()
        if image[:6] != b"\x7fELF\x02\x01":
            raise OSError(f"{file}: not a library of this machine")
        segments = list(self._segments(image))
        tags = [tag for kind, start, _, size in segments if kind == DYNAMIC
                for tag in struct.iter_unpack("<qQ", image[start:start + size - size % 16])]
        strings = [self._offset(segments, value) for tag, value in tags if tag == STRTAB]

        def texts(wanted):
            places = [strings[0] + value for tag, value in tags if tag == wanted]
            return [image[place:image.index(b"\0", place)].decode() for place in places]

        def directories(wanted):
            return [name for text in texts(wanted) for name in text.split(":") if name]

        self.needed = texts(NEEDED)
        self.rpath, self.runpath = directories(RPATH), directories(RUNPATH)

    @staticmethod
    def _segments(image):
        start, = struct.unpack_from("<Q", image, 32)
        size, count = struct.unpack_from("<HH", image, 54)
        for i in range(count):
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", image, start + i * size)
            yield kind, offset, address, length

    @staticmethod
    def _offset(segments, address):
        for kind, offset, begin, length in segments:
            if kind == LOAD and begin <= address < begin + length:
                return offset + address - begin
        raise OSError("no table of strings")


def mpi_needed(file):
    """The name of the MPI's library that a file needs, None if it needs none."""
    for name in Needs(file).needed:
        if re.match(r"lib(mpi|mpich|mpi_abi|mpi_cray|mpich_[a-z]+)\.so", name):
            return name
    return None
