#!/usr/bin/env python3
"""Writes a C file that defines every function of a spec with its real prototype and an empty body.

    typed_stub.py SPEC_DIR > stub.c

Compiled with -g it gives a small library whose debug information holds the whole public surface and
nothing else: what the ABI gate's self-tests break on purpose, and what an old or a new release
looks like to a program.
"""
import sys

import spec_reader


def prototype(entry):
    result = entry.get("result", "velo_status")
    parameters = ", ".join(
        p["type"] + ("" if p["type"].endswith("*") else " ") + p["name"] for p in entry["params"])
    return result, f"{result} {entry['name']}({parameters or 'void'})"


def main():
    spec = spec_reader.load(sys.argv[1])
    print(
        '/* Every function with its prototype and nothing behind it. */\n#include "velo/velo.h"\n')
    for (kind, name), entry in spec.entries.items():
        if kind == "functions":
            result, head = prototype(entry)
        elif kind == "ops":
            result, head = "velo_status", (f"velo_status velo_{name}(velo_stream stream, const "
                                           f"velo_{name}_args* args)")
        else:
            continue
        used = "".join(f"(void){p['name']}; "
                       for p in entry.get("params", [{"name": "stream"}, {"name": "args"}]))
        print(f"{head} {{ {used}{'' if result == 'void' else 'return 0; '}}}")


if __name__ == "__main__":
    main()
