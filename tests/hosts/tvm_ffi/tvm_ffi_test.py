"""velo through the real tvm-ffi, with numpy and torch arrays. VELO_ADAPTERS names
libvelo_adapters.so."""
import os
import resource
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [
    os.path.join(HERE, ".."),
    os.path.join(HERE, "..", "..", "..", "examples", "tvm_ffi")
]

from framework import need  # noqa: E402

need("tvm_ffi")
torch = need("torch")

import numpy as np  # noqa: E402

from add_norm import add_norm, velo  # noqa: E402


def distance(got, truth):
    return float((got.double() - truth.double()).norm() / truth.double().norm())


def norm(x, gamma):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gamma


class TvmFfi(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)

    def test_the_example(self):
        a, b = (
            np.random.default_rng(i).standard_normal((5, 24)).astype(np.float32) for i in range(2))
        y, total = add_norm(a, b, np.ones(24, np.float32))
        np.testing.assert_array_equal(total, a + b)
        self.assertLessEqual(distance(torch.from_numpy(y), norm(torch.from_numpy(a + b), 1)), 1e-6)

    def test_values_and_gradients(self):
        for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
            x, gamma, dy = (torch.randn(*shape).to(dtype) for shape in ((6, 40), (40,), (6, 40)))
            y, dx, rstd, dgamma = torch.empty_like(x), torch.empty_like(x), torch.empty(
                6, 1), torch.empty(40)
            velo.velo_rms_norm(x, gamma, y, rstd, 1e-6)
            velo.velo_rms_norm_backward(dy, x, gamma, rstd, dx, dgamma)
            leaves = [t.float().requires_grad_() for t in (x, gamma)]
            truth = norm(*leaves)
            want = torch.autograd.grad(truth, leaves, dy.float())
            for have, right in ((y, truth.detach()), (dx, want[0]), (dgamma, want[1])):
                self.assertLessEqual(distance(have, right), bound, dtype)

    def test_twenty_steps_agree(self):
        """A linear model trained by matmul, cross_entropy and AdamW, beside torch's own. Weights
        are float32, a copy computes."""
        for dtype, of_losses, of_gradients in ((torch.float32, 1e-4, 1e-5), (torch.bfloat16, 1e-2,
                                                                             2e-2)):
            x, targets = torch.randn(64, 24).to(dtype), torch.randint(0, 10, (64,))
            master = torch.randn(10, 24) * 0.1
            theirs, ours = torch.nn.Parameter(master.clone()), master.to(dtype, copy=True)
            of_ours = [master, None] if dtype == torch.float32 else [ours, master]
            m, v, grad = torch.zeros_like(master), torch.zeros_like(master), torch.empty_like(ours)
            logits, dlogits = torch.empty(64, 10, dtype=dtype), torch.empty(64, 10, dtype=dtype)
            loss, lse, one = torch.empty(()), torch.empty(64), torch.ones(())
            optimizer = torch.optim.AdamW([theirs], lr=1e-2, weight_decay=0.0)
            for step in range(1, 21):
                velo.velo_matmul(x, of_ours[0], None, None, logits, False, True)
                velo.velo_cross_entropy(logits, targets, loss, lse)
                velo.velo_cross_entropy_backward(one, logits, targets, lse, dlogits)
                velo.velo_matmul(dlogits, x, None, None, grad, True, False)
                velo.velo_apply_fused_adamw(grad, None, *of_ours, m, v, None, step, 1e-2, 0.9,
                                            0.999, 1e-8, 0.0)
                optimizer.zero_grad()
                stock = torch.nn.functional.cross_entropy((x @ theirs.to(dtype).t()).float(),
                                                          targets)
                stock.backward()
                optimizer.step()
                self.assertLessEqual(
                    abs(float(loss) - float(stock.detach())) / float(stock.detach()), of_losses,
                    dtype)
                self.assertLessEqual(distance(grad, theirs.grad),
                                     of_gradients * (1 if step == 1 else 10), dtype)

    def test_nothing_is_copied(self):
        x = torch.zeros(100)
        velo.velo_add(x, torch.ones(100), x)
        self.assertTrue(torch.equal(x, torch.ones(100)))

    def test_refusals_carry_the_record(self):
        x = torch.randn(4, 8)
        with self.assertRaisesRegex(
                ValueError, r"velo_rms_norm: args\.gamma\.shape: expected \[8\], got \[7\]"):
            velo.velo_rms_norm(x, torch.ones(7), torch.empty(4, 8))
        with self.assertRaisesRegex(
                TypeError, r"args\.x\.dtype: expected float32, bfloat16 or float16, got float64"):
            velo.velo_swiglu(x.double(), torch.empty(4, 4).double())
        q = torch.randn(1, 3, 2, 8)
        for value, got in ((True, "a boolean"), (2.0, "a real number")):
            with self.assertRaisesRegex(
                    ValueError,
                    rf"velo_fusion_attention: layout: expected an enumerator, got {got}"):
                velo.velo_fusion_attention(q, q, q, torch.empty_like(q), None, None, value)
        with self.assertRaisesRegex(ValueError,
                                    r"velo_rms_norm: epsilon: expected a real, got a boolean"):
            velo.velo_rms_norm(x, torch.ones(8), torch.empty(4, 8), None, True)
        with self.assertRaisesRegex(ValueError, r"args\.x\.strides"):
            velo.velo_rms_norm(torch.randn(1, 8).expand(4, 8), torch.ones(8), torch.empty(4, 8))

    def test_layouts_are_read_right_or_refused_by_name(self):
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(1, 6, 3, 8).to(dtype)
            heads_apart = x.transpose(1, 2).contiguous().transpose(1, 2)
            got, want = torch.empty_like(x), torch.empty_like(x)
            cos, sin = torch.rand(1, 6, 1, 8), torch.rand(1, 6, 1, 8)
            velo.velo_rotary_position_embedding(heads_apart, cos, sin, got, 0)
            velo.velo_rotary_position_embedding(x, cos, sin, want, 0)
            self.assertTrue(torch.equal(got, want))
            with self.assertRaisesRegex(ValueError, r"args\.x\.strides"):
                velo.velo_rms_norm(
                    torch.randn(8, 4).to(dtype).t(), torch.ones(8, dtype=dtype),
                    torch.empty(4, 8, dtype=dtype))

    def test_ten_thousand_calls_leak_nothing(self):
        x, gamma, y = torch.randn(4, 64), torch.ones(64), torch.empty(4, 64)

        def calls(count):
            for _ in range(count):
                velo.velo_rms_norm(x, gamma, y, None, 1e-5)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        before = calls(1000)
        self.assertLess(calls(10000) - before, 2048, "kibibytes")

    def test_zero_size(self):
        y = torch.empty(0, 8)
        velo.velo_rms_norm(torch.empty(0, 8), torch.ones(8), y)
        self.assertEqual(y.shape, (0, 8))


if __name__ == "__main__":
    unittest.main()
