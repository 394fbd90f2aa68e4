#!/usr/bin/env python3
"""The recorded training steps of bench/traces waste at most 1 % in a pool, run once and seven
times.

    traces_test.py VELO_COMMAND

Each trace is replayed by `velo replay`. A step that is repeated ends with what it left alive freed,
and begins again; the pool does not know where. Goal M2.
"""
import json
import lzma
import pathlib
import subprocess
import sys
import tempfile

TRACES = pathlib.Path(__file__).resolve().parents[3] / "bench/traces"
MOST, TIMES = 0.01, (1, 7)


def repeated(text, times):
    """So many steps, one after the other, as one log."""
    head, *rows = text.splitlines()
    events, alive = [], {}
    for row in rows:
        _, _, action, pointer, size, _ = row.split(",")
        events.append((action, pointer, size))
        if action == "allocate":
            alive[pointer] = size
        else:
            del alive[pointer]
    events += [("free", pointer, size) for pointer, size in alive.items()]
    return "\n".join(
        [head, *(f"0,{i},{a},{p},{s},0" for i, (a, p, s) in enumerate(events * times))]) + "\n"


def main():
    files = sorted(TRACES.glob("*.csv.xz"))
    assert len(files) >= 5, f"{len(files)} traces in {TRACES}"
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            text = lzma.open(file, "rt").read()
            for times in TIMES:
                log = pathlib.Path(folder) / "trace.csv"
                log.write_text(repeated(text, times))
                result = json.loads(
                    subprocess.run([sys.argv[1], "replay", log, "--json"],
                                   capture_output=True,
                                   check=True).stdout)
                line = (f"{file.name} {times} times: {result['fragmentation']:.4%} of "
                        f"{result['peak_reserved']} bytes")
                print(line)
                if result["fragmentation"] > MOST:
                    failed.append(line)
    assert not failed, f"above {MOST:.0%}: {failed}"


if __name__ == "__main__":
    main()
