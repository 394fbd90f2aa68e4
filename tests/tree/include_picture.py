#!/usr/bin/env python3
"""Draws which module includes which, from the sources: the picture in CONTRIBUTING.md.

    include_picture.py ROOT            writes tests/tree/includes.svg
    include_picture.py ROOT --check    exits 1 if the sources give another picture

An arrow goes from a module to one that it includes. Every module may include the public headers
(the floor); a mark says which do. The entries (the roof) include every module below them.
"""
import os
import sys

import tree_check

PICTURE = "tests/tree/includes.svg"

# Module -> left, top, width, what it is. All boxes are 52 high.
HEIGHT = 52
BOXES = {
    "capi/src": (30, 70, 600, "entries: the roof, one function of the ABI each"),
    "sched": (230, 170, 200, "schedules, overlap, ranks"),
    "memory": (30, 270, 140, "pools, swap"),
    "ops": (250, 270, 160, "operators"),
    "comm": (490, 270, 140, "groups"),
    "core": (30, 370, 600, "handles, tensors, streams, threads, texts, SIMD"),
    "tools": (680, 170, 120, "the command"),
    "examples": (840, 170, 120, "programs"),
    "cpp": (680, 270, 120, "C++ layer"),
    "capi/adapters": (840, 270, 120, "hosts"),
    "bench/limits": (680, 370, 120, "machine limits"),
    "capi/include": (30, 470, 930, "public C headers: the floor, which every module may include"),
}
FLOOR = "capi/include"
# Ways around boxes that stand between two modules: points after the first box's lower side.
WAYS = {
    ("capi/src", "core"): [(190, 122), (190, 370)],
    ("capi/src", "memory"): [(100, 122), (100, 270)],
    ("capi/src", "ops"): [(455, 122), (455, 225), (400, 270)],
    ("capi/src", "comm"): [(560, 122), (560, 270)],
    ("sched", "memory"): [(240, 222), (150, 270)],
    ("sched", "comm"): [(420, 222), (510, 270)],
    ("sched", "core"): [(250, 222), (215, 260), (215, 370)],
    ("tools", "bench/limits"): [(690, 222), (664, 250), (664, 396), (680, 396)],
    ("examples", "tools"): [(840, 196), (800, 196)],
    ("examples", "bench/limits"): [(850, 222), (820, 250), (820, 396), (800, 396)],
}


def module_of(path):
    return next((name for name in BOXES if path.startswith(name + "/")), None)


def included(target):
    if target.startswith("velo/"):
        return "cpp" if target.endswith(".hpp") else FLOOR
    return module_of(target)


def edges_of(root):
    """Modules that there are, and their includes as pairs."""
    modules, edges = set(), set()
    for path in tree_check.committed(root):
        module = module_of(path)
        if module is None or not tree_check.SOURCE.search(path):
            continue
        modules.add(module)
        for _, _, target in tree_check.includes_of(root, path):
            other = included(target)
            if other is not None and other != module:
                edges.add((module, other))
    return modules, edges


def way_of(start, end):
    if (start, end) in WAYS:
        return WAYS[start, end]
    left, top, width, _ = BOXES[start]
    other_left, other_top, other_width, _ = BOXES[end]
    low, high = max(left, other_left), min(left + width, other_left + other_width)
    if low < high:  # straight down, from one box to what lies under it
        return [((low + high) // 2, top + HEIGHT), ((low + high) // 2, other_top)]
    return [(left + width // 2, top + HEIGHT), (other_left + other_width // 2, other_top)]


def draw(modules, edges):
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="990" height="550" viewBox="0 0 990 550" '
        'font-family="sans-serif" font-size="13">',
        "<!-- Drawn by tests/tree/include_picture.py: build the target include_picture. -->",
        "<title>Includes between the modules of velo</title>",
        '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0 0 L9 4 L0 8 z" fill="#444"/></marker></defs>',
        '<rect width="990" height="550" fill="#fff"/>',
        '<text x="30" y="30" font-weight="bold">libvelo.so</text>',
        '<text x="680" y="30" font-weight="bold">what uses it</text>',
        '<text x="30" y="50" fill="#666">An arrow: includes. &#9660;: includes public '
        'headers.</text>',
    ]
    for start, end in sorted(edges):
        if end == FLOOR:
            continue
        points = " ".join(f"{x},{y}" for x, y in way_of(start, end))
        lines.append(f'<polyline points="{points}" fill="none" stroke="#444" stroke-width="1.4" '
                     f'marker-end="url(#tip)"><title>{start} includes {end}</title></polyline>')
    for name, (left, top, width, text) in BOXES.items():
        if name not in modules:
            continue
        fill = {"capi/src": "#fde9c9", FLOOR: "#dcebd9"}.get(name, "#e3ecf7")
        lines.append(f'<rect x="{left}" y="{top}" width="{width}" height="{HEIGHT}" rx="4" '
                     f'fill="{fill}" stroke="#567"/>')
        mark = " &#9660;" if (name, FLOOR) in edges else ""
        middle = left + width // 2
        lines.append(f'<text x="{middle}" y="{top + 22}" text-anchor="middle" '
                     f'font-weight="bold">{name}{mark}</text>')
        lines.append(f'<text x="{middle}" y="{top + 41}" text-anchor="middle" fill="#444" '
                     f'font-size="12">{text}</text>')
    return "\n".join(lines + ["</svg>", ""])


def main():
    root = sys.argv[1]
    path = os.path.join(root, PICTURE)
    want = draw(*edges_of(root))
    if sys.argv[2:] == ["--check"]:
        with open(path, encoding="utf-8") as file:
            if file.read() == want:
                return
        sys.exit(f"{PICTURE}: the sources give another picture; build the target include_picture "
                 "and commit it")
    with open(path, "w", encoding="utf-8") as file:
        file.write(want)


if __name__ == "__main__":
    main()
