# SPDX-License-Identifier: MIT
"""assemble.py VERSION TAG DIRECTORY OUT: makes a wheel of the files below DIRECTORY, which lie as in
the wheel, and prints its name. The same files make the same wheel."""

import base64
import hashlib
import os
import pathlib
import sys
import zipfile

METADATA = """Metadata-Version: 2.1
Name: nbcshim
Version: {version}
Summary: Nonblocking and persistent MPI collectives over any MPI
License: MIT
Requires-Python: >=3.8
"""
WHEEL = """Wheel-Version: 1.0
Generator: packaging/wheel/assemble.py
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY_POINTS = """[console_scripts]
nbcinfo = nbcshim._tools:nbcinfo
"""


def digest(data):
    text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"sha256={text},{len(data)}"


def add(archive, name, data, executable, record):
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
    record.append(f"{name},{digest(data)}")


def main(version, tag, directory, out):
    files = {str(path.relative_to(directory)): path
             for path in sorted(pathlib.Path(directory).rglob("*")) if path.is_file()}
    described = f"nbcshim-{version}.dist-info"
    name = pathlib.Path(out) / f"nbcshim-{version}-{tag}.whl"
    record = []
    with zipfile.ZipFile(name, "w") as archive:
        for inside, path in files.items():
            add(archive, inside, path.read_bytes(), os.access(path, os.X_OK), record)
        for inside, text in (("METADATA", METADATA), ("WHEEL", WHEEL), ("entry_points.txt", ENTRY_POINTS)):
            data = text.format(version=version, tag=tag).encode()
            add(archive, f"{described}/{inside}", data, False, record)
        record.append(f"{described}/RECORD,,\n")
        add(archive, f"{described}/RECORD", "\n".join(record).encode(), False, [])
    print(name)


main(*sys.argv[1:])
