"""Holds the page on how a call flows to the sources: every file that the page or its drawing names
is there, and every function or type beside it is declared or defined in one of the files it stands
with.

    call_flow_test.py ROOT                exits 1 and names everything that is not so
    call_flow_test.py --self-test ROOT    renames files and functions in the texts and expects it to
                                          be seen
"""
import os
import re
import sys

FOLDER = "abi/reference"
NAMED = {
    "call_flow.md": r"^\|[^|]*\|([^|]*`[^|]*)\|$",
    "call_flow.svg": r'<text class="where"[^>]*>([^<]*)</text>'
}
PLACES = 15  # fewer mean that the patterns above have gone blind


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def places(name, text):
    """(files, names) of every cell or label that names a place in the sources."""
    for found in re.findall(NAMED[name], text, re.M):
        words = re.findall(r"[\w./]+", found)
        yield [w for w in words if "/" in w], [w for w in words if "/" not in w]


def declares(text, name):
    return re.search(rf"\b(?:class|struct) {name}\b|\b{name}(?:\(|::\w+\(| = \{{|<)", text)


def differences(root, texts):
    for name, text in texts.items():
        found = list(places(name, text))
        if len(found) < PLACES:
            yield f"{name}: {len(found)} places named, there were {PLACES} and more"
        for files, names in found:
            there = [path for path in files if os.path.isfile(os.path.join(root, path))]
            yield from (f"{name}: there is no {path}" for path in files if path not in there)
            sources = [read(os.path.join(root, path)) for path in there]
            yield from (f"{name}: {word} is not in {', '.join(files)}" for word in names
                        if not any(declares(source, word) for source in sources))


def self_test(root, texts):
    mistakes = [(page, right, wrong)
                for page in NAMED
                for right, wrong in (("ops/call/overlap.cpp", "ops/call/overlaps.cpp"),
                                     ("choose", "elect"), ("take_turn", "take_turns"))]
    missed = list(differences(root, texts))
    missed += [f"{page}: {wrong} for {right} is not seen" for page, right, wrong in mistakes
               if not list(differences(root, {**texts, page: texts[page].replace(right, wrong)}))]
    print("\n".join(missed) or f"{len(mistakes)} mistakes made, all seen")
    return 1 if missed else 0


def main():
    root = sys.argv[-1]
    texts = {name: read(os.path.join(root, FOLDER, name)) for name in NAMED}
    if sys.argv[1] == "--self-test":
        return self_test(root, texts)
    found = list(differences(root, texts))
    print("\n".join(found) or "the page names what is there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
