# SPDX-License-Identifier: MIT
"""Tables from the JSON files of nbcbench: report.py DIRECTORY SAMPLES REMARKS, in Markdown."""
import json
import math
import os
import platform
import subprocess
import sys

LIMIT = 1.10


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0]
    except (OSError, IndexError):
        return "unknown"


def processor():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def ratio(cell, over, under):
    if over in cell and under in cell:
        return cell[over]["median"] / cell[under]["median"]
    return None


def name_of(size):
    return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K" if size >= 1024 else str(size)


def table(cells, over, under):
    sizes = sorted({c["bytes"] for c in cells if c["collective"] != "barrier"})
    print("| collective | " + " | ".join(map(name_of, sizes)) + " |")
    print("|---|" + "---|" * len(sizes))
    for coll in dict.fromkeys(c["collective"] for c in cells):
        row = {c["bytes"]: ratio(c, over, under) for c in cells if c["collective"] == coll}
        if coll == "barrier":
            row = {sizes[0]: row[0]}
        print(f"| {coll} | " + " | ".join(
            f"{row[s]:.2f}" if row.get(s) is not None else "" for s in sizes) + " |")
    print()


def losses(cells):
    bad = [c for c in cells if (ratio(c, "shim", "native") or 0) > LIMIT]
    if not bad:
        print(f"No cell is above {LIMIT:.2f}.\n")
        return
    print(f"Above {LIMIT:.2f}:\n")
    for c in bad:
        s, n = c["shim"], c["native"]
        print(f"- {c['collective']}, {name_of(c['bytes'])}, {c['algorithm']}: "
              f"{s['median'] * 1e6:.2f} us (quartiles {s['low'] * 1e6:.2f} to {s['high'] * 1e6:.2f}) "
              f"against {n['median'] * 1e6:.2f} ({n['low'] * 1e6:.2f} to {n['high'] * 1e6:.2f})")
    print()


def section(directory, mpi, ranks):
    with open(f"{directory}/{mpi}-{ranks}.json") as f:
        cells = json.load(f)
    native = [r for c in cells if (r := ratio(c, "shim", "native"))]
    rounds = [r for c in cells if (r := ratio(c, "shim", "rounds"))]
    small = [r for c in cells if c["bytes"] <= 1024
             and (r := ratio(c, "shim_persistent", "shim"))]
    print(f"### {mpi}, {ranks} ranks\n")
    print("Time of start and wait over that of the MPI's own nonblocking collective:\n")
    table(cells, "shim", "native")
    print(f"Geometric mean {mean(native):.2f} over {len(native)} cells; against rounds over "
          f"`MPI_Testall` with the same algorithms {mean(rounds):.2f}; persistent over nonblocking, "
          f"up to 1K, {mean(small):.2f}.", end="")
    floors = [c["shim"]["median"] / c["floor"] for c in cells if c["bytes"] == 8 and c["floor"] > 0]
    if ranks == 2:
        print(f" Over the floor, 8 bytes: {mean(floors):.2f}.", end="")
    print("\n")
    losses(cells)
    print(f"![ratio to native](performance/{mpi}-{ranks}.svg)\n")


def main():
    directory, samples, remarks = sys.argv[1:4]
    with open(f"{directory}/load") as f:
        before, after = f.read().split("\n")[:2]
    print("# Performance\n")
    print("Written by `bench/compare` from one run; every figure is from that run.\n")
    print(f"Machine: {processor()}, {os.cpu_count()} processors. MPIs: "
          f"{first_line(['mpichversion'])}; {first_line(['ompi_info', '--version'])}. Load averages "
          f"before: {before}; after: {after}. Medians of {samples} samples per variant and cell, all "
          "variants in turns in one process; a sample is the mean of as many calls as last a "
          "millisecond. Ratios below 1 mean that nbcshim is faster. With more ranks than processors "
          "the system's scheduler is measured as much as the collectives.\n")
    for mpi in ("mpich", "openmpi"):
        for ranks in (2, 4, 8):
            section(directory, mpi, ranks)
    if os.path.exists(remarks):
        with open(remarks) as f:
            print(f.read(), end="")


main()
