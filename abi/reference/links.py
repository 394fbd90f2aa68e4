#!/usr/bin/env python3
"""Follows every link of a folder of HTML that stays in it: the file must be there, and the place in
it.

    links.py FOLDER        exits 1 and names every dead link, and every script, style, font or image
                           that asks for a network
    links.py --self-test   plants one of each in a scratch folder and expects it to be found
"""
import html.parser
import os
import re
import sys
import tempfile
import urllib.parse

LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}


class Page(html.parser.HTMLParser):
    """ids: the places of a page; links: (line, target, whether a browser loads it by itself)."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.update(values[key] for key in ("id", "name") if values.get(key))
        for key in ("href", "src"):
            if values.get(key):
                loaded = LOADED.get(tag) == key and values.get("rel") not in ("index", "search",
                                                                              "next", "prev",
                                                                              "canonical")
                self.links.append((self.getpos()[0], values[key], loaded))


def pages_of(folder):
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(place, name)
                with open(path, encoding="utf-8") as file:
                    found[os.path.relpath(path, folder)] = Page(file.read())
    return found


def wrong_link(folder, pages, name, target, loaded):
    """What is wrong with one link of a page, or nothing."""
    parts = urllib.parse.urlsplit(target)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return "asks for a network" if loaded else ""
    path = os.path.normpath(os.path.join(os.path.dirname(name), urllib.parse.unquote(
        parts.path))) if parts.path else name
    if not os.path.isfile(os.path.join(folder, path)):
        return "leads to no file"
    if parts.fragment and path in pages and urllib.parse.unquote(
            parts.fragment) not in pages[path].ids:
        return "leads to no place on that page"
    return ""


def wrong_links(folder):
    pages = pages_of(folder)
    if not pages:
        yield f"{folder}: no pages"
    for name, page in sorted(pages.items()):
        for line, target, loaded in page.links:
            wrong = wrong_link(folder, pages, name, target, loaded)
            if wrong:
                yield f"{name}:{line}: {target} {wrong}"
    for place, _, names in os.walk(folder):
        for name in (name for name in names if name.endswith(".css")):
            with open(os.path.join(place, name), encoding="utf-8") as file:
                for target in re.findall(r"url\([\"']?(https?:[^\"')]*)", file.read()):
                    yield f"{name}: {target} asks for a network"


def self_test():
    right = ('<a id="here" href="b.html#there">b</a><a href="https://velo.example/">out</a><img '
             'src="data:image/png;base64,">')
    planted = [
        '<a href="gone.html">', '<a href="b.html#gone">', '<a href="#gone">',
        '<img src="gone.svg">', '<script src="https://velo.example/a.js"></script>',
        '<link rel="stylesheet" href="//velo.example/a.css">'
    ]
    missed = 0
    for text in ["", *planted]:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in (("a.html", right + text), ("b.html", '<p id="there">')):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(content)
            if bool(list(wrong_links(folder))) != bool(text):
                print(f"not judged rightly: {text or right}")
                missed += 1
    print(f"{len(planted)} wrong links planted, {missed} judged wrongly")
    return missed


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 1 if self_test() else 0
    wrong = list(wrong_links(sys.argv[1]))
    print("\n".join(wrong) or "every link leads somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
