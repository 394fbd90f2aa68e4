#!/usr/bin/env python3
"""Holds the spec to its promise: an entry that was frozen is never edited or removed, additions are
welcome.

    spec_policy.py FROZEN_SPEC_DIR SPEC_DIR     exits 1 and names every broken promise
    spec_policy.py --self-test SPEC_DIR         edits a copy in each forbidden way and expects a
                                                refusal

Wording may improve: texts (doc, source, remedy, bytes, the words of an error_bound) and examples
are free; an error bound may only become narrower. Everything a program can depend on is not: names,
types, order of fields and parameters, directions, ownership, values, thread classes, error sets,
defaults. Lists grow at their end only, except the sets (errors, dtypes, aliases), which may gain
members anywhere; defaults and bounds count as promises. An entry, a field or an enumerator that is
added names a later release than the frozen one.
"""
import copy
import re
import sys

import spec_reader

FREE = {"doc", "source", "remedy", "text", "bytes", "examples"}
SETS = {"errors", "aliases", "dtypes"}


def wider_bounds(frozen, current, path):
    """A bound left out is 0: exact. A dtype left out was never promised, mixed calls as plain
    ones."""
    frozen = {"float32 of mixed": frozen.get("float32", {}), **frozen
             } if "float32 of mixed" in current else frozen
    least, most = frozen.get("inputs", (0, float("inf")))
    now_least, now_most = current.get("inputs", (0, float("inf")))
    if now_least > least or now_most < most:
        yield (f"{path}.inputs was {least} to {most} and is {now_least} to {now_most}: a bound "
               f"only "
               f"comes to hold for more")
    for dtype in set(frozen) - FREE - {"inputs"}:
        for part in ("absolute", "relative", "largest"):
            old, new = frozen[dtype].get(part, 0), current.get(dtype, {}).get(part, 0)
            if dtype not in current or new > old:
                yield (f"{path}.{dtype}.{part} was {old} and is "
                       f"{new if dtype in current else 'gone'}: bounds only become narrower")


def too_early(added, release):
    """Why an addition breaks the release: a program of the release would not find it in the first
    library of the release."""
    since = added.get("since")
    if since is None or [int(n) for n in since.split(".")] <= [int(n) for n in release.split(".")]:
        return f"was added since {since or 'no release'}: {release} has shipped without it"
    return None


def differences(frozen, current, path, release):
    """Every way in which current breaks what frozen promised."""
    if path.endswith(".error_bound"):
        yield from wider_bounds(frozen, current, path)
    elif isinstance(frozen, dict) and isinstance(current, dict):
        for key in sorted((set(frozen) | set(current)) - FREE):
            where = f"{path}.{key}"
            if key not in current:
                yield f"{where} was removed"
            elif key not in frozen:
                yield f"{where} was added to a frozen entry"
            elif key in SETS:
                for missing in sorted(set(frozen[key]) - set(current[key])):
                    yield f"{where} no longer has {missing}"
            else:
                yield from differences(frozen[key], current[key], where, release)
    elif isinstance(frozen, list) and isinstance(current, list):
        if len(current) < len(frozen):
            yield f"{path} became shorter"
        if path.endswith(".params") and len(current) > len(frozen):
            yield f"{path} became longer: a function's parameters never change"
        for index, (old, new) in enumerate(zip(frozen, current)):
            name = old.get("name", index) if isinstance(old, dict) else index
            yield from differences(old, new, f"{path}[{name}]", release)
        for added in current[len(frozen):]:
            if isinstance(added, dict) and too_early(added, release) and re.search(
                    r"\.(fields|values)$", path):
                yield f"{path}[{added['name']}] {too_early(added, release)}"
    elif frozen != current:
        yield f"{path} was {frozen!r} and is {current!r}"


def broken_promises(frozen, current):
    for key, entry in frozen.entries.items():
        name = f"{key[0]} {key[1]}"
        if key not in current.entries:
            yield f"{name} was removed"
        else:
            yield from differences(entry, current.entries[key], name, frozen.release)
    for key in sorted(current.entries.keys() - frozen.entries.keys()):
        if too_early(current.entries[key], frozen.release):
            yield f"{key[0]} {key[1]} {too_early(current.entries[key], frozen.release)}"
    if current.slots[:len(frozen.slots)] != frozen.slots:
        yield "frozen slots moved: slots.json grows at its end only"


def self_test(folder):
    """One forbidden edit at a time on a copy of the entries."""
    frozen = spec_reader.load(folder)
    missed = []
    tried = 0

    def expect(what, edit, refused=True):
        nonlocal tried
        tried += 1
        current = copy.deepcopy(frozen)
        edit(current.entries)
        if bool(list(broken_promises(frozen, current))) != refused:
            missed.append(what)

    function = ("functions", "velo_event_synchronize")
    struct = ("structs", "velo_context_stats")
    op = ("ops", "rms_norm")
    enum = ("enums", "velo_capability")
    expect("no edit", lambda e: None, refused=False)
    expect("a better text", lambda e: e[function].update(doc="clearer"), refused=False)
    expect("a new function",
           lambda e: e.update({("functions", "velo_new"): {"name": "velo_new", "since": "9.0"}}),
           refused=False)
    expect(
        "a new function of the frozen release", lambda e: e.update(
            {("functions", "velo_new"): {"name": "velo_new", "since": frozen.release}}))
    later = {"name": "more", "type": "uint64_t", "since": "9.0"}
    expect("a field at the end", lambda e: e[struct]["fields"].append(later), refused=False)
    expect("a field at the end of no release",
           lambda e: e[struct]["fields"].append({"name": "more", "type": "uint64_t"}))
    expect("an enumerator of the frozen release", lambda e: e[enum]["values"].append(
        {"name": "VELO_CAP_MORE", "value": 99, "since": frozen.release, "doc": "more"}))
    expect("an error more", lambda e: e[function]["errors"].append("IO"), refused=False)
    expect("a removed function", lambda e: e.pop(function))
    expect("a parameter type", lambda e: e[function]["params"][1].update(type="int32_t"))
    expect("a parameter more",
           lambda e: e[function]["params"].append({"name": "more", "type": "int32_t"}))
    expect("a thread class", lambda e: e[function].update(thread="per-handle"))
    expect("an error less", lambda e: e[function]["errors"].pop())
    expect("a field inserted",
           lambda e: e[struct]["fields"].insert(1, {"name": "more", "type": "uint64_t"}))
    expect("a default", lambda e: e[op]["fields"][-1].update(default=1.0))
    expect("a bound loosened", lambda e: e[op]["error_bound"]["float32"].update(relative=4.8e-5))
    expect("a bound more", lambda e: e[op]["error_bound"]["float32"].update(absolute=1e-6))
    expect("a bound gone", lambda e: e[op]["error_bound"].pop("bfloat16"))
    expect("a narrower bound",
           lambda e: e[op]["error_bound"]["float32"].update(relative=1e-8),
           refused=False)
    expect("a bound for fewer inputs", lambda e: e[op]["error_bound"].update(inputs=[1e-3, 1e3]))
    expect("a better text of a bound",
           lambda e: e[op]["error_bound"].update(text="clearer"),
           refused=False)
    expect("a callback's parameters swapped", lambda e: e[("callbacks", "velo_log_fn")].update(
        type="void (*)(void* user, velo_log_level level, const char* line, const char* component)"))
    expect("a field less", lambda e: e[op]["fields"].pop())
    expect("an error code", lambda e: e[("errors", "VELO_ERR_SHAPE")].update(code=40))

    tried += 1
    current = copy.deepcopy(frozen)
    current.slots[0], current.slots[1] = current.slots[1], current.slots[0]
    if not list(broken_promises(frozen, current)):
        missed.append("slots exchanged")
    print("\n".join(f"not judged rightly: {what}" for what in missed) or
          f"{tried} edits judged rightly")
    return 1 if missed else 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test(sys.argv[2])
    frozen_folder, folder = sys.argv[1:]
    frozen, current = spec_reader.load(frozen_folder), spec_reader.load(folder)
    wrong = list(broken_promises(frozen, current))
    print("\n".join(wrong) or
          f"{len(frozen.entries)} frozen entries kept, {len(current.entries)} now")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
