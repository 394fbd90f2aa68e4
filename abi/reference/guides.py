"""Takes the guides of the modules into the reference: a page that consists of the line

    % guide: memory/README.md

shows that file of the tree. A link to a public header leads to the header's page, one to another
guide to its page, and one to a picture shows it; of every other link into the tree the text stays,
since a reader of the pages need not have the tree.
"""
import os
import re

LINK = re.compile(r"(!?)\[([^][]+)\]\(([^()# ]+)(#[^)]*)?\)")
STUB = re.compile(r"% guide: (\S+)\n")
HEADERS = "capi/include/velo/"


def pages_of_guides(folder):
    """For each guide the name of its page, read from the stubs in the folder."""
    pages = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            pages[STUB.match(file.read()).group(1)] = name
    return pages


def page_text(text, path, pages, picture):
    """A guide's text with its links turned; picture gives the path by which the page names a
    picture."""
    def turned(found):
        image, words, target, _ = found.groups()
        if "://" in target:
            return found.group(0)
        target = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if image:
            return f"![{words}]({picture(target)})"
        if target.startswith(HEADERS):
            return f"[{words}](../headers/{target[len(HEADERS):]}.md)"
        return f"[{words}]({pages[target]})" if target in pages else words

    return LINK.sub(turned, text)


def take_in(app, name, source):
    stub = STUB.match(source[0])
    if stub is None:
        return
    root, path = app.config.velo_root, stub.group(1)
    folder = os.path.join(app.srcdir, os.path.dirname(name))
    app.env.note_dependency(os.path.join(root, path))
    with open(os.path.join(root, path), encoding="utf-8") as file:
        source[0] = page_text(file.read(), path, pages_of_guides(folder),
                              lambda target: os.path.relpath(os.path.join(root, target), folder))


def setup(app):
    app.connect("source-read", take_in)
    return {"parallel_read_safe": True}
