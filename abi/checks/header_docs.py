#!/usr/bin/env python3
"""Holds the comments of the hand-written headers to the spec: every function of the spec has a
comment of its own, right before its declaration, that says the same.

    header_docs.py SPEC_DIR HEADER_DIR              exits 1 and names every difference
    header_docs.py --self-test SPEC_DIR HEADER_DIR  breaks a copy of the headers in each way and
                                                    expects it to be seen

A comment ends with two sentences in a fixed form; a remark in parentheses may follow a code:
    Thread class: any. Errors: NULL, HANDLE, STATE (never recorded).
    Thread class: per-handle.                       of a function that returns nothing
The thread class, the codes in their order (`none` for none) and the names of the parameters are
those of the spec, and the comment beside an error code is the code's doc; a struct that begins with
its size has an _INIT macro that sets it, and has an initializer for each of the spec's fields. A
callback, also as a member of a struct, has the spec's parameters by type and name in their order,
since two of one type can change places unseen by any compiler. The generated headers say what the
spec says because they are made from it.
"""
import os
import re
import sys

import spec_reader

DECLARATION = re.compile(r"(/\*(?:(?!\*/).)*\*/\n)?VELO_API\s+(\w+)\s+(velo_\w+)\(([^;]*)\);", re.S)
CODE = r"[A-Z_]+(?: \([^()]*\))?"
ERRORS = re.compile(rf"Errors: (none|{CODE}(?:, {CODE})*)\.")
SIZED = re.compile(r"typedef struct (velo_\w+) \{\s*uint32_t struct_size;")
ENUMERATOR = re.compile(r"(VELO_ERR_\w+) = \d+,?\s*/\* (.*?) \*/")


def sentences(comment):
    """The comment as one line, without its marks."""
    lines = comment.strip().removeprefix("/*").removesuffix("*/").split("\n")
    return " ".join(line.strip().removeprefix("* ").strip() for line in lines)


def parameter_names(text):
    return [] if text.strip() == "void" else [
        re.search(r"(\w+)\s*$", one).group(1) for one in text.split(",")
    ]


def listed_errors(text):
    """The codes a comment names, or None where it has no list in the fixed form."""
    found = ERRORS.search(text)
    if not found or text.count("Errors:") != 1:
        return None
    return [] if found.group(1) == "none" else re.findall(r"([A-Z_]+)(?: \([^()]*\))?(?:, |$)",
                                                          found.group(1))


def contradictions(entry, result, comment, parameters):
    wanted = [p["name"] for p in entry["params"]]
    if parameters != wanted:
        yield f"parameters are {parameters}, the spec has {wanted}"
    if not comment:
        yield "no comment right before the declaration"
        return
    text = sentences(comment)
    thread = re.search(r"Thread class: ([a-z-]+)", text)
    if not thread or thread.group(1) != entry["thread"]:
        yield f"no \"Thread class: {entry['thread']}\", which the spec has"
    if result == "void":
        if "Errors:" in text:
            yield "lists errors, but returns nothing"
        return
    errors = listed_errors(text)
    if errors is None:
        yield "no list \"Errors: CODE, CODE (remark).\""
    elif errors != entry["errors"]:
        yield f"errors are {errors}, the spec has {entry['errors']}"


def initializers(header, struct):
    """How many a struct's _INIT has, those of a nested list counted as one; None where it has none
    that begins with the struct's size."""
    found = re.search(rf"#define {struct.upper()}_INIT\s*\\\n((?:.*\\\n)*.*)", header)
    text = re.sub(r"[\s\\]+", " ", found.group(1)).strip() if found else ""
    if not text.startswith(f"{{ sizeof({struct}),") or not text.endswith("}"):
        return None
    depth = [0]
    for letter in text:
        depth.append(depth[-1] + {"{": 1, "}": -1}.get(letter, 0))
    return 1 + sum(letter == "," and at == 1 for letter, at in zip(text, depth))


def differences(spec, headers):
    """headers: {name: text}. Every way in which a header says something else than the spec."""
    functions = {name: entry for (kind, name), entry in spec.entries.items() if kind == "functions"}
    seen = set()
    for header in sorted({entry["header"] for entry in functions.values()}):
        for comment, result, name, parameters in DECLARATION.findall(headers.get(header, "")):
            entry = functions.get(name)
            if entry is None or entry["header"] != header or name in seen:
                yield f"{header}: {name} is declared here, but not in the spec, or twice"
                continue
            seen.add(name)
            for what in contradictions(entry, result, comment, parameter_names(parameters)):
                yield f"{header}: {name}: {what}"
    for name in sorted(set(functions) - seen):
        yield f"{functions[name]['header']}: {name} is not declared"
    documented = dict(ENUMERATOR.findall(headers.get("status.h", "")))
    for (kind, name), entry in spec.entries.items():
        if kind == "errors" and documented.get(name) != entry["doc"]:
            yield (f"status.h: {name} is documented as {documented.get(name)!r}, the spec has "
                   f"{entry['doc']!r}")
    for header, text in sorted(headers.items()):
        for struct in SIZED.findall(text):
            count = initializers(text, struct)
            fields = len(spec.entries[("structs",
                                       struct)]["fields"]) if ("structs",
                                                               struct) in spec.entries else count
            if count is None:
                yield f"{header}: {struct} has no {struct.upper()}_INIT that begins with its size"
            elif count != fields:
                yield (f"{header}: {struct.upper()}_INIT has {count} initializers, {struct} has "
                       f"{fields} fields in the spec")
    yield from callback_differences(spec, headers)


def callback_differences(spec, headers):
    """Callbacks and members that are functions, which are not declared in the spec's words."""
    def words(text):  # `struct` is needed before a declaration alone
        return " ".join(re.sub(r"/\*.*?\*/", " ", text,
                               flags=re.S).split()).replace("struct velo_", "velo_")

    plain = {name: words(text) for name, text in headers.items()}
    for (kind, name), entry in spec.entries.items():
        text = plain.get(entry.get("header"), "")
        if kind == "callbacks" and "typedef " + words(entry["type"]).replace(
                "(*)", f"(*{name})", 1) + ";" not in text:
            yield f"{entry['header']}: {name} is not declared as the spec has it: {entry['type']}"
        if kind != "structs" or not text:
            continue
        members = re.search(rf"{name} \{{(.*?)\}} {name};", text)
        for field in (field for field in entry["fields"] if "(*)" in field["type"]):
            if not members or words(field["type"]).replace("(*)", f"(*{field['name']})",
                                                           1) + ";" not in members.group(1):
                yield (f"{entry['header']}: {name}.{field['name']} is not declared as the spec has "
                       f"it: {field['type']}")


def read_headers(folder):
    texts = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts[name] = file.read()
    return texts


def self_test(spec, headers):
    """One mistake at a time in a copy of the headers."""
    mistakes = [
        ("a code too few", "stream.h", "event's stream may wait for), TIMEOUT.",
         "event's stream may wait for)."),
        ("a code too many", "introspect.h", "Errors: NULL, NOT_FOUND, MEMORY.",
         "Errors: NULL, NOT_FOUND, MEMORY, IO."),
        ("codes in another order", "tensor.h", "Errors: NULL, RANK, SHAPE.",
         "Errors: NULL, SHAPE, RANK."),
        ("a code with its prefix", "tensor.h", "Errors: NULL, RANK, SHAPE.",
         "Errors: VELO_ERR_NULL, RANK, SHAPE."),
        ("a list that is not closed", "tensor.h", "Errors: NULL, RANK, SHAPE.",
         "Errors: NULL, RANK, SHAPE and others"),
        ("errors where there are none", "introspect.h", "Errors: none.", "Errors: NULL."),
        ("errors of nothing", "pack.h", "Thread class: per-handle. */",
         "Thread class: per-handle. Errors: HANDLE. */"),
        ("another thread class", "pack.h", "Thread class: per-handle. */", "Thread class: any. */"),
        ("no thread class", "pack.h", "Thread class: per-handle. */", "*/"),
        ("another parameter", "introspect.h", "int64_t* outputs", "int64_t* count"),
        ("a parameter too few", "stream.h", ", int64_t timeout_ns", ""),
        ("no comment", "introspect.h", "VELO_API velo_status velo_op_count",
         "struct between;\nVELO_API velo_status velo_op_count"),
        ("a function less", "pack.h", "VELO_API void velo_pack_destroy(velo_pack pack);", ""),
        ("a function more", "pack.h", "VELO_END_C",
         "/* New. */\nVELO_API void velo_pack_new(velo_pack pack);\nVELO_END_C"),
        ("a struct nobody can begin", "context.h", "#define VELO_ALLOCATOR_INIT",
         "#define VELO_ALLOCATOR_NULL"),
        ("an initializer too few", "context.h",
         "sizeof(velo_context_desc), 0, {VELO_DEVICE_CPU, 0}, 0,",
         "sizeof(velo_context_desc), 0, {VELO_DEVICE_CPU, 0},"),
        ("a callback's parameters swapped", "context.h",
         "const char* component,\n                            const char* line",
         "const char* line,\n                            const char* component"),
        ("a member function's parameters swapped", "context.h",
         "uint64_t bytes, uint64_t alignment", "uint64_t alignment, uint64_t bytes"),
        ("an error's meaning", "status.h", "/* a deadline passed */", "/* too late */"),
    ]
    missed = list(differences(spec, headers))
    for what, header, right, wrong in mistakes:
        broken = dict(headers)
        broken[header] = broken[header].replace(right, wrong)
        if broken[header] == headers[header]:
            missed.append(f"{what}: {header} no longer says {right!r}")
        elif not list(differences(spec, broken)):
            missed.append(f"{what} is not seen")
    print("\n".join(missed) or f"{len(mistakes)} mistakes made, all seen")
    return 1 if missed else 0


def main():
    selves = sys.argv[1] == "--self-test"
    spec, headers = spec_reader.load(sys.argv[-2]), read_headers(sys.argv[-1])
    if selves:
        return self_test(spec, headers)
    found = list(differences(spec, headers))
    print("\n".join(found) or "the headers say what the spec says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
