"""The Python modules find velo's files in every place, in its order, and say so when there is none.

    libraries_test.py LIBVELO ADAPTERS MODULE_FOLDER

Each case is a process of its own over a copy of the package. The copies' own folder gets links to
the built files, under the names that a wheel gives them; which name the loader has a file by shows
which place was taken.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, ADAPTERS, FOLDER = (os.path.abspath(a) for a in sys.argv[1:4])
CLEAN = {
    k: v
    for k, v in os.environ.items()
    if k not in ("VELO_LIBRARY", "VELO_ADAPTERS", "LD_LIBRARY_PATH", "PYTHONPATH")
}
PATHS = "import velo; print(velo.library_path()); print(velo.adapters_path())"


class Libraries(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        package = os.path.join(self.scratch.name, "velo")
        os.mkdir(package)
        for name in ("__init__.py", "_libraries.py", "ctypes.py"):
            shutil.copy(os.path.join(FOLDER, "velo", name), package)
        self.own = os.path.join(package, "lib")
        self.system = self.folder("system",
                                  {"libvelo.so.1": LIBRARY, "libvelo_adapters.so.1": ADAPTERS})

    def folder(self, name, links):
        path = os.path.join(self.scratch.name, name)
        os.makedirs(path)
        for link, target in links.items():
            os.symlink(target, os.path.join(path, link))
        return path

    def bring_own(self):
        self.folder("velo/lib",
                    {"libvelo-wheel.so": LIBRARY, "libvelo_adapters-wheel.so": ADAPTERS})

    def run_python(self, program, **environment):
        return subprocess.run([sys.executable, "-B", "-c", program],
                              cwd=self.scratch.name,
                              env={**CLEAN, **environment},
                              capture_output=True,
                              text=True,
                              timeout=60)

    def say(self, program, **environment):
        done = self.run_python(program, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def refusal(self, program, **environment):
        done = self.run_python(program, **environment)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr.splitlines()[-1]

    def test_the_own_folder_comes_before_the_loaders_path(self):
        self.bring_own()
        self.assertEqual(self.say(PATHS, LD_LIBRARY_PATH=self.system),
                         [f"{self.own}/libvelo-wheel.so", f"{self.own}/libvelo_adapters-wheel.so"])

    def test_the_loaders_path_serves_where_the_package_brings_nothing(self):
        self.assertEqual(self.say(PATHS, LD_LIBRARY_PATH=self.system),
                         [f"{self.system}/libvelo.so.1", f"{self.system}/libvelo_adapters.so.1"])

    def test_the_variables_come_before_the_own_folder(self):
        self.bring_own()
        both = {
            "VELO_LIBRARY": f"{self.system}/libvelo.so.1",
            "VELO_ADAPTERS": f"{self.system}/libvelo_adapters.so.1"
        }
        self.assertEqual(self.say(PATHS, **both), list(both.values()))
        relative = {
            "VELO_LIBRARY": "system/libvelo.so.1", "VELO_ADAPTERS": "./system/libvelo_adapters.so.1"
        }
        self.assertEqual(self.say(PATHS, **relative), list(both.values()))

    def test_one_variable_suffices(self):
        self.bring_own()
        library, adapters = f"{self.system}/libvelo.so.1", f"{self.system}/libvelo_adapters.so.1"
        self.assertEqual(self.say(PATHS, VELO_LIBRARY=library), [library, adapters])
        linked, named = self.say(PATHS, VELO_ADAPTERS=adapters)
        self.assertEqual((os.path.realpath(linked), named), (os.path.realpath(LIBRARY), adapters))
        self.assertNotIn("velo-wheel", linked)

    def test_a_path_that_ends_in_so_is_preferred(self):
        os.symlink("libvelo_adapters.so.1", os.path.join(self.system, "libvelo_adapters.so"))
        self.assertEqual(
            self.say(PATHS, LD_LIBRARY_PATH=self.system)[1], f"{self.system}/libvelo_adapters.so")

    def test_importing_opens_nothing_and_asking_for_the_version_does(self):
        self.bring_own()
        mapped = "print(any('libvelo' in line for line in open('/proc/self/maps')))"
        program = (f"import velo, velo.ctypes, velo._libraries\n{mapped}\n"
                   f"print(velo.__version__)\n{mapped}")
        before, version, after = self.say(program)
        self.assertEqual((before, after), ("False", "True"))
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")

    def test_ctypes_loads_what_is_found_or_what_it_is_given(self):
        self.bring_own()
        program = ("import velo.ctypes as v; lib = v.load({}); print(lib._name, "
                   "lib.velo_op_count.argtypes is not None)")
        self.assertEqual(self.say(program.format("")), [f"{self.own}/libvelo-wheel.so True"])
        self.assertEqual(self.say(program.format(repr(LIBRARY))), [f"{LIBRARY} True"])

    def test_found_nowhere_is_a_sentence_with_every_place(self):
        for program, name, variable in (("import velo; velo.library_path()", "libvelo.so.1",
                                         "VELO_LIBRARY"),
                                        ("import velo; velo.adapters_path()",
                                         "libvelo_adapters.so.1", "VELO_ADAPTERS")):
            message = self.refusal(program, VELO_LIBRARY="")
            self.assertRegex(
                message,
                f"^ImportError: velo cannot open its file {name}: {variable} is not set, there is "
                f"no {self.own}/"
                f".*-wheel.so, and {name} is not on the loader's path. The loader says: {name}: "
                f"cannot open shared object"
            )
        self.assertEqual(self.say("import velo; print(getattr(velo, '__version__', 'none'))"),
                         ["none"])
        self.assertRegex(self.refusal("import velo; velo.__version__"),
                         "^AttributeError: velo.__version__ is the library's, but velo")

    def test_a_named_file_that_cannot_be_opened_is_never_replaced_by_another(self):
        self.bring_own()
        message = self.refusal(PATHS,
                            VELO_LIBRARY="/nowhere/libvelo.so.1",
                            LD_LIBRARY_PATH=self.system)
        self.assertRegex(
            message,
            "^ImportError: velo cannot open its file libvelo.so.1: VELO_LIBRARY is "
            "/nowhere/libvelo.so.1. The loader"
        )
        os.remove(f"{self.own}/libvelo-wheel.so")
        with open(f"{self.own}/libvelo-wheel.so", "w", encoding="utf-8") as broken:
            broken.write("not a library")
        message = self.refusal(PATHS, LD_LIBRARY_PATH=self.system)
        self.assertRegex(
            message,
            f"the package brings {self.own}/libvelo-wheel.so. The loader says: .*(invalid ELF "
            f"header|file too short)"
        )

    def test_a_library_that_is_not_velo_is_named(self):
        message = self.refusal(PATHS, VELO_LIBRARY="libc.so.6")
        self.assertRegex(
            message,
            "^ImportError: velo cannot use libc.so.6 as libvelo.so.1: VELO_LIBRARY is libc.so.6, "
            "and it has no velo_v"
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
