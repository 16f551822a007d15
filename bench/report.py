# SPDX-License-Identifier: MIT
"""Tables from the JSON files of nbcbench, in Markdown:

    report.py DIRECTORY SAMPLES REMARKS
    report.py --untouched DIRECTORY SAMPLES REMARKS DOCUMENT
    report.py --summary DIRECTORY

The second form prints the document with one section, and the remarks, written anew, the third one
line for the history.
"""
import json
import math
import os
import platform
import subprocess
import sys

LIMIT = 1.10
HISTORY = "bench/history.md"


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
    print(f"Cells above {LIMIT:.2f}:\n")
    for c in bad:
        s, n, r = c["shim"], c["native"], c["ratio"]
        print(f"- {c['collective']}, {name_of(c['bytes'])}, {c['algorithm']}: "
              f"{s['median'] * 1e6:.2f} us (quartiles {s['low'] * 1e6:.2f} to {s['high'] * 1e6:.2f}) "
              f"against {n['median'] * 1e6:.2f} ({n['low'] * 1e6:.2f} to {n['high'] * 1e6:.2f}); "
              f"{c['samples']} pairs of samples, quartiles of their ratio {r['low']:.2f} to {r['high']:.2f}")
    print()


def load(directory, name):
    with open(f"{directory}/{name}.json") as f:
        return json.load(f)


def floor_of(cells):
    return mean([c["shim"]["median"] / c["floor"] for c in cells if c["bytes"] == 8 and c["floor"] > 0])


def section(directory, mpi, ranks):
    cells = load(directory, f"{mpi}-{ranks}")
    native = [r for c in cells if (r := ratio(c, "shim", "native"))]
    rounds = [r for c in cells if (r := ratio(c, "shim", "rounds"))]
    small = [r for c in cells if c["bytes"] <= 1024
             and (r := ratio(c, "shim_persistent", "shim"))]
    print(f"### {mpi}, {ranks} ranks\n")
    print("Time of start and wait, relative to that of the MPI's own nonblocking collective:\n")
    table(cells, "shim", "native")
    print(f"The geometric mean over {len(native)} cells is {mean(native):.2f}. Relative to the same "
          f"algorithms executed in rounds over `MPI_Testall` it is {mean(rounds):.2f}. Persistent "
          f"relative to nonblocking operations, up to 1K: {mean(small):.2f}.", end="")
    if ranks == 2:
        print(f" Relative to the floor, 8 bytes: {floor_of(cells):.2f}.", end="")
    print("\n")
    losses(cells)
    print(f"![ratio to native](performance/{mpi}-{ranks}.svg)\n")


def summary_of(directory, mpi):
    runs = {ranks: load(directory, f"{mpi}-{ranks}") for ranks in (2, 4, 8)}
    ratios = {n: [r for c in cells if (r := ratio(c, "shim", "native"))] for n, cells in runs.items()}
    every = sum(ratios.values(), [])
    sure = sum(1 for cells in runs.values() for c in cells if c.get("ratio", c)["low"] > LIMIT)
    hidden = [r["overlap"] for r in load(directory, f"{mpi}-idle-thread")
              if r["variant"] == "shim" and r["bytes"] >= 1 << 20]
    means = ", ".join(f"{mean(r):.2f}" for r in ratios.values())
    return (f"{mpi}: {len(every)} cells, {means} of native on 2, 4, 8 ranks, "
            f"{sum(r > LIMIT for r in every)} above {LIMIT:.2f} ({sure} for certain), "
            f"{floor_of(runs[2]):.2f} of the floor, overlap {100 * min(hidden):.0f} to "
            f"{100 * max(hidden):.0f} %")


def summary(directory):
    return f"{processor()}: " + "; ".join(summary_of(directory, mpi) for mpi in ("mpich", "openmpi"))


def time(row, name):
    return f"{row[name]['median'] * 1e6:.2f}" if name in row else ""


def calls(directory, mpi):
    rows = load(directory, f"{mpi}-calls")
    find = {(r["collective"], r["variant"]): r for r in rows}
    print(f"### {mpi}\n")
    print("| collective | init | again | free | `MPI_Start` | wait | first | `MPI_I...` | wait | "
          "native first | `MPI_I...` | wait |")
    print("|---|" + "---|" * 11)
    for coll in dict.fromkeys(r["collective"] for r in rows):
        persistent, ours, native = (find.get((coll, v), {})
                                    for v in ("shim_persistent", "shim", "native"))
        figures = [time(persistent, n) for n in ("init", "again", "free", "start", "wait")]
        figures += [time(row, n) for row in (ours, native) for n in ("first", "start", "wait")]
        print(f"| {coll} | " + " | ".join(figures) + " |")
    print()


def outstanding(directory, mpi):
    rows = load(directory, f"{mpi}-outstanding")
    print(f"### {mpi}\n")
    print("| collective | outstanding | us each | bytes each | native us each | native bytes |")
    print("|---|" + "---|" * 5)
    find = {(r["collective"], r["outstanding"], r["variant"]): r for r in rows}
    for coll, n in dict.fromkeys(k[:2] for k in find):
        figures = []
        for row in (find.get((coll, n, v), {}) for v in ("shim", "native")):
            figures += [time(row, "each"), f"{row['memory']:.0f}" if "memory" in row else ""]
        print(f"| {coll} | {n} | " + " | ".join(figures) + " |")
    print()
    for coll in dict.fromkeys(k[0] for k in find):
        most, least = (find[coll, n, "shim"]["each"]["median"] for n in (40000, 100))
        print(f"{coll}: with 40,000 outstanding, an operation takes {most / least:.2f} times as long "
              "as with 100.\n")


def overlap(directory, mpi):
    shares = {}
    for progress in "calls", "thread":
        for kind in "overlap", "idle":
            for r in load(directory, f"{mpi}-{kind}-{progress}"):
                row = shares.setdefault((r["collective"], r["bytes"]), {})
                for share in "overlap", "overlap_tests":
                    row[r["variant"], progress, kind, share] = r.get(share)
    columns = [("native", "calls", "overlap", "overlap"), ("shim", "calls", "overlap", "overlap"),
               ("native", "calls", "overlap", "overlap_tests"),
               ("shim", "calls", "overlap", "overlap_tests"),
               ("shim", "thread", "overlap", "overlap"), ("native", "calls", "idle", "overlap"),
               ("shim", "calls", "idle", "overlap"), ("shim", "thread", "idle", "overlap")]
    print(f"### {mpi}\n")
    print("| collective | bytes | native | nbcshim | native, tests | nbcshim, tests | nbcshim, thread "
          "| idle: native | idle: nbcshim | idle: nbcshim, thread |")
    print("|---|" + "---|" * 9)
    for (coll, size), row in shares.items():
        figures = [f"{100 * row[c]:.0f}%" for c in columns]
        print(f"| {coll} | {name_of(size)} | " + " | ".join(figures) + " |")
    print()


UNTOUCHED = "A program's other calls"


def above(cells, name, limit):
    return sum(1 for c in cells if c.get(name, 0) > limit)


def pair(cell):
    return f"{cell['ratio']:.2f} / {cell['ratio_pending']:.2f}" if cell else ""


def untouched_sized(cells):
    sizes = sorted({c["bytes"] for c in cells if c["bytes"]})
    print("| calls | " + " | ".join(map(name_of, sizes)) + " |")
    print("|---|" + "---|" * len(sizes))
    for calls in dict.fromkeys(c["calls"] for c in cells):
        row = {c["bytes"] or sizes[0]: c for c in cells if c["calls"] == calls}
        print(f"| {calls} | " + " | ".join(pair(row.get(s)) for s in sizes) + " |")
    print()


def untouched_others(cells):
    print("| calls | the MPI, us | nothing pending | one pending |")
    print("|---|---|---|---|")
    for c in cells:
        print(f"| {c['calls']} | {time(c, 'native')} | {c['ratio']:.2f} | "
              f"{c['ratio_pending']:.2f} |")
    print()


def footprint(directory, mpi):
    rows = load(directory, f"{mpi}-footprint")
    print("| nbcshim | `MPI_Init`, ms | `MPI_Finalize`, ms | resident, KiB | heap, KiB | instructions |")
    print("|---|" + "---|" * 5)
    for way, r in rows.items():
        print(f"| {way} | {r['init']:.1f} | {r['finalize']:.1f} | {r['resident']:.0f} | {r['heap']:.0f} | "
              f"{r['instructions'] or ''} |")
    print()


def untouched_mpi(directory, mpi):
    cells = load(directory, f"{mpi}-untouched")
    print(f"### {mpi}\n")
    about = cells[0]
    print(f"`NBCSHIM_BLOCKING` is {about['blocking']}. Operations of nbcshim "
          f"{'progress' if about['hooked'] else 'do not progress'} in waits of the MPI ({about['hook']}).\n")
    print("| | cells | geometric mean | above 1.03 | above 1.10 |")
    print("|---|---|---|---|---|")
    for name, key in (("nothing pending", "ratio"), ("one operation pending", "ratio_pending"),
                      ("the MPI a second time", "ratio_again")):
        print(f"| {name} | {len(cells)} | {mean([c[key] for c in cells]):.3f} | "
              f"{above(cells, key, 1.03)} | {above(cells, key, 1.10)} |")
    print()
    sized = {c["calls"] for c in cells if c["bytes"] > 8 or c["group"] == "collectives"}
    print("By bytes, with nothing pending / one operation pending:\n")
    untouched_sized([c for c in cells if c["calls"] in sized])
    untouched_others([c for c in cells if c["calls"] not in sized])
    footprint(directory, mpi)


def untouched(directory, samples):
    with open(f"{directory}/untouched-when") as f:
        day, before, after = f.read().split("\n")[:3]
    print(f"## {UNTOUCHED}\n")
    print(f"`bench/compare --untouched {samples}` wrote this section on {day} (load averages {before} "
          f"before and {after} after). `nbcbench -m untouched` makes the calls that nbcshim wraps, "
          "except nonblocking and persistent collectives, on 2 ranks. A ratio is the time of the call over "
          "that of the MPI's own function, which is measured while nothing is pending. With *one pending*, an "
          "`MPI_Iallreduce` of nbcshim is pending on another communicator, because one rank has not started it. The "
          "MPI is measured a second time; that ratio tells how far the others can be trusted. Some rows name "
          "calls that only prepare or complete others.\n\n"
          "The last table of each MPI is for `bench/footprint`, a program on 2 ranks that needs nothing of "
          "nbcshim. It runs alone (*none*), with nbcshim preloaded, which stays inactive, and with "
          "`NBCSHIM=on`. Figures are medians, those of the rank that needs most. callgrind counts the "
          "instructions of one rank.\n")
    for mpi in ("mpich", "openmpi"):
        untouched_mpi(directory, mpi)


def replace_untouched(directory, samples, remarks, document):
    with open(document) as f:
        chapters = f.read().split("\n## ")
    kept = [c for c in chapters if c.split("\n", 1)[0] not in (UNTOUCHED, "Simulated networks", "Remarks")]
    print("\n## ".join(kept))
    untouched(directory, samples)
    print_file("bench/virtual.md")
    print_file(remarks)


def print_file(name):
    if os.path.exists(name):
        with open(name) as f:
            print(f.read(), end="")


CHAPTERS = (
    ("Individual calls", "Times are in microseconds, for 8 bytes on 2 ranks. *init* creates the first "
     "persistent operation of its kind, *again* one like an earlier one. *first* is a nonblocking "
     "call whose counts are new, or that follows 256 other calls. Each wait follows its start "
     "immediately, so it contains most of the operation.", calls),
    ("Many outstanding operations", "8 bytes, 2 ranks. The given number of operations is started, "
     "then all are waited for. Bytes are the growth of the heap per operation, including the part of "
     "the MPI; they are given where no more operations were outstanding earlier.", outstanding),
    ("Overlap", "The overlap is 1 - (together - computation) / operation, for a computation that takes "
     "as long as the operation alone (COMB, OSU). The runs use 2 ranks. If these occupy all "
     "processors, moving data takes time from the computation. In the *idle* columns the ranks sleep "
     "instead of computing, as if an accelerator computed, and what counts is the time in the start and "
     "in the wait, because sleeps end late. In the columns *tests*, 32 "
     "calls of `MPI_Test` interrupt the computation. *thread* means `NBCSHIM_PROGRESS=thread`.", overlap),
)


def main():
    if sys.argv[1] == "--untouched":
        replace_untouched(*sys.argv[2:6])
        return
    if sys.argv[1] == "--summary":
        print(summary(sys.argv[2]))
        return
    directory, samples, remarks = sys.argv[1:4]
    with open(f"{directory}/load") as f:
        before, after = f.read().split("\n")[:2]
    print("# Performance\n")
    print("`bench/compare` writes everything above *Simulated networks*. All figures there are from one run; the "
          f"section *{UNTOUCHED}* may be from a later one.\n")
    print(f"Machine: {processor()}, {os.cpu_count()} processors. MPIs: "
          f"{first_line(['mpichversion'])}; {first_line(['ompi_info', '--version'])}. Load averages "
          f"before: {before}; after: {after}. Each figure is the median of {samples} samples per "
          f"variant and cell, or of up to {16 * int(samples)} where the quartiles of the ratio to the MPI "
          f"contain {LIMIT:.2f}. All variants are measured in turn in one process. A sample is the mean "
          "over as many calls as take a millisecond. Ratios below 1 mean that nbcshim is faster. With "
          "more ranks than processors, the figures depend on the scheduler of the system as much as "
          "on the collectives.\n")
    print("## History\n\nEach run of `bench/compare` adds a line here. The first three are from older runs with "
          "few samples on loaded machines, which affected the ratios with more ranks. *For certain* means "
          f"that both quartiles of the ratio are above {LIMIT:.2f}. The overlap is that of 1 MiB and more, with the progress thread, "
          "while the ranks sleep.\n")
    print_file(HISTORY)
    print("\n## Start and wait\n")
    for mpi in ("mpich", "openmpi"):
        for ranks in (2, 4, 8):
            section(directory, mpi, ranks)
    for title, about, write in CHAPTERS:
        print(f"## {title}\n\n{about}\n")
        for mpi in ("mpich", "openmpi"):
            write(directory, mpi)
    untouched(directory, samples)
    print_file("bench/virtual.md")
    print_file(remarks)


if __name__ == "__main__":
    main()
