#!/usr/bin/env python3
"""What plans and pools of velo come to on placement instances and traces: heights, memory, stalls.

    bench_plan.py DATA [--filter REGEX] [--json]

DATA is a folder with placement/*.csv (id,lower,upper,size; the capacity stands in the name,
NAME.CAPACITY.csv) and traces/*.csv (RMM's log). Rows: `place`, each instance on one thread and on
two, seconds until it fits, 10 at most, and the sums of all; `trace`, each trace placed within a
second; `online`, the same trace in a pool that knows nothing of what comes, beside the model of the
allocator that frameworks use; `pipeline`, a million buffers of a pipeline's stage within five, the
height over the bound; `mismatch`, a replay in which 5 % of the tensors have other sizes and 1 % are
new, the most bytes reserved over the most alive (worst of four seeds); `swap`, half of the peak as
the budget and two links of 12 GB/s, the stall over the bound that no plan is below (worst of six
lengths of the step, since a trace does not tell how long it computes); `swap_run`, the seconds that
such a step takes on the clock (executed_step.py) over those planned; `joint`, 40 % of the peak and
steps of 0.5 s, the stall of swapping and making again together over the better of either alone. For
all three each allocation of the trace is an operation that takes as long as the others, and reads
what was allocated before it and what is freed before the next; `stitch`, a block of nine tenths of
what is free in a thousand holes of 2 MiB, in seconds a GiB (best of five). One JSON object a row
with --json. Goals: goals.json, plans. Needs nothing but Python; VELO_LIBRARY names the library,
else the build's is taken.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent
sys.path.insert(0, str(ROOT / "capi/python"))
os.environ.setdefault("VELO_LIBRARY", str(ROOT / "build/capi/libvelo.so.1"))
import velo.ctypes as v  # noqa: E402
from executed_step import Step  # noqa: E402

COMMAND = os.environ.get("VELO_COMMAND", str(ROOT / "build/tools/velo/velo"))
LINK = 12e9  # bytes a second
STEPS = (0.1, 0.3, 0.5, 0.8, 1.0, 2.0)  # seconds of computing


class Plan:
    """A velo_plan, and what it is asked here."""

    def __init__(self, library, capacity=0, pool=None):
        self.library, self.handle = library, v.velo_plan()
        desc = v.velo_plan_desc(capacity=capacity, pool=pool)
        self.call("create", ctypes.byref(desc), ctypes.byref(self.handle), handle=False)

    def call(self, name, *arguments, handle=True):
        function = getattr(self.library, "velo_plan_" + name)
        v.check(self.library, function(*([self.handle] if handle else []), *arguments))

    def read(self, text, form):
        self.call("read", form, text, len(text))

    def solve(self, seconds, threads=1):
        """Seconds that it took."""
        options = v.velo_plan_options(threads=threads, seconds=seconds, seed=1)
        begin = time.perf_counter()
        self.call("solve", ctypes.byref(options))
        return time.perf_counter() - begin

    def stats(self):
        found = v.velo_plan_stats()
        self.call("get_stats", ctypes.byref(found))
        return found

    def buffers(self):
        """(lower, upper, bytes) of each."""
        found, all_of_them = v.velo_plan_buffer(), []
        for index in range(self.stats().buffers):
            self.call("get_buffer", index, ctypes.byref(found))
            all_of_them.append((found.lower, found.upper, found.bytes))
        return all_of_them


@contextlib.contextmanager
def plan_of(library, *arguments, **named):
    plan = Plan(library, *arguments, **named)
    try:
        yield plan
    finally:
        library.velo_plan_destroy(plan.handle)


def placements(library, files):
    for threads in (1, 2):
        total, slowest, unfit = 0.0, 0.0, 0
        for file in files:
            capacity = int(file.name.split(".")[-2])
            with plan_of(library, capacity) as plan:
                plan.read(file.read_bytes(), v.VELO_PLAN_CSV)
                seconds = plan.solve(10, threads)
                height = plan.stats().height
            total, slowest, unfit = total + seconds, max(slowest,
                                                         seconds), unfit + (height > capacity)
            yield {
                "name": "place", "instance": file.name.split(".")[0], "threads": threads,
                "height": height, "overshoot": height / capacity, "seconds": round(seconds, 3)
            }
        if files:
            yield {
                "name": "place", "instance": "all", "threads": threads, "unfit": unfit,
                "seconds": round(total, 3), "slowest": round(slowest, 3)
            }


def placed(name, instance, plan, seconds):
    taken, found = plan.solve(seconds), plan.stats()
    return {
        "name": name, "instance": instance, "threads": 1, "buffers": found.buffers,
        "overshoot": found.height / found.lower_bound, "seconds": round(taken, 3)
    }


def pipeline(count, seed=1, stages=8, chunks=4, layers=4):
    """Buffers of the first of the stages under interleaved 1F1B, layers recomputed whole: (lower,
    upper, bytes)."""
    draw, kept, made, now = random.Random(seed), {}, [], 0
    about = lambda kib: int(kib * (1 + 0.1 * draw.random())) * 1024  # noqa: E731
    sizes = [about(kib) for kib in (8192, 24576, 8192, 128, 8192, 8192, 32768, 32768, 4096, 64)]
    kept_bytes = about(8192)
    batches = max(count // (chunks * layers * (3 * len(sizes) + 1)) // stages, 1) * stages

    def begin():
        nonlocal now
        now += 1
        return now - 1

    def end(since, size):
        made.append((since, begin(), size))

    def forward(k):
        for layer in range(layers):
            kept[k // (stages * chunks) * stages + k % stages, k % (stages * chunks) // stages,
                 layer] = begin()
            live = []
            for size in sizes:
                live.append((begin(), size))
                if len(live) > 3:
                    end(*live.pop(0 if draw.random() < 0.7 else 1))
            for one in live:
                end(*one)

    def backward(k):
        for layer in reversed(range(layers)):
            again, gradients = [(begin(), size) for size in sizes], []
            for since, size in reversed(again):
                gradients.append((begin(), size))
                end(since, size)
                if len(gradients) > 2:
                    end(*gradients.pop(0))
            for one in gradients:
                end(*one)
            chunk = chunks - 1 - k % (stages * chunks) // stages
            end(kept.pop((k // (stages * chunks) * stages + k % stages, chunk, layer)), kept_bytes)

    ahead, passes = min(2 * (stages - 1) + (chunks - 1) * stages,
                        batches * chunks), batches * chunks
    for k in range(ahead):
        forward(k)
    for k in range(passes):
        if ahead + k < passes:
            forward(ahead + k)
        backward(k)
    return made


def run_step(library, plan, pool, mode, buffers):
    """Allocates and frees as the buffers say; the most bytes alive and reserved, and the counts of
    the step."""
    events = sorted((time, kind, index)
                    for index, (lower, upper, _) in enumerate(buffers)
                    for time, kind in ((lower, 1), (upper, 0)))
    blocks, request, stats = [ctypes.c_void_p() for _ in buffers
                             ], v.velo_pool_request(), v.velo_pool_stats()
    live = most_live = most_reserved = 0
    plan.call("begin", mode)
    for _, kind, index in events:
        size = buffers[index][2]
        rounded = -(-size // 512) * 512
        if kind:
            request.bytes = size
            plan.call("allocate", ctypes.byref(request), ctypes.byref(blocks[index]))
            live += rounded
            most_live = max(most_live, live)
            if mode == v.VELO_PLAN_REPLAY:
                v.check(library, library.velo_pool_get_stats(pool, ctypes.byref(stats)))
                most_reserved = max(most_reserved, stats.bytes_reserved)
        else:
            plan.call("free", blocks[index], size, None)
            live -= rounded
    plan.call("end")
    step = v.velo_plan_step()
    plan.call("get_step", ctypes.byref(step))
    return most_live, most_reserved, step


def changed(buffers, seed):
    """5 % of the buffers have 0.5 to 1.5 times their size, and 1 % of as many are new."""
    draw, last = random.Random(seed), max(upper for _, upper, _ in buffers)
    made = [(a, b, max(1, int(size * (0.5 + draw.random()))) if draw.random() < 0.05 else size)
            for a, b, size in buffers]
    for _ in range(len(buffers) // 100):
        lower, upper, size = draw.choice(buffers)
        begin = draw.randrange(last)
        made.append((begin, begin + 1 + (upper - lower) % 1000, size))
    return made


def mismatches(library, name, buffers):
    pool = v.velo_pool()
    v.check(library, library.velo_pool_create(None, ctypes.byref(pool)))
    try:
        with plan_of(library, pool=pool) as plan:
            run_step(library, plan, pool, v.VELO_PLAN_RECORD, buffers)
            plan.solve(1)
            worst, counts = 0.0, {}
            for seed in range(1, 5):
                live, reserved, step = run_step(library, plan, pool, v.VELO_PLAN_REPLAY,
                                                changed(buffers, seed))
                if reserved / live > worst:
                    worst = reserved / live
                    counts = {
                        one: getattr(step, one)
                        for one in ("matched", "resized", "displaced", "unexpected", "missing")
                    }
            return {
                "name": "mismatch", "instance": name, "threads": 1, "overshoot": worst, **counts
            }
    finally:
        library.velo_pool_destroy(pool)


def swaps(library, name, text):
    buffers, reads, count = operations(text)
    row = {"name": "swap", "instance": name, "threads": 1, "overshoot": 0.0}
    for seconds in STEPS:
        with plan_of_operations(library, buffers, reads, count, seconds) as plan:
            stall, _ = swapped(plan, v.VELO_SWAP_FURTHEST, plan.stats().lower_bound // 2, LINK)
            found = v.velo_plan_swap_stats()
            plan.call("get_swap_stats", ctypes.byref(found))
        over = stall / (found.bound_seconds or float("1e-99")) if stall else 1.0
        if over > row["overshoot"]:
            row.update(overshoot=over, compute=seconds, stall=stall, bound=found.bound_seconds)
    return row


def swapped(plan, policy, budget, rate):
    """Stall, and seconds of it in making again."""
    options = v.velo_swap_options(policy=policy,
                                  budget=budget,
                                  out_bytes_per_second=rate,
                                  in_bytes_per_second=rate,
                                  least_bytes=1 << 20)
    plan.call("solve_swaps", ctypes.byref(options))
    found = v.velo_plan_swap_stats()
    plan.call("get_swap_stats", ctypes.byref(found))
    return found.stall_seconds, found.make_seconds


def transfers(plan, count):
    swap, all_of_them = v.velo_plan_swap(), []
    for index in range(count):
        plan.call("get_swap", index, ctypes.byref(swap))
        all_of_them.append((swap.action, swap.buffer, swap.after))
    return all_of_them


def operations(text):
    """Buffers (lower, upper, bytes) and reads (buffer, time) of a trace whose allocations are
    operations at times 3 * i."""
    buffers, reads, alive, count = [], [], {}, 0
    for line in text.decode().splitlines()[1:]:
        _, _, action, pointer, size, _ = line.split(",")
        if int(size) == 0:
            continue
        if action == "allocate":
            if buffers and buffers[-1][1] is None:
                reads.append((len(buffers) - 1, 3 * count + 1))
            alive[pointer] = len(buffers)
            buffers.append([3 * count, None, -(-int(size) // 512) * 512])
            count += 1
        else:
            index, time = alive.pop(pointer), 3 * (count - 1) + 1
            buffers[index][1] = time + 2
            if buffers[index][0] < time - 1:
                reads.append((index, time))
    return [(a, 3 * count if b is None else b, size) for a, b, size in buffers], reads, count


def made_again(library, buffers, reads, count, seconds, budget):
    """Seconds that velo_recompute_plan adds to such a step; infinite where it finds no plan."""
    inputs = [set() for _ in buffers]
    for index, time in reads:
        inputs[time // 3].add(index)
    handle, found = v.velo_recompute_plan(), v.velo_recompute_plan_stats()
    v.check(library, library.velo_recompute_plan_create(ctypes.byref(handle)))
    try:
        for (_, upper, size), used in zip(buffers, inputs):
            listed = (ctypes.c_int64 * len(used))(*sorted(used))
            op = v.velo_recompute_op(keep=int(upper == 3 * count),
                                     seconds=seconds / count,
                                     bytes=size,
                                     inputs=listed,
                                     input_count=len(used))
            v.check(library, library.velo_recompute_plan_add(handle, ctypes.byref(op), None))
        options = v.velo_recompute_plan_options(budget=budget, seed=1)
        if library.velo_recompute_plan_solve(handle, ctypes.byref(options)) != v.VELO_OK:
            return float("inf")
        v.check(library, library.velo_recompute_plan_get_stats(handle, ctypes.byref(found)))
        return found.seconds_more
    finally:
        library.velo_recompute_plan_destroy(handle)


@contextlib.contextmanager
def plan_of_operations(library, buffers, reads, count, seconds):
    with plan_of(library) as plan:
        for lower, upper, size in buffers:
            plan.call("add", lower, upper, size, None)
        for index, time_of_it in reads:
            plan.call("add_use", index, time_of_it, v.VELO_ACCESS_READ)
        for i in range(count):
            plan.call("add_work", 3 * i + 2, seconds / count)
        yield plan


def joint(library, name, text, seconds=0.5):
    buffers, reads, count = operations(text)
    with plan_of_operations(library, buffers, reads, count, seconds) as plan:
        budget = int(0.4 * plan.stats().lower_bound)
        swap = min(
            swapped(plan, policy, budget, LINK)[0]
            for policy in (v.VELO_SWAP_FURTHEST, v.VELO_SWAP_SMART))
        none = swapped(plan, v.VELO_SWAP_JOINT, budget, 1.0)  # no link to speak of
        made = min(none[0] if none[0] < 1e6 else float("inf"),
                   made_again(library, buffers, reads, count, seconds, budget))
        both = swapped(plan, v.VELO_SWAP_JOINT, budget, LINK)
    return {
        "name": "joint", "instance": name, "threads": 1,
        "overshoot": both[0] / (min(swap, made) or 1), "swap": swap, "made_again": made,
        "joint": both[0], "of_it_made_again": both[1]
    }


def swap_run(library, name, text):
    buffers, reads, count = operations(text)
    stages = [[] for _ in range(count)]
    for index, time_of_it in reads:
        stages[time_of_it // 3].append(index)
    lives = [(lower // 3, (upper - 1) // 3, size) for lower, upper, size in buffers]
    for index in {index for index in range(len(lives))} - {index for index, _ in reads}:
        stages[lives[index][1]].append(index)
    row = {"name": "swap_run", "instance": name, "threads": 1, "overshoot": 0.0}
    for seconds in STEPS:
        with plan_of_operations(library, buffers, reads, count, seconds) as plan:
            budget = plan.stats().lower_bound // 2
            stall, _ = swapped(plan, v.VELO_SWAP_FURTHEST, budget, LINK)
            found = v.velo_plan_swap_stats()
            plan.call("get_swap_stats", ctypes.byref(found))
            planned = [(action, buffer, after // 3 if after > 2 else -1)
                       for action, buffer, after in transfers(plan, found.transfers)]
        step = Step(stages, lives, planned, seconds / count, LINK, budget)
        took = step.run()
        if took / (seconds + stall) > row["overshoot"]:
            row.update(overshoot=took / (seconds + stall),
                       compute=seconds,
                       stall=stall,
                       bound=found.bound_seconds,
                       took=took,
                       transfers=found.transfers,
                       peak=step.peak,
                       budget=budget)
    return row


def online(file):
    """Fragmentation of a pool without foresight, and of the model."""
    results = (json.loads(
        subprocess.run([COMMAND, "replay", file, "--pool", pool, "--json"],
                       capture_output=True,
                       check=True).stdout) for pool in ("velo", "model"))
    velo, model = (one["fragmentation"] for one in results)
    return {
        "name": "online", "instance": file.stem, "threads": 1, "fragmentation": velo, "model": model
    }


def stitched(library, holes=1000, size=2 << 20):
    """Seconds a GiB until a block lies in holes whose pages have been touched."""
    best, share = float("inf"), int(0.9 * holes * size) // size * size
    for _ in range(5):
        pool, request, block, stats = v.velo_pool(), v.velo_pool_request(
            bytes=size), ctypes.c_void_p(), v.velo_pool_stats()
        v.check(library, library.velo_pool_create(None, ctypes.byref(pool)))
        blocks = []
        for _ in range(2 * holes):
            v.check(library,
                    library.velo_pool_allocate(pool, ctypes.byref(request), ctypes.byref(block)))
            blocks.append(block.value)
        for one in blocks[::2]:
            ctypes.memset(one, 1, size)
            v.check(library, library.velo_pool_free(pool, one, size, None))
        v.check(library, library.velo_pool_get_stats(pool, ctypes.byref(stats)))
        v.check(library, library.velo_pool_set_limit(pool, stats.bytes_reserved))
        request.bytes = share
        begin = time.perf_counter()
        v.check(library, library.velo_pool_allocate(pool, ctypes.byref(request),
                                                    ctypes.byref(block)))
        best = min(best, time.perf_counter() - begin)
        for one, bytes_of in [(block.value, share)] + [(one, size) for one in blocks[1::2]]:
            v.check(library, library.velo_pool_free(pool, one, bytes_of, None))
        library.velo_pool_destroy(pool)
    return {
        "name": "stitch", "instance": f"{holes} holes", "threads": 1,
        "seconds": best / (share / 2**30)
    }


def swapping(kind, library, file):
    """A row of this kind, or why there is none: operations that need more at once than the
    budget."""
    try:
        return {"swap": swaps, "swap_run": swap_run, "joint": joint}[kind](library, file.stem,
                                                                           file.read_bytes())
    except v.VeloError as failure:
        return {"name": kind, "instance": file.stem, "threads": 1, "impossible": str(failure)}


def rows_of(library, data, wanted):
    if wanted("place"):
        yield from placements(library, sorted((data / "placement").glob("*.csv")))
    if wanted("stitch"):
        yield stitched(library)
    traces = sorted((data / "traces").glob("*.csv"))
    if wanted("online") and traces:
        found = [online(file) for file in traces]
        yield from found
        velo, model = (
            statistics.mean(row[of] for row in found) for of in ("fragmentation", "model"))
        yield {
            "name": "online", "instance": "all", "threads": 1, "fragmentation": velo,
            "model": model, "of_model": velo / model
        }
    for file in traces:
        with plan_of(library) as plan:
            plan.read(file.read_bytes(), v.VELO_PLAN_RMM_LOG)
            if wanted("trace"):
                yield placed("trace", file.stem, plan, 1)
            if wanted("mismatch"):
                yield mismatches(library, file.stem, plan.buffers())
        for kind in ("swap", "swap_run", "joint"):
            if wanted(kind):
                yield swapping(kind, library, file)
    if wanted("pipeline"):
        rows = "".join(f"{i},{a},{b},{size}\n" for i, (a, b, size) in enumerate(pipeline(1000000)))
        with plan_of(library) as plan:
            plan.read(("id,lower,upper,size\n" + rows).encode(), v.VELO_PLAN_CSV)
            yield placed("pipeline", "1000000", plan, 5)


def judge(rows):
    for goal in json.loads((FOLDER / "goals.json").read_text())["plans"]:
        for row in rows:
            if all(row.get(key) == value
                   for key, value in goal["row"].items()) and goal["statistic"] in row:
                value = row[goal["statistic"]]
                verdict = "reached" if value <= goal["bound"] else "NOT REACHED"
                print(
                    f"{verdict:11} {goal['id']} {row['instance']}: {goal['statistic']} "
                    f"{value:.6g}, goal at most {goal['bound']:g}"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--filter", default="", help="only kinds of rows that match")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    options = parser.parse_args()
    rows = []
    for row in rows_of(v.load(), options.data, lambda kind: re.search(options.filter, kind)):
        rows.append(row)
        print(json.dumps(row) if options.json else "  ".join(
            f"{key} {value}" for key, value in row.items()),
              flush=True)
    judge(rows)


if __name__ == "__main__":
    main()
