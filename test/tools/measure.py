# SPDX-License-Identifier: MIT
"""Whether nbcbench's figures make sense: measure.py MEASURE FILE [TIME...]. Run by measure.sh."""
import json
import sys


def times(row, *names):
    for name in names:
        q = row[name]
        assert q["low"] <= q["median"] <= q["high"], row
    return [row[name]["median"] for name in names]


def time(rows, kinds):
    assert [(r["collective"], r["bytes"]) for r in rows] == [
        ("barrier", 0), ("bcast", 8), ("bcast", 4096), ("allreduce", 8), ("allreduce", 4096),
        ("neighbor_alltoall", 8), ("neighbor_alltoall", 4096)], rows
    for row in rows:
        assert row["algorithm"] in row["algorithms"], row
        assert all(t > 0 for t in times(row, "shim", "native", "rounds", "shim_persistent")), row
        times(row, "ratio")
        assert row["samples"] in (3, 6, 7), row
        doubtful = row["ratio"]["low"] < 1.1 < row["ratio"]["high"]
        assert row["samples"] > 3 or not doubtful, row


def calls(rows, kinds):
    assert {("barrier", 0, "shim"), ("allreduce", 64, "native"),
            ("allreduce", 64, "shim_persistent")} <= kinds, kinds
    for row in rows:
        assert all(t > 0 for t in times(row, "start", "wait")), row
        times(row, "done")  # less than a reading of the clock, now and then
        if row["variant"] == "shim_persistent":
            assert all(t > 0 for t in times(row, "init", "again", "free")), row
        else:
            assert all(t > 0 for t in times(row, "first")), row


def overlap(rows, kinds):
    assert kinds == {(c, 4096, v) for c in ("bcast", "alltoall") for v in ("shim", "native")}, kinds
    for row in rows:
        assert row["progress"] == "calls", row
        assert row["idle"] == ("overlap_tests" not in row), row
        for share, range_, total in (("overlap", "quartiles", "total"),
                                     ("overlap_tests", "quartiles_tests", "total_tests")):
            if share in row:
                alone, compute, both = times(row, "alone", "compute", total)
                assert alone > 0 and compute > 0, row
                assert [row[share]] == times(row, range_), row
                told = 1 - (both - compute) / alone
                one = row[range_]["low"] == row[range_]["high"]  # sample
                assert not one or abs(row[share] - told) <= 0.01 * (1 + abs(told) + both / alone), row


def device(rows, kinds):
    assert [(r["collective"], r["bytes"]) for r in rows] == [
        (c, b) for c in ("gather", "reduce", "allreduce") for b in (8, 8192)], rows
    others = sys.argv[3:]
    for row in rows:
        assert all(t > 0 for t in times(row, "staged", "by_hand", "by_hand_native", *others)), row
        times(row, "overlap")
        assert ("direct" in row) == bool(others) and row["progress"] == "calls", row


def halo(rows, kinds):
    assert [(r["dimensions"], r["bytes"]) for r in rows] == [
        (d, s) for d in (1, 2, 3) for s in (0, 64)], rows
    for row in rows:
        assert all(t > 0 for t in times(row, "shim", "by_hand", "messages")), row


def outstanding(rows, kinds):
    ours = [r for r in rows if r["variant"] == "shim"]
    assert [r["outstanding"] for r in ours] == [100, 1000, 10000, 40000], rows
    assert ("allreduce", 8, "native") in kinds, kinds
    for row in rows:
        assert all(t > 0 for t in times(row, "each")), row
    if "memory" in ours[-1]:
        assert 8 < ours[-1]["memory"] <= 1024, ours[-1]


def untouched(rows, kinds):
    groups = {r["group"] for r in rows}
    assert groups == {"collectives", "communicators", "messages", "requests", "local", "windows",
                      "files"}, groups
    names = [r["calls"] for r in rows]
    assert len(set(names)) == len(names), names
    for row in rows:
        native, *others = times(row, "native", "shim", "pending", "again")
        assert native > 0 and all(t > 0 for t in others), row
        for t, ratio in zip(others, ("ratio", "ratio_pending", "ratio_again")):
            assert abs(row[ratio] - t / native) <= 0.01 * row[ratio], row


def main():
    measure = sys.argv[1]
    with open(sys.argv[2]) as f:
        rows = json.load(f)
    for row in rows:
        assert row["measure"] == measure and row["ranks"] == 2, row
    globals()[measure](rows, {(r.get("collective"), r["bytes"], r.get("variant")) for r in rows})


main()
