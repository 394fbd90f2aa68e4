"""Rules on names and texts: openings, names, columns, words, folders (tree_check.py lists them)."""
import os
import re

from tree_files import EXEMPT, SCRIPT, SOURCE, committed, lines_of


def rule_openings(root):
    for path in committed(root):
        if not (SOURCE.search(path) or SCRIPT.search(path)):
            continue
        lines = lines_of(root, path)
        if path.endswith("CMakeLists.txt") and len(lines) < 10:
            continue  # a bare list of sources says what it is
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        first = lines[0] if lines else ""
        marks = ("//", "/*") if SOURCE.search(path) else ("# ", '"""')
        if not first.startswith(marks):
            yield f"{path}:1: opens with {first[:40]!r}, not with a comment on what it holds"


def rule_names(root):
    forbidden = re.compile(r"(^|[/_-])(utils?|helpers?|common|misc)([_./-]|$)")
    left_open = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    for path in committed(root):
        if forbidden.search(path):
            yield f"{path}: a file without a name of its own is not understood yet"
        if path.startswith("tests/tree/") or not (SOURCE.search(path) or SCRIPT.search(path)):
            continue
        for number, line in enumerate(lines_of(root, path), 1):
            if left_open.search(line):
                yield f"{path}:{number}: left open: {line.strip()[:60]}"
        if path.endswith(".h") and not re.match(r"capi/(include|adapters)/|abi/|tests/|examples/",
                                                path):
            yield f"{path}: private headers are .hpp"


COLUMNS, PAGE_COLUMNS = 100, 120
# A text of a script that no line break may enter: a regular expression, a program, a path.
WHOLE = re.compile(r"'[^']{60,}|\"[^\"]{60,}|\S{60,}")


def rule_columns(root):
    for path in committed(root):
        if EXEMPT.search(path):
            continue
        page = path.endswith(".md")
        if not (page or SOURCE.search(path) or SCRIPT.search(path)):
            continue
        limit = PAGE_COLUMNS if page else COLUMNS
        shell = SCRIPT.search(path) and not path.endswith(".py")
        for number, line in enumerate(lines_of(root, path), 1):
            if len(line) <= limit or page and line.startswith("|"):
                continue
            if shell and not line.lstrip().startswith("#") and WHOLE.search(line):
                continue
            yield f"{path}:{number}: {len(line)} columns, the limit is {limit}"


# Private words of velo's past, with the paths in which they have a public meaning: Megatron-LM's
# twin groups and sliding windows, windows of a corpus and of a double ring, the words of the spec.
# Every folder is held.
TOPOLOGY = (r"^(comm/topology/|capi/|cpp/|abi/|tools/velo/|tests/.*topology|tests/tools/|"
            r"tests/descriptions/)")
WORDS = {
    "attendance": None,
    "bury": None,
    "company": None,
    "courier": None,
    "glance": None,
    "hall": None,
    "homecoming": None,
    "hub": None,
    "in vain": r"^capi/include/",
    "lending": None,
    "lent": None,
    "meeting": None,
    "parcel": None,
    "party": None,
    "patience": None,
    "pocket": None,
    "said": None,
    "told": None,
    "twin": TOPOLOGY,
    "window": TOPOLOGY + r"|^(examples|bench|(tests/)?ops/attention|tests/(examples|hosts|parity)|"
              r"(tests/)?sched/parallel/context)/|^sched/README\.md$"
}
ANY_WORD = re.compile(r"(?<![A-Za-z])(" + "|".join(WORDS) + r")s?(?![a-z])", re.I)


def rule_words(root):
    for path in committed(root):
        if path == "tests/tree/text_rules.py" or EXEMPT.search(path) or not (
                path.endswith(".md") or SOURCE.search(path) or SCRIPT.search(path)):
            continue
        for number, line in enumerate(lines_of(root, path), 1):
            for found in ANY_WORD.finditer(line):
                word = found.group(1).lower()
                if WORDS[word] is None or not re.search(WORDS[word], path):
                    yield f"{path}:{number}: {word}: the field has another word (CONTRIBUTING.md)"


# Public headers, their entries and their wrappers lie in one folder each.
FLAT, FILES = re.compile(r"^(capi/include/velo|capi/src|cpp/include/velo)$"), 25


def rule_folders(root):
    count = {}
    for path in committed(root):
        if SOURCE.search(path) or path.endswith((".py", ".sh", ".lua")):
            folder = os.path.dirname(path)
            count[folder] = count.get(folder, 0) + 1
    for folder, files in sorted(count.items()):
        if files > FILES and not FLAT.search(folder) and not EXEMPT.search(folder + "/"):
            yield f"{folder}: {files} source files flat, the limit is {FILES}"
