#!/usr/bin/env python3
"""Gives a copy of the tree's public surface one module more, the way a new module comes: its spec
and its header are added.

    grow.py SOURCE_DIR TREE VELO_GEN
"""
import json
import os
import shutil
import subprocess
import sys


def main():
    source, tree, generator = sys.argv[1:]
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("abi/spec", "capi/include", "cpp/include"):
        shutil.copytree(os.path.join(source, part), os.path.join(tree, part))
    spec = os.path.join(tree, "abi/spec")
    shutil.copytree(os.path.join(source, "tests/toy/spec"), spec, dirs_exist_ok=True)
    shutil.copy(os.path.join(source, "tests/toy/toy.h"), os.path.join(tree, "capi/include/velo"))
    families = os.path.join(spec, "ops.json")
    with open(families, encoding="utf-8") as file:
        ops = json.load(file)
    ops["families"].append("toy")
    with open(families, "w", encoding="utf-8") as file:
        json.dump(ops, file, indent=1)
    subprocess.run([generator, "--spec", spec, "--root", tree],
                   check=True,
                   stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
