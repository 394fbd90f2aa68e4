#!/usr/bin/env python3
"""Links a grown libvelo.so: the objects of the build, except those that read the generated tables
or the grown structs, which are compiled again against the grown tree, and what the growth adds.

    link.py velo|velo_adapters BUILD_DIR TREE OBJECTS_DIR OUT ADDED..

libvelo_adapters.so is linked to the grown libvelo.so, which must stand beside it.
"""
import json
import os
import re
import subprocess
import sys

READS_TABLES = re.compile(
    r"abi/generated/|adapters/generated/|velo_context_stats|capability|api_table|abi_offered|"
    r"self_description\.inc")


def zip_description(tree, folder):
    """Writes the grown description as the build does (ops/call/zipped.cmake)."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    subprocess.run([
        "cmake", "-D", f"FROM={tree}/abi/generated/describe.json", "-D",
        f"TO={folder}/self_description.inc", "-P", f"{source}/ops/call/zipped.cmake"
    ],
                   check=True)


def includes_tables(source):
    if "adapters/generated/" in source:
        return True
    with open(source, encoding="utf-8") as file:
        return READS_TABLES.search(file.read())


def main():
    library, build, tree, objects, out, *added = sys.argv[1:]
    folder = "velo_objects.dir" if library == "velo" else "velo_adapters.dir"
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = [entry for entry in json.load(file) if folder in entry["command"]]
    for path in added:  # compiled as its neighbors are
        like, name = entries[0], path.replace("/", "_") + ".o"
        output = re.search(r" -o (\S+)", like["command"]).group(1)
        command = like["command"].replace(like["file"], path).replace(output, name)
        entries.append(
            {"file": path, "directory": like["directory"], "command": command, "added": True})
    zipped = os.path.abspath(os.path.join(objects, "zipped"))
    if library == "velo":
        zip_description(os.path.abspath(tree), zipped)
    linked, running = [], []
    for entry in entries:
        output = re.search(r" -o (\S+)", entry["command"]).group(1)
        if "added" not in entry and not includes_tables(entry["file"]):
            linked.append(os.path.join(entry["directory"], output))
            continue
        target = os.path.join(objects, output.replace("/", "_"))
        # The grown tree is looked at first; speed of this code does not matter.
        command = entry["command"].replace(" -o " + output, f" -O0 -g0 -o {target}")
        command = re.sub(r" -I", f" -I{zipped} -I{tree} -I{tree}/capi/include -I", command, count=1)
        generated = re.search(r"capi/adapters/generated/\S+$", command)
        if generated:  # a source that is generated itself
            command = command[:command.rindex(" ") + 1] + os.path.join(tree, generated.group(0))
        linked.append(target)
        running.append((entry["file"], subprocess.Popen(command, shell=True,
                                                        cwd=entry["directory"])))
        if len(running) % 2 == 0:
            for _, process in running[-2:]:
                process.wait()
    for name, process in running:
        if process.wait() != 0:
            sys.exit(f"{name} does not compile against the grown tree")
    if not running:
        sys.exit("no source reads the generated tables: the search is out of date")
    with open(os.path.join(build, "abi/checks/link_libraries.txt"), encoding="utf-8") as file:
        libraries = file.read().split()
    version_script = os.path.join(tree, "abi/generated/velo.map")
    if library != "velo":
        libraries = [
            os.path.join(os.path.dirname(out), "libvelo.so.1"), "-ldl", "-Wl,-rpath,$ORIGIN"
        ]
        version_script = os.path.join(tree, "capi/adapters/generated/adapters.map")
    subprocess.run([
        "c++", "-shared", "-fPIC", f"-Wl,-soname,{os.path.basename(out)}",
        "-Wl,-Bsymbolic-functions", "-Wl,--exclude-libs,ALL", "-Wl,-z,nodelete", "-Wl,-z,now",
        "-Wl,-z,defs", f"-Wl,--version-script={version_script}", "-o", out, *linked, *libraries
    ],
                   check=True)
    print(f"{len(running)} of {len(entries)} sources compiled again")


if __name__ == "__main__":
    main()
