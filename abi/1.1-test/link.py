#!/usr/bin/env python3
"""Links a grown libvelo.so: the objects of the build, except those that read the generated tables or the grown structs, which are
compiled again against the grown tree.

    link.py SOURCE_DIR BUILD_DIR TREE OBJECTS_DIR OUT
"""
import json
import os
import re
import subprocess
import sys

READS_TABLES = re.compile(r"abi/generated/|velo_context_stats|capability|api_table|abi_offered")


def includes_tables(source):
    with open(source, encoding="utf-8") as file:
        return READS_TABLES.search(file.read())


def main():
    source, build, tree, objects, out = sys.argv[1:]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = [entry for entry in json.load(file) if "velo_objects.dir" in entry["command"]]
    linked, running = [], []
    for entry in entries:
        output = re.search(r" -o (\S+)", entry["command"]).group(1)
        if not includes_tables(entry["file"]):
            linked.append(os.path.join(entry["directory"], output))
            continue
        target = os.path.join(objects, output.replace("/", "_"))
        # The grown tree is looked at first; speed of this code does not matter.
        command = entry["command"].replace(" -o " + output, f" -O0 -g0 -o {target}")
        command = re.sub(r" -I", f" -I{tree} -I{tree}/capi/include -I", command, count=1)
        linked.append(target)
        running.append((entry["file"], subprocess.Popen(command, shell=True, cwd=entry["directory"])))
        if len(running) % 2 == 0:
            for _, process in running[-2:]:
                process.wait()
    added = os.path.join(objects, "growth.o")
    subprocess.run(["c++", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-DVELO_BUILD_LIBRARY", f"-I{tree}/capi/include", "-c",
                    os.path.join(source, "abi/1.1-test/growth.cpp"), "-o", added], check=True)
    for name, process in running:
        if process.wait() != 0:
            sys.exit(f"{name} does not compile against the grown tree")
    if not running:
        sys.exit("no source reads the generated tables: the search is out of date")
    with open(os.path.join(build, "abi/checks/link_libraries.txt"), encoding="utf-8") as file:
        libraries = file.read().split()
    subprocess.run(["c++", "-shared", "-fPIC", "-Wl,-soname,libvelo.so.1", "-Wl,-Bsymbolic-functions", "-Wl,--exclude-libs,ALL",
                    "-Wl,-z,nodelete", "-Wl,-z,now", "-Wl,-z,defs", f"-Wl,--version-script={tree}/abi/generated/velo.map", "-o", out,
                    *linked, added, *libraries], check=True)
    print(f"{len(running)} of {len(entries)} sources compiled again")


if __name__ == "__main__":
    main()
