#!/usr/bin/env python3
"""Plans for recompute beside the best there is, and how long they take.

    bench_recompute.py [--ops 20,30] [--seeds 3] [--budgets 0.1,0.4,0.7] [--seconds 60] [--skip-ilp]

Steps of training - chains, and graphs drawn from a seed - are planned by velo and by Checkmate's
integer program (MLSys'20, its section 4: stages, frontier advancing, frees in every stage), which
scipy's HiGHS gets so many seconds for. A budget is a share of the way from the least any operation
needs to the peak of running everything once. A row tells the seconds that recomputing adds over
those of the step: of velo, of the program where it finished (`ilp`), else the best it had and its
bound. Then the time of plans of 3,000 operations and of choices of 128 layers with 16 options each
within 80 GiB, processor time of the call alone. One JSON object a row. Goals: goals.json,
recompute. Needs scipy (bench/requirements.txt); VELO_LIBRARY names the library, else the build's is
taken.
"""
import argparse
import ctypes
import itertools
import json
import os
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "capi/python"))
os.environ.setdefault("VELO_LIBRARY", str(ROOT / "build/capi/libvelo.so.1"))
import velo.ctypes as v  # noqa: E402

GIB = 1 << 30


def training_step(forward, branches, seed):
    """Operations (seconds, bytes, inputs, keep): forward ones, then a gradient for each, which
    takes what it took and made."""
    draw = random.Random(seed)
    ops, parts = [], [[] for _ in range(forward)]
    for i in range(forward):
        inputs = {i - 1} if i else set()
        if branches and i > 1 and draw.randrange(3) == 0:
            inputs.add(draw.randrange(i))
        ops.append((draw.randint(1, 9), draw.randint(20, 119), sorted(inputs), 0))
    for i in reversed(range(forward)):
        index = len(ops)
        ops.append((2 * ops[i][0], ops[i][1] if i else 10, sorted({*ops[i][2], i,
                                                                   *parts[i]}), int(i == 0)))
        for source in ops[i][2]:
            parts[source].append(index)
    return ops


def bounds(ops):
    """Bytes that one operation needs at least, and the peak of running everything once."""
    last = {}
    for i, (_, _, inputs, _) in enumerate(ops):
        last.update({k: i for k in [i, *inputs]})
    live = peak = least = 0
    for i, (_, size, inputs, _) in enumerate(ops):
        live += size
        peak = max(peak, live)
        least = max(least, size + sum(ops[k][1] for k in inputs))
        live -= sum(ops[k][1] for k in {i, *inputs} if last[k] == i and not ops[k][3])
    return least, peak


def plan(library, ops, budget):
    """Seconds that velo's plan adds, and the milliseconds of finding it; None where it finds
    none."""
    handle = v.velo_recompute_plan()
    v.check(library, library.velo_recompute_plan_create(ctypes.byref(handle)))
    try:
        for seconds, size, inputs, keep in ops:
            listed = (ctypes.c_int64 * len(inputs))(*inputs)
            op = v.velo_recompute_op(keep=keep,
                                     seconds=seconds,
                                     bytes=size,
                                     inputs=listed,
                                     input_count=len(inputs))
            v.check(library, library.velo_recompute_plan_add(handle, ctypes.byref(op), None))
        options = v.velo_recompute_plan_options(budget=budget, seed=1)
        begin = time.process_time()
        status = library.velo_recompute_plan_solve(handle, ctypes.byref(options))
        taken = 1e3 * (time.process_time() - begin)
        if status != v.VELO_OK:
            return None, taken
        stats = v.velo_recompute_plan_stats()
        v.check(library, library.velo_recompute_plan_get_stats(handle, ctypes.byref(stats)))
        return stats.seconds_more, taken
    finally:
        library.velo_recompute_plan_destroy(handle)


class Program:
    """An integer program in the rows of scipy.optimize.milp: lower <= sum of factor * variable <=
    upper."""

    def __init__(self):
        self.costs, self.least, self.most, self.whole = [], [], [], []
        self.rows, self.columns, self.factors, self.lower, self.upper = [], [], [], [], []

    def variable(self, cost=0.0, least=0.0, most=1.0, whole=1):
        for values, value in ((self.costs, cost), (self.least, least), (self.most, most),
                              (self.whole, whole)):
            values.append(value)
        return len(self.costs) - 1

    def row(self, terms, lower, upper):
        for column, factor in terms:
            self.rows.append(len(self.lower))
            self.columns.append(column)
            self.factors.append(factor)
        self.lower.append(lower)
        self.upper.append(upper)

    def solve(self, seconds):
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        matrix = coo_array((self.factors, (self.rows, self.columns)),
                           shape=(len(self.lower), len(self.costs)))
        return milp(self.costs, integrality=self.whole, bounds=Bounds(self.least, self.most),
                    constraints=LinearConstraint(matrix.tocsr(), self.lower, self.upper),
                    options={"time_limit": seconds, "mip_rel_gap": 0})


def checkmate(ops, budget, seconds):
    """Seconds that the best plan by stages adds, its lower bound, and whether they are one; None
    where there is no plan."""
    count, program, infinite = len(ops), Program(), float("inf")
    takers = [[k for k in range(count) if i in ops[k][2]] for i in range(count)]
    runs = [[program.variable(ops[i][0], least=float(i == t))
             for i in range(t + 1)]
            for t in range(count)]
    there = [[program.variable(least=float(t == count and ops[i][3]))
              for i in range(t)]
             for t in range(count + 1)]
    used = [
        [program.variable(most=float(budget), whole=0) for _ in range(t + 1)] for t in range(count)
    ]
    for t in range(count):
        for i in range(t + 1):
            source = [(runs[t][i], -1)] + ([(there[t][i], -1)] if i < t else [])
            program.row([(there[t + 1][i], 1), *source], -infinite, 0)
            for k in ops[i][2]:
                program.row([(runs[t][i], 1),
                             (runs[t][k], -1)] + ([(there[t][k], -1)] if k < t else []), -infinite,
                            0)
        for k in range(t + 1):
            terms = [(used[t][k], 1), (runs[t][k], -ops[k][1])]
            if k == 0:
                terms += [(there[t][i], -ops[i][1]) for i in range(t)]
            else:
                terms.append((used[t][k - 1], -1))
                for i in [k - 1,
                          *ops[k - 1][2]]:  # freed after k - 1 ran, if nothing needs it any more
                    freed = program.variable()
                    later = [runs[t][j] for j in takers[i] if k - 1 < j <= t]
                    hazards = [(there[t + 1][i], 1), *((j, 1) for j in later), (runs[t][k - 1], -1)]
                    program.row([*hazards, (freed, 1)], 0,
                                infinite)  # 1 - freed <= hazards + (1 - runs)
                    program.row([*hazards, (freed, len(hazards))], -infinite, len(hazards) - 1)
                    terms.append((freed, ops[i][1]))
            program.row(terms, 0, 0)
    found = program.solve(seconds)
    once = sum(op[0] for op in ops)
    if found.x is None:
        return None
    return round(found.fun - once, 6), round(found.mip_dual_bound - once, 6), found.status == 0


def compare(library, options):
    for count in options.ops:
        for branches in (False, True):
            for seed in range(1, options.seeds + 1):
                ops = training_step(count // 2, branches, seed)
                least, peak = bounds(ops)
                for share in options.budgets:
                    budget = int(least + share * (peak - least))
                    more, milliseconds = plan(library, ops, budget)
                    row = {
                        "bench": "recompute", "ops": len(ops), "branches": branches, "seed": seed,
                        "budget": share, "seconds": sum(op[0] for op in ops), "velo": more,
                        "milliseconds": round(milliseconds, 1)
                    }
                    best = None if options.skip_ilp else checkmate(ops, budget, options.seconds)
                    if best is not None:
                        row.update(zip(("ilp", "ilp_bound", "finished"), best))
                    if more is not None and best is not None and best[
                            2]:  # of all seconds of the step
                        row["ratio"] = round((row["seconds"] + more) / (row["seconds"] + best[0]),
                                             4)
                    yield row


def time_large_plans(library):
    for branches in (False, True):
        ops = training_step(1500, branches, 1)
        least, peak = bounds(ops)
        for share in (0.05, 0.22, 0.3, 0.6):
            budget, taken = int(least + share * (peak - least)), []
            for _ in range(5):
                more, milliseconds = plan(library, ops, budget)
                taken.append(milliseconds)
            yield {
                "bench": "recompute_large", "ops": len(ops), "branches": branches, "budget": share,
                "seconds": sum(op[0] for op in ops), "velo": more,
                "milliseconds": round(sorted(taken)[2], 1)
            }


def layers_of_parts(kind):
    """128 layers, each of a module with four parts: 16 combinations of the parts, and the whole.
    Modules as the library takes them."""
    draw, modules = random.Random(1), []
    for layer in range(128):
        if kind == "alike":
            draw = random.Random(1)
        parts = [draw.randint(GIB // 64, GIB // 4) for _ in range(4)]
        seconds = {
            "5 % off": lambda size: size * 1e-11 * draw.uniform(1, 1.05),
            "proportional": lambda size: size * 1e-11
        }
        root = len(modules)
        modules.append((layer, -1, sum(parts) + GIB // 16, GIB // 32, 0.1))
        modules += [(layer, root, size, size // 8,
                     seconds.get(kind, lambda _: draw.uniform(0.001, 0.02))(size))
                    for size in parts]
    return modules


def time_choices(library):
    for kind in ("alike", "random", "5 % off", "proportional"):
        modules = layers_of_parts(kind)
        array = (v.velo_recompute_module * len(modules))()
        for place, (layer, parent, size, kept, seconds) in enumerate(modules):
            array[place] = v.velo_recompute_module(layer, parent, size, kept, seconds)
        rule = v.velo_recompute_rule(method=v.VELO_RECOMPUTE_METHOD_ADAPTIVE,
                                     layers=128,
                                     pipeline_size=1,
                                     chunks=1)
        chosen, choice = (ctypes.c_int32 * len(modules))(), v.velo_recompute_choice()
        budget = v.velo_recompute_budget(
            bytes=min(sum(m[2] for m in modules if m[1] < 0) * 6 // 10, 80 * GIB))
        taken = []
        for _ in range(5):
            begin = time.process_time()
            v.check(
                library,
                library.velo_recompute_choose(ctypes.byref(rule), ctypes.byref(budget), array,
                                              len(modules), chosen, ctypes.byref(choice)))
            taken.append(1e3 * (time.process_time() - begin))
        yield {
            "bench": "recompute_choice", "layers": 128, "kind": kind,
            "budget_gib": round(budget.bytes / GIB, 1), "seconds": choice.seconds,
            "gap": 1 - choice.seconds_bound / choice.seconds,
            "milliseconds": round(sorted(taken)[2], 2)
        }


def judge(rows):
    for goal in json.loads((ROOT / "bench/goals.json").read_text())["recompute"]:
        figures = [
            row[goal["statistic"]]
            for row in rows
            if row["bench"] == goal["bench"] and row.get(goal["statistic"]) is not None and
            (goal["bench"] != "recompute_large" or row["velo"] is not None)
        ]
        if figures:
            verdict = "reached" if max(figures) <= goal["bound"] else "MISSED "
            print(
                f"  {verdict}  {goal['id']}: {max(figures):.4g} of {goal['bound']} in the worst of "
                f"{len(figures)} rows",
                file=sys.stderr)


def main():
    listed = lambda kind: lambda text: [kind(one) for one in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=listed(int), default=[20, 30])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budgets", type=listed(float), default=[0.1, 0.4, 0.7])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--skip-ilp", action="store_true")
    options = parser.parse_args()
    library, rows = v.load(), []
    for row in itertools.chain(time_choices(library), time_large_plans(library),
                               compare(library, options)):
        print(json.dumps(row), flush=True)
        rows.append(row)
    judge(rows)


if __name__ == "__main__":
    main()
