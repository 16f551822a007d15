# SPDX-License-Identifier: MIT
"""Puts the results of bench/compare, JSON files of nbcbench, into the tables of doc/performance/:

    report.py DIRECTORY SAMPLES VERSION
    report.py --untouched DIRECTORY SAMPLES

The second form puts only the tables of a program's other calls. The first one prints one line that tells all.
"""
import json
import math
import os
import platform
import subprocess
import sys
import time as clock

import tables

LIMIT = 1.10
MPIS = "mpich", "openmpi"


def first_line(command):
    try:
        return " ".join(subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0].split())
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


def load(directory, name):
    with open(f"{directory}/{name}.json") as f:
        return json.load(f)


def floor_of(cells):
    return mean([c["shim"]["median"] / c["floor"] for c in cells if c["bytes"] == 8 and c["floor"] > 0])


def us(row, name):
    return f"{row[name]['median'] * 1e6:.2f}" if name in row else ""


def put_run(what, command, samples, loads):
    """When, where and how: one row of runs.tsv."""
    mpis = ", ".join(first_line(c).replace("Version: ", "").replace(" v", " ")
                     for c in (["mpichversion"], ["ompi_info", "--version"]))
    tables.put("runs", ["what", "date", "command", "processor", "processors", "MPIs", "load before", "load after",
                        "samples"],
               [[what, clock.strftime("%F"), command, processor(), os.cpu_count(), mpis, *loads, samples]], 1)


# --- start and wait -------------------------------------------------------------------------------

def start_wait(directory, mpi, ranks):
    cells = load(directory, f"{mpi}-{ranks}")
    sizes = sorted({c["bytes"] for c in cells if c["collective"] != "barrier"})
    rows = []
    for coll in dict.fromkeys(c["collective"] for c in cells):
        row = {c["bytes"]: ratio(c, "shim", "native") for c in cells if c["collective"] == coll}
        if coll == "barrier":
            row = {sizes[0]: row[0]}
        rows.append([mpi, ranks, coll] + [f"{row[s]:.2f}" if row.get(s) is not None else "" for s in sizes])
    tables.put("start-wait", ["mpi", "ranks", "collective"] + [name_of(s) for s in sizes], rows, 2)
    native = [r for c in cells if (r := ratio(c, "shim", "native"))]
    rounds = [r for c in cells if (r := ratio(c, "shim", "rounds"))]
    small = [r for c in cells if c["bytes"] <= 1024 and (r := ratio(c, "shim_persistent", "shim"))]
    floor = f"{floor_of(cells):.2f}" if ranks == 2 else ""
    tables.put("start-wait-means", ["mpi", "ranks", "cells", "of native", "of rounds", "persistent, up to 1K",
                                    "of the floor, 8 bytes"],
               [[mpi, ranks, len(native)] + [f"{mean(r):.2f}" for r in (native, rounds, small)] + [floor]], 2)


def losses(directory):
    rows = []
    for mpi in MPIS:
        for ranks in (2, 4, 8):
            for c in load(directory, f"{mpi}-{ranks}"):
                if (ratio(c, "shim", "native") or 0) > LIMIT:
                    rows.append([mpi, ranks, c["collective"], name_of(c["bytes"]), c["algorithm"]] +
                                [f"{c[who][of] * 1e6:.2f}" for who in ("shim", "native")
                                 for of in ("median", "low", "high")] +
                                [c["samples"], f"{c['ratio']['low']:.2f}", f"{c['ratio']['high']:.2f}"])
    tables.put("start-wait-above", ["mpi", "ranks", "collective", "bytes", "algorithm", "us", "low", "high",
                                    "native us", "native low", "native high", "samples", "ratio low",
                                    "ratio high"], rows, 0)


def summary_of(directory, mpi):
    """The columns of history.tsv from the number of cells on."""
    runs = {ranks: load(directory, f"{mpi}-{ranks}") for ranks in (2, 4, 8)}
    ratios = {n: [r for c in cells if (r := ratio(c, "shim", "native"))] for n, cells in runs.items()}
    every = sum(ratios.values(), [])
    sure = sum(1 for cells in runs.values() for c in cells if c.get("ratio", c)["low"] > LIMIT)
    hidden = [100 * r["overlap"] for r in load(directory, f"{mpi}-idle-thread")
              if r["variant"] == "shim" and r["bytes"] >= 1 << 20]
    return [len(every), *(f"{mean(r):.2f}" for r in ratios.values()), sum(r > LIMIT for r in every), sure,
            f"{floor_of(runs[2]):.2f}", f"{min(hidden):.0f}", f"{max(hidden):.0f}"]


def history(directory, version):
    head, rows = tables.load("history")
    for mpi in MPIS:
        row = [version, clock.strftime("%F"), processor(), mpi] + summary_of(directory, mpi)
        rows.append(row)
        print("; ".join(f"{name} {value}" for name, value in zip(head, row)))
    tables.put("history", head, rows, 0)


# --- other measures of operations -----------------------------------------------------------------

def calls(directory, mpi):
    rows = load(directory, f"{mpi}-calls")
    find = {(r["collective"], r["variant"]): r for r in rows}
    new = []
    for coll in dict.fromkeys(r["collective"] for r in rows):
        persistent, ours, native = (find.get((coll, v), {}) for v in ("shim_persistent", "shim", "native"))
        new.append([mpi, coll] + [us(persistent, n) for n in ("init", "again", "free", "start", "wait")] +
                   [us(row, n) for row in (ours, native) for n in ("first", "start", "wait")])
    tables.put("calls", ["mpi", "collective", "init", "again", "free", "MPI_Start", "wait after MPI_Start", "first",
                         "MPI_I...", "wait after MPI_I...", "native first", "native MPI_I...", "native wait"], new, 1)


def outstanding(directory, mpi):
    find = {(r["collective"], r["outstanding"], r["variant"]): r for r in load(directory, f"{mpi}-outstanding")}
    new = []
    for coll, n in dict.fromkeys(k[:2] for k in find):
        row = [mpi, coll, n]
        for r in (find.get((coll, n, v), {}) for v in ("shim", "native")):
            row += [us(r, "each"), f"{r['memory']:.0f}" if "memory" in r else ""]
        new.append(row)
    tables.put("outstanding", ["mpi", "collective", "outstanding", "us each", "bytes each", "native us each",
                               "native bytes"], new, 1)


def overlap(directory, mpi):
    shares = {}
    for progress in "calls", "thread":
        for kind in "overlap", "idle":
            for r in load(directory, f"{mpi}-{kind}-{progress}"):
                row = shares.setdefault((r["collective"], r["bytes"]), {})
                for share in "overlap", "overlap_tests":
                    row[r["variant"], progress, kind, share] = r.get(share)
    columns = {"native": ("native", "calls", "overlap", "overlap"),
               "nbcshim": ("shim", "calls", "overlap", "overlap"),
               "native, tests": ("native", "calls", "overlap", "overlap_tests"),
               "nbcshim, tests": ("shim", "calls", "overlap", "overlap_tests"),
               "nbcshim, thread": ("shim", "thread", "overlap", "overlap"),
               "idle: native": ("native", "calls", "idle", "overlap"),
               "idle: nbcshim": ("shim", "calls", "idle", "overlap"),
               "idle: nbcshim, thread": ("shim", "thread", "idle", "overlap")}
    tables.put("overlap", ["mpi", "collective", "bytes"] + [f"{name}, %" for name in columns],
               [[mpi, coll, name_of(size)] + [f"{100 * row[c]:.0f}" for c in columns.values()]
                for (coll, size), row in shares.items()], 1)


# --- a program's other calls ----------------------------------------------------------------------

STATES = {"nothing pending": "ratio", "one operation pending": "ratio_pending", "the MPI a second time": "ratio_again"}


def above(cells, key, limit):
    return sum(1 for c in cells if c.get(key, 0) > limit)


def other_calls(directory, mpi):
    cells = load(directory, f"{mpi}-untouched")
    tables.put("other-calls-means", ["mpi", "state", "cells", "geometric mean", "above 1.03", "above 1.10"],
               [[mpi, state, len(cells), f"{mean([c[key] for c in cells]):.3f}", above(cells, key, 1.03),
                 above(cells, key, 1.10)] for state, key in STATES.items()], 1)
    sized = {c["calls"] for c in cells if c["bytes"] > 8 or c["group"] == "collectives"}
    sizes = sorted({c["bytes"] for c in cells if c["bytes"] and c["calls"] in sized})
    rows = []
    for calls_ in dict.fromkeys(c["calls"] for c in cells if c["calls"] in sized):
        row = {c["bytes"] or sizes[0]: c for c in cells if c["calls"] == calls_}
        for state, key in (("nothing pending", "ratio"), ("one pending", "ratio_pending")):
            rows.append([mpi, calls_, state] + [f"{row[s][key]:.2f}" if s in row else "" for s in sizes])
    tables.put("other-calls-bytes", ["mpi", "calls", "state"] + [name_of(s) for s in sizes], rows, 1)
    tables.put("other-calls", ["mpi", "calls", "the MPI, us", "nothing pending", "one pending"],
               [[mpi, c["calls"], us(c, "native"), f"{c['ratio']:.2f}", f"{c['ratio_pending']:.2f}"]
                for c in cells if c["calls"] not in sized], 1)


def footprint(directory, mpi):
    tables.put("footprint", ["mpi", "nbcshim", "MPI_Init, ms", "MPI_Finalize, ms", "resident, KiB", "heap, KiB",
                             "instructions"],
               [[mpi, way, f"{r['init']:.1f}", f"{r['finalize']:.1f}", f"{r['resident']:.0f}", f"{r['heap']:.0f}",
                 r["instructions"] or ""] for way, r in load(directory, f"{mpi}-footprint").items()], 1)


def untouched(directory, samples):
    with open(f"{directory}/untouched-load") as f:
        loads = f.read().split("\n")[:2]
    put_run("other calls, footprint", f"bench/compare --untouched {samples}", samples, loads)
    for mpi in MPIS:
        other_calls(directory, mpi)
        footprint(directory, mpi)


def main():
    if sys.argv[1] == "--untouched":
        untouched(*sys.argv[2:4])
        return
    directory, samples, version = sys.argv[1:4]
    with open(f"{directory}/load") as f:
        loads = f.read().split("\n")[:2]
    put_run("start and wait, calls, outstanding, overlap", "bench/compare",
            f"{samples} a variant and cell, up to {16 * int(samples)} where the quartiles of the ratio contain "
            f"{LIMIT:.2f}", loads)
    for mpi in MPIS:
        for ranks in (2, 4, 8):
            start_wait(directory, mpi, ranks)
        for write in calls, outstanding, overlap:
            write(directory, mpi)
    losses(directory)
    untouched(directory, samples)
    history(directory, version)


if __name__ == "__main__":
    main()
