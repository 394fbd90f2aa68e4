"""Schedules as `velo schedule` draws them, read back: the picture is XML whose rectangles are the
actions of the rows, in place and apart, and the trace is JSON whose events are.

    schedule_pictures_test.py VELO README_PICTURE
"""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
SCHEDULES = ("gpipe --ranks 2 --microbatches 3", "1f1b --ranks 1 --microbatches 1",
             "1f1b --ranks 8 --microbatches 32 --costs 1,1.2,0.8",
             "interleaved --ranks 8 --microbatches 32",
             "interleaved --ranks 3 --microbatches 7 --group 4 --comm 0.3",
             "1f1b --ranks 2 --microbatches 2 --costs 0,0,0",
             "gpipe --ranks 1 --microbatches 1 --costs 4000,3000,3000")
MANY_WORDS = "nanopipe --ranks 4 --microbatches 8 --swap --copy-cost 0.2 --optimizer 1"
SIZED = ("1f1b --ranks 4 --microbatches 8 --sizes 2,4,12,1.5,0.1",
         "gpipe --ranks 1 --microbatches 1 --sizes 1,0,0,0,0")
SWAPPED = "nanopipe --ranks 4 --microbatches 8 --swap --copy-cost 0.2 --sizes 2,4,12,1.5,0.1"
WITH_CAPITALS = "dualpipe --ranks 4 --microbatches 8 --optimizer 1"
LETTER, CAPITAL = 6, 8.4  # about what one of font size 12 takes
IN_README = "interleaved --ranks 4 --microbatches 8"


def velo(words, form):
    return subprocess.run([sys.argv[1], "schedule", *words.split(), "--format", form],
                          check=True,
                          capture_output=True,
                          text=True).stdout


def apart(spans):
    ordered = sorted(spans)
    return all(before[1] <= after[0] + 1e-9 for before, after in zip(ordered, ordered[1:]))


def check_trace(words, rows):
    events = json.loads(velo(words, "trace"))["traceEvents"]
    assert {e["ph"] for e in events} == {"M", "X", "C"}, words
    for rank, row in enumerate(rows):
        mine = [e for e in events if e["pid"] == rank]
        actions = [e for e in mine if e["ph"] == "X"]
        assert [e["name"] for e in actions] == row, (words, rank)
        assert all(e["dur"] >= 0 for e in actions) and apart(
            (e["ts"], e["ts"] + e["dur"]) for e in actions), (words, rank)
        held = [e["args"]["micro-batches"] for e in mine if e["ph"] == "C"]
        assert held[-1] == 0 and min(held) == 0, (words, rank)
    check_path(words, [e for e in events if e["pid"] == len(rows) and e["ph"] == "X"])
    return {
        e["name"]: (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e["ph"] == "X" and e["pid"] < len(rows)
    }


def check_path(words, steps):
    """The critical path has no gap, from 0 to the makespan, and is the one of the summary."""
    data = json.loads(velo(words, "summary-json"))
    assert abs(steps[0]["ts"]) < 1e-9 and abs(steps[-1]["ts"] + steps[-1]["dur"] -
                                              data["makespan"]) < 1e-9, words
    assert all(abs(a["ts"] + a["dur"] - b["ts"]) < 1e-9 for a, b in zip(steps, steps[1:])), words
    actions = [e["name"] for e in steps if e["cat"] != "wait"]
    assert actions == [f"rank {step['rank']}: {step['action']}" for step in data["critical_path"]
                      ], words
    assert abs(
        sum(step["length"] + step["wait"] for step in data["critical_path"]) -
        data["makespan"]) < 1e-6, words


def width_of(text):
    return sum(CAPITAL if letter.isupper() else LETTER for letter in text)


def check_memory(words, picture):
    """What the summary has on the host is a hollow bar of each rank, and named below."""
    memory = json.loads(velo(words, "summary-json"))["memory"]
    bars = {}
    for group in picture.iter(SVG + "g"):
        name, amount = group.find(SVG + "title").text.split(": ", 1)
        if " to " not in amount:
            bars.setdefault(name, []).append((float(amount), group.find(SVG + "rect")))
    on_host = [rank["offloaded"] for rank in memory if rank["offloaded"] > 0]
    assert on_host and [amount for amount, _ in bars["offloaded"]] == on_host, words
    assert all(
        box.get("stroke") and float(box.get("width")) > 0 for _, box in bars["offloaded"]), words
    assert "offloaded" in [text.text for text in picture.findall(SVG + "text")], words


def check_words(words, picture):
    """What stands beside and below the rows is within the picture, and apart."""
    lines = {}
    for text in picture.findall(SVG + "text"):
        long, x = width_of(text.text), float(text.get("x"))
        start = x - long * {None: 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        lines.setdefault(text.get("y"), []).append((start, start + long))
    assert all(apart(line) for line in lines.values()), words
    for text in picture.findall(SVG + "text"):
        if text.get("text-anchor") is None and text.get("font-size") is None:
            assert float(text.get("x")) + width_of(text.text) <= float(
                picture.get("width")), (words, text.text)
            assert float(text.get("y")) < float(picture.get("height")), (words, text.text)


def check_svg(words, rows, times):
    picture = xml.fromstring(velo(words, "svg"))
    drawn = {}
    for group in picture.iter(SVG + "g"):
        name, begin, end = re.fullmatch(r"(\S+): (\S+) to (\S+)",
                                        group.find(SVG + "title").text).groups()
        box = group.find(SVG + "rect")
        x, width = float(box.get("x")), float(box.get("width"))
        drawn[name] = (float(box.get("y")), x, x + width)
        assert (float(begin), float(end)) == times[name], (words, name)
        assert 0 <= x and x + width <= float(picture.get("width")), (words, name)
        number = group.find(SVG + "text")
        assert number is not None and number.text == re.search(r"\d+$", name).group(), (words, name)
    lasting = [{name for name in row if times[name][0] < times[name][1]} for row in rows]
    assert set(drawn) == set().union(*lasting), words
    for rank, names in enumerate(lasting):
        assert len({drawn[name][0] for name in names}) <= 1, (words, rank)
        assert all(
            b[0] - a[1] > -0.011
            for a, b in zip(*[sorted(drawn[n][1:] for n in names)[i:] for i in (0, 1)])), (words,
                                                                                           rank)
    check_words(words, picture)
    texts = [text.text for text in picture.iter(SVG + "text")]
    peaks = json.loads(velo(words, "summary-json"))["peak_activations"]
    at = texts.index("rank 0")
    shown = [text for text in texts if re.fullmatch(r"[\d.]+ %", text or "")]
    assert len(shown) == len(rows) and at >= 0, words
    for rank, peak in enumerate(peaks):
        assert f"rank {rank}" in texts and f"{peak:g}" in texts, (words, rank)


def main():
    for words in SCHEDULES:
        rows = [line.split(",") for line in velo(words, "csv").splitlines()]
        check_svg(words, rows, check_trace(words, rows))
    for words in SIZED:
        check_words(words, xml.fromstring(velo(words, "svg")))
    for words in (MANY_WORDS, SWAPPED, WITH_CAPITALS):
        check_words(words, xml.fromstring(velo(words, "svg")))
    check_memory(SWAPPED, xml.fromstring(velo(SWAPPED, "svg")))
    with open(sys.argv[2], encoding="utf-8") as file:
        assert file.read() == velo(
            IN_README, "svg"
        ), f"{sys.argv[2]} is not `{IN_README}`: cmake --build build --target schedule_picture"


main()
