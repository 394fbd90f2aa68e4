"""Two releases of velo in one process, torch on one and jax on the other: both work, and each
refuses the other's handles.

Usage: two_versions_test.py LIBVELO_1_1 (the grown release of abi/1.1-test). VELO_LIBRARY and
VELO_ADAPTERS name today's files.

Each case is a process of its own. torch opens its library by path, so it gets that very file. The
adapters name libvelo.so.1, so the loader gives them the one that is there already, if one is; a
package that brings both files under a soname of its own (what wheel tools do, `bundled` here) has
its own whatever came first.
"""
import ctypes
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "capi", "python")]

TODAY, ADAPTERS = os.environ["VELO_LIBRARY"], os.environ["VELO_ADAPTERS"]


def loaded():
    """The files of velo that are mapped, adapters aside."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        names = {line.split()[-1] for line in maps if "/" in line}
    return sorted({
        os.path.realpath(n)
        for n in names
        if os.path.basename(n).startswith(("libvelo.so", "libvel1.so"))
    })


def case(order, globally):
    """Runs in a process of its own: imports in the given order, computes, and prints what
    happened."""
    import threading

    import numpy as np

    for path in globally:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    modules = {}
    for host in order:
        modules[host] = importlib.import_module("velo." + host)
        if host == "torch":
            modules["torch"].library()
    import jax
    import torch

    from velo import _libraries

    numbers = np.random.default_rng(11)
    x, gain = numbers.standard_normal(
        (256, 256)).astype(np.float32), numbers.standard_normal(256).astype(np.float32)

    def by_torch():
        leaves = [torch.from_numpy(t.copy()).requires_grad_() for t in (x, gain)]
        made = modules["torch"].swiglu(modules["torch"].rms_norm(*leaves))
        return [
            made.detach().numpy(), *(g.numpy() for g in torch.autograd.grad(made.sum(), leaves))
        ]

    def forward(x, g):
        return modules["jax"].swiglu(modules["jax"].rms_norm(x, g))

    whole = jax.jit(lambda x, g: (forward(x, g), *jax.grad(lambda *t: forward(*t).sum(), (0, 1))
                                  (x, g)))
    wants, wrong = by_torch(), []

    def repeat(compute):
        for _ in range(20):
            wrong.extend(
                1 for have, want in zip(compute(), wants) if not np.array_equal(have, want))

    threads = [
        threading.Thread(target=repeat, args=(compute,))
        for compute in (by_torch, lambda: whole(x, gain))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    ours, adapters = modules["torch"].library(), importlib.import_module("velo.spec").library
    library = ctypes.CDLL(_libraries.path_of(ours.c))
    stream, theirs = ctypes.c_void_p(), ctypes.c_void_p()
    adapters.velo_adapters_context(ctypes.byref(theirs))
    shared = library.velo_context_stream(theirs, ctypes.byref(stream)) == 0
    message = ctypes.create_string_buffer(1024)
    refused = []
    if not shared:
        library.velo_error_text(message, ctypes.c_uint64(len(message)), None)
        refused.append(message.value.decode())
        adapters.velo_adapters_set_context(ours.context()[0])
        try:
            jax.block_until_ready(modules["jax"].add(x, x))
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            refused.append(str(error))
        adapters.velo_adapters_set_context(None)
        repeat(lambda: whole(x, gain))
    print(json.dumps({"wrong": len(wrong), "files": loaded(), "shared": shared, "refused": refused,
                      "torch has 1.1": hasattr(library, "velo_growth_double")}))


class TwoVersions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.grown = os.path.realpath(GROWN)
        cls.bundled = []
        for path in (cls.grown, os.path.realpath(ADAPTERS)):
            name = os.path.basename(path).split(".so")[0].replace("libvelo", "libvel1") + ".so.1"
            with open(path, "rb") as file:
                named = file.read().replace(b"\0libvelo.so.1\0", b"\0libvel1.so.1\0")
            with open(os.path.join(cls.folder.name, name), "wb") as file:
                file.write(named)
            cls.bundled.append(os.path.join(cls.folder.name, name))
        shutil.copy(cls.grown, os.path.join(cls.folder.name, "libvelo.so.1"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_case(self, order, files, shared, torch=TODAY, adapters=ADAPTERS, path="", globally=()):
        environment = {
            **os.environ, "VELO_LIBRARY": torch, "VELO_ADAPTERS": adapters, "LD_LIBRARY_PATH": path
        }
        done = subprocess.run([sys.executable, __file__, "--case", order, *globally],
                              env=environment,
                              capture_output=True,
                              text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["wrong"], 0, "results differ between the two")
        self.assertEqual(found["files"], sorted(map(os.path.realpath, files)))
        self.assertEqual(found["shared"], shared)
        self.assertEqual(found["torch has 1.1"], torch != TODAY)
        self.assertEqual(len(found["refused"]), 0 if shared else 2)
        for sentence in found["refused"]:
            self.assertRegex(sentence,
                             "context: expected a context, got a handle of another copy of velo")

    def test_adapters_of_today_first_then_torch_on_the_other_release(self):
        self.run_case("jax,torch", [TODAY, self.grown], False, torch=self.grown)

    def test_adapters_on_the_other_release_first_then_torch_on_todays(self):
        other = os.path.join(self.folder.name, "libvelo.so.1")
        self.run_case("jax,torch", [TODAY, other], False, path=self.folder.name)

    def test_torch_first_then_a_package_with_files_of_its_own(self):
        self.run_case("torch,jax", [TODAY, self.bundled[0]],
                      False,
                      adapters=self.bundled[1],
                      path=self.folder.name)

    def test_a_package_with_files_of_its_own_first(self):
        self.run_case("jax,torch", [TODAY, self.bundled[0]],
                      False,
                      adapters=self.bundled[1],
                      path=self.folder.name)

    def test_todays_adapters_take_the_newer_release_that_is_there(self):
        self.run_case("torch,jax", [self.grown], True, torch=self.grown)

    def test_opened_globally_it_serves_whoever_comes_later(self):
        self.run_case("jax,torch", [TODAY, self.grown],
                      True,
                      torch=self.grown,
                      globally=[self.grown, TODAY])
        self.run_case("jax,torch", [TODAY, self.grown],
                      False,
                      torch=self.grown,
                      globally=[ADAPTERS])


if __name__ == "__main__":
    if sys.argv[1] == "--case":
        case(sys.argv[2].split(","), sys.argv[3:])
    else:
        from framework import need

        need("torch")
        need("jax")
        GROWN = sys.argv.pop(1)
        unittest.main()
