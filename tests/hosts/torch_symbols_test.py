"""A torch that is not there, too old, or lacks a function: velo_torch_register and
velo_torch_attention say so and do nothing.

Usage: torch_symbols_test.py TORCH (the library that plays torch); VELO_ADAPTERS names the adapters.
Names are taken away from copies of that library by changing a letter, one name a copy and a
process.
"""
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import unittest

TORCH, SOURCES = sys.argv.pop(), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                                              "..", "capi", "adapters")
UNSUPPORTED = 13
CHILD = """
import ctypes, os, sys
torch = ctypes.CDLL(sys.argv[1]) if sys.argv[1] else None
if len(sys.argv) > 2:
    torch.torch_host_version(int(sys.argv[2]), int(sys.argv[3]))
adapters = ctypes.CDLL(os.environ["VELO_ADAPTERS"])
text = ctypes.create_string_buffer(2048)
status = adapters.velo_torch_register()
adapters.velo_adapters_last_error(text, ctypes.c_uint64(2048), None)
print(status, text.value.decode())
"""
ATTENTION = CHILD.replace("velo_torch_register()",
                          "velo_torch_register() or adapters.velo_torch_attention(1)")


def register(torch, *version, program=CHILD):
    done = subprocess.run([sys.executable, "-c", program, torch, *version],
                          capture_output=True,
                          text=True,
                          check=True)
    status, _, text = done.stdout.strip().partition(" ")
    return int(status), text


def symbols():
    """The names that the adapter looks up, and whether it needs each."""
    with open(os.path.join(SOURCES, "torch", "symbols.cpp"), encoding="utf-8") as file:
        source = file.read()
    found = {
        name: needed == "true"
        for name, needed in re.findall(r'{"(\w+)", offsetof\(.*?\), (true|false)}', source)
    }
    found.update(
        (name, True) for name in re.findall(r'"(aoti_torch_(?:dtype_\w+|abi_version))"', source))
    return found


class Symbols(unittest.TestCase):
    def test_each_name_missing(self):
        with open(TORCH, "rb") as file:
            whole = file.read()
        names = symbols()
        self.assertGreater(len(names), 40)
        del names["torch_library_impl"]  # the linker keeps it as the end of aoti_torch_library_impl
        with tempfile.TemporaryDirectory() as folder:
            for name, needed in names.items():
                with self.subTest(name):
                    entry = b"\0" + name.encode() + b"\0"
                    self.assertTrue(entry in whole, "the library that plays torch has all of them")
                    path = os.path.join(folder, name + ".so")
                    with open(path, "wb") as file:
                        file.write(whole.replace(entry, b"\0X" + name[1:].encode() + b"\0"))
                    status, text = register(path)
                    if needed:
                        self.assertEqual(
                            text,
                            "velo_torch_register: torch: expected torch 2.9 or later, got one "
                            "without "
                            + name)
                        self.assertEqual(status, UNSUPPORTED)
                    else:
                        self.assertEqual((status, text), (0, ""))
                    if "attention" in name:
                        without = (
                            "velo_torch_attention: torch: expected one with "
                            "aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu "
                            "and its _backward, got one without")
                        self.assertEqual(register(path, program=ATTENTION), (UNSUPPORTED, without))
        self.assertEqual(register(TORCH, program=ATTENTION), (0, ""))

    def test_no_torch_and_an_old_one(self):
        none = ("velo_torch_register: torch: expected torch 2.9 or later in the process (import it "
                "first), got none")
        self.assertEqual(register(""), (UNSUPPORTED, none))
        old = "velo_torch_register: torch: expected torch 2.9 or later, got 2.8"
        self.assertEqual(register(TORCH, "2", "8"), (UNSUPPORTED, old))
        for version in (("2", "9"), ("3", "0")):
            self.assertEqual(register(TORCH, *version), (0, ""))


if __name__ == "__main__":
    unittest.main()
