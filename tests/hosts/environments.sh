#!/usr/bin/env bash
# Makes the two virtual environments of the host tests: .venv-hosts (torch, jax, transformers,
# tvm-ffi, onnx) and .venv-mindspore, in DIR (default: the root of the tree, where CMake looks for
# them). Needs python3-venv, 9 GB and about two minutes. An environment that already satisfies its
# requirements is left as it is.
#
# Usage: environments.sh [DIR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
where=${1:-$here/../..}

environment() { # environment <name> <requirements>
  local python=$where/$1/bin/python
  [ -x "$python" ] || /usr/bin/python3 -m venv "$where/$1"
  if "$python" - "$2" <<'PYTHON'; then echo "$1 is complete"; return; fi
import importlib.metadata as metadata
import sys

for line in open(sys.argv[1]):
    name, _, version = line.partition("#")[0].strip().partition("==")
    try:
        if name and metadata.version(name) != (version or metadata.version(name)):
            sys.exit(1)
    except metadata.PackageNotFoundError:
        sys.exit(1)
PYTHON
  "$python" -m pip install --quiet --disable-pip-version-check -r "$2"
}

environment .venv-hosts "$here/requirements.txt"
environment .venv-mindspore "$here/requirements-mindspore.txt"
