"""The wheel as a user has it: installed by pip into a new virtual environment, used with no
compiler, no variable and no source tree.

    wheel_installed_test.py FOLDER VERSION [HOST..]

FOLDER has the wheel, which is copied elsewhere first. The interpreter that runs this makes the
environment; the frameworks that HOST names (torch, jax, mindspore, tvm_ffi) are added to it from
there by a .pth file. Each program runs with an empty environment and says which files of velo the
process has mapped: those of the environment and no others.
"""
import glob
import os
import shutil
import site
import subprocess
import sys
import tempfile
import unittest

FOLDER, VERSION, *HOSTS = sys.argv[1:]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hosts"))
from framework import need  # noqa: E402

PROGRAMS = {
    "ctypes":
        """
import velo.ctypes
velo.ctypes.load().velo_op_count
assert velo.__version__ == VERSION
""", "torch":
            """
import torch, velo.torch
x, gain = torch.randn(4, 64, requires_grad=True), torch.ones(64, requires_grad=True)
y = velo.torch.rms_norm(x, gain)
y.square().sum().backward()
assert torch.allclose(y, x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt(), atol=1e-5)
assert x.grad.isfinite().all()
""", "jax":
                """
import jax, jax.numpy as jnp, velo.jax
x, gain = jax.random.normal(jax.random.PRNGKey(0), (4, 64)), jnp.ones(64)
squares = lambda t: (velo.jax.rms_norm(t, gain) ** 2).sum()
y, dx = jax.jit(lambda x: (velo.jax.rms_norm(x, gain), jax.grad(squares)(x)))(x)
assert jnp.allclose(y, x / jnp.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6), atol=1e-5)
assert jnp.isfinite(dx).all()
""", "mindspore":
                    """
import mindspore as ms, numpy as np, velo.mindspore
x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
y = velo.mindspore.RmsNorm()(ms.Tensor(x), ms.Tensor(np.ones(64, np.float32))).asnumpy()
assert np.allclose(y, x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6), atol=1e-5)
""", "tvm_ffi":
                        """
import numpy as np, tvm_ffi, velo
x = np.ones((4, 64), np.float32)
tvm_ffi.load_module(velo.adapters_path()).velo_add(x, x, x)
assert (x == 2).all()
""",
}
MAPPED = """
import os
with open("/proc/self/maps", encoding="utf-8") as maps:
    paths = {line.split()[-1] for line in maps}
print(*sorted(path for path in paths if os.path.basename(path).startswith("libvelo")))
"""


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.root = os.path.realpath(cls.scratch.name)
        wheel = shutil.copy(*glob.glob(os.path.join(FOLDER, "velo-*.whl")), cls.root)
        cls.venv = os.path.join(cls.root, "venv")
        subprocess.run([sys.executable, "-m", "venv", cls.venv], check=True)
        cls.bare("-m", "pip", "install", "-q", "--no-index", wheel, check=True)
        cls.packages = cls.bare("-c",
                                "import sysconfig; print(sysconfig.get_path('purelib'))",
                                check=True).stdout.strip()
        if HOSTS:
            with open(os.path.join(cls.packages, "frameworks.pth"), "w", encoding="utf-8") as added:
                added.write("\n".join(p for p in site.getsitepackages() if os.path.isdir(p)) + "\n")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def bare(cls, *words, **options):
        return subprocess.run(
            [os.path.join(cls.venv, "bin/python"), *words],
            cwd=cls.root,
            capture_output=True,
            text=True,
            env={"PATH": os.path.join(cls.venv, "bin"), "HOME": cls.root, "GLOG_v": "3"},
            timeout=300,
            **options)

    def test_every_host_finds_the_installed_files(self):
        for host in ["ctypes", *HOSTS]:
            with self.subTest(host):
                path = os.path.join(self.root, host +
                                    "_program.py")  # a file: MindSpore reads its cells' source
                with open(path, "w", encoding="utf-8") as file:
                    file.write(PROGRAMS[host].replace("VERSION", repr(VERSION)) + MAPPED)
                done = self.bare(path)
                self.assertEqual(done.returncode, 0, done.stderr)
                mapped = done.stdout.splitlines()[-1].split()
                allowed = [
                    f"{self.packages}/velo/lib/{name}" for name in ("libvelo-wheel.so",
                                                                    "libvelo_adapters-wheel.so")
                ]
                self.assertIn(allowed[0], mapped)
                self.assertLessEqual(set(mapped), set(allowed))

    def test_pip_knows_it_and_takes_it_away_whole(self):
        shown = self.bare("-m", "pip", "show", "-f", "velo").stdout
        self.assertIn(f"Version: {VERSION}", shown)
        self.assertIn("velo/lib/libvelo-wheel.so", shown)
        if not HOSTS:  # with other frameworks the answer would be about them
            self.assertEqual(self.bare("-m", "pip", "check").returncode, 0)
        copy = os.path.join(self.root, "copy")
        self.bare("-m",
                  "pip",
                  "install",
                  "-q",
                  "--no-index",
                  "--target",
                  copy,
                  *glob.glob(os.path.join(self.root, "*.whl")),
                  check=True)
        done = self.bare(
            "-c",
            f"import sys; sys.path.insert(0, {copy!r}); import velo; print(velo.library_path())")
        self.assertEqual(done.stdout.strip(), f"{copy}/velo/lib/libvelo-wheel.so")


if __name__ == "__main__":
    for module in ["ensurepip", *HOSTS]:
        need(module)
    unittest.main(argv=sys.argv[:1])
