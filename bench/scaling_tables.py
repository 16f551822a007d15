# SPDX-License-Identifier: MIT
"""Writes what bench/scaling found: scaling_tables.py DIRECTORY DOCUMENT puts the tables of the rules
made for a network and of the built-in ones between two comments each of the document."""
import re
import sys

from tables import replaced

# Those with rules of their own in doc/tuning, and those for which the built-in rules are compared.
NETWORKS = {"rules": ("infiniband", "slingshot"), "built-in": ("infiniband", "slingshot", "ethernet")}
COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter",
               "reduce_scatter_block", "scan")
SUMMARY = re.compile(r"(\d+) calls, (\d+) judged: (\d+) more than 10% worse than the best, worst (\d+)%, "
                     r"mean ([\d.]+)%; (\d+) estimated, (\d+) not known")


def read(directory, rules, network, collective):
    """The summary's numbers, and a line for each call that misses."""
    with open(f"{directory}/regret-{rules}-{network}-{collective}.txt") as f:
        lines = f.read().splitlines()
    return [float(x) for x in SUMMARY.match(lines[-1]).groups()], lines[1:-1]


def name_of(size):
    return f"{size >> 20} M" if size >= 1 << 20 else f"{size >> 10} K" if size >= 1024 else str(size)


def missed(network, line):
    collective, ranks, size, chosen, time, best, least, worse = line.split()[:8]
    guess = ", estimated" if line.endswith("estimated") else ""
    return (f"| {network} | {collective} | {ranks} | {name_of(int(size))} | `{chosen}` {time} "
            f"| `{best}` {least} | {worse.replace('%', ' %')}{guess} |\n")


def tables(directory, rules, tell_missed):
    networks = NETWORKS[rules]
    text = "".join(["| collective "] + [f"| {network}: > 10 % | worst | mean " for network in networks] +
                   ["|\n|---"] + ["|---|---|---"] * len(networks) + ["|\n"])
    sums, misses = [0] * 7, ""
    for collective in COLLECTIVES:
        text += f"| {collective} "
        for network in networks:
            numbers, lines = read(directory, rules, network, collective)
            _, judged, over, worst, mean, _, _ = numbers
            text += f"| {over:.0f} of {judged:.0f} | {worst:.0f} % | {mean:.1f} % "
            sums = [s + n for s, n in zip(sums, numbers)]
            misses += "".join(missed(network, line) for line in lines if "%" in line)
        text += "|\n"
    text += (f"\nIn {sums[2]:.0f} of {sums[1]:.0f} calls the chosen algorithm is more than 10 % slower than "
             f"the best. In {sums[5]:.0f} calls the time of the chosen or of the best algorithm is an "
             f"estimate. {sums[6]:.0f} calls are not known.\n")
    if tell_missed:
        text += ("\n| network | collective | ranks | bytes | chosen, µs | best, µs | worse |\n"
                 "|---|---|---|---|---|---|---|\n" + misses)
    return text


def main():
    directory, document = sys.argv[1:]
    with open(document) as f:
        text = f.read()
    for rules in ("rules", "built-in"):
        text = replaced(text, "bench/scaling", rules, f"\n{tables(directory, rules, rules == 'rules')}\n")
    with open(document, "w") as f:
        f.write(text)


main()
