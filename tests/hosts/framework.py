"""A framework, or a skip that says so: exit code 77 for CTest where it is missing, a failure where
CI promised it."""
import importlib
import os
import sys


def need(name):
    try:
        module = importlib.import_module(name)
        # a folder of tests called like the framework, not the framework
        if module.__file__ is None:
            raise ImportError(f"No module named '{name}'")
        return module
    except ImportError as missing:
        print(f"not tested: {missing} (tests/hosts/environments.sh makes the environments)")
        sys.exit(1 if os.environ.get("CI") == "true" else 77)
