#!/usr/bin/env python3
"""Grows a copy of the tree's public surface to the release after the spec's (1.1 after 1.0) that
has one more of everything, the way a real release would.

    grow.py SOURCE_DIR TREE VELO_GEN

A function (velo_growth_double) and so a table slot and a version node; a field at the end of an
operator's args (rms_norm.offset) and of an out-struct (velo_context_stats.growth); an enumerator
(VELO_CAP_GROWTH). Spec and hand-written headers are grown here, everything that follows from them
by the generator.
"""
import json
import os
import re
import shutil
import subprocess
import sys


class Next:
    """The release after the spec's."""
    text, abi = "", 0


def edit(path, change):
    with open(path, encoding="utf-8") as file:
        before = file.read()
    after = change(before)
    if after == before:
        sys.exit(f"nothing to grow in {path}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(after)


def grow_core(text):
    spec = json.loads(text)
    spec["release"] = Next.text
    by_name = {entry["name"]: entry for kind in ("enums", "structs") for entry in spec[kind]}
    by_name["velo_capability"]["values"].append(
        {"name": "VELO_CAP_GROWTH", "value": 3, "since": Next.text, "doc": "the library has grown"})
    by_name["velo_context_stats"]["fields"].append(
        {"name": "growth", "type": "uint64_t", "since": Next.text, "doc": "always 0"})
    spec["functions"].append({
        "name": "velo_growth_double", "header": "introspect.h", "since": Next.text, "thread": "any",
        "doc": "*doubled = 2 * value.",
        "params": [{"name": "value", "type": "int64_t"},
                   {"name": "doubled", "type": "int64_t*", "dir": "out"}], "errors": ["NULL"]
    })
    return json.dumps(spec, indent=1)


def grow_ops(text):
    spec = json.loads(text)
    spec["release"] = Next.text
    return json.dumps(spec, indent=1)


def grow_slots(text):
    return text.replace('"\n  ]', '",\n    "velo_growth_double"\n  ]')


def grow_norm(text):
    family = json.loads(text)
    op = next(op for op in family["ops"] if op["name"] == "rms_norm")
    op["fields"].append({
        "name": "offset", "kind": "f64", "default": 0, "since": Next.text, "doc": "added to gamma"
    })
    return json.dumps(family, indent=1)


def grow_introspect(text):
    text = re.sub(r"(VELO_CAP_CLOSURES = 1)(.*\n)",
                  rf"\1,\2#if VELO_TARGET_ABI >= {Next.abi}\n  VELO_CAP_GROWTH = 3\n#endif\n", text)
    return text.replace(
        "VELO_END_C", f"#if VELO_TARGET_ABI >= {Next.abi}\n"
        "VELO_API velo_status velo_growth_double(int64_t value, int64_t* doubled);\n"
        "#endif\n\nVELO_END_C"
    )


def grow_context(text):
    return text.replace(
        "} velo_context_stats;", f"#if VELO_TARGET_ABI >= {Next.abi}\n  uint64_t growth;\n#endif\n"
        "} velo_context_stats;")


def main():
    source, tree, generator = sys.argv[1:]
    with open(os.path.join(source, "abi/spec/ops.json"), encoding="utf-8") as file:
        major, minor = map(int, json.load(file)["release"].split("."))
    Next.text, Next.abi = f"{major}.{minor + 1}", 100 * major + minor + 1
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("abi/spec", "capi/include", "cpp/include"):
        shutil.copytree(os.path.join(source, part), os.path.join(tree, part))
    edit(os.path.join(tree, "abi/spec/core.json"), grow_core)
    edit(os.path.join(tree, "abi/spec/ops.json"), grow_ops)
    edit(os.path.join(tree, "abi/spec/ops/norm.json"), grow_norm)
    edit(os.path.join(tree, "abi/spec/slots.json"), grow_slots)
    edit(os.path.join(tree, "capi/include/velo/introspect.h"), grow_introspect)
    edit(os.path.join(tree, "capi/include/velo/context.h"), grow_context)
    subprocess.run(
        [generator, "--spec", os.path.join(tree, "abi/spec"), "--root", tree],
        check=True,
        stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
