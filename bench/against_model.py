# SPDX-License-Identifier: MIT
"""Puts predictions beside measurements: against_model.py DIRECTORY DOCUMENT, where bench/against-model
has put both; writes the document's part between two comments."""
import json
import math
import os
import sys

BEGIN, END = "<!-- bench/against-model writes from here -->\n", "<!-- to here -->\n"
RANKS = (2, 4, 8, 16)


def name_of(size):
    return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K" if size >= 1024 else str(size)


def read(directory, ranks):
    """{(collective, bytes): (measured, predicted, algorithm)}, in seconds."""
    with open(f"{directory}/measured-{ranks}.json") as f:
        cells = json.load(f)
    measured = {(c["collective"], c["bytes"]): c["shim"]["median"] for c in cells if "shim" in c}
    both = {}
    with open(f"{directory}/predicted-{ranks}.json") as f:
        for cell in json.load(f)["cells"]:
            key = cell["collective"], cell["bytes"]
            chosen = [a for a in cell["algorithms"] if a["chosen"]][0]
            if key in measured:
                both[key] = measured[key], chosen["seconds"], chosen["name"]
    return both


def parameters(directory):
    with open(f"{directory}/machine") as f:
        lines = [line.split("#")[0].split("=") for line in f]
    p = {line[0].strip(): line[1].strip() for line in lines if len(line) == 2}
    p = {k: f"{float(v):.3g}" for k, v in p.items()}
    return ", ".join(f"{k} {p['within.' + k]}" for k in "LogG") + \
        f", reduce {p['reduce']}, copy {p['copy']} ns"


def table(all_ranks, out):
    keys = list(all_ranks[RANKS[0]])
    out.append("| | bytes | " + " | ".join(f"{r} ranks" for r in RANKS) + " |")
    out.append("|---|---|" + "---|" * len(RANKS))
    for key in keys:
        row = []
        for r in RANKS:
            measured, predicted, _ = all_ranks[r][key]
            row.append(f"{measured * 1e6:.1f} / {predicted * 1e6:.1f}")
        out.append(f"| {key[0]} | {name_of(key[1])} | " + " | ".join(row) + " |")


def spread(cells):
    """The mean ratio, and by which factor ratios scatter around it."""
    logs = [math.log(m / p) for m, p, _ in cells.values()]
    mean = sum(logs) / len(logs)
    return math.exp(mean), math.exp(math.sqrt(sum((x - mean) ** 2 for x in logs) / len(logs)))


def main():
    directory, document = sys.argv[1:]
    all_ranks = {r: read(directory, r) for r in RANKS}
    with open(f"{directory}/load") as f:
        load = " and ".join(f.read().split("\n")[:2])
    out = [f"Measured / predicted times in µs of the algorithm that the rules choose. MPICH, "
           f"{os.cpu_count()} processors, load averages {load}. Parameters within the node: "
           f"{parameters(directory)}.", ""]
    table(all_ranks, out)
    out.append("")
    for r in RANKS:
        mean, factor = spread(all_ranks[r])
        out.append(f"- {r} ranks: the measured times are {mean:.2f} times the predicted ones in the "
                   f"geometric mean; the ratios scatter by a factor of {factor:.2f}.")
    with open(document) as f:
        text = f.read()
    before, rest = text.split(BEGIN)
    _, behind = rest.split(END)
    with open(document, "w") as f:
        f.write(before + BEGIN + "\n" + "\n".join(out) + "\n\n" + END + behind)


main()
