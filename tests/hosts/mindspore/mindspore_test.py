"""velo.mindspore against MindSpore itself: values, gradients, training in both modes, refusals.

VELO_ADAPTERS names libvelo_adapters.so. References compute in float32 from the same numbers.
"""
import os
import resource
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [
    os.path.join(HERE, ".."),
    os.path.join(ROOT, "examples", "mindspore"),
    os.path.join(ROOT, "capi", "python")
]

from framework import need  # noqa: E402

ms = need("mindspore")

import numpy as np  # noqa: E402
from mindspore import nn, ops  # noqa: E402

import train  # noqa: E402
import velo.mindspore as velo  # noqa: E402
from operator_examples import calls  # noqa: E402
from velo import spec  # noqa: E402

BOUND = {ms.float32: 1e-5, ms.bfloat16: 1e-2}
WIDER = {ms.float32: 1, ms.bfloat16: 4}  # gradients go through more roundings
MODES = (ms.PYNATIVE_MODE, ms.GRAPH_MODE)


def array(tensor):
    return np.asarray(tensor.astype(ms.float32).asnumpy(), np.float64) if isinstance(
        tensor, ms.Tensor) else np.float64(tensor)


def distance(got, truth):
    got, truth = array(got), array(truth)
    return np.linalg.norm(got - truth) / np.linalg.norm(truth)


class Composed(nn.Cell):
    """A cell over one of the functions below: computed in float32, since MindSpore's own operators
    know no bfloat16 on the CPU, and rounded to the dtype that came in."""

    def __init__(self, compute, rounds=True):
        super().__init__()
        self.compute, self.rounds = compute, rounds

    def construct(self, *tensors):
        out = self.compute(*[t.astype(ms.float32) if t.dtype in BOUND else t for t in tensors])
        return out.astype(next(
            t.dtype for t in tensors if t.dtype in BOUND)) if self.rounds else out


class Weighed(nn.Cell):
    """The sum of a cell's output times a weight: its gradient is the weight's way back through the
    cell."""

    def __init__(self, cell, weight):
        super().__init__()
        self.cell, self.weight = cell, weight

    def construct(self, *tensors):
        return (self.cell(*tensors).astype(ms.float32) * self.weight).sum()


class Stock:
    """velo.mindspore's cells as MindSpore composes them."""

    @staticmethod
    def RmsNorm(epsilon=1e-6):
        return Composed(lambda x, g: x * ops.rsqrt(ops.mean(x * x, -1, True) + epsilon) * g)

    @staticmethod
    def Swiglu(dim=-1):
        def compute(x):
            gate, up = ops.chunk(x, 2, dim)
            return gate * ops.sigmoid(gate) * up
        return Composed(compute)

    @staticmethod
    def RotaryPositionEmbedding(gradients="x"):
        def compute(x, cos, sin):
            first, second = ops.chunk(x, 2, -1)
            return x * cos + ops.concat((-second, first), -1) * sin
        return Composed(compute)

    @staticmethod
    def FusionAttention(scale=1.0, sparse_mode="full"):
        def compute(q, k, v):
            group = q.shape[2] // k.shape[2]
            q, k, v = (ops.transpose(q, (0, 2, 1, 3)),
                       ops.transpose(ops.repeat_interleave(k, group, 2), (0, 2, 3, 1)),
                       ops.transpose(ops.repeat_interleave(v, group, 2), (0, 2, 1, 3)))
            score = ops.matmul(q, k) * scale
            if sparse_mode == "left_up_causal":
                score = score - 1e9 * ops.triu(ops.ones(score.shape[-2:], ms.float32), 1)
            return ops.transpose(ops.matmul(ops.softmax(score, -1), v), (0, 2, 1, 3))
        return Composed(compute)

    @staticmethod
    def Embedding(_rows):
        return Composed(lambda ids, table: ops.gather(table, ids, 0))

    @staticmethod
    def CrossEntropy():
        return Composed(lambda logits, targets: ops.cross_entropy(logits, targets), rounds=False)

    @staticmethod
    def Matmul(transpose_b=False):
        return Composed(lambda a, b: ops.matmul(a, ops.transpose(b, (1, 0)) if transpose_b else b))

    @staticmethod
    def Add():
        return Composed(lambda a, b: a + b)


class StockAdamW:
    """AdamW written out, in double precision."""

    def __init__(self, parameters, lr):
        self.parameters, self.lr, self.count = parameters, lr, 0
        self.states = [[array(p), 0, 0] for p in parameters]

    def step(self, gradients):
        self.count += 1
        for parameter, gradient, state in zip(self.parameters, gradients, self.states):
            g = array(gradient)
            state[1] = 0.9 * state[1] + 0.1 * g
            state[2] = 0.999 * state[2] + 0.001 * g * g
            state[0] = state[0] - self.lr * state[1] / (1 - 0.9**self.count) / (
                np.sqrt(state[2] / (1 - 0.999**self.count)) + 1e-8)
            parameter.set_data(ms.Tensor(state[0], ms.float32).astype(parameter.dtype))


class MindSpore(unittest.TestCase):
    def setUp(self):
        self.numbers = np.random.default_rng(11)
        ms.set_context(mode=ms.PYNATIVE_MODE)

    def values(self, *shape, dtype=ms.float32):
        return ms.Tensor(self.numbers.standard_normal(shape), ms.float32).astype(dtype)

    def compare(self, name, ours, theirs, *tensors, over=None, output=ms.float32):
        """Values and gradients of two cells; `over` says which inputs get gradients."""
        dtype = next(t.dtype for t in tensors if t.dtype in BOUND)
        over = tuple(range(len(tensors))) if over is None else over
        single = [t.astype(ms.float32) if t.dtype in BOUND else t for t in tensors]
        truth = theirs(*single)
        weight = self.values(
            *truth.shape).astype(output if dtype == ms.bfloat16 else ms.float32).astype(ms.float32)
        want = ops.grad(Weighed(theirs, weight), over)(*single)
        weighed = Weighed(ours, weight)
        for mode in MODES:
            ms.set_context(mode=mode)
            got = ours(*tensors)
            self.assertLessEqual(distance(got, truth), BOUND[dtype], name)
            have = ops.grad(weighed, over)(*tensors)
            for index, h, w in zip(over, have if len(over) > 1 else (have,),
                                   want if len(over) > 1 else (want,)):
                h = h[0] if isinstance(h, tuple) else h
                w = w[0] if isinstance(w, tuple) else w
                self.assertEqual(h.dtype, tensors[index].dtype, name)
                self.assertLessEqual(distance(h, w), BOUND[dtype] * WIDER[dtype],
                                     f"{name} gradient {index}, mode {mode}")
        ms.set_context(mode=ms.PYNATIVE_MODE)

    def test_values_and_gradients(self):
        targets = ms.Tensor(self.numbers.integers(0, 40, 30), ms.int32)
        targets[7] = -100
        ids = ms.Tensor(self.numbers.integers(0, 12, (3, 5)), ms.int32)
        angle = self.values(1, 9, 1, 16)
        for dtype in BOUND:
            x = self.values(6, 40, dtype=dtype)
            self.compare("rms_norm",
                         velo.RmsNorm(),
                         Stock.RmsNorm(),
                         x,
                         self.values(40, dtype=dtype),
                         output=dtype)
            self.compare("swiglu", velo.Swiglu(), Stock.Swiglu(), x, output=dtype)
            q, k, v = (self.values(2, 9, heads, 16, dtype=dtype) for heads in (4, 2, 2))
            self.compare("rotary",
                         velo.RotaryPositionEmbedding(),
                         Stock.RotaryPositionEmbedding(),
                         q,
                         ops.cos(angle),
                         ops.sin(angle),
                         over=(0,),
                         output=dtype)
            for mode in ("full", "left_up_causal"):
                options = {"scale": 0.25, "sparse_mode": mode}
                self.compare("fusion_attention",
                             velo.FusionAttention(**options),
                             Stock.FusionAttention(**options),
                             q,
                             k,
                             v,
                             output=dtype)
            self.compare("embedding",
                         velo.Embedding(12),
                         Stock.Embedding(12),
                         ids,
                         self.values(12, 20, dtype=dtype),
                         over=(1,),
                         output=dtype)
            self.compare("cross_entropy",
                         velo.CrossEntropy(),
                         Stock.CrossEntropy(),
                         self.values(30, 40, dtype=dtype),
                         targets,
                         over=(0,))
            for transposed in (False, True):
                self.compare("matmul",
                             velo.Matmul(transpose_b=transposed),
                             Stock.Matmul(transposed),
                             self.values(7, 24, dtype=dtype),
                             self.values(*((10, 24) if transposed else (24, 10)), dtype=dtype),
                             output=dtype)
            self.compare("add",
                         velo.Add(),
                         Stock.Add(),
                         x,
                         self.values(6, 40, dtype=dtype),
                         output=dtype)

    def test_gradients_know_of_the_mask(self):
        """atten_mask hides keys from the gradient too, and pse gets one."""
        given = {"layout": "bnsd", "scale": 0.25, "pse_type": "added_after_scale"}
        hidden = ms.Tensor(self.numbers.random((5, 7)) > 0.5)
        shown = 1 - hidden.astype(ms.float32)

        def stock(q, k, v, mask=None, pse=None):
            score = 0.25 * ops.matmul(q, ops.transpose(k, (0, 1, 3, 2)))
            score = score if pse is None else score + pse
            return ops.matmul(ops.softmax(score - 1e9 * (1 - shown), -1) * shown, v)

        for dtype in BOUND:
            q, k, v = (self.values(2, 3, n, 16, dtype=dtype) for n in (5, 7, 7))
            pse, names = self.values(1, 3, 5, 7, dtype=dtype), "query,key,value,atten_mask"
            for more, over in (((), (0, 1, 2)), ((pse,), (0, 1, 2, 4))):
                cell = velo.FusionAttention(tensors=names + ",pse" * len(more), **given)
                self.compare("masked attention",
                             cell,
                             Composed(stock),
                             q,
                             k,
                             v,
                             hidden.astype(ms.uint8),
                             *more,
                             over=over,
                             output=dtype)

    def test_class_weights_enter_the_mean(self):
        targets = ms.Tensor(self.numbers.integers(0, 40, 30), ms.int32)
        targets[7] = -100
        weights = ms.Tensor(self.numbers.random(40), ms.float32)
        for smoothing in (0.0, 0.2):
            self.compare("class weights",
                         velo.CrossEntropy(tensors="logits,targets,class_weights",
                                           label_smoothing=smoothing),
                         Composed(lambda x, t, w, s=smoothing: ops.cross_entropy(
                             x, t, w, label_smoothing=s), rounds=False),
                         self.values(30, 40),
                         targets,
                         weights,
                         over=(0,))

    def losses(self, operators, optimizer_of, dtype, steps=20):
        model = train.Decoder(operators, dtype)
        weights = model.trainable_params()
        optimizer = optimizer_of(weights, lr=3e-3)
        gradient = ms.value_and_grad(model, None, weights)
        losses, first = [], None
        for symbols, targets in train.batches(steps):
            loss, gradients = gradient(symbols, targets)
            first = first or [array(g) for g in gradients]
            optimizer.step(gradients)
            losses.append(float(loss))
        return losses, first

    def test_twenty_steps_agree(self):
        theirs, their_first = self.losses(Stock, StockAdamW, ms.float32)
        for mode in MODES:
            ms.set_context(mode=mode)
            ours, our_first = self.losses(velo, velo.AdamW, ms.float32)
            for have, want in zip(ours, theirs):
                self.assertLessEqual(abs(have - want) / want, 1e-4, mode)
            for have, want in zip(our_first, their_first):
                self.assertLessEqual(distance(have, want), 1e-5, mode)
            self.assertLess(ours[-1], 0.7 * ours[0], "nothing was learned")
        self.check_bfloat16(their_first)

    def check_bfloat16(self, truth):
        """bfloat16's tolerance is what rounding costs: gradients no farther from the float32 ones
        than those of MindSpore's own operators with roundings between, within a half, and losses
        within 2e-2, five roundings by 2^-8. MindSpore's graph mode on the CPU cannot reshape
        bfloat16, so this is PyNative."""
        ms.set_context(mode=ms.PYNATIVE_MODE)
        theirs, their_first = self.losses(Stock, StockAdamW, ms.bfloat16)
        ours, our_first = self.losses(velo, velo.AdamW, ms.bfloat16)
        for have, want in zip(ours, theirs):
            self.assertLessEqual(abs(have - want) / want, 2e-2)
        for index, (have, stock, want) in enumerate(zip(our_first, their_first, truth)):
            self.assertLessEqual(distance(have, want), 1.5 * distance(stock, want), index)

    def test_adamw_updates_in_place(self):
        parameter = ms.Parameter(self.values(100), name="p")
        parameter.asnumpy()
        place = parameter.data_ptr()
        velo.AdamW([parameter]).step([self.values(100)])
        self.assertEqual(place, parameter.data_ptr())

    def test_adamw_takes_gradients_that_are_views(self):
        """The gradient of what is used transposed is a view of other strides."""
        steps, gradient = [], self.values(6, 4)
        for given in (gradient, ms.Tensor(np.ascontiguousarray(gradient.asnumpy().T)).T):
            parameter = ms.Parameter(ms.Tensor(np.zeros((6, 4), np.float32)), name="p")
            velo.AdamW([parameter], lr=0.1).step([given])
            steps.append(parameter.asnumpy())
        self.assertFalse(given.is_contiguous())
        np.testing.assert_array_equal(*steps)

    def test_adamw_counts_its_gradients(self):
        parameters = [ms.Parameter(self.values(3), name=name) for name in "pq"]
        with self.assertRaisesRegex(
                ValueError,
                r"AdamW: expected gradients of shapes \[\(3,\), \(3,\)\], got \[\(3,\)\]"):
            velo.AdamW(parameters).step([self.values(3)])

    def test_the_mean_of_no_targets_is_0_where_mindspore_has_nan(self):
        """As the page says; nothing else differs: sums, losses of tokens and gradients are 0 in
        both."""
        logits, targets = self.values(4, 8), ms.Tensor(np.full(4, -100), ms.int32)

        class Mindspores(nn.Cell):
            def __init__(self, reduction):
                super().__init__()
                self.reduction = reduction

            def construct(self, logits, targets):
                return ops.cross_entropy(logits, targets, reduction=self.reduction)

        for mode in MODES:
            ms.set_context(mode=mode)
            for reduction in ("mean", "sum", "none"):
                ours, theirs = velo.CrossEntropy(reduction=reduction), Mindspores(reduction)
                np.testing.assert_array_equal(
                    ours(logits, targets).asnumpy(), np.zeros(4 if reduction == "none" else ()))
                if reduction == "mean":
                    self.assertTrue(np.isnan(theirs(logits, targets).asnumpy()))
                else:
                    np.testing.assert_array_equal(
                        theirs(logits, targets).asnumpy(),
                        ours(logits, targets).asnumpy())
                for cell in (ours, theirs):
                    self.assertFalse(ops.grad(cell, 0)(logits, targets).asnumpy().any())
        ms.set_context(mode=ms.PYNATIVE_MODE)

    def test_a_reduction_may_be_a_number(self):
        logits, targets = self.values(4, 8), ms.Tensor(np.arange(4), ms.int32)
        for number, name in enumerate(("none", "mean", "sum")):
            got, want = (velo.CrossEntropy(reduction=way)(logits, targets).asnumpy()
                         for way in (number, name))
            np.testing.assert_array_equal(got, want)

    def test_refusals_carry_the_record(self):
        with self.assertRaisesRegex(ValueError, r"args\.gamma\.shape: expected .*\[8\].*got \[7\]"):
            velo.RmsNorm()(self.values(4, 8), self.values(7))
        with self.assertRaisesRegex(
                ValueError, r"args\.x\.dtype: expected float32, bfloat16 or float16, got float64"):
            velo.Swiglu()(self.values(4, 8, dtype=ms.float64))
        with self.assertRaisesRegex(TypeError, "velo_rms_norm: expected epsilon, got no_such"):
            velo.Operator("rms_norm", "x,gamma->y", no_such=1)
        self.assertEqual(velo.RmsNorm()(self.values(4, 8), self.values(8)).shape, (4, 8))

    def test_a_failed_launch_is_an_exception_and_its_sentence_is_kept(self):
        wrong = ops.Custom(velo.Operator("swiglu", "x->y").func, lambda x: x, lambda x: x,
                           "aot")  # y is half of x, not x
        with self.assertRaises(Exception):
            wrong(self.values(4, 8)).asnumpy()
        self.assertRegex(velo.last_error(),
                         r"swiglu.*args\.y\.shape: expected .*\[4, 4\].*got \[4, 8\]")

    def test_a_graph_serves_sizes_that_are_not_known(self):
        """None dimensions in graph mode, forward and gradient: one graph for every batch and
        length."""
        gain, table = self.values(16), self.values(12, 16)

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.embedding, self.norm, self.swiglu = velo.Embedding(
                    12), velo.RmsNorm(), velo.Swiglu()
                self.matmul, self.loss, self.add = velo.Matmul(
                    transpose_b=1), velo.CrossEntropy(), velo.Add()
                self.attention = velo.FusionAttention(layout="bsh", head_num=2)

            def construct(self, ids, targets, table, gain):
                x = self.norm(self.embedding(ids, table), gain)
                x = self.add(x, self.attention(x, x, x))
                gated = self.swiglu(ops.concat((x, x), -1))
                return self.loss(self.matmul(gated.reshape((-1, 16)), table), targets)

        net = Net()
        gradient = ops.GradOperation(get_all=True)

        class Gradient(nn.Cell):
            def __init__(self):
                super().__init__()
                self.net = net

            def construct(self, *tensors):
                return gradient(self.net)(*tensors)

        calls = []
        for batch, length in ((2, 5), (3, 5), (4, 9)):
            ids = ms.Tensor(self.numbers.integers(0, 12, (batch, length)), ms.int32)
            calls.append((ids, ids.reshape(-1), table, gain))
        want = [(net(*call), ops.grad(net, (2, 3))(*call)) for call in calls]
        ms.set_context(mode=ms.GRAPH_MODE)
        unknown = ms.Tensor(shape=[None, None],
                            dtype=ms.int32), ms.Tensor(shape=[None], dtype=ms.int32), table, gain
        forward, backward = Net(), Gradient()
        forward.set_inputs(*unknown)
        backward.set_inputs(*unknown)
        for call, (loss, gradients) in zip(calls, want):
            self.assertLessEqual(distance(forward(*call), loss), 1e-6)
            for got, wanted in zip(backward(*call)[2:], gradients):
                self.assertLessEqual(distance(got, wanted), 1e-5)

    def test_wrong_calls_are_sentences(self):
        x, gain = self.values(4, 8), self.values(8)
        for call, text in ((lambda: velo.RmsNorm("small"),
                            r"velo_rms_norm: args\.epsilon: expected a number, got 'small'"),
                           (lambda: velo.Swiglu(1.5),
                            r"velo_swiglu: args\.dim: expected an integer, got 1\.5"),
                           (lambda: velo.Swiglu(2**64),
                            r"velo_swiglu: args\.dim: expected an integer of 64 bits, got 1844"),
                           (lambda: velo.Cast("float8"),
                            r'velo_cast: args\.dtype: expected one of "float32", "bfloat16", "flo'),
                           (lambda: velo.CrossEntropy(reduction="max"),
                            r"velo_cross_entropy: args\.reduction: expected one of"),
                           (lambda: velo.FusionAttention(True),
                            r"velo_fusion_attention: args\.layout: expected one of .*, got True"),
                           (lambda: velo.RmsNorm(True),
                            r"velo_rms_norm: args\.epsilon: expected a number, got True"),
                           (lambda: velo.RmsNorm(outputs=True),
                            r"velo_rms_norm: outputs: expected names of y, rstd, got True"),
                           (lambda: velo.RmsNorm(gamma=1),
                            r"velo_rms_norm: expected RmsNorm\(epsilon=1e-06, "),
                           (lambda: velo.RmsNorm(outputs="z"),
                            r"velo_rms_norm: outputs: expected names of y, rstd, got 'z'"),
                           (lambda: velo.RmsNorm()
                            (x), r"velo_rms_norm: expected 2 tensors \(x, gamma\), got 1"),
                           (lambda: velo.RmsNorm()
                            (x, 1.0), r"velo_rms_norm: args\.gamma: expected a tensor"),
                           (lambda: velo.Swiglu()(ms.Tensor(np.ones((4, 8)), ms.complex64)),
                            r"velo_swiglu: args\.x\.dtype: expected f32"),
                           (lambda: velo.Swiglu()(self.values(*[1] * 9)),
                            r"velo_swiglu: args\.x\.ndim: expected 0 to 8 dimensions, got 9"),
                           (lambda: velo.FusionAttention()
                            (x, x, x), r"velo_fusion_attention: args\.query"),
                           (lambda: velo.AdamW([], lr="fast").step([]),
                            r"args\.lr: expected a number, got 'fast'")):
            with self.assertRaisesRegex((TypeError, ValueError), text):
                call()

    def test_every_operator_gives_the_results_it_knows(self):
        known = set()
        for op in spec.operators.values():
            name = "".join(part.capitalize() for part in op.name.split("_"))
            for tensors, attributes, results in calls(
                    op, self.numbers,
                {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8", "i8": "i1", "u8": "u1"}):
                made = op.infer(
                    {n: (t.shape, velo._NAMES[ms.Tensor(t).dtype]) for n, t in tensors.items()},
                    op.attributes(attributes))
                if not results or () in (made[n][0]
                                         for n in (*op.required_outputs,
                                                   *results)):  # MindSpore has no outputs of rank 0
                    continue
                run = getattr(velo, name)(**attributes,
                                          tensors=tuple(tensors),
                                          outputs=tuple(results))
                made = run(*(ms.Tensor(t) for t in tensors.values()))
                for (field, want), got in zip(results.items(), made if isinstance(made, tuple) else
                                              (made,)):
                    np.testing.assert_allclose(array(got),
                                               want,
                                               1e-5,
                                               1e-6,
                                               err_msg=f"{op.name}.{field}")
                    known.add(op.name)
        # Results are all of rank 0; the one result is an input that changes in place; an input has
        # a dtype that numpy lacks; fields are lists of tensors.
        self.assertEqual(
            set(spec.operators) - known, {
                "global_norm", "accumulate", "bf16_param_merge", "multi_tensor_adamw",
                "multi_tensor_ema_adamw", "multi_tensor_global_norm", "capacity",
                "grouped_matmul_all_reduce"
            })

    def test_views_and_zero_size(self):
        gain = self.values(8)
        for dtype in BOUND:
            x, weight = self.values(8, 4, dtype=dtype), gain.astype(dtype)
            for view in (x.T, x[::2].T, x.T[:1].expand((4, 8)), x[:, 1:3].T):
                whole = ms.Tensor(view.astype(ms.float32).asnumpy().copy()).astype(dtype)
                norm = velo.RmsNorm()
                width = weight[: view.shape[1]]
                self.assertEqual(distance(norm(view, width), norm(whole, width)), 0)
            self.assertEqual(velo.RmsNorm()(ops.zeros((0, 8), dtype), weight).shape, (0, 8))

    def test_ten_thousand_calls_leak_nothing(self):
        x, gain, norm = self.values(4, 64), self.values(64), velo.RmsNorm()

        def calls(count):
            for _ in range(count):
                norm(x, gain).asnumpy()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        before = calls(2000)
        self.assertLess(calls(10000) - before, 4096, "kibibytes")


if __name__ == "__main__":
    unittest.main()
