"""torch and jax in one process, both using velo: libvelo.so is loaded once, each has its own
context, and neither disturbs the other.

VELO_LIBRARY names libvelo.so, VELO_ADAPTERS libvelo_adapters.so.
"""
import os
import sys
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "capi", "python")]

from framework import need  # noqa: E402

torch = need("torch")
jax = need("jax")

import numpy as np  # noqa: E402

import velo.jax as velo_jax  # noqa: E402
import velo.torch as velo_torch  # noqa: E402


class TwoFrameworks(unittest.TestCase):
    def test_one_library_is_loaded(self):
        velo_torch.library()
        with open("/proc/self/maps", encoding="utf-8") as maps:
            loaded = {line.split()[-1] for line in maps if "libvelo.so" in line}
        self.assertEqual(len(loaded), 1, loaded)

    def test_gradients_agree_across_frameworks(self):
        numbers = np.random.default_rng(11)
        x, gain = numbers.standard_normal(
            (64, 256)).astype(np.float32), numbers.standard_normal(256).astype(np.float32)
        leaves = [torch.from_numpy(t.copy()).requires_grad_() for t in (x, gain)]
        of_torch = torch.autograd.grad(
            velo_torch.swiglu(velo_torch.rms_norm(*leaves)).sum(), leaves)
        of_jax = jax.grad(lambda x, g: velo_jax.swiglu(velo_jax.rms_norm(x, g)).sum(), (0, 1))(x,
                                                                                               gain)
        for a, b in zip(of_torch, of_jax):
            self.assertTrue(np.array_equal(a.numpy(), b),
                            "one library gives one result, whoever asks")

    def test_they_run_side_by_side(self):
        x = np.random.default_rng(3).standard_normal((512, 256)).astype(np.float32)
        gain = np.ones(256, np.float32)
        wants = velo_torch.rms_norm(torch.from_numpy(x), torch.from_numpy(gain)).numpy()
        normed = jax.jit(velo_jax.rms_norm)
        wrong = []

        def run(compute):
            for _ in range(50):
                if not np.array_equal(compute(), wants):
                    wrong.append(compute)

        threads = [threading.Thread(target=run, args=(compute,)) for compute in (
            lambda: velo_torch.rms_norm(torch.from_numpy(x), torch.from_numpy(gain)).numpy(),
            lambda: np.asarray(normed(x, gain)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_errors_stay_with_their_framework(self):
        with self.assertRaisesRegex(velo_torch.VeloError, r"args\.b\.shape"):
            velo_torch.call("add", a=torch.ones(3), b=torch.ones(4), y=torch.ones(3))
        with self.assertRaisesRegex(jax.errors.JaxRuntimeError, r"args\.ids: expected indices"):
            jax.block_until_ready(velo_jax.embedding(np.full(2, 9), np.ones((2, 7), np.float32)))
        velo_torch.rms_norm(torch.ones(2, 8), torch.ones(8))


if __name__ == "__main__":
    unittest.main()
