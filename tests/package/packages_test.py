"""Everything that is given to others, built by the command of CONTRIBUTING.md in a checkout of its
own: Debian packages and the wheel.

    packages_test.py SOURCE WORK WHEELS

WHEELS has the wheel of another build of the same sources: both must be the same bytes. The wheel's
own tests run on this one again. lintian, auditwheel and twine say their part where they are there,
or PyPI's mirror is.
"""
import filecmp
import fnmatch
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, WORK, WHEELS = (os.path.abspath(a) for a in sys.argv[1:4])
HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = os.path.join(WORK, "checkout")
PACKAGES = os.path.join(CHECKOUT, "build-packages", "packages")
NAMES = ("libvelo1", "libvelo-dev", "velo-tools")


def output_of(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(
            f"{' '.join(command)} exits {done.returncode}: "
            f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout


def files_below(root):
    return {
        os.path.relpath(os.path.join(place, name), root)
        for place, folders, names in os.walk(root)
        for name in names + [f for f in folders if os.path.islink(os.path.join(place, f))]
    }


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        os.makedirs(CHECKOUT)
        listed = output_of("git", "-C", SOURCE, "ls-files", "-co", "--exclude-standard")
        for path in (p for p in listed.splitlines() if os.path.isfile(os.path.join(SOURCE, p))):
            target = os.path.join(CHECKOUT, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(SOURCE, path), target)
        with open(os.path.join(SOURCE, "CONTRIBUTING.md"), encoding="utf-8") as page:
            command, = re.findall(r"^ +(cmake --workflow --preset packages)$", page.read(), re.M)
        output_of("sh", "-ec", command, cwd=CHECKOUT)
        with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as file:
            cls.version = re.search(r"^project\(velo VERSION (\S+)", file.read(), re.M).group(1)
        cls.names = NAMES + (("velo-mpi",) if glob.glob(PACKAGES + "/velo-mpi_*") else ())
        cls.debs = {
            name: os.path.join(PACKAGES, f"{name}_{cls.version}-1_amd64.deb") for name in cls.names
        }
        os.mkdir(os.path.join(WORK, "packages"))
        for name, deb in cls.debs.items():
            output_of("dpkg-deb", "-x", deb, os.path.join(WORK, "packages", name))
            output_of("dpkg-deb", "-x", deb, os.path.join(WORK, "root"))

    def field(self, package, name):
        return output_of("dpkg-deb", "-f", self.debs[package], name).strip()

    def test_the_fields_say_what_a_package_is_and_needs(self):
        self.assertEqual(set(glob.glob(PACKAGES + "/*.deb")), set(self.debs.values()))
        sections = {
            "libvelo1": "libs", "libvelo-dev": "libdevel", "velo-tools": "utils", "velo-mpi": "libs"
        }
        for name in self.names:
            self.assertEqual([
                self.field(name, f)
                for f in ("Package", "Version", "Architecture", "Section", "Priority")
            ], [name, self.version + "-1", "amd64", sections[name], "optional"])
            self.assertRegex(self.field(name, "Maintainer"), r"^\S.* <\S+@\S+>$")
            summary, *paragraphs = self.field(name, "Description").splitlines()
            self.assertTrue(len(summary) <= 80 and len(paragraphs) > 3, name)
        same = f"libvelo1 (= {self.version}-1)"
        self.assertEqual(self.field("libvelo-dev", "Depends"), same)
        self.assertTrue(self.field("velo-tools", "Depends").startswith(same + ", libc6 (>= "))
        if "velo-mpi" in self.names:
            self.assertRegex(self.field("velo-mpi", "Depends"),
                             "^" + re.escape(same) + ".*, libopenmpi3 ")
        self.assertEqual(
            {word.split(" (>= ")[0] for word in self.field("libvelo1", "Depends").split(", ")},
            {"libc6", "libffi8", "libgcc-s1", "libjansson4", "libstdc++6", "zlib1g"})
        self.assertEqual(
            output_of("dpkg-deb", "-I", self.debs["libvelo1"], "shlibs").split("\n")[0],
            f"libvelo 1 libvelo1 (>= {self.version})")

    def test_every_installed_file_is_in_one_package_and_no_other(self):
        installed = os.path.join(WORK, "installed")
        output_of("cmake",
                  "--install",
                  os.path.join(CHECKOUT, "build-packages"),
                  env={**os.environ, "DESTDIR": installed})
        packed = {name: files_below(os.path.join(WORK, "packages", name)) for name in self.names}
        self.assertEqual(sum(map(len, packed.values())), len(set.union(*packed.values())))
        self.assertEqual(set.union(*packed.values()), files_below(installed))
        libraries = {path for path in packed["libvelo1"] if "/doc/" not in path}
        self.assertEqual({os.path.basename(path) for path in libraries}, {
            f"lib{stem}.so.1{tail}" for stem in ("velo", "velo_adapters")
            for tail in ("", self.version[1:])
        })
        if "velo-mpi" in self.names:
            self.assertEqual(
                [os.path.basename(path) for path in packed["velo-mpi"] if "/doc/" not in path],
                ["libvelo_mpi.so"])
        self.assertEqual({path for path in packed["velo-tools"] if "/doc/" not in path},
                         {"usr/bin/velo", "usr/share/man/man1/velo.1.gz"})

    def test_the_manual_page_has_every_command(self):
        with gzip.open(os.path.join(WORK, "root/usr/share/man/man1/velo.1.gz"),
                       "rt",
                       encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        help_text = output_of(os.path.join(CHECKOUT, "build-packages/tools/velo/velo"), "help")
        for word in re.findall(r"^  (\S+)  ", help_text, re.M):
            self.assertIn(f"\n.B {word}\n", page)

    def test_what_is_in_them_has_no_run_path_no_debug_information_and_no_path_of_the_build(self):
        for path in [
                p for p in files_below(os.path.join(WORK, "root"))
                if not os.path.islink(os.path.join(WORK, "root", p))
        ]:
            with open(os.path.join(WORK, "root", path), "rb") as file:
                content = file.read()
            self.assertNotIn(WORK.encode(), content, path)
            if content.startswith(b"\x7fELF"):
                sections = output_of("readelf", "-dSW", os.path.join(WORK, "root", path))
                self.assertNotRegex(sections, r"RPATH|RUNPATH|\.debug_info|\.symtab")

    def test_lintian_finds_no_error(self):
        if shutil.which("lintian") is None:
            print("not tested: no lintian")
            self.skipTest("no lintian")
        done = subprocess.run(
            ["lintian", "--allow-root", "--fail-on", "error", *self.debs.values()],
            capture_output=True,
            text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_copyright_file_names_who_wrote_the_scripts_and_styles_of_the_reference(self):
        root = os.path.join(WORK, "packages", "libvelo-dev")
        with open(os.path.join(root, "usr/share/doc/libvelo-dev/copyright"),
                  encoding="utf-8") as file:
            text = file.read()
        of_files = re.findall(r"^Files: (.*?)\nCopyright: .*?\nLicense: (\S+)", text, re.M | re.S)
        self.assertEqual({name for _, name in of_files},
                         set(re.findall(r"^License: (\S+)\n ", text, re.M)))
        patterns = [pattern for files, _ in of_files for pattern in files.split() if pattern != "*"]
        theirs = [path for path in files_below(root) if "/html/_static/" in path]
        for path in theirs:
            self.assertTrue(any(fnmatch.fnmatch(path, pattern) for pattern in patterns),
                            f"{path} would be velo's")
        for pattern in patterns if theirs else ():
            self.assertTrue(fnmatch.filter(theirs, pattern), f"{pattern} is of no file")

    def test_installed_by_apt_they_serve_a_stranger_and_go_away_whole(self):
        done = subprocess.run([os.path.join(HERE, "installed_debs.sh"), PACKAGES, SOURCE],
                              capture_output=True,
                              text=True)
        if done.returncode == 77:
            print("not tested: packages installed by apt: no mount namespace here")
            self.skipTest("no mount namespace here")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_libvelo_dev_alone_is_refused(self):
        done = subprocess.run(["apt-get", "install", "-s", self.debs["libvelo-dev"]],
                              capture_output=True,
                              text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"libvelo-dev : Depends: libvelo1 (= {self.version}-1)",
                      done.stdout + done.stderr)

    def test_the_wheel_is_the_same_bytes_from_another_folder(self):
        wheel, = glob.glob(PACKAGES + "/*.whl")
        self.assertTrue(
            filecmp.cmp(wheel, os.path.join(WHEELS, os.path.basename(wheel)), shallow=False))

    def test_other_tools_find_the_wheel_right(self):
        tools = os.path.join(WORK, "tools")
        output_of("/usr/bin/python3", "-m", "venv", tools)
        if subprocess.run([tools + "/bin/pip", "install", "-q", "auditwheel",
                           "twine"]).returncode != 0:
            print("not tested: no auditwheel, no twine")
            self.skipTest("no auditwheel, no twine")
        wheel, = glob.glob(PACKAGES + "/*.whl")
        output_of(tools + "/bin/twine", "check", "--strict", wheel)
        platform = re.search(r"manylinux_\d+_\d+_x86_64", wheel).group()
        shown = output_of(tools + "/bin/auditwheel", "show", wheel).replace("\n", " ")
        self.assertIn(f'is consistent with the following platform tag: "{platform}"', shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
