# SPDX-License-Identifier: MIT
"""The tables of doc/performance/: one file each, values separated by tabs, the first line names the columns."""
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIRECTORY = os.path.join(ROOT, "doc/performance")


def path(name):
    return os.path.join(DIRECTORY, name + ".tsv")


def names():
    return sorted(f[:-4] for f in os.listdir(DIRECTORY) if f.endswith(".tsv"))


def load(name):
    """The columns' names, and the rows."""
    with open(path(name), encoding="utf-8") as f:
        lines = [line.rstrip("\n").split("\t") for line in f]
    wrong = [n + 1 for n, line in enumerate(lines) if len(line) != len(lines[0])]
    assert not wrong, f"{name}.tsv has another number of columns in lines {wrong}"
    return lines[0], lines[1:]


def dicts(name):
    head, rows = load(name)
    return [dict(zip(head, row)) for row in rows]


def replaced(page, command, name, text):
    """The page with this text between its comments "COMMAND writes NAME from here" and "to here"."""
    before, begin, rest = page.partition(f"<!-- {command} writes {name} from here -->\n")
    assert begin, f"a page has no place for {name}"
    return before + begin + text + rest[rest.index("<!-- to here -->\n"):]


def put(name, head, rows, keys):
    """Writes rows into the table in place of those that agree with one of them in the first `keys` columns;
    with keys=0 in place of all."""
    rows = [[str(value) for value in row] for row in rows]
    kept = []
    if keys and os.path.exists(path(name)):
        old, kept = load(name)
        assert old == head, f"{name}.tsv has other columns: {old}"
    new = {tuple(row[:keys]) for row in rows}
    at = next((n for n, row in enumerate(kept) if tuple(row[:keys]) in new), len(kept))
    kept = [[row for row in part if tuple(row[:keys]) not in new] for part in (kept[:at], kept[at:])]
    with open(path(name), "w", encoding="utf-8") as f:
        for row in [head] + kept[0] + rows + kept[1]:
            assert len(row) == len(head), row
            f.write("\t".join(row) + "\n")
