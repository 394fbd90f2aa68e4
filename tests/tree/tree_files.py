"""The files of the tree that the rules look at."""
import os
import re
import subprocess

SOURCE = re.compile(r"\.(c|h|cpp|hpp|inl|inc)$")
SCRIPT = re.compile(r"(\.(sh|py|cmake)|CMakeLists\.txt|/run)$")
# The generator decides length and names in its output (EXEMPT); only its share of the tree is
# bounded. Frozen copies of a release that shipped are not edited, so they count nowhere.
FROZEN = re.compile(r"^abi/\d+\.\d+/")
EXEMPT = re.compile(
    r"^(abi/generated/|capi/adapters/generated/|abi/\d+\.\d+/|capi/include/velo/(api|ops_\w+)\.h$"
    r"|cpp/include/velo/ops\.hpp$|capi/python/velo/ctypes\.py$)"
)


def committed(root):
    """Files under version control, or all files where there is none (the self-test)."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        paths = listed.stdout.split("\n")
    else:
        paths = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, names in os.walk(root) for name in names]
    return sorted(p for p in paths if p and os.path.isfile(os.path.join(root, p)))


def lines_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()
