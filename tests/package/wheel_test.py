"""The wheel as a file: what is in it, that its list and its platform are true, that it works where
it is unpacked, and what is refused.

    wheel_test.py FOLDER VERSION SOURCE SYSTEM_LIBVELO

FOLDER has the wheel, SYSTEM_LIBVELO is a libvelo.so.1 outside it. The platform is worked out here a
second way: from the versions of the symbols that are undefined, and from what the systems of that
name have at most.
"""
import base64
import csv
import email
import glob
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

FOLDER, VERSION, SOURCE, SYSTEM = sys.argv[1:5]
# The newest versions on the systems that a platform stands for: RHEL 9 and Ubuntu 22.04 are the
# first with these.
AT_MOST = {
    (2, 34): {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (11, 0, 0)},
    (2, 35): {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
}

COMPUTES = """
import ctypes, velo, velo.ctypes as v
lib = v.load()
context, stream = v.velo_context(), v.velo_stream()
v.check(lib, lib.velo_context_create(None, ctypes.byref(context)))
v.check(lib, lib.velo_context_stream(context, ctypes.byref(stream)))
values, sizes = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_int64 * 1)(4)
x = v.velo_tensor(ctypes.addressof(values), v.velo_device(1, 0), 1,
                  v.velo_dtype(v.VELO_DTYPE_FLOAT, 32, 1), sizes, None, 0)
add, closure = ctypes.c_void_p(), v.velo_closure()   # libffi, which is inside
v.check(lib, lib.velo_closure_create(stream, b"add", b"a,b,y", ctypes.byref(add),
                                     ctypes.byref(closure)))
pointer = ctypes.POINTER(v.velo_tensor)
function = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer)(add.value)
assert function(*[ctypes.byref(x)] * 3) == 0, "closure"
print(*values)
status = lib.velo_op_call(stream, b"add", None, 0)
print(v.VELO_ERR_NULL == status, velo.__version__)
lib.velo_context_destroy(context)
"""


def versions_of(text):
    """From each name of versions to the newest that undefined symbols ask for."""
    newest = {}
    for name, numbers in re.findall(r" UND \S+@([A-Z]+)_([0-9.]+) ", text):
        newest[name] = max(newest.get(name, ()), tuple(map(int, numbers.split("."))))
    return newest


def writer():
    found = importlib.util.spec_from_file_location("wheel",
                                                   os.path.join(SOURCE, "packaging/wheel/wheel.py"))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path, = glob.glob(os.path.join(FOLDER, "velo-*.whl"))  # exactly one
        cls.scratch = tempfile.TemporaryDirectory()
        cls.unpacked = os.path.join(cls.scratch.name, "unpacked")
        with zipfile.ZipFile(cls.path) as archive:
            cls.entries = {entry.filename: entry for entry in archive.infolist()}
            archive.extractall(cls.unpacked)
        cls.info = f"velo-{VERSION}.dist-info"

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def read(self, name):
        with open(os.path.join(self.unpacked, name), "rb") as file:
            return file.read()

    def run_python(self, program, **environment):
        done = subprocess.run(
            [sys.executable, "-B", "-s", "-c", program],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            env={"PATH": "/nonexistent", "PYTHONPATH": self.unpacked, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_it_has_every_module_of_the_package_both_libraries_and_nothing_else(self):
        tracked = subprocess.run(
            ["git", "-C", SOURCE, "ls-files", "-co", "--exclude-standard", "capi/python/velo"],
            capture_output=True,
            text=True,
            check=True).stdout.split()
        modules = {path[len("capi/python/"):] for path in tracked}
        metadata = {
            f"{self.info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE",
                                               "licenses/jansson.txt", "licenses/libffi.txt",
                                               "licenses/liburing.txt", "licenses/zlib.txt")
        }
        self.assertEqual(
            set(self.entries), modules | metadata |
            {"velo/lib/libvelo-wheel.so", "velo/lib/libvelo_adapters-wheel.so"})

    def test_its_list_names_every_file_with_its_digest(self):
        listed = {
            name: (digest, size) for name, digest, size in csv.reader(
                self.read(f"{self.info}/RECORD").decode().splitlines())
        }
        self.assertEqual(set(listed), set(self.entries))
        for name, (digest, size) in listed.items():
            if name != f"{self.info}/RECORD":
                data = self.read(name)
                expected = base64.urlsafe_b64encode(
                    hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), ("sha256=" + expected, len(data)), name)
        self.assertEqual(listed[f"{self.info}/RECORD"], ("", ""))

    def test_its_metadata_has_the_version_and_the_licenses(self):
        metadata = email.message_from_bytes(self.read(f"{self.info}/METADATA"))
        self.assertEqual((metadata["Name"], metadata["Version"]), ("velo", VERSION))
        for name in metadata.get_all("License-File"):
            self.assertIn(f"{self.info}/licenses/{name}", self.entries)
        with open(os.path.join(SOURCE, "LICENSE"), "rb") as file:
            self.assertEqual(self.read(f"{self.info}/licenses/LICENSE"), file.read())
        self.assertIn("velo.torch", metadata.get_payload())
        wheel = email.message_from_bytes(self.read(f"{self.info}/WHEEL"))
        self.assertEqual(wheel["Root-Is-Purelib"], "false")
        self.assertEqual(os.path.basename(self.path), f"velo-{VERSION}-{wheel['Tag']}.whl")

    def test_its_platform_is_the_oldest_that_has_all_its_libraries_need(self):
        numbers = re.search(r"-py3-none-manylinux_(\d+)_(\d+)_x86_64\.whl$", self.path)
        platform = tuple(map(int, numbers.groups()))
        newest = {}
        for name in ("libvelo-wheel.so", "libvelo_adapters-wheel.so"):
            symbols = subprocess.run(
                ["readelf", "-W", "--dyn-syms",
                 os.path.join(self.unpacked, "velo/lib", name)],
                check=True,
                capture_output=True,
                text=True).stdout.replace("\n", " \n")
            for kind, version in versions_of(symbols).items():
                newest[kind] = max(newest.get(kind, ()), version)
        self.assertLessEqual({"GLIBC", "GLIBCXX", "CXXABI", "GCC"}, set(newest))
        for kind, most in AT_MOST[platform].items():
            self.assertLessEqual(newest[kind], most, kind)
        older = AT_MOST.get((2, platform[1] - 1))
        if older is not None:
            self.assertTrue(any(newest[kind] > most for kind, most in older.items()),
                            "an older platform would have served")

    def test_its_libraries_have_names_of_their_own_and_no_debug_information(self):
        for name in ("libvelo-wheel.so", "libvelo_adapters-wheel.so"):
            path = os.path.join(self.unpacked, "velo/lib", name)
            dynamic = subprocess.run(["readelf", "-dSW", path],
                                     check=True,
                                     capture_output=True,
                                     text=True).stdout
            self.assertIn(f"soname: [{name}]", dynamic)
            self.assertNotIn(".debug_info", dynamic)
            self.assertNotIn(SOURCE.encode(), self.read("velo/lib/" + name))
            run_path = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)
            self.assertEqual(run_path, ["$ORIGIN"] if "adapters" in name else [])

    def test_unpacked_it_computes_without_any_variable(self):
        self.assertEqual(self.run_python(COMPUTES), ["2.0 4.0 6.0 8.0", f"True {VERSION}"])

    def test_it_uses_its_own_files_also_where_the_system_has_velo_loaded(self):
        program = f"import ctypes; ctypes.CDLL({SYSTEM!r}, ctypes.RTLD_GLOBAL); " \
                  "from velo import _libraries as l; " \
                  "print(l.path_of(l.library())); print(l._file_with(l.adapters().velo_version))"
        self.assertEqual(self.run_python(program),
                         [f"{self.unpacked}/velo/lib/libvelo-wheel.so"] * 2)

    def test_the_writer_refuses_what_no_platform_has_and_moves_the_platform_with_a_need(self):
        wheel = writer()

        def built(name, node, *libraries):
            """A library that asks for a symbol of a version `node` of libstdc++.so.6, which is made
            up."""
            folder = os.path.join(self.scratch.name, name)
            os.mkdir(folder)
            for file, text in (("made_up.c", "void wanted(void) {}"), ("made_up.map",
                                                                       f"{node} {{ wanted; }};"),
                               ("asks.c", "void wanted(void); void asks(void) { wanted(); }")):
                with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                    out.write(text + "\n")
            compiler = ["cc", "-shared", "-fPIC", "-nostdlib"]
            subprocess.run([
                *compiler, "made_up.c", "-Wl,--version-script=made_up.map",
                "-Wl,-soname,libstdc++.so.6", "-o", "libstdc++.so.6"
            ],
                           cwd=folder,
                           check=True)
            subprocess.run(
                [*compiler, "asks.c", "./libstdc++.so.6", *libraries, "-o", "libasks.so"],
                cwd=folder,
                check=True)
            return os.path.join(folder, "libasks.so")

        self.assertEqual(wheel.platform_of([built("eleven", "GLIBCXX_3.4.29")]),
                         "manylinux_2_34_x86_64")
        self.assertEqual(wheel.platform_of([built("twelve", "GLIBCXX_3.4.30")]),
                         "manylinux_2_35_x86_64")
        with self.assertRaisesRegex(
                SystemExit,
                "libasks.so needs GLIBCXX_3.4.99: no manylinux platform is known to have it"):
            wheel.platform_of([built("unknown", "GLIBCXX_3.4.99")])
        with self.assertRaisesRegex(
                SystemExit,
                "libvelo.so.1.* needs libffi.so.8, which is neither in the wheel nor on every Linux"
        ):
            wheel.platform_of([SYSTEM])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
