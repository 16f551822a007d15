# SPDX-License-Identifier: MIT
"""Puts the results of bench/virtual into doc/performance/virtual*.tsv, and draws the plots:

    virtual.py DIRECTORY PLOTS
"""
import glob
import os
import subprocess
import sys

import tables
from report import LIMIT, mean, name_of

PEERS = {"mpich": "MPICH", "ompi": "Open MPI", "mvapich2": "MVAPICH2", "impi": "Intel MPI"}
SIZES = 8, 1 << 10, 1 << 14, 1 << 16, 1 << 20
NETWORKS = "fat-tree", "tapered", "dragonfly", "torus"
PLOTTED = ("fat-tree", 1), ("dragonfly", 8)  # and ranks a host


def read(directory):
    """times[network, ranks a host, ranks][collective, bytes][who] in seconds"""
    times = {}
    for name in glob.glob(os.path.join(directory, "*.txt")):
        network, per = os.path.basename(name).rsplit("-", 3)[:2]
        with open(name) as f:
            for line in f:
                who, coll, ranks, size, seconds = line.split()
                cells = times.setdefault((network, int(per), int(ranks)), {})
                cells.setdefault((coll, int(size)), {})[who] = float(seconds)
    return dict(sorted(times.items(), key=lambda t: (NETWORKS.index(t[0][0]), t[0][1:])))


def best(cell):
    return min(cell[p] for p in PEERS if p in cell)


def rows_of(key, cells):
    """For each collective its ratios to the best, and which is the best where nbcshim is slower."""
    sizes = sorted({size for coll, size in cells if coll != "barrier"})
    for coll in dict.fromkeys(coll for coll, _ in cells):
        of = {size: c for (name, size), c in cells.items() if name == coll}
        ratio = {size: c["nbcshim"] / best(c) for size, c in of.items()}
        slow = [f"{name_of(size)}: {PEERS[min(PEERS, key=lambda p: of[size][p])]}"
                for size in sorted(of) if ratio[size] > LIMIT]
        if coll == "barrier":
            ratio = {sizes[0]: ratio[0]}
        yield [*key, coll] + [f"{ratio[s]:.2f}" if s in ratio else "" for s in SIZES] + ["; ".join(slow)]


def means(key, cells):
    return [*key, len(cells)] + [
        f"{mean([c['nbcshim'] / c[p] for c in cells.values()]):.2f}" for p in PEERS] + [
        f"{mean([c['nbcshim'] / best(c) for c in cells.values()]):.2f}"]


def plot(times, network, per, file):
    """One panel for each number of ranks: ratio to each peer, geometric mean over the collectives."""
    ranks = [n for at, p, n in times if (at, p) == (network, per)]
    script = [
        f"set terminal svg size {420 * len(ranks)},360 font 'sans,11'", f"set output '{file}'",
        f"set multiplot layout 1,{len(ranks)}", "set logscale x 2", "set yrange [0:1.6]", "set grid",
        "set xlabel 'bytes'", "set ylabel 'time of nbcshim / time of SMPI'", "set key top right",
    ]
    for n in ranks:
        cells = times[network, per, n]
        sizes = sorted({size for coll, size in cells if coll != "barrier"})
        blocks, plots = [], ["1 with lines lt 0 notitle"]
        for k, (peer, name) in enumerate(PEERS.items()):
            rows = [f"{s} " + str(mean([c['nbcshim'] / c[peer] for (_, size), c in cells.items() if size == s]))
                    for s in sizes]
            blocks.append(f"$data{k} << END\n" + "\n".join(rows) + "\nEND")
            plots.append(f"$data{k} with linespoints lt {k + 1} title '{name}'")
        tics = ", ".join(f"'{name_of(s)}' {s}" for s in sizes)
        script += [f"set title '{n} ranks'", f"set xtics ({tics})"] + blocks + ["plot " + ", ".join(plots)]
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def main():
    directory, plots = sys.argv[1:3]
    times = read(directory)
    for network, per in PLOTTED:
        plot(times, network, per, os.path.join(plots, f"virtual-{network}-{per}.svg"))
    tables.put("virtual", ["network", "ranks a host", "ranks", "collective"] + [name_of(s) for s in SIZES] +
               ["best, where above 1.10"], [row for key, cells in times.items() for row in rows_of(key, cells)], 3)
    tables.put("virtual-means", ["network", "ranks a host", "ranks", "cells"] + list(PEERS.values()) + ["the best"],
               [means(key, cells) for key, cells in times.items()], 3)


if __name__ == "__main__":
    main()
