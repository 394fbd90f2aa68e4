"""torch, or a skip that says so: exit code 77 for CTest where it is missing, a failure where CI
promised it."""
import os
import sys

try:
    import torch  # noqa: F401  (re-exported)
except ImportError as missing:
    print(f"not tested: parity with torch: {missing} (Debian: apt-get install python3-torch)")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)
