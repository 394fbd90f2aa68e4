"""Writes velo's wheel: the Python package, its libraries in velo/lib, the metadata. The same inputs
give the same bytes.

    wheel.py --version V --summary S --package FOLDER --libraries FILE.. --licenses FILE.. --out
        FOLDER

A wheel is a zip file with a list of what is in it (the Binary Distribution Format of
packaging.python.org). There is no extension module, so the tag says py3-none; the platform is
worked out from the libraries: the oldest glibc on whose systems every symbol version they need is
there. A library that needs a file which is neither in the wheel nor on every such system is
refused.
"""
import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

# Libraries that every manylinux system has (PEP 600 and the policies that follow it).
PRESENT = {
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1",
    "libstdc++.so.6", "ld-linux-x86-64.so.2"
}
# From the version of a compiler's library to the oldest glibc of the systems that have it: those of
# gcc 4.8, 8, 10, 11, 12, 13.
ARRIVED = {
    "GLIBCXX": [((3, 4, 19), (2, 17)), ((3, 4, 24), (2, 28)), ((3, 4, 28), (2, 31)),
                ((3, 4, 29), (2, 34)), ((3, 4, 30), (2, 35)), ((3, 4, 32), (2, 38))],
    "CXXABI": [((1, 3, 7), (2, 17)), ((1, 3, 11), (2, 28)), ((1, 3, 12), (2, 31)),
               ((1, 3, 13), (2, 34)), ((1, 3, 14), (2, 38))], "GCC": [((4, 7, 0), (2, 17)),
                                                                      ((7, 0, 0), (2, 28)),
                                                                      ((12, 0, 0), (2, 35)),
                                                                      ((13, 0, 0), (2, 38))],
}
METADATA = """Metadata-Version: 2.4
Name: velo
Version: {version}
Summary: {summary}
License-Expression: Apache-2.0 AND MIT AND Zlib
{licenses}Requires-Python: >=3.9
Classifier: Development Status :: 4 - Beta
Classifier: Intended Audience :: Developers
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Provides-Extra: jax
Provides-Extra: mindspore
Provides-Extra: torch
Requires-Dist: jax>=0.7; extra == "jax"
Requires-Dist: mindspore; extra == "mindspore"
Requires-Dist: torch>=1.13; extra == "torch"
Description-Content-Type: text/markdown

"""
WHEEL = """Wheel-Version: 1.0
Generator: velo ({version})
Root-Is-Purelib: false
Tag: {tag}
"""


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path],
                          env={**os.environ, "LC_ALL": "C"},
                          check=True,
                          capture_output=True,
                          text=True).stdout


def needed_glibc(library, name, version):
    """The oldest glibc, as (2, n), on whose systems the version NAME_version of a library's symbols
    is there."""
    if name == "GLIBC":
        return version
    for arrived, glibc in ARRIVED.get(name, []):
        if version <= arrived:
            return glibc
    sys.exit(
        f"{library} needs {name}_{'.'.join(map(str, version))}: no manylinux platform is known to "
        f"have it"
    )


def platform_of(libraries):
    """The platform tag that holds for all of the libraries."""
    brought, oldest = {os.path.basename(path) for path in libraries}, (2, 17)
    for path in libraries:
        name = os.path.basename(path)
        if "X86-64" not in readelf(path, "-h"):
            sys.exit(f"{name} is not for x86-64, the only platform this wheel is for")
        for other in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-d")):
            if other not in PRESENT | brought:
                sys.exit(
                    f"{name} needs {other}, which is neither in the wheel nor on every Linux system"
                )
        needs = readelf(path, "-V").partition("Version needs section")[2]
        for kind, text in re.findall(r"Name: ([A-Z]+)_([0-9.]+) ", needs):
            if kind != "VELO":
                oldest = max(oldest, needed_glibc(name, kind, tuple(map(int, text.split("."))))[:2])
    return f"manylinux_{oldest[0]}_{oldest[1]}_x86_64"


def modules(folder):
    """Every Python file of the package: name in the wheel, content."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(place, name)
                yield os.path.join("velo", os.path.relpath(path, folder)), content(path)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def entries(arguments, tag):
    """All files of the wheel but its list: name, content, mode."""
    info = f"velo-{arguments.version}.dist-info"
    for name, data in modules(arguments.package):
        yield name, data, 0o644
    for path in arguments.libraries:
        yield "velo/lib/" + os.path.basename(path), content(path), 0o755
    licenses = {os.path.basename(path): content(path) for path in arguments.licenses}
    metadata = METADATA.format(version=arguments.version, summary=arguments.summary,
                               licenses="".join(f"License-File: {name}\n" for name in licenses))
    description = content(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                       "description.md"))
    yield f"{info}/METADATA", metadata.encode() + description, 0o644
    yield f"{info}/WHEEL", WHEEL.format(version=arguments.version, tag=tag).encode(), 0o644
    for name, data in licenses.items():
        yield f"{info}/licenses/{name}", data, 0o644


def write(path, files, record):
    """The zip file, with the list of what is in it at the end. Times are the earliest that a zip
    file can say."""
    listed = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data)

        for name, data, mode in files:
            add(name, data, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            listed += f"{name},sha256={digest},{len(data)}\n"
        add(record, (listed + f"{record},,\n").encode(), 0o644)


def main():
    parser = argparse.ArgumentParser()
    for option in ("version", "summary", "package", "out"):
        parser.add_argument("--" + option, required=True)
    for option in ("libraries", "licenses"):
        parser.add_argument("--" + option, required=True, nargs="+")
    arguments = parser.parse_args()
    tag = "py3-none-" + platform_of(arguments.libraries)
    os.makedirs(arguments.out, exist_ok=True)
    for name in os.listdir(
            arguments.out
    ):  # a rebuilt library may need another platform: one wheel, no older ones beside it
        if name.startswith("velo-") and name.endswith(".whl"):
            os.remove(os.path.join(arguments.out, name))
    path = os.path.join(arguments.out, f"velo-{arguments.version}-{tag}.whl")
    write(path, entries(arguments, tag), f"velo-{arguments.version}.dist-info/RECORD")
    print(path)


if __name__ == "__main__":
    main()
