# SPDX-License-Identifier: MIT
from . import info

for name, value in info().items():
    print(f"{name:8} {value}")
