#!/usr/bin/env python3
"""Products, a reduce-scatter and the prefetch of weights run at one time, on three streams: what
the example overlap_cpp recorded says so, and its results are those of one stream. Others may have
the machine's processors when a run wants them, so of several runs one has to show it. Argument:
overlap_cpp."""
import json
import pathlib
import subprocess
import sys
import tempfile

LAYERS, SLICES = 4, 8
KINDS = {"product": LAYERS * SLICES, "reduce-scatter": LAYERS * SLICES, "prefetch": LAYERS - 1}


def spans_of(trace):
    lanes = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert sorted(lanes.values()) == sorted(KINDS), lanes
    spans = {kind: [] for kind in KINDS}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            assert event["name"].startswith(lanes[event["tid"]]), event
            spans[lanes[event["tid"]]].append((event["ts"], event["ts"] + event["dur"]))
    for kind, count in KINDS.items():
        assert len(spans[kind]) == count, (kind, len(spans[kind]))
        spans[kind].sort()
        for (_, end), (begin, _) in zip(spans[kind], spans[kind][1:]):
            assert begin >= end - 0.5, f"a stream does two of {kind} at one time"
    return spans


def together(spans):
    """Microseconds in which all kinds are under way."""
    moments = sorted({m for kind in spans.values() for span in kind for m in span})
    busy = lambda kind, a, b: any(begin <= a and end >= b for begin, end in spans[kind])
    return sum(b - a for a, b in zip(moments, moments[1:]) if all(busy(k, a, b) for k in spans))


def run(program):
    with tempfile.TemporaryDirectory() as folder:
        printed = subprocess.run([program, folder], check=True, capture_output=True,
                                 text=True).stdout
        assert "the results are those of one stream\n" in printed, printed
        picture = pathlib.Path(folder, "overlap.svg").read_text()
        assert picture.startswith("<svg ") and picture.endswith("</svg>\n")
        assert picture.count("<title>") == sum(KINDS.values())
        return spans_of(json.loads(pathlib.Path(folder, "overlap.json").read_text()))


def main():
    for attempt in range(8):
        spans = run(sys.argv[1])
        shared = together(spans)
        print(f"run {attempt}: all three at one time for {shared:.0f} us")
        if shared > 200:
            return
    sys.exit("in no run were all three under way at one time")


main()
