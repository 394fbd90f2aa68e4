"""The promises of velo.mindspore's cells beside their values: gradients, copies, and the end of
slots.

VELO_ADAPTERS names libvelo_adapters.so. References compute in numpy, in double.
"""
import copy
import os
import pickle
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "..", "..", "..", "capi", "python")
sys.path[:0] = [os.path.join(HERE, ".."), PYTHON]

from framework import need  # noqa: E402

ms = need("mindspore")

import numpy as np  # noqa: E402
from mindspore import nn, ops  # noqa: E402

import velo.mindspore as velo  # noqa: E402

SLOTS = """
import velo.mindspore as velo
made = [velo.Swiglu(dim=-1)]
try:
    for i in range(1, 514):
        made.append(velo.Operator("rms_norm", "x,gamma->y", epsilon=i * 1e-6))
except ValueError as refused:
    print(len(made), refused)
made.append(velo.Swiglu(dim=-1))  # as one that is there
"""


# Readers of a cell's results: graph mode takes a lambda only where it stands alone on a line.

def whole(made):
    return made.sum()


def first(made):
    return made[0].sum()


def second(made):
    return made[1].sum()


def both(made):
    return made[0].sum() + made[1].sum()


def second_with_first_held(made):
    return (made[1] * ops.stop_gradient(made[0] / made[0])).sum()


def second_and_first_beside(made):
    return made[1].sum(), made[0]


def weighed(made):
    return (made * weight).sum()


weight = ms.Tensor(np.random.default_rng(6).standard_normal((512, 6)), ms.float32)


class Read(nn.Cell):
    """A cell whose results go through `read`."""

    def __init__(self, cell, read):
        super().__init__()
        self.cell, self.read = cell, read

    def construct(self, *tensors):
        return self.read(self.cell(*tensors))


class Slope(nn.Cell):
    """The sum of a cell's gradient."""

    def __init__(self, cell):
        super().__init__()
        self.gradient = ops.grad(Read(cell, whole))

    def construct(self, *tensors):
        return self.gradient(*tensors).sum()


def array(tensor):
    return np.asarray(tensor.astype(ms.float32).asnumpy(), np.float64)


class Cells(unittest.TestCase):
    def setUp(self):
        self.numbers = np.random.default_rng(5)

    def in_both_modes(self):
        for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
            ms.set_context(mode=mode)
            yield mode

    def values(self, *shape, dtype=ms.float32):
        return ms.Tensor(self.numbers.standard_normal(shape), ms.float32).astype(dtype)

    def indices(self, *values):
        return ms.Tensor(np.array(values), ms.int32)

    def test_a_gradient_through_what_has_none_is_refused(self):
        """rstd, lse and the sums of attention: MindSpore would take no gradient for a gradient of
        zero."""
        q = self.values(2, 5, 2, 8)
        calls = ((velo.RmsNorm, (self.values(4, 8), self.values(8)), "y",
                  "rstd"), (velo.FusionAttention, (q, q, q), "attention_out", "softmax_sum"),
                 (velo.CrossEntropy, (self.values(6, 9), self.indices(0, 1, 2, 3, 4,
                                                                      5)), "loss", "lse"))
        for _ in self.in_both_modes():
            for make, given, has, lacks in calls:
                text = (f"velo_{make.op.name}: expected a gradient of {has} alone, got one of "
                        f"{lacks}")
                for cell, read in ((make(outputs=(has, lacks)), both),
                                   (make(outputs=(lacks, has)), first), (make(outputs=lacks),
                                                                         whole)):
                    with self.assertRaisesRegex(TypeError, text):
                        ops.grad(Read(cell, read))(*given)

    def test_what_only_shows_such_an_output_is_served(self):
        x, gain = self.values(4, 8), self.values(8)
        for _ in self.in_both_modes():
            want = array(ops.grad(Read(velo.RmsNorm(), whole))(x, gain))
            cell = velo.RmsNorm(outputs="rstd,y")
            for read in (second, second_with_first_held):
                np.testing.assert_allclose(array(ops.grad(Read(cell, read))(x, gain)), want, 1e-5,
                                           1e-6)
            (_, rstd), got = ops.value_and_grad(Read(cell, second_and_first_beside),
                                                has_aux=True)(x, gain)
            np.testing.assert_allclose(array(got), want, 1e-5, 1e-6)
            np.testing.assert_allclose(
                array(rstd)[:, 0], 1 / np.sqrt((array(x)**2).mean(-1) + 1e-6), 1e-5)

    def test_second_derivatives_are_refused_with_a_sentence(self):
        x, gain = self.values(4, 8), self.values(8)
        for _ in self.in_both_modes():
            for cell, given, over, name in ((velo.RmsNorm(), (x, gain), 0, "rms_norm_backward"),
                                            (velo.Matmul(), (x, x.T), 1, "matmul")):
                with self.assertRaisesRegex(TypeError,
                                            f"velo_{name}: .*velo has no second derivatives"):
                    ops.grad(Slope(cell), over)(*given)
            with self.assertRaisesRegex(TypeError, "velo_apply_fused_adamw: .*velo has none of it"):
                ops.grad(Read(velo.ApplyFusedAdamw(), first))(x, x, x, x)

    def test_the_rows_of_an_embedding_are_those_of_its_table(self):
        ids, table = self.indices(1, 3, 1), self.values(12, 4)
        wrong = velo.Embedding(9)
        for _ in self.in_both_modes():
            with self.assertRaisesRegex(
                    ValueError, r"velo_embedding: rows: expected 12, as the tensors have, got 9"):
                wrong(ids, table)
            self.assertEqual(velo.Embedding()(ids, table).shape, (3, 4))
            with self.assertRaisesRegex(
                    TypeError,
                    r"velo_embedding: expected rows, which the gradient of table needs, got none"):
                ops.grad(Read(velo.Embedding(), whole), 1)(ids, table)
            want = np.zeros((12, 4))
            want[[1, 3]] = [[2] * 4, [1] * 4]
            np.testing.assert_array_equal(
                array(ops.grad(Read(velo.Embedding(12), whole), 1)(ids, table)), want)
        frozen = Read(velo.Embedding(gradients=()), whole)
        for _ in self.in_both_modes():
            self.assertEqual(np.abs(array(ops.grad(frozen, 1)(ids, table))).sum(), 0)

    def test_cross_entropy_gives_the_outputs_it_is_asked_for(self):
        logits, targets = self.values(5, 9), self.indices(0, 3, -100, 8, 1)
        exact = array(logits)
        lse = np.log(np.exp(exact).sum(-1))
        kept = np.array([0, 1, 3, 4])
        tokens = np.zeros(5)
        tokens[kept] = (lse - exact[np.arange(5), np.maximum(targets.asnumpy(), 0)])[kept]
        for _ in self.in_both_modes():
            for reduction, want in (("mean", tokens.sum() / 4), ("sum", tokens.sum()), ("none",
                                                                                        tokens)):
                loss, got = velo.CrossEntropy(reduction=reduction, outputs="loss,lse")(logits,
                                                                                       targets)
                np.testing.assert_allclose(array(loss), want, 1e-5, 1e-6)
                np.testing.assert_allclose(array(got)[kept], lse[kept], 1e-5)
            np.testing.assert_allclose(
                array(velo.CrossEntropy(outputs="lse")(logits, targets))[kept], lse[kept], 1e-5)

    def test_cells_are_copied_and_pickled(self):
        """The copy computes and differentiates as the cell does, also inside another cell, and
        shares its slots."""
        x, gain, ids = self.values(4, 8), self.values(8), self.indices(1, 3, 1)
        q = self.values(2, 5, 2, 8)
        cells = ((velo.RmsNorm(1e-3, outputs="y,rstd"), (x, gain), 0,
                  first), (velo.Embedding(12), (ids, self.values(12, 4)), 1, whole),
                 (velo.FusionAttention(scale=0.25,
                                       sparse_mode="left_up_causal"), (q, q, q), 0, whole),
                 (velo.Matmul(tensors="a,b,bias"), (x, self.values(8, 3), self.values(3)), 2,
                  whole), (velo.CrossEntropy(reduction="sum"), (x, self.indices(0, 1, 2, 3)), 0,
                           whole), (velo.Operator("swiglu", "x->y", dim=0), (x,), None, whole))

        for copied in (copy.deepcopy, lambda cell: pickle.loads(pickle.dumps(cell))):
            for cell, given, over, read in cells:
                duplicate = copied(cell)
                self.assertIsNot(duplicate, cell)
                np.testing.assert_array_equal(*(array(read(c(*given))) for c in (cell, duplicate)))
                if over is None:
                    self.assertEqual(duplicate.func, cell.func)
                    continue
                self.assertEqual(duplicate.run.func, cell.run.func)
                for _ in self.in_both_modes():
                    np.testing.assert_array_equal(
                        *(array(ops.grad(Read(c, read), over)(*given)) for c in (cell, duplicate)))
            with self.assertRaisesRegex(TypeError, "got one of rstd"):
                ops.grad(Read(copied(cells[0][0]), second))(x, gain)
            net = copied(nn.CellList([cell for cell, _, over, _ in cells if over is not None]))
            np.testing.assert_array_equal(*(array(c(x, gain)[1]) for c in (cells[0][0], net[0])))

    def test_the_bias_gradient_of_a_matmul_is_summed_before_it_is_rounded(self):
        """bfloat16 operands, a float32 product: its gradient is float32, and so is its sum over
        rows."""
        a, b, bias = self.values(512, 8,
                                 dtype=ms.bfloat16), self.values(8, 6,
                                                                 dtype=ms.bfloat16), self.values(6)
        ms.set_context(mode=ms.PYNATIVE_MODE)
        cell = velo.Matmul(dtype="float32", tensors="a,b,bias")
        got = ops.grad(Read(cell, weighed), 2)(a, b, bias)
        np.testing.assert_allclose(array(got),
                                   array(weight).sum(0), 0,
                                   1e-6 * np.abs(array(weight)).sum(0).max())

    def test_the_end_of_slots_is_a_sentence(self):
        done = subprocess.run([sys.executable, "-c", SLOTS],
                              env={**os.environ, "PYTHONPATH": PYTHON},
                              capture_output=True,
                              text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(
            done.stdout,
            r"^511 velo_rms_norm: slot: expected a free one, got all 512 bound: .*equal attributes "
            r"share one"
        )


if __name__ == "__main__":
    unittest.main()
