#!/usr/bin/env python3
"""Keeps what benches measured, bench/results/<machine>.json, and renders it as Markdown.

    render_results.py [FILE ..]          tables of all results, by area and machine
    render_results.py --record FILE --bench NAME --conditions TEXT [--machine TEXT --kind KIND] <
        ROWS
                                         puts a run into FILE, in place of the last run of NAME;
                                         ROWS is what the bench wrote with --json, a line a row
    render_results.py --readme           writes the table of results into README.md
    render_results.py --check            exits 1 where README.md states a figure of its own

A file has machine, kind (as in goals.json) and runs. A run has bench, date, conditions and rows. A
row has the fields of the benches' JSON lines: name, dtype, shape, residency, threads, unit, velo,
peer, peer_name, ratio (above 1: velo is better) and share (of the limit). A figure that varied
from run to run is a pair, the least and the most. `goal` names a goal of a bench whose list
cannot be matched by fields; every other row finds its goals in goals.json itself. `short` of a run
says what limits rows below their goals and what was tried: a list of {"row": fields as in
goals.json, "why": text}, kept when the run is recorded again.
"""
import argparse
import datetime
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent
BEGIN, END = "<!-- results: bench/render_results.py --readme -->", "<!-- end of results -->"

# Area, the bench whose rows it has, and the list of goals.json that judges them.
AREAS = (("Operators", "bench_ops", "goals"), ("Calls", "bench_call", "calls"),
         ("Memory", "bench_memory", "memory"), ("Plans", "bench_plan.py", None),
         ("Swap", "bench_swap.py", None), ("Recompute", "bench_recompute.py", None),
         ("Collectives", "bench_comm", "comm"), ("Overlap", "bench_overlap", "overlap"),
         ("Parallel", "bench_parallel", "parallel"),
         ("Ranks beside torch", "bench_torch_ranks.py", "torch_ranks"),
         ("Schedules", "bench_sched", "schedules"), ("Calls from hosts", "bench_hosts.py", None),
         ("Training", "bench_pretrain.py", None), ("Layouts", "bench_layouts.py", "layouts"),
         ("Experts beside transformers", "bench_experts.py", "experts"),
         ("Models in PyTorch", "bench_torch_enable.py", None))

# The rows of README's table: text, machine, bench, and for each figure the fields that find its
# row.
CAUSAL = {"shape": "1x4x4096x128 causal", "dtype": "bf16"}
README_ROWS = (
    ("RMS normalization and gradient, 8192 x 4096, bf16, GB/s", "zen4", "bench_ops",
     ({"name": "rms_norm", "shape": "8192x4096", "dtype": "bf16"},
      {"name": "rms_norm_backward", "shape": "8192x4096", "dtype": "bf16"})),
    ("matrix product 512 x 4096 x 4096, f32 and bf16, GFLOP/s", "zen4", "bench_ops",
     ({"name": "matmul", "shape": "512x4096x4096", "dtype": "f32"},
      {"name": "matmul", "shape": "512x4096x4096", "dtype": "bf16"})),
    ("causal attention and gradient, S 4096, D 128, bf16, GFLOP/s", "zen4", "bench_ops",
     ({"name": "fusion_attention", **CAUSAL}, {"name": "fusion_attention_backward", **CAUSAL})),
    ("AdamW step, 32 Mi f32 parameters, GB/s", "zen4", "bench_ops",
     ({"name": "apply_fused_adamw", "dtype": "f32"},)),
    ("all-reduce of 64 KiB and 1 MiB in shared pools, 2 processes, us", "zen4", "bench_comm",
     ({"name": "all_reduce", "shape": "64 KiB", "residency": "pool"},
      {"name": "all_reduce", "shape": "1 MiB", "residency": "pool"})),
    ("allocation and free of 64 MiB, untouched, ns", "zen4", "bench_memory",
     ({"name": "pair", "shape": "64 MiB", "residency": "untouched"},)),
    ("training a decoder (hidden 512, 8 layers), 2 threads, bf16, tokens/s", "zen4",
     "bench_pretrain.py", ({"goal": "pretrain-bf16-best"},)),
)


def read(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def text_of(results):
    """The text of a file: a line a row, so that a difference shows the rows that changed."""
    def line(value):
        return json.dumps(value, ensure_ascii=False)

    runs = []
    for run in results["runs"]:
        head = ",\n   ".join(f'"{key}": {line(value)}' for key, value in run.items()
                              if key != "rows")
        rows = ",\n    ".join(line(row) for row in run["rows"])
        runs.append(f'  {{{head},\n   "rows": [\n    {rows}]}}')
    head = "".join(f' "{key}": {line(value)},\n' for key, value in results.items()
                   if key != "runs")
    text = "{\n" + head + ' "runs": [\n' + ",\n".join(runs) + "]}\n"
    assert json.loads(text) == results
    return text


def write(path, results):
    pathlib.Path(path).write_text(text_of(results), encoding="utf-8")


def figure(value):
    """A number with up to four digits that count, or a pair as "a to b"."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return f"{figure(value[0])} to {figure(value[1])}"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def least(value):
    return min(value) if isinstance(value, list) else value


def most(value):
    return max(value) if isinstance(value, list) else value


def matches(pattern, value):
    return re.search(pattern[1:], value) if pattern.startswith("~") else pattern == value


def reached(goal, row, kind):
    """Whether a clause of the goal holds for the row; None where none can be judged by the row."""
    verdicts = []
    for clause in goal["any"]:
        bound = clause["bound"].get(kind) if isinstance(clause["bound"], dict) else clause["bound"]
        if bound is None:
            continue
        if clause["statistic"] == "nanoseconds" and row["unit"] in ("ns", "us"):
            verdicts.append(most(row["velo"]) * (1 if row["unit"] == "ns" else 1000) <= bound)
        elif clause["statistic"] == "share" and "share" in row:
            verdicts.append(row["share"] >= bound)
        elif clause["statistic"] == "ratio":
            peer = clause.get("peer", "best")
            if peer in ("best", row.get("peer_name")) and "ratio" in row:
                verdicts.append(row["ratio"] >= bound)
            elif peer in row.get("peers", {}):
                other, velo = least(row["peers"][peer]), most(row["velo"])
                verdicts.append(other / velo >= bound)
    return any(verdicts) if verdicts else None


def judge(section, rows):
    """Prints which goals of a section are reached: those that each of their rows reaches."""
    for goal in read(FOLDER / "goals.json")[section]:
        held = [row for row in rows
                if all(matches(pattern, row[key]) for key, pattern in goal["row"].items())]
        if held:
            all_reach = all(reached(goal, row, "") for row in held)
            print(f"{'reached' if all_reach else 'NOT REACHED':11} {goal['id']}: least ratio "
                  f"{min(row['ratio'] for row in held):.2f}, goal {goal['any'][0]['bound']}")


def goals_of(row, area_goals, kind):
    """Texts "id" and "id, missed" of the goals that this row is held to."""
    if "goal" in row:
        return [row["goal"]]
    texts = []
    for goal in area_goals:
        fields = ("name", "dtype", "shape", "residency")
        if goal["threads"] == row["threads"] and all(
                matches(goal["row"].get(key, "~"), row.get(key, "")) for key in fields):
            verdict = reached(goal, row, kind)
            if verdict is not None:
                texts.append(goal["id"] + ("" if verdict else ", missed"))
    return texts


def row_text(row):
    threads = f"{row['threads']}T" if row["threads"] > 1 else ""
    words = (row["name"], row.get("dtype"), row["shape"], row.get("residency"), threads)
    return " ".join(word for word in words if word)


def short_text(short):
    """What rows fall short of, and why."""
    words = " ".join(text.lstrip("~") for text in short["row"].values())
    return f"`{words}`: {short['why']}"


def area_tables(area, bench, goals, files):
    lines = [f"## {area}", ""]
    for results in files:
        for run in (r for r in results["runs"] if r["bench"] == bench):
            lines += [
                f"{results['machine']}, `{bench}`, {run['date']}: {run['conditions']}.", "",
                "| row | velo | best peer | ratio | share | goals |", "|---|---|---|---|---|---|"
            ]
            for row in run["rows"]:
                peer = f"{figure(row['peer'])} {row['peer_name']}" if "peer" in row else "-"
                share = f"{100 * row['share']:.0f} %" if "share" in row else "-"
                held = "; ".join(goals_of(row, goals, results["kind"])) or "-"
                mark = " *" if row.get("disturbed") else ""
                lines.append(f"| {row_text(row)}{mark} | {figure(row['velo'])} {row['unit']} | "
                             f"{peer} | {figure(row.get('ratio'))} | {share} | {held} |")
            lines += ["", *(f"- {short_text(each)}" for each in run.get("short", [])), ""]
    return lines if len(lines) > 2 else []


def render(files):
    goals = read(FOLDER / "goals.json")
    lines = ["# Results", "", "Rows marked * were measured beside other work.", ""]
    for area, bench, key in AREAS:
        lines += area_tables(area, bench, goals[key] if key else [], files)
    return "\n".join(lines)


def row_of(results, bench, fields):
    found = [
        row for run in results["runs"] if run["bench"] == bench for row in run["rows"]
        if all(row.get(key) == value for key, value in fields.items())
    ]
    if len(found) != 1:
        sys.exit(f"{bench} of {results['machine']} has {len(found)} rows with {fields}")
    return found[0]


def readme_table():
    lines = ["| job | velo | best peer in the same run | ratio |", "|---|---|---|---|"]
    for text, machine, bench, wanted in README_ROWS:
        results = read(FOLDER / "results" / f"{machine}.json")
        rows = [row_of(results, bench, fields) for fields in wanted]
        names = list(dict.fromkeys(row["peer_name"] for row in rows))
        mark = " *" if any(row.get("disturbed") for row in rows) else ""
        lines.append(f"| {text}{mark} | {', '.join(figure(r['velo']) for r in rows)} | "
                     f"{', '.join(figure(r['peer']) for r in rows)} ({', '.join(names)}) | "
                     f"{', '.join(figure(r['ratio']) + 'x' for r in rows)} |")
    return "\n".join(lines)


def readme_parts(text):
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:start], text[start:end], text[end:]


# A measured figure: a rate, a time of a call or a ratio to a peer.
FIGURE = re.compile(r"\d[\d.,]* ?(GB/s|G?FLOP/s|GF/s|tokens/s|ns|us|ms)\b"
                    r"|\d (micro|nano|milli)seconds?\b|\d[\d.]*x\b|\d ?%")


def check(text):
    """Sentences on what of README's text does not come from a results file."""
    before, table, after = readme_parts(text)
    if table.strip() != readme_table():
        yield "README.md: the table of results differs from bench/results: run --readme"
    for line in (before + after).split("\n"):
        if FIGURE.search(line):
            yield f"README.md: a figure outside the table of results: {line.strip()[:80]}"


def compact(row):
    """What the page needs of a row that a bench printed, to four digits; absent peers are left
    out."""
    kept = ("name", "dtype", "shape", "residency", "threads", "unit", "velo", "peer", "peer_name",
            "ratio", "share", "peers", "goal", "disturbed")
    missing = [key for key in ("name", "shape", "threads", "unit", "velo") if key not in row]
    if missing:
        raise SystemExit(f"a row without {', '.join(missing)}: {row}")
    short = lambda value: float(f"{value:.4g}") if isinstance(value, float) else value
    return {
        key: short(row[key])
        for key in kept if row.get(key) is not None and not (key == "share" and row["limit"] == 0)
    }


def limits_of(rows):
    """The least and the most that a run measured of each limit."""
    limits = {}
    for row in rows:
        if row.get("limit"):
            limits.setdefault(f"{row['limit_name']} {row['unit']}", []).append(row["limit"])
    return {name: [round(min(all), 1), round(max(all), 1)] for name, all in limits.items()}


def record(given):
    path = pathlib.Path(given.record)
    results = read(path) if path.exists() else {
        "machine": given.machine, "kind": given.kind, "runs": []
    }
    rows = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    rows = [row for row in rows if "name" in row]
    run = {
        "bench": given.bench, "date": datetime.date.today().isoformat(),
        "conditions": given.conditions
    }
    if limits := limits_of(rows):
        run["limits"] = limits
    for before in results["runs"]:
        if before["bench"] == given.bench and "short" in before:
            run["short"] = before["short"]
    run["rows"] = [compact(row) for row in rows]
    results["runs"] = [r for r in results["runs"] if r["bench"] != given.bench] + [run]
    write(path, results)
    print(f"{len(rows)} rows of {given.bench} in {path}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--record")
    parser.add_argument("--bench")
    parser.add_argument("--conditions", default="")
    parser.add_argument("--machine", default="")
    parser.add_argument("--kind", default="")
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    page = ROOT / "README.md"
    if given.record:
        record(given)
    elif given.readme:
        before, _, after = readme_parts(page.read_text(encoding="utf-8"))
        page.write_text(f"{before}\n{readme_table()}\n{after}", encoding="utf-8")
    elif given.check:
        wrong = list(check(page.read_text(encoding="utf-8")))
        print("\n".join(wrong) or "README.md: every figure comes from bench/results")
        return 1 if wrong else 0
    else:
        paths = given.files or sorted((FOLDER / "results").glob("*.json"))
        print(render([read(path) for path in paths]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
