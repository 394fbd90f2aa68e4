"""Runs the program on a host's page, as a reader would: the lines that set the environment, then
the page's Python.

Usage: readme_page.py PAGE ROOT BUILD [MODULE..]: PAGE is a README.md under ROOT, BUILD stands where
the text says $PWD/build, and a MODULE that cannot be imported is a skip by name. The interpreter is
the one that runs this.
"""
import os
import re
import subprocess
import sys
import tempfile

from framework import need


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def main(page, root, build, *modules):
    for module in modules:
        need(module)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    environment, = blocks(text, "sh")  # exactly one of each
    program, = blocks(text, "python")
    if "=$PWD/build/" not in environment:
        sys.exit(f"{page}: the environment does not name $PWD/build/")
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "page.py")  # a file: MindSpore reads its cells' source
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        shell = environment.replace(
            "$PWD/build/",
            build + "/") + f'cd "{scratch}" && exec "{sys.executable}" -W ignore page.py\n'
        return subprocess.run(["sh", "-e", "-c", shell], cwd=root).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
