# SPDX-License-Identifier: MIT
"""Checks a trace of traced_run.c, written by NBCSHIM_TRACE: python3 trace.py FILE RANKS [arrows].

With "arrows" only the arrows are checked, of any trace."""
import collections
import json
import re
import sys

RANKS = int(sys.argv[2])
ROUNDS = 20
EPSILON = 0.002  # microseconds: times are written with three digits

events = json.load(open(sys.argv[1]))["traceEvents"]


def check_arrows():
    """Each arrow has two ends, on two ranks, both within slices. Returns the arrows between ranks."""
    inside = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            inside[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    ends = collections.defaultdict(list)
    for e in events:
        if e["ph"] in "sf":
            ends[e["cat"], e["name"], e["id"]].append(e)
            assert any(begin - EPSILON <= e["ts"] <= end + EPSILON
                       for begin, end in inside[e["pid"], e["tid"]]), e
    between = collections.Counter()
    for two in ends.values():
        assert sorted(e["ph"] for e in two) == ["f", "s"], two
        first, last = sorted(two, key=lambda e: e["ph"], reverse=True)
        assert first["pid"] != last["pid"] and last["bp"] == "e", two
        between[first["pid"], last["pid"]] += 1
    return between


arrows = check_arrows()
if sys.argv[3:] == ["arrows"]:
    assert arrows
    sys.exit()

names = {e["pid"]: e["args"] for e in events if e["name"] == "process_name"}
assert sorted(names) == list(range(RANKS)), names
for rank, n in names.items():
    assert re.fullmatch(r"rank %d on \S+" % rank, n["name"]), n
order = {e["pid"]: e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"}
assert order == {rank: rank for rank in range(RANKS)}, order
assert all(n["dropped"] == 0 and n["inside_us"] > 0 for n in names.values()), names

# Asynchronous spans: each begins once and ends once, not before.
spans = {}
for e in events:
    if e["ph"] == "b":
        key = e["cat"], e["id"]
        assert key not in spans, e
        spans[key] = [e, None]
for e in events:
    if e["ph"] == "e":
        span = spans[e["cat"], e["id"]]
        assert span[1] is None and span[0]["ts"] <= e["ts"], e
        span[1] = e
assert all(end for _, end in spans.values())

operations = {}
for (category, _), (begin, end) in spans.items():
    if category == "operation":
        operations[begin["args"]["operation"]] = begin, end
per_rank = collections.Counter(b["pid"] for b, _ in operations.values())
assert all(per_rank[r] >= 2 + 2 * ROUNDS for r in range(RANKS)), per_rank
kinds = collections.Counter(b["name"] for b, _ in operations.values())
# The constructor of a communicator makes one too, to agree on tags.
assert kinds["allreduce:ring"] == (2 * ROUNDS + 1) * RANKS, kinds
comms = collections.Counter()
for begin, _ in operations.values():
    args = begin["args"]
    assert args["ranks"] == RANKS and args["bytes"] >= 0, begin
    if args["bytes"] == 4096 * 8:
        comms[args["communicator"], begin["name"]] += 1
assert comms.pop(("MPI_COMM_WORLD", "allreduce:ring")) == ROUNDS * RANKS, comms
[((name, _), n)] = comms.items()  # the same name on all ranks, although the program gave none
assert name.startswith("communicator ") and n == ROUNDS * RANKS, comms

# A message lies within its operation, and what is sent is received.
traffic = collections.Counter()
seen = 0
for (category, _), (begin, end) in spans.items():
    if category != "message":
        continue
    seen += 1
    first, last = operations[begin["args"]["operation"]]
    assert first["pid"] == begin["pid"]
    assert first["ts"] - EPSILON <= begin["ts"] and end["ts"] <= last["ts"] + EPSILON, begin
    peer, size = begin["args"]["peer"], begin["args"]["bytes"]
    assert 0 <= peer < RANKS and peer != begin["pid"], begin
    if begin["name"].startswith("send"):
        traffic[begin["pid"], peer, size] += 1
    else:
        traffic[peer, begin["pid"], size] -= 1
assert seen > 0 and not any(traffic.values()), traffic
sent = collections.Counter()
for (category, _), (begin, _) in spans.items():
    if category == "message" and begin["name"].startswith("send"):
        sent[begin["pid"], begin["args"]["peer"]] += 1
assert arrows == sent, (arrows, sent)
# A ring of 4 ranks: 6 messages out and 6 in.
assert seen >= 2 * ROUNDS * RANKS * 12, seen

# Slices of one thread nest: one that begins within another ends within it.
slices = collections.defaultdict(list)
for e in events:
    if e["ph"] == "X":
        slices[e["pid"], e["tid"]].append((e["ts"], -e["dur"], e["name"]))
assert len(slices) == RANKS
for (pid, tid), row in slices.items():
    open_until = []
    for begin, minus, name in sorted(row):
        end = begin - minus
        while open_until and open_until[-1] <= begin + EPSILON:
            open_until.pop()
        assert not open_until or end <= open_until[-1] + EPSILON, (pid, name, begin, end)
        open_until.append(end)
    counted = collections.Counter(name for _, _, name in row)
    assert counted["reduce"] >= 2 * ROUNDS * 3, counted
    assert counted["start"] >= 2 + 2 * ROUNDS and counted["progress"] > 0, counted

# Rank 3 was late to the barrier: in the end the others had to wait for it, some by way of others.
# (Communicators have barriers too, of which one may take longer on busy processors.)
began = collections.defaultdict(dict)
took = collections.defaultdict(dict)
last = collections.defaultdict(dict)
for begin, end in operations.values():
    if begin["name"] == "barrier:dissemination":
        began[begin["args"]["number"]][begin["pid"]] = begin["ts"]
        took[begin["args"]["number"]][begin["pid"]] = end["ts"] - begin["ts"]
        last[begin["args"]["number"]][begin["pid"]] = begin["args"]["waited_for"]
late = max(began, key=lambda number: began[number][3] - began[number][0])
assert all(took[late][r] > 150000 > took[late][3] for r in range(3)), took
assert 3 in (last[late][0], last[late][2]), last[late]
