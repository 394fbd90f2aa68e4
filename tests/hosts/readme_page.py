"""Runs the program on a host's page of README.md, as a reader would: the lines that set the environment, then the page's Python.

Usage: readme_page.py README BUILD PAGE [MODULE..]: PAGE is the title of the page, BUILD stands where the text says $PWD/build, and a
MODULE that cannot be imported is a skip by name. The interpreter is the one that runs this.
"""
import os
import re
import subprocess
import sys
import tempfile

from framework import need


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def page_of(text, title):
    """The environment and the program of one page, of which there must be exactly one each."""
    hosts = re.search(r"^## Hosts\n(.*?)^## ", text, re.M | re.S).group(1)
    environment, = (block for block in blocks(hosts, "sh") if "export " in block)
    program, = blocks(re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", hosts, re.M | re.S).group(1), "python")
    return environment, program


def main(readme, build, title, *modules):
    for module in modules:
        need(module)
    with open(readme, encoding="utf-8") as file:
        environment, program = page_of(file.read(), title)
    if "$PWD/build/" not in environment:
        sys.exit(f"{readme}: the environment of the pages does not name $PWD/build/")
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "page.py")  # a file: MindSpore reads its cells' source
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        shell = environment.replace("$PWD/build/", build + "/") + f'cd "{scratch}" && exec "{sys.executable}" -W ignore page.py\n'
        return subprocess.run(["sh", "-e", "-c", shell], cwd=os.path.dirname(readme)).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
