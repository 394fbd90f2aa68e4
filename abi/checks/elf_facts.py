#!/usr/bin/env python3
"""What must be true of the built libvelo.so as a file, whatever its source says.

    elf_facts.py FACT LIBRARY SOURCE_DIR BUILD_DIR

Facts: exports (exactly the spec's functions, each at the node of its release), symbols (no C++ name
and no unique symbol leaves), needed (the dependency list is a contract), soname, flags (NODELETE,
NOW, no TEXTREL, no STATIC_TLS, no executable stack), locks (none that a fork may leave held),
hardened (also of programs), tls (at most 2 KiB, no destructor registered), constructors (loading
runs nothing of ours), ceilings (no newer glibc or libstdc++ than recorded), isa (kernel objects
share no inline code with the rest), size.
"""
import json
import os
import re
import subprocess
import sys

import spec_reader

NEEDED = {
    "libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libffi.so.8", "libz.so.1",
    "libjansson.so.4", "ld-linux-x86-64.so.2"
}
# Static libraries whose objects the link draws in; their constructors are named here one by one.
FOREIGN_CONSTRUCTORS = {"frame_dummy"}
TLS_LIMIT = 2048
STRIPPED_LIMIT = 8 << 20


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def dynamic(library, tag):
    return re.findall(r"\(" + tag + r"\)\s+(.*)", run("readelf", "-dW", library))


def exported(library):
    """{name: (node, type letter)} of the defined dynamic symbols, nodes themselves left out."""
    found = {}
    for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        _, letter, name = line.split()
        if letter == "A":
            continue
        name, _, node = name.partition("@")
        found[name] = (node.lstrip("@"), letter)
    return found


def fact_exports(library, source, _):
    want = {
        name: "VELO_" + since
        for name, since in spec_reader.load(os.path.join(source, "abi/spec")).functions.items()
    }
    have = {name: node for name, (node, _) in exported(library).items()}
    for name in sorted(want.keys() - have.keys()):
        yield f"{name} is in the spec and not exported"
    for name in sorted(have.keys() - want.keys()):
        yield f"{name} is exported and not in the spec"
    for name in sorted(want.keys() & have.keys()):
        if want[name] != have[name]:
            yield f"{name} has node {have[name]}, the spec says {want[name]}"
    if not want:
        yield "the spec names no function"


def fact_symbols(library, _, __):
    for name, (_, letter) in exported(library).items():
        if letter in "uVvW":
            yield f"{name} is exported as a weak or unique symbol ({letter})"
        if not name.startswith("velo_"):
            yield f"{name} is exported: C++ names and foreign names stay inside"


def fact_needed(library, _, __):
    have = set(re.findall(r"\[(.*?)\]", " ".join(dynamic(library, "NEEDED"))))
    for name in sorted(have - NEEDED):
        yield f"{name} is needed and not on the list"
    if dynamic(library, "RPATH") + dynamic(library, "RUNPATH"):
        yield "a run path is set"


def fact_soname(library, _, __):
    names = re.findall(r"\[(.*?)\]", " ".join(dynamic(library, "SONAME")))
    if names != ["libvelo.so.1"]:
        yield f"soname {names}"


def fact_flags(library, _, __):
    flags = " ".join(dynamic(library, "FLAGS") + dynamic(library, "FLAGS_1"))
    for flag in ("NODELETE", "NOW"):
        if flag not in flags:
            yield f"{flag} is not set: {flags}"
    for flag in ("TEXTREL", "STATIC_TLS"):
        if flag in flags or dynamic(library, flag):
            yield f"{flag} is set"
    stack = re.search(r"GNU_STACK(?:\s+0x[0-9a-f]+){5} (.{3})", run("readelf", "-lW", library))
    if not stack or "E" in stack.group(1):
        yield "the stack is executable"
    if "GNU_RELRO" not in run("readelf", "-lW", library):
        yield "no read-only relocations"


def fact_locks(library, _, __):
    # Constants made on first use are guarded by a lock that a fork may find held; so is whatever is
    # done once.
    have = run("nm", "-D", "--undefined-only", library)
    for name in ("__cxa_guard_acquire", "pthread_once", "call_once", "__once_proxy"):
        if name in have:
            yield f"{name} is called: a child of a fork may wait for it for ever"


# gcc's own start-up code has no canaries; what counts is that ours do.
def fact_hardened(program, _, __):
    flags = " ".join(dynamic(program, "FLAGS") + dynamic(program, "FLAGS_1"))
    if "NOW" not in flags:
        yield f"symbols are bound late: {flags}"
    segments = run("readelf", "-lW", program)
    if "GNU_RELRO" not in segments:
        yield "relocations stay writable"
    if "DYN" not in run("readelf", "-hW", program):
        yield "it is not position-independent"
    have = run("nm", "-D", "--undefined-only", program)
    if "__stack_chk_fail" not in have:
        yield "no stack has a canary"
    if not re.search(r"__\w+_chk@", have.replace("__stack_chk", "")):
        yield "no call of libc knows the size of its buffer (_FORTIFY_SOURCE)"


def fact_tls(library, _, __):
    sizes = {
        name: int(size, 16) for name, size in re.findall(
            r"(\.tbss|\.tdata)\s+\S+\s+\S+\s+\S+\s+([0-9a-f]+)", run("readelf", "-SW", library))
    }
    if sum(sizes.values()) > TLS_LIMIT:
        yield f"{sizes} bytes of thread-local storage, the limit is {TLS_LIMIT}"
    if "__cxa_thread_atexit" in run("nm", "-D", "--undefined-only", library):
        yield "a thread-local object has a destructor"


def objects(build, everything=True):
    """Object files of the library from compile_commands.json: all, or only those compiled for a
    raised instruction set."""
    found = []
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            if "velo_objects.dir" not in entry["command"]:
                continue
            output = re.search(r" -o (\S+)", entry["command"]).group(1)
            if everything or " -mavx" in entry["command"]:
                found.append(os.path.join(entry["directory"], output))
    return found


def symbols(files, *options):
    """(object file, nm's line on a symbol) of many files; of none the check would see nothing."""
    if not files:
        raise LookupError("no object file was looked at")
    for line in run("nm", "--print-file-name", *options, *files).splitlines():
        path, _, entry = line.partition(":")
        yield os.path.basename(path), entry


def fact_constructors(library, _, build):
    names = {}
    for line in run("nm", library).splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[1] in "tT":
            names.setdefault(int(parts[0], 16), []).append(parts[2])
    section = re.search(r"\.init_array\s+\S+\s+([0-9a-f]+)\s+\S+\s+([0-9a-f]+)",
                        run("readelf", "-SW", library))
    start, size = (int(section.group(1), 16), int(section.group(2), 16)) if section else (0, 0)
    relocations = {
        int(where, 16): int(value, 16)
        for where, value in re.findall(r"^([0-9a-f]+)\s+\S+\s+R_X86_64_RELATIVE\s+([0-9a-f]+)",
                                       run("readelf", "-rW", library), re.M)
    }
    for slot in range(start, start + size, 8):
        run_at_load = names.get(relocations.get(slot, 0), ["unknown"])
        if not FOREIGN_CONSTRUCTORS.intersection(run_at_load):
            yield f"{' '.join(run_at_load)} runs when the library is loaded"
    for path, entry in symbols(objects(build)):
        for name in re.findall(r"_GLOBAL__sub_I_\S+", entry):
            yield f"{path}: {name}: a dynamic initializer at namespace scope"


def as_numbers(text):
    return tuple(int(n) for n in text.split("."))


def fact_ceilings(library, source, _):
    needs = {}
    for name, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)\b",
                                    run("readelf", "-VW", library)):
        needs[name] = max(needs.get(name, (0,)), as_numbers(version))
    with open(os.path.join(source, "abi/ceilings.txt"), encoding="utf-8") as file:
        ceilings = dict(line.split() for line in file if line.strip() and not line.startswith("#"))
    for name, version in needs.items():
        if name not in ceilings:
            yield f"{name} has no ceiling"
        elif version > as_numbers(ceilings[name]):
            yield f"{name}_{'.'.join(map(str, version))} is needed, the ceiling is {ceilings[name]}"
    if "GLIBC" not in needs:
        yield "no version was found: the check saw nothing"


def fact_isa(_, __, build):
    # A weak function in an object compiled for AVX can be the copy the linker keeps for every
    # caller. Only code that carries the instruction set in its own name may be weak there.
    for path, entry in symbols(objects(build, everything=False), "-C", "--defined-only"):
        parts = entry.split(maxsplit=2)
        if len(parts) == 3 and parts[1] in "WVu" and not re.search(r"avx|amx|^DW\.ref", parts[2]):
            yield f"{path}: {parts[2][:120]} is weak"


def fact_size(library, _, build):
    stripped = os.path.join(build, "stripped_for_size")
    run("strip", "-o", stripped, library)
    size = os.path.getsize(stripped)
    os.remove(stripped)
    if size > STRIPPED_LIMIT:
        yield f"{size} bytes stripped, the limit is {STRIPPED_LIMIT}"


FACTS = {name[5:]: fact for name, fact in globals().items() if name.startswith("fact_")}


def main():
    fact, library, source, build = sys.argv[1:]
    wrong = list(FACTS[fact](library, source, build))
    print("\n".join(wrong) or f"{fact}: holds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
