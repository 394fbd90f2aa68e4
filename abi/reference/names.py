"""Makes every name of the interface a link, for Sphinx: velo_stream_wait, VELO_ERR_STATE,
rms_norm_backward, wherever a text has it; and so a paper's number, arXiv:1910.07467.

The pages and the headers' comments stay plain; the names that have a place are those Sphinx's C
domain knows, and the operators. A name in code marks that looks like one of them and has no place
is a warning.
"""
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

NAME = re.compile(
    r"(?<![\w.])(?:velo_[a-z0-9_]*[a-z0-9]|VELO_[A-Z0-9_]*[A-Z0-9]|[a-z0-9]+(?:_[a-z0-9]+)+|arXiv:"
    r"\d+\.\d+)\b"
)
VARIABLES = (  # of the environment
    "VELO_LIBRARY", "VELO_ADAPTERS", "VELO_OVERLAP_SLICES", "VELO_OVERLAP_MODE")
CLOSED = (nodes.reference, nodes.title, nodes.literal_block, nodes.raw)
log = logging.getLogger(__name__)


def places(env):
    """{name: (page, anchor)}"""
    found = {
        page.removeprefix("operators/"): (page, "")
        for page in env.found_docs
        if page.startswith("operators/")
    }
    for name, _, kind, page, anchor, _ in env.get_domain("c").get_objects():
        if kind != "member":
            found[name.rsplit(".", 1)[-1]] = (page, anchor)
    return found


def linked(text, page, known, link):
    """The pieces of a text: strings, and references for the names in it."""
    at = 0
    for found in NAME.finditer(text):
        name = found.group()
        paper = name.startswith("arXiv:")
        if not paper and known.get(name, (page, "")) == (page, ""):
            continue
        yield nodes.Text(text[at:found.start()])
        yield nodes.reference("", name, refuri="https://arxiv.org/abs/" +
                              name[6:]) if paper else link(name, known[name])
        at = found.end()
    yield nodes.Text(text[at:])


def link_names(app, tree, page):
    if not hasattr(app, "velo_places"):  # all pages have been read
        app.velo_places = places(app.env)
    known = app.velo_places

    def link(name, place):
        target = app.builder.get_relative_uri(page, place[0]) + (f"#{place[1]}" if place[1] else "")
        return nodes.reference("", name, refuri=target, internal=True)

    for text in list(tree.findall(nodes.Text)):
        parents, node = [], text.parent
        while node is not None:
            parents.append(node)
            node = node.parent
        if any(
                isinstance(parent, CLOSED) or "sig" in parent.get("classes", [])
                for parent in parents):
            continue
        code = isinstance(text.parent, nodes.literal)
        pieces = list(linked(text.astext(), page, known, link))
        if len(pieces) > 1:
            text.parent.replace(text, pieces)
        elif (code and re.fullmatch(r"velo_\w+|VELO_\w+", text.astext()) and
              text.astext() not in known and text.astext() not in VARIABLES):
            log.warning("%s has no place in the reference", text.astext(), location=text.parent)


def enter_in_contents(app, domain, kind, content):
    """Functions and types among the contents of their page; Sphinx's C domain leaves that to
    others."""
    if domain == "c" and kind in ("function", "struct", "enum", "type"):
        signature = content.parent[0]
        name = signature.next_node(addnodes.desc_name).astext()
        signature["_toc_parts"], signature["_toc_name"] = (name,), name


def setup(app):
    app.connect("object-description-transform", enter_in_contents)
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
