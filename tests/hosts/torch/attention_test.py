"""torch's own attention on velo's kernels: numbers and layouts of either direction beside stock,
what falls through, and what the report says.

Skipped where the adapter cannot take attention over (torch before 2.9): enable() must then say so.
"""
import io
import os
import subprocess
import sys
import unittest
import warnings
from contextlib import redirect_stderr

from torch_case import F, ROOT, Torch, distance, torch, velo

from velo.torch import dispatcher

OF_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
TAKEN = hasattr(dispatcher.adapter, "velo_torch_attention")
BOUND = {torch.float32: 1e-6, torch.bfloat16: 1e-2}


def tensors(layout, rows, keys, dtype, heads=4, key_heads=4, size=16):
    """Queries, keys, values [B, N, S, D] and a gradient, in memory as models have them."""
    shapes = ((heads, rows), (key_heads, keys), (key_heads, keys), (heads, rows))
    if layout == "heads outside":
        q, k, v, g = (torch.randn(2, n, s, size, dtype=dtype) for n, s in shapes)
    elif layout == "heads inside":
        q, k, v, g = (torch.randn(2, s, n, size, dtype=dtype).transpose(1, 2) for n, s in shapes)
    else:  # one product for all three, as GPT-2 has it
        packed = torch.randn(2, max(rows, keys), 3 * heads * size, dtype=dtype).chunk(3, -1)
        q, k, v = (t.view(2, -1, heads, size)[:, :s, :n].transpose(1, 2)
                   for t, (n, s) in zip(packed, shapes))
        g = torch.randn(2, rows, heads, size, dtype=dtype).transpose(1, 2)
    return q, k, v, g


def called(done):
    return next(entry.called for entry in done.entries if entry.where == OF_ATTENTION)


@unittest.skipUnless(TAKEN, "this torch's attention cannot be taken over")
class Attention(Torch):
    def both(self, q, k, v, g, causal=False, scale=None):
        """Results and gradients of aten's two operators."""
        aten = torch.ops.aten
        out, lse = aten._scaled_dot_product_flash_attention_for_cpu(q,
                                                                    k,
                                                                    v,
                                                                    0.0,
                                                                    causal,
                                                                    scale=scale)
        return out, lse, *aten._scaled_dot_product_flash_attention_for_cpu_backward(
            g, q, k, v, out, lse, 0.0, causal, scale=scale)

    def test_numbers_and_layouts_are_torchs(self):
        for dtype in BOUND:
            for layout in ("heads outside", "heads inside", "packed"):
                for rows, keys, causal, scale in ((64, 64, True, None), (64, 100, False, 0.3),
                                                  (160, 160, True, 2.0), (64, 33, True, None)):
                    given = tensors(layout, rows, keys, dtype)
                    want = self.both(*given, causal, scale)
                    with self.subTest(layout, dtype=dtype, rows=rows), velo.enable() as done:
                        got = self.both(*given, causal, scale)
                        self.assertTrue(called(done))
                        for have, right in zip(got, want):
                            self.assertEqual((have.shape, have.dtype, have.stride()),
                                             (right.shape, right.dtype, right.stride()))
                            self.assertLessEqual(distance(have, right), BOUND[dtype])

    def test_either_sides_gradient_takes_either_sides_forward(self):
        q, k, v, g = tensors("heads inside", 64, 64, torch.float32)
        aten = torch.ops.aten
        stock = self.both(q, k, v, g, True)
        with velo.enable():
            ours = self.both(q, k, v, g, True)
            crossed = aten._scaled_dot_product_flash_attention_for_cpu_backward(
                g, q, k, v, *stock[:2], 0.0, True)
        back = aten._scaled_dot_product_flash_attention_for_cpu_backward(
            g, q, k, v, *ours[:2], 0.0, True)
        for results in (crossed, back):
            for have, right in zip(results, stock[2:]):
                self.assertLessEqual(distance(have, right), 1e-6)

    def test_through_autograd(self):
        for heads, key_heads, options in ((4, 4, {}), (4, 2, {"enable_gqa": True})):
            q, k, v, g = tensors("heads inside", 64, 64, torch.float32, heads, key_heads)
            leaves = [t.requires_grad_() for t in (q, k, v)]

            def run():
                out = F.scaled_dot_product_attention(*leaves, is_causal=True, scale=0.4, **options)
                return out, *torch.autograd.grad(out, leaves, g)

            want = run()
            with velo.enable() as done:
                got = run()
                self.assertTrue(called(done))
                summed = torch.autograd.grad(
                    F.scaled_dot_product_attention(*leaves, **options).sum(), leaves)
            for have, right in zip(got, want):
                self.assertLessEqual(distance(have, right), 1e-6)
            for have, right in zip(
                    summed,
                    torch.autograd.grad(
                        F.scaled_dot_product_attention(*leaves, **options).sum(), leaves)):
                self.assertLessEqual(distance(have, right), 1e-5)

    def test_compiled(self):
        def attend(x):
            q, k, v = (t.view(2, 64, 4, 16).transpose(1, 2) for t in x.chunk(3, -1))
            return F.scaled_dot_product_attention(q, k, v,
                                                  is_causal=True).transpose(1,
                                                                            2).reshape(2, 64,
                                                                                       64).sin()

        x = torch.randn(2, 64, 192, requires_grad=True)
        want = torch.autograd.grad(attend(x).sum(), x)[0]
        with velo.enable() as done:
            torch._dynamo.reset()
            got = torch.autograd.grad(torch.compile(attend, fullgraph=True)(x).sum(),
                                      x)[0]  # checks the strides of what it calls
            self.assertTrue(called(done))
        self.assertLessEqual(distance(got, want), 1e-6)

    def test_functorch_and_fakes_keep_torchs_rules(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        q, k, v, _ = tensors("heads outside", 64, 64, torch.float32)
        want = F.scaled_dot_product_attention(q, k, v)
        with velo.enable():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that torch has no batching rule for it
                mapped = torch.func.vmap(F.scaled_dot_product_attention)(q, k, v)
            self.assertLessEqual(distance(mapped, want), 1e-6)
            self.assertLessEqual(
                distance(F.scaled_dot_product_attention(torch._neg_view(-q), k, v), want), 1e-6)
            with FakeTensorMode() as fake:
                out = F.scaled_dot_product_attention(*(fake.from_tensor(t) for t in (q, k, v)))
            self.assertEqual(out.shape, want.shape)

    def test_few_rows_and_refusals_are_torchs(self):
        for dtype, rows in ((torch.float32, 1), (torch.float32, 16), (torch.bfloat16, 4)):
            q, k, v, g = tensors("heads inside", rows, 64, dtype)
            want = self.both(q, k, v, g)
            with velo.enable() as done:
                for have, right in zip(self.both(q, k, v, g), want):
                    self.assertTrue(torch.equal(have, right))
                self.assertFalse(called(done))
                reason = "same head size" if torch.__version__ >= "2.10" else "it is on stderr"
                with self.assertRaisesRegex(RuntimeError, reason), redirect_stderr(io.StringIO()):
                    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v[..., :8])

    def test_the_report_counts_for_whom_it_was_in_force(self):
        q, k, v, _ = tensors("heads inside", 64, 64, torch.float32)
        with velo.enable() as outer:
            with velo.enable() as inner:
                pass
            F.scaled_dot_product_attention(q, k, v)
            self.assertEqual((called(outer), called(inner)), (True, False))
            with velo.enable() as late:
                self.assertFalse(called(late))
        self.assertTrue(called(outer))
        with velo.enable() as done:
            self.assertIn("has not run yet", str(done))
        stock = F.scaled_dot_product_attention(q, k, v)
        self.assertTrue(torch.equal(stock, F.scaled_dot_product_attention(q, k, v)))
        self.assertFalse(called(done))

    def test_disable_gives_torchs_kernel_back(self):
        q, k, v, g = tensors("heads inside", 64, 64, torch.bfloat16)
        want = self.both(q, k, v, g)
        first, second = velo.enable(), velo.enable()
        first.disable()
        self.both(q, k, v, g)
        self.assertTrue(called(second))
        second.disable()
        for have, right in zip(self.both(q, k, v, g), want):
            self.assertTrue(torch.equal(have, right))

    def test_a_forked_child_computes_by_torch_and_prints_nothing(self):
        program = """
import os, torch, velo.torch
torch.set_num_threads(1)
q = torch.randn(1, 4, 64, 16)
attend = torch.nn.functional.scaled_dot_product_attention
want = attend(q, q, q)
with velo.torch.enable() as done:
    attend(q, q, q)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(attend(q, q, q), want) else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "capi", "python")})
        self.assertEqual((done.stdout, done.stderr), ("0\n", ""))


@unittest.skipIf(TAKEN, "this torch's attention is taken over")
class Left(Torch):
    def test_the_report_says_that_attention_is_left(self):
        with velo.enable() as done:
            self.assertIn("torch 2.9", dict(done.left)[OF_ATTENTION])


if __name__ == "__main__":
    unittest.main()
