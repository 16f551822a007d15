# SPDX-License-Identifier: MIT
"""The section on simulated networks of doc/performance.md, from the files of bench/virtual:

    virtual.py DIRECTORY SECTION DOCUMENT PLOTS
"""
import glob
import math
import os
import subprocess
import sys

from report import LIMIT, mean, name_of

HEAD = "## Simulated networks"
NEXT = "## Remarks"
PEERS = {"mpich": "MPICH", "ompi": "Open MPI", "mvapich2": "MVAPICH2", "impi": "Intel MPI"}
LEAF = 16 # hosts on a leaf switch
PLATFORMS = {
    "fat-tree": "Fat tree with full bandwidth",
    "tapered": "Fat tree with a fourth of the bandwidth between leaf switches",
}
INTRODUCTION = """
`bench/virtual` writes this section, after `./quickstart smpi`. SMPI (SimGrid 3.32) runs each program with
many ranks in one process and in virtual time, on a described network. The figures are the same in each
run and on each machine. SMPI can choose the algorithms of its own blocking collectives as MPICH, Open
MPI, MVAPICH2 and Intel MPI do. Start and wait of nbcshim, with its built-in rules, are compared with
these four. Each host has one rank; 16 hosts share a leaf switch; a link carries 12.5 GB/s with a latency
of 0.5 µs. Neither computation nor copies take time. All ranks start at the same time, and the time is
that of the last rank. The bytes of gather, scatter, allgather, alltoall and reduce_scatter_block are
those of one block. Cells in which a rank needs more than 16 MiB, or all ranks more than 512 MiB, are
left out. So are, on 256 ranks, all cells of more than 64 KiB, scan, and alltoall of more than 8 bytes,
because SMPI takes about a minute or more for each. On 1024 ranks nbcshim does five collectives of 8 bytes
in 44 s, but SMPI with MPICH's or Open MPI's choice did not finish a barrier within 110 s, so nothing could
be compared.
"""


def read(directory):
    """times[platform, ranks][collective, bytes][who] in seconds"""
    times = {}
    for name in glob.glob(os.path.join(directory, "*.txt")):
        platform = next(p for p in PLATFORMS if os.path.basename(name).startswith(p + "-"))
        with open(name) as f:
            for line in f:
                who, coll, ranks, size, seconds = line.split()
                cells = times.setdefault((platform, int(ranks)), {})
                cells.setdefault((coll, int(size)), {})[who] = float(seconds)
    return times


def ranks_of(times, platform):
    """One leaf switch is the same on all platforms."""
    return sorted(n for p, n in times if p == platform and (n > LEAF or platform == "fat-tree"))


def best(cell):
    return min(cell[p] for p in PEERS if p in cell)


def table(cells):
    sizes = sorted({size for coll, size in cells if coll != "barrier"})
    lines = ["| collective | " + " | ".join(map(name_of, sizes)) + " |", "|---|" + "---|" * len(sizes)]
    for coll in dict.fromkeys(coll for coll, _ in cells):
        row = {size: c["nbcshim"] / best(c) for (name, size), c in cells.items() if name == coll}
        if coll == "barrier":
            row = {sizes[0]: row[0]}
        lines.append(f"| {coll} | " + " | ".join(f"{row[s]:.2f}" if s in row else "" for s in sizes) + " |")
    return lines


def summary(cells):
    lines = [f"| {len(cells)} | " + " | ".join(
        f"{mean([c['nbcshim'] / c[p] for c in cells.values()]):.2f}" for p in PEERS)]
    return lines[0] + f" | {mean([c['nbcshim'] / best(c) for c in cells.values()]):.2f} |"


def over(cells):
    slow = [(c["nbcshim"] / best(c), coll, size, min(PEERS, key=lambda p: c[p]))
            for (coll, size), c in cells.items() if c["nbcshim"] / best(c) > LIMIT]
    if not slow:
        return f"No cell is above {LIMIT:.2f}."
    return f"Above {LIMIT:.2f}: " + ", ".join(
        f"{coll} {name_of(size)} ({ratio:.2f}, {PEERS[peer]})" for ratio, coll, size, peer in sorted(slow)[::-1]) + "."


def plot(times, platform, file):
    """One panel for each number of ranks: ratio to each peer, geometric mean over the collectives."""
    ranks = ranks_of(times, platform)
    script = [
        f"set terminal svg size {420 * len(ranks)},360 font 'sans,11'", f"set output '{file}'",
        f"set multiplot layout 1,{len(ranks)}", "set logscale x 2", "set yrange [0:1.6]", "set grid",
        "set xlabel 'bytes'", "set ylabel 'time of nbcshim / time of SMPI'", "set key top right",
    ]
    for n in ranks:
        cells = times[platform, n]
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


def section(times, plots):
    lines = [HEAD] + INTRODUCTION.splitlines() + [""]
    for platform, title in PLATFORMS.items():
        file = os.path.join(plots, f"virtual-{platform}.svg")
        if not any(p == platform for p, _ in times):
            continue
        plot(times, platform, file)
        lines += [f"### {title}", "", "Geometric mean of the ratios of nbcshim's times to those of SMPI with "
                  "the choice of each MPI, and with the best choice in each cell:", "",
                  "| ranks | cells | " + " | ".join(PEERS.values()) + " | the best |",
                  "|---|---|" + "---|" * (len(PEERS) + 1)]
        ranks = ranks_of(times, platform)
        lines += [f"| {n} {summary(times[platform, n])}" for n in ranks]
        lines += ["", f"![ratios by bytes](performance/{os.path.basename(file)})", "",
                  "Each point of the plot is the geometric mean over the collectives.", ""]
        for n in ranks:
            cells = times[platform, n]
            lines += [f"{n} ranks, relative to the best of the four in each cell:", ""] + table(cells)
            lines += ["", over(cells), ""]
    return lines


def replace(document, text):
    with open(document) as f:
        before, remarks = f.read().split("\n" + NEXT + "\n", 1)
    before = before.split("\n" + HEAD + "\n", 1)[0].rstrip("\n")
    with open(document, "w") as f:
        f.write(f"{before}\n\n{text}{NEXT}\n{remarks}")


if __name__ == "__main__":
    directory, kept, document, plots = sys.argv[1:5]
    text = "\n".join(section(read(directory), plots)).rstrip("\n") + "\n\n"
    with open(kept, "w") as f: # bench/compare puts it into the document that it writes
        f.write(text)
    replace(document, text)
