#!/usr/bin/env python3
"""The rules of the tree that a compiler does not see, each a scan of the committed files.

    tree_check.py RULE ROOT     exits 1 and prints file:line for every violation
    tree_check.py --self-test   plants one violation of every rule in a scratch tree and expects it
                                to be found

Rules:
    includes    who may include whom
    rooms       no two folders of the library include each other
    external    which file may know which foreign header
    sizes       line budgets
    share       of generated lines in the tree
    openings    every source opens with a comment that says what it holds
    names       no utils, helpers, common; nothing left to do
    isas        operators' headers name no instruction set
    snippets    code in README.md is cut from compiled examples
    operators   ops/README.md has them all
    versions    CMakeLists.txt alone states the release
    releases    each that has shipped is frozen in abi/, and no other
    outputs     files are written in one way
    places      tests and benches that run at the same time do not share a name or a file
    skips       a test that leaves something out says so, for .ci/not_tested
    columns     code and comments have at most 100 columns, pages 120
    words       private words do not come back
    folders     at most 25 source files lie flat in a folder
"""
import json
import os
import re
import sys
import tempfile

from text_rules import rule_columns, rule_folders, rule_names, rule_openings, rule_words
from tree_files import EXEMPT, FROZEN, SCRIPT, SOURCE, committed, lines_of

# Private layers: what each may include beside itself. Public headers are written velo/...,
# generated tables abi/generated/...
LAYERS = {
    "core": {"core"},
    "memory": {"core", "memory"},
    "ops": {"core", "ops"},
    "comm": {"core", "comm"},
    "sched": {"core", "memory", "ops", "comm", "sched"},
    "capi/src": {"core", "memory", "ops", "comm", "sched", "capi"},
    "capi/include": set(),
    "capi/adapters": set(),
    "cpp": set(),
    "capi/python": set(),
    "tools": set(),
    "examples": set(),
    "bench/limits": set(),
}
PRIVATE = {"core", "memory", "ops", "comm", "sched", "capi"}

# Foreign header -> the paths that may include it. Everyone else asks those files.
EXTERNAL = {
    r"jansson\.h": r"^(core/text/json|tools/|examples/|abi/|tests/|bench/)",
    r"ffi\.h": r"^(core/invoke|tests/)",
    r"zlib\.h": (
        r"^(core/(checksum|gzip_file)|tools/velo/commands/capsule_file|examples/|tests/|bench/)"
    ),
    r"(iostream|typeinfo)": r"^(tools/|examples/|tests/|bench/|abi/)",
    r"omp\.h": r"^bench/",
    r"mpi\.h": r"^(comm/transport/mpi/|tests/comm/mpi/|bench/bench_comm|bench/comm/)",
    r"liburing\.h": r"^(memory/swap/uring_engine|tests/)",
}


def includes_of(root, path):
    for number, line in enumerate(lines_of(root, path), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1), found.group(2)


def rule_includes(root):
    for path in committed(root):
        layer = next((name for name in LAYERS if path.startswith(name + "/")), None)
        if layer is None or not SOURCE.search(path):
            continue
        for number, _, target in includes_of(root, path):
            head = target.split("/")[0]
            if head in PRIVATE and "/" in target and head not in LAYERS[
                    layer] and not target.startswith(layer + "/"):
                yield f"{path}:{number}: {layer} may not include {target}"
            if head == "abi" and layer in ("cpp", "tools", "examples", "capi/include",
                                           "capi/adapters", "capi/python"):
                yield f"{path}:{number}: {layer} sees public headers only, not {target}"
            if head == "examples" and layer == "tools":
                yield f"{path}:{number}: a product may not include an example, {target}"
            if target.startswith(".."):
                yield f"{path}:{number}: include by the path from the root, not {target}"
            if layer == "capi/include" and target not in ("stdint.h",
                                                          "stddef.h") and head != "velo":
                yield (f"{path}:{number}: public C headers include stdint.h and stddef.h only, not "
                       f"{target}")


LIBRARY = ("core", "memory", "ops", "comm", "sched")


def rule_rooms(root):
    """A folder and one inside it are one part, so they may include each other; no others may."""
    first = {}
    for path in committed(root):
        if not SOURCE.search(path) or path.split("/")[0] not in LIBRARY:
            continue
        for number, _, target in includes_of(root, path):
            here, there = os.path.dirname(path), os.path.dirname(target)
            if here != there and os.path.exists(os.path.join(root, target)):
                first.setdefault((here, there), f"{path}:{number}: includes {target}")
    for (here, there), place in sorted(first.items()):
        nested = there.startswith(here + "/") or here.startswith(there + "/")
        if (there, here) not in first or nested:
            continue
        yield f"{place}, and {there} includes {here}"


def rule_external(root):
    for path in committed(root):
        if not SOURCE.search(path):
            continue
        for number, _, target in includes_of(root, path):
            for header, allowed in EXTERNAL.items():
                if re.fullmatch(r"(\w+/)*" + header, target) and not re.search(allowed, path):
                    yield f"{path}:{number}: {target} is known to {allowed} alone"


def rule_sizes(root):
    for path in committed(root):
        if EXEMPT.search(path) or not (SOURCE.search(path) or SCRIPT.search(path)):
            continue
        count = len(lines_of(root, path))
        if count > 800:
            yield f"{path}: {count} lines, the limit is 800"
        if path.startswith("capi/include/") and count > 400:
            yield f"{path}: {count} lines, a public header has at most 400"


def rule_share(root):
    lines = {path: len(lines_of(root, path)) for path in committed(root)}
    frozen = sum(n for path, n in lines.items() if FROZEN.search(path))
    whole = sum(lines.values()) - frozen
    written = sum(n for path, n in lines.items() if EXEMPT.search(path)) - frozen
    print(
        f"{written} of {whole} lines are generated; {frozen} lines of frozen releases are not "
        f"counted"
    )
    if 100 * written > 15 * whole:
        yield "too many: the limit is 15 %, what only a build needs is made there"


def rule_isas(root):
    # By the names of today's ISAs: a header that knows one has to be touched when there is another.
    isa = re.compile(r"(?<![a-z0-9])(avx2|avx512|amx)(?![a-z0-9])")
    comment = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
    for path in committed(root):
        if not re.match(r"ops/.*\.(hpp|inl)$", path):
            continue
        code = comment.sub(lambda found: "\n" * found.group().count("\n"),
                           "\n".join(lines_of(root, path)))
        for number, line in enumerate(code.split("\n"), 1):
            if isa.search(line):
                yield f"{path}:{number}: names an ISA: {line.strip()[:60]}"


def rule_snippets(root):
    # Python of the front page comes from the pages of hosts, whose programs tests/hosts runs.
    def texts_of(pattern):
        return [
            "\n".join(line.strip()
                      for line in lines_of(root, path))
            for path in committed(root)
            if re.match(pattern, path)
        ]

    compiled, pages = texts_of(r"examples/.*\.(c|cpp|hpp|h)$"), texts_of(r"examples/.*README\.md$")
    for page in (p for p in committed(root) if re.match(r"(examples/[^/]+/)?README\.md$", p)):
        text = "\n".join(lines_of(root, page)) + "\n"
        blocks = re.findall(r"^```(c|cpp|python)\n(.*?)^```", text, re.M | re.S)
        for language, block in blocks:
            if language == "python" and page != "README.md":
                continue  # tests/hosts runs the programs of these pages
            wanted = "\n".join(line.strip() for line in block.strip().split("\n"))
            if not any(wanted in text for text in (pages if language == "python" else compiled)):
                yield f"{page}: a {language} block is part of no compiled example: {wanted[:60]!r}"


def rule_operators(root):
    # The table of ops/README.md has every operator of the spec, and nothing else.
    paths = committed(root)
    families = [
        json.loads("\n".join(lines_of(root, p)))
        for p in paths
        if re.match(r"abi/spec/ops/[^/]+\.json$", p)
    ]
    there = {operator["name"] for family in families for operator in family["ops"]}
    page = "ops/README.md"
    rows = [line.split("|") for line in lines_of(root, page)] if page in paths else []
    listed = {
        name for row in rows if len(row) == 5 for name in re.findall(r"`([a-z0-9_]+)`", row[2])
    }
    for name in sorted(there ^ listed):
        yield f"{page}: operator {name} is {'missing' if name in there else 'not in the spec'}"


def rule_versions(root):
    # The release is the project's version of CMake; whatever else needs it derives it, but for the
    # titles of the change log.
    paths = committed(root)
    top = "\n".join(lines_of(root, "CMakeLists.txt")) if "CMakeLists.txt" in paths else ""
    stated = re.search(r"^project\(velo VERSION ((\d+\.\d+)\.\d+)", top, re.M)
    if stated is None:
        return
    literal = re.compile(r"(?<!\d)(?<!\d\.)" + re.escape(stated.group(1)) + r"(?!\.?\d)")
    for path in paths:
        for number, line in enumerate(lines_of(root, path), 1):
            if literal.search(line) and not line.startswith("project(") and not (
                    path == "CHANGELOG.md" and line.startswith("## ")):
                yield f"{path}:{number}: states the release: {line.strip()[:60]}"
    titles = [line for line in lines_of(root, "CHANGELOG.md") if line.startswith("## ")
             ] if "CHANGELOG.md" in paths else []
    if titles and not re.match(r"## " + re.escape(stated.group(2)) + r"(?!\d)", titles[0]):
        yield f"CHANGELOG.md: begins with {titles[0]!r}, the release is {stated.group(1)}"


def rule_releases(root):
    # Without its frozen folder a release that has shipped would be held by nothing: the build would
    # freeze the tree under test.
    paths = committed(root)
    titles = [line for line in lines_of(root, "CHANGELOG.md") if line.startswith("## ")
             ] if "CHANGELOG.md" in paths else []
    shipped = {
        title.group(1) for title in (re.match(r"## (\d+\.\d+)(?!.*candidate)", line)
                                     for line in titles) if title
    }
    frozen = {path.split("/")[1] for path in paths if FROZEN.search(path)}
    for release in sorted(shipped - frozen):
        yield (f"CHANGELOG.md: {release} is no candidate, so it is frozen in abi/{release}, which "
               f"is not there")
    for release in sorted(frozen - shipped):
        yield (f"abi/{release}: frozen, and CHANGELOG.md does not have it among the releases that "
               f"have shipped")


def rule_places(root):
    # Programs of several build folders run at the same time: a name at which ranks meet, a port and
    # a file in a folder of all carry the process (the literal then ends with '-'), or come from
    # mkdtemp.
    shared = [(re.compile(r'\bdesc\.name\s*=\s*"'), "ranks of all processes meet at one name"),
              (re.compile(r"""["'](/var/tmp|/tmp|/dev/shm)/(?![^"']*(XXXXXX|-["']))"""),
               "a file of all processes"),
              (re.compile(r"""MASTER_PORT\W+["']?\d"""), "a port of all processes")]
    for path in committed(root):
        if not re.match(r"(tests|bench)/(?!tree/).*\.(c|cpp|hpp|py|sh)$", path):
            continue
        for number, line in enumerate(lines_of(root, path), 1):
            for pattern, why in shared:
                if pattern.search(line):
                    yield f"{path}:{number}: {why}: {line.strip()[:60]}"


# Files that callers and users name are written by core/host/new_file.hpp, in programs by
# tools/velo/new_file.hpp. These open files otherwise: a file without a name, locks, new files in
# folders of their own, and examples of one file.
WRITERS = re.compile(
    r"(core/host/new_file\.cpp|tools/velo/new_file\.hpp|examples/(c/pipeline\.c|cpp/overlap\.cpp)"
    r"|capi/python/velo/mindspore\.py|memory/swap/disk_file\.cpp"
    r"|comm/transport/shm/rendezvous_socket\.cpp"
    r"|examples/decoder/(files/file|checkpoint/out_folder)\.cpp)$")
OPENS_TO_WRITE = re.compile(
    r"""\b(f|fre)open\([^;]*,\s*"[^"]*[wa+]|\b(ofstream|fstream|filebuf)\b(?!>)|\bcreat\("""
    r"""|\bmko?s?temps?\(|\bO_(WRONLY|RDWR|CREAT|TRUNC|TMPFILE|APPEND)\b"""
    r"""|\bopen\([^#]*,\s*["'][rbt]*[wax+]|\.write_(text|bytes)\("""
)


def rule_outputs(root):
    for path in committed(root):
        if not re.match(
                r"(core|memory|ops|comm|sched|capi|cpp|tools|examples)/"
                r".*\.(c|h|cpp|hpp|inl|py|lua)$",
                path) or WRITERS.match(path):
            continue
        for number, line in enumerate(lines_of(root, path), 1):
            if OPENS_TO_WRITE.search(line) and not re.match(r"\s*#\s*include", line):
                yield (f"{path}:{number}: files are written by new_file.hpp alone: "
                       f"{line.strip()[:60]}")


def rule_skips(root):
    for path in committed(root):
        if not path.startswith("tests/") or path.startswith("tests/tree/") or not re.search(
                r"\.(sh|py|cpp|hpp)$", path):
            continue
        lines = lines_of(root, path)
        for number, line in enumerate(lines, 1):
            leaves = re.search(r"\bexit 77\b|sys\.exit\(.*\b77\)|\bWARN\(|skipTest\(", line)
            if leaves and "not tested: " not in "".join(lines[max(0, number - 3):number + 1]):
                yield f"{path}:{number}: a skip without a line \"not tested: ..\""


# rule_columns, rule_folders, rule_names, rule_openings and rule_words are in text_rules.py.
RULES = {name[5:]: rule for name, rule in globals().items() if name.startswith("rule_")}

# One violation of every rule: the rule that has to find it, then paths and contents.
PLANTED = [
    ("includes", "core/a.cpp", '// a\n#include "ops/operator/definition.hpp"\n'),
    ("includes", "ops/a.cpp", '// a\n#include "comm/group/group.hpp"\n'),
    ("includes", "cpp/include/velo/a.hpp", '// a\n#include "core/host/cpu.hpp"\n'),
    ("includes", "examples/pretrain/a.cpp", '// a\n#include "core/host/cpu.hpp"\n'),
    ("includes", "tools/velo/a.cpp", '// a\n#include "core/host/cpu.hpp"\n'),
    ("includes", "tools/velo/a.cpp", '// a\n#include "examples/decoder/failure.hpp"\n'),
    ("includes", "capi/python/a.c", '/* a */\n#include "abi/generated/velo.inc"\n'),
    ("includes", "bench/limits/a.cpp", '// a\n#include "core/host/cpu.hpp"\n'),
    ("includes", "capi/include/velo/a.h", "/* a */\n#include <stdio.h>\n"),
    ("includes", "sched/a.cpp", '// a\n#include "../core/host/cpu.hpp"\n'),
    ("rooms", "core/a/a.hpp", '// a\n#include "core/b/b.hpp"\n', "core/b/b.hpp", "// b\n",
     "core/b/b.cpp", '// b\n#include "core/a/a.hpp"\n'),
    ("external", "ops/norm/a.cpp", "// a\n#include <jansson.h>\n"),
    ("external", "core/a.cpp", "// a\n#include <ffi.h>\n"),
    ("external", "memory/a.cpp", "// a\n#include <zlib.h>\n"),
    ("external", "core/b.cpp", "// a\n#include <iostream>\n"),
    ("sizes", "core/a.cpp", "// a\n" * 801), ("sizes", "capi/include/velo/a.h", "/* a */\n" * 401),
    ("share", "abi/generated/a.inc", "// a\n" * 10, "abi/1.0/include/velo/a.h", "/* a */\n" * 1000),
    ("releases", "CHANGELOG.md", "# Changes\n## 1.1 (release candidate)\n## 1.0\n"),
    ("releases", "abi/1.0/velo.map", "VELO_1.0 {};\n", "CHANGELOG.md",
     "# Changes\n## 1.0 (release candidate)\n"), ("share", "abi/generated/a.inc", "// a\n" * 10),
    ("openings", "core/a.cpp", "#include <vector>\n"),
    ("openings", "tests/a.sh", "#!/bin/sh\necho\n"), ("names", "core/string_utils.hpp", "// a\n"),
    ("names", "ops/common.hpp", "// a\n"), ("names", "ops/a.h", "// a\n"),
    ("names", "ops/b.cpp", "// " + "TO" + "DO later\n"),
    ("isas", "ops/norm/a.hpp", "// a\nnamespace avx2 {}\n"),
    ("isas", "ops/norm/a.hpp", '// a\n#include "core/simd/avx512.hpp"\n'),
    ("isas", "ops/norm/a.inl", "/* a\n*/ kernels_amx();  // what runs\n"),
    ("snippets", "README.md", "```c\nint invented(void);\n```\n"),
    ("snippets", "README.md", "```python\ninvented()\n```\n"),
    ("snippets", "examples/c/README.md", "```c\nint invented(void);\n```\n"),
    ("operators", "abi/spec/ops/extra.json", '{"ops": [{"name": "extra"}]}\n'),
    ("operators", "ops/README.md", "| family | `gone` | what |\n"),
    ("versions", "CMakeLists.txt", "# a\nproject(velo VERSION 1.2.3)\nset(again 1.2.3)\n"),
    ("outputs", "memory/a.cpp", '// a\nint to = open(path, O_WRONLY | O_CREAT, 0600);\n'),
    ("outputs", "core/a.cpp", '// a\nstd::FILE* to = std::fopen(path, "we");\n'),
    ("outputs", "sched/a.cpp", '// a\nstd::ofstream to(path);\n'),
    ("outputs", "tools/velo/a.cpp", '// a\nint to = ::mkostemp(path, 0);\n'),
    ("outputs", "examples/jax/a.py",
     '"""a"""\nwith open(path, "w", encoding="utf-8") as to: pass\n'),
    ("outputs", "capi/python/velo/a.py", '"""a"""\npathlib.Path(path).write_text(text)\n'),
    ("places", "tests/comm/a.cpp", '// a\ndesc.name = "ours";\n'),
    ("places", "bench/a.cpp", '// a\nauto file = open("/dev/shm/ours", O_CREAT);\n'),
    ("places", "tests/hosts/a.py", '"""a"""\nos.environ.update(MASTER_PORT="29500")\n'),
    ("columns", "core/a.cpp", "// " + "a " * 50 + "\n"),
    ("columns", "tests/a.py", '"""a"""\ntext = "' + "a " * 50 + '"\n'),
    ("columns", "tests/a.sh", "#!/bin/sh\n# a\n" + "a " * 51 + "\n"),
    ("columns", "memory/README.md", "a " * 61 + "\n"),
    ("words", "tools/velo/a.cpp", "// The mee" "ting of ranks.\n"),
    ("words", "core/a.cpp", "// a\nint twi" "ns;\n"),
    ("folders", *(text for i in range(26) for text in (f"core/a{i}.cpp", "// a\n"))),
    ("skips", "tests/a.sh", "#!/bin/sh\n# a\nexit 77\n"),
    ("skips", "tests/a.cpp", '// a\nWARN("no right");\n'),
    ("versions", "CHANGELOG.md", "# Changes\n## 1.1\n", "CMakeLists.txt",
     "# a\nproject(velo VERSION 1.2.3)\n"),
    ("versions", "CHANGELOG.md", "# Changes\n## 1.2.3\nThis is 1.2.3.\n", "CMakeLists.txt",
     "# a\nproject(velo VERSION 1.2.3)\n"),
]

# Trees that a rule leaves alone, though they look alike.
ALLOWED = [("columns", "tests/a.sh", "#!/bin/sh\n# a\ngrep '" + "a" * 100 + "'\n"),
           ("columns", "README.md", "| " + "a " * 100 + "|\n"),
           ("words", "tools/velo/a.cpp", "// a\nbool twi" "ns;\n"),
           ("folders", *(text for i in range(26) for text in (f"capi/src/a{i}.cpp", "// a\n"))),
           ("versions", "CHANGELOG.md", "# Changes\n## 1.2.3\n## 1.2\n", "CMakeLists.txt",
            "# a\nproject(velo VERSION 1.2.3)\n"),
           ("versions", "CHANGELOG.md", "# Changes\n## 1.2.3 (release candidate)\n",
            "CMakeLists.txt", "# a\nproject(velo VERSION 1.2.3)\n"),
           ("versions", "CHANGELOG.md", "# Changes\n## 1.2\n", "CMakeLists.txt",
            "# a\nproject(velo VERSION 1.2.0)\n"),]


def found_in(rule, files):
    """What a rule finds in a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, content in zip(files[::2], files[1::2]):
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(content)
        return list(RULES[rule](root))


def self_test():
    wrong = 0
    for rule, *files in PLANTED:
        if found_in(rule, []) or not found_in(rule, files):
            print(f"rule {rule} does not see its violation in {files[0]}")
            wrong += 1
    for rule, *files in ALLOWED:
        for violation in found_in(rule, files):
            print(f"rule {rule} finds what is allowed: {violation}")
            wrong += 1
    print(
        f"{len(PLANTED)} violations planted, {len(ALLOWED)} trees without one, {wrong} judged "
        f"wrongly"
    )
    return wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 1 if self_test() else 0
    rule, root = sys.argv[1:]
    violations = list(RULES[rule](root))
    print("\n".join(violations) or f"{rule}: clean")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
