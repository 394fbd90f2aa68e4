"""What the hand-written headers say, for Sphinx: two directives, and the pages of the C++ layer.

    :::{from-header} stream.h             the comment a header opens with
    :::{from-header} velo_stream_wait     the one right before a declaration; the content stands in
                                          where there is none
    :::{functions-of} adapters.h          all functions of a header that the spec does not have

The last sentences of a function's comment, "Thread class: any. Errors: NULL, HANDLE.", become a
line of their own with the codes' full names; the test abi.header_docs holds them to the spec.
"""
import os
import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

COMMENT = r"/\*((?:(?!\*/).)*)\*/\n"
CODES = (
    "NULL|HANDLE|STRUCT|ARGUMENT|RANK|SHAPE|DTYPE|LAYOUT|DEVICE|OVERLAP|NOT_FOUND|PARSE|UNSUPPORTED"
    "|ABI|STATE|FULL|MEMORY|IO|"
    "TIMEOUT|PEER|FOREIGN|INTERNAL")
FOLDERS = ("capi/include/velo", "capi/adapters/include/velo", "cpp/include/velo")


def header_path(root, name):
    return next((path for path in (os.path.join(root, folder, name)
                                   for folder in FOLDERS) if os.path.isfile(path)), None)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def opening(text):
    """The lines of the comment at the top of a C or C++ header, without its marks."""
    found = re.match(COMMENT, text, re.S)
    if found:
        return without_marks(found.group(1))
    return [
        line[2:].removeprefix(" ") for line in re.match(r"(//.*\n)+", text).group(0).splitlines()
    ]


def without_marks(comment):
    return [re.sub(r"^\n \* ?", "", line).rstrip() for line in re.split(r"(?=\n)", comment.strip())]


def before_declaration(text, name):
    found = re.search(
        COMMENT + rf"(?:typedef struct {name} {{|typedef \w+ {name};|VELO_API\s+\w+\s+{name}\()",
        text, re.S)
    return without_marks(found.group(1)) if found else None


def escaped(line):
    return re.sub(r"(`[^`]*`)|([*<\\_])", lambda m: m.group(1) or "\\" + m.group(2), line)


def markdown(lines):
    """A comment's lines as Markdown: paragraphs and lists are that already, lines set in by two
    spaces are code."""
    out, in_list, in_code = [], False, False
    for line in lines:
        in_list = line.startswith("- ") or (in_list and line.startswith("  "))
        is_code = line.startswith("  ") and not in_list
        if is_code != in_code:
            out += ["", "```cpp"] if is_code else ["```", ""]
        in_code = is_code
        out.append(line.strip() if is_code else escaped(line))
    return out + ["```"] * in_code


def function_text(lines):
    """The comment of a function, and its thread class and errors as the last line."""
    text = "\n".join(lines)
    found = re.search(r"\bThread\s+class:", text)
    if not found:
        return markdown(lines)
    at = found.start()
    facts = re.sub(r"(?<=[ (,])(" + CODES + r")(?=[,;. ])", r"`VELO_ERR_\1`",
                   " ".join(text[at:].split()))
    return [*markdown(text[:at].rstrip().split("\n")), "", facts]


class FromHeader(SphinxDirective):
    """The comment of a header or of a declaration."""
    has_content = True
    required_arguments = 1

    def lines(self, name):
        root = self.config.velo_root
        path = header_path(root, name)
        if path:
            self.env.note_dependency(path)
            return markdown(opening(read(path)))
        for folder in FOLDERS[:2]:
            for header in sorted(os.listdir(os.path.join(root, folder))):
                path = os.path.join(root, folder, header)
                found = before_declaration(read(path), name)
                if found:
                    self.env.note_dependency(path)
                    return function_text(found)
        return None

    def run(self):
        name = self.arguments[0]
        lines = self.lines(name)
        if lines is None and not self.content:
            raise self.error(f"no header says anything of {name}")
        parent = nodes.Element()
        self.state.nested_parse(self.content if lines is None else StringList(lines, source=name),
                                0, parent)
        return parent.children


class FunctionsOf(SphinxDirective):
    """Every function that a header declares."""
    required_arguments = 1

    def run(self):
        path = header_path(self.config.velo_root, self.arguments[0])
        self.env.note_dependency(path)
        lines = []
        for declaration in re.findall(r"VELO_API\s+([^;]*);", read(path)):
            name = re.search(r"(\w+)\(", declaration).group(1)
            lines += [
                "::::{c:function} " + " ".join(declaration.split()), f":::{{from-header}} {name}",
                ":::", "::::", ""
            ]
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, source=path), 0, parent)
        return parent.children


def write_cpp_pages(app):
    """A page for each header of the C++ layer: its opening, and its code, which says the rest.
    Those of the operators say it once."""
    folder = os.path.join(app.config.velo_root, FOLDERS[2])
    headers = sorted(
        name for name in os.listdir(folder) if name.endswith(".hpp") and name != "velo.hpp")
    os.makedirs(os.path.join(app.srcdir, "cpp"), exist_ok=True)
    for header in headers:
        code = re.sub(r"\A(//.*\n)+", "", read(os.path.join(folder, header)))
        whole = f"```cpp\n{code}```\n"
        if header == "ops.hpp":
            whole = "[Each operator](../operators.md) has an example of its own.\n"
        with open(os.path.join(app.srcdir, "cpp", header + ".md"), "w", encoding="utf-8") as page:
            page.write(f"# velo/{header}\n\n:::{{from-header}} {header}\n:::\n\n{whole}")
    with open(os.path.join(app.srcdir, "cpp.md"), "w", encoding="utf-8") as page:
        page.write("# C++ layer\n\n:::{from-header} velo.hpp\n:::\n\n:::{toctree}\n\n" +
                   "".join(f"cpp/{header}\n" for header in headers) + ":::\n")


def setup(app):
    app.add_config_value("velo_root", "", "env")
    app.add_directive("from-header", FromHeader)
    app.add_directive("functions-of", FunctionsOf)
    app.connect("builder-inited", write_cpp_pages)
    return {"parallel_read_safe": True}
