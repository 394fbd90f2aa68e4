"""The pages of the operators: each has a formula, and the programs it shows compile, run and print
what the spec says.

    operator_pages_test.py PAGES SPEC_DIR LIBRARY INCLUDES PYTHONPATH CC CXX
    operator_pages_test.py --self-test SPEC_DIR

PAGES/examples has a program in C, C++ and Python for every operator that has an example with a
known result; INCLUDES are folders, comma-separated. Each program prints the outputs, which must be
those of the example within the operator's error bound. The page of the operator must show a part of
each. Compilers run at warnings as errors. The C++ programs share a precompiled header of what they
include, and Python keeps what it compiled of velo.ctypes.
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "abi", "checks"))
import spec_reader  # noqa: E402

LONG = {"f32": "float32", "bf16": "bfloat16", "f64": "float64", "f16": "float16"}
NARROW = {"bf16", "f16"}
INCLUDE = "#include <velo/velo.hpp>\n"


def numbers(value):
    return [n for item in value for n in numbers(item)] if isinstance(value,
                                                                      list) else [float(value)]


def dtype_of(value, field):
    if isinstance(value, dict):
        return value.get("dtype", "f32")
    return field.get("dtypes", ["f32"])[0]


def tolerances(op, field, example, wanted):
    """How far each number may be from what the spec says; nine digits are what it says at most."""
    fields = {f["name"]: f for f in op["fields"]}
    dtype = dtype_of(example["out"][field["name"]], field)
    tensors = [(fields[name], value)
               for part in ("in", "out")
               for name, value in example[part].items()
               if fields[name]["kind"] == "tensor"]
    mixed = any(dtype_of(value, f) in NARROW for f, value in tensors)
    bounds = op["error_bound"]
    bound = bounds.get(LONG.get(dtype, ""), {})
    if dtype == "f32" and mixed:
        bound = bounds.get("float32 of mixed", bound)
    largest = max(map(abs, wanted))
    return [
        bound.get("absolute", 0) + bound.get("relative", 0) * abs(n) +
        bound.get("largest", 0) * largest + 1e-9 * abs(n) for n in wanted
    ]


def judge(op, example, output):
    """What is wrong with the output of a program: lines of a name and numbers."""
    got = {line.split()[0]: [float(n) for n in line.split()[1:]] for line in output.splitlines()}
    if set(got) != set(example["out"]):
        return f"printed {sorted(got)}, the example has {sorted(example['out'])}"
    for field in (f for f in op["fields"] if f["name"] in example["out"]):
        value = example["out"][field["name"]]
        wanted = numbers(value["values"] if isinstance(value, dict) else value)
        have = got[field["name"]]
        is_close = len(have) == len(wanted) and all(
            abs(a - b) <= far
            for a, b, far in zip(have, wanted, tolerances(op, field, example, wanted)))
        if not is_close:
            return f"{field['name']} is {have}, the spec has {wanted}"
    return ""


def self_test(spec_folder):
    """What a program might print instead of the right numbers."""
    op = spec_reader.load(spec_folder).entries[("ops", "rms_norm")]
    example = {
        "in": {"x": [[1, 1, -1, -1]], "gamma": [1, 2, 3, 4]},
        "out": {"y": [[1, 2, -3, -4]], "rstd": [[1]]}
    }
    right = "y 1 2 -3 -4.0000001\nrstd 1\n"
    wrong = [
        "y 1 2 -3 -4\n", right + "z 1\n", "y 1 2 -3 -4.00001\nrstd 1\n", "y 1 2 -3\nrstd 1\n",
        "y 1 2 -3 nan\nrstd 1\n"
    ]
    missed = [text for text in [right, *wrong] if bool(judge(op, example, text)) != (text != right)]
    print("\n".join(f"not judged rightly: {text!r}" for text in missed) or
          f"{len(wrong)} wrong outputs seen")
    return 1 if missed else 0


def compiler_flags(includes):
    return [
        "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
        *("-I" + part for part in includes.split(","))
    ]


def precompile(scratch, includes, cxx):
    """A header of velo.hpp alone, which each C++ program would otherwise read anew."""
    header = os.path.join(scratch, "programs.hpp")
    with open(header, "w", encoding="utf-8") as file:
        file.write(INCLUDE)
    subprocess.run([cxx, "-std=c++17", *compiler_flags(includes), header, "-o", header + ".gch"],
                   check=True)
    return header


def commands(path, binary, header, arguments):
    """To compile a program, if it needs that, and to run it."""
    library, includes, cc, cxx = arguments
    flags = [
        *compiler_flags(includes), path, "-o", binary, library,
        "-Wl,-rpath," + os.path.dirname(library)
    ]
    return {
        ".c": [[cc, "-std=c99", *flags], [binary]],
        ".cpp": [[cxx, "-std=c++17", "-include", header, *flags], [binary]],
        ".py": [[sys.executable, path]]
    }[os.path.splitext(path)[1]]


def run(op, example, path, binary, header, environment, arguments):
    output = ""
    with open(path, encoding="utf-8") as file:
        if path.endswith(".cpp") and INCLUDE not in file.read():
            return f"{os.path.basename(path)} lacks {INCLUDE}"
    for command in commands(path, binary, header, arguments):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            return f"{os.path.basename(path)}: {command[0]} exits {done.returncode}: {done.stderr}"
        output = done.stdout
    wrong = judge(op, example, output)
    return f"{os.path.basename(path)}: {wrong}" if wrong else ""


def main(pages, spec_folder, library, includes, modules, cc, cxx):
    library = os.path.realpath(library)
    wrong, waiting = [], []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        environment = dict(os.environ,
                           PYTHONPATH=modules,
                           PYTHONPYCACHEPREFIX=scratch,
                           VELO_LIBRARY=library,
                           LD_LIBRARY_PATH=os.path.dirname(library))
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        header = precompile(scratch, includes, cxx)
        for (kind, name), op in spec_reader.load(spec_folder).entries.items():
            if kind != "ops":
                continue
            with open(os.path.join(pages, "operators", name + ".md"), encoding="utf-8") as file:
                page = file.read()
            if "<math" not in page:
                wrong.append(f"the page of {name} has no formula")
            example = next((e for e in op["examples"] if "out" in e), None)
            if not example:
                continue
            for ending in ("c", "cpp", "py"):
                path = os.path.join(pages, "examples", f"{name}.{ending}")
                if f"{{literalinclude}} ../examples/{name}.{ending}\n" not in page:
                    wrong.append(f"the page of {name} does not show {name}.{ending}")
                binary = os.path.join(scratch, f"{name}_{ending}")
                waiting.append(
                    pool.submit(run, op, example, path, binary, header, environment,
                                (library, includes, cc, cxx)))
        wrong += [fault for fault in (done.result() for done in waiting) if fault]
    print("\n".join(wrong) or f"{len(waiting)} programs print what the spec says")
    return 1 if wrong or not waiting else 0


if __name__ == "__main__":
    sys.exit(self_test(sys.argv[2]) if sys.argv[1] == "--self-test" else main(*sys.argv[1:]))
