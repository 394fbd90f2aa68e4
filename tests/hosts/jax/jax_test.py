"""velo.jax against jax itself: values, gradients, training, layouts, packs, leaks, refusals.

VELO_ADAPTERS names libvelo_adapters.so.
"""
import ctypes
import functools
import itertools
import os
import resource
import subprocess
import sys
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [
    os.path.join(HERE, ".."),
    os.path.join(ROOT, "examples", "jax"),
    os.path.join(ROOT, "capi", "python")
]

from framework import need  # noqa: E402

jax = need("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import train  # noqa: E402
import velo.ctypes as velo_ctypes  # noqa: E402
import velo.jax as velo  # noqa: E402
from operator_examples import calls  # noqa: E402
from velo import spec  # noqa: E402

BOUND = {jnp.float32: 1e-5, jnp.bfloat16: 1e-2}
WIDER = {jnp.float32: 1, jnp.bfloat16: 4}  # gradients go through more roundings


def distance(got, truth):
    got, truth = np.asarray(got, np.float64), np.asarray(truth, np.float64)
    return np.linalg.norm(got - truth) / np.linalg.norm(truth)


def gated(function):
    def run(x):
        gate, up = jnp.split(x, 2, -1)
        return function(gate) * up
    return run


class Stock:
    """velo.jax's functions as jax.numpy composes them. In bfloat16 sums are float32, as they are in
    velo and in every trainer."""

    @staticmethod
    def rms_norm(x, gamma, epsilon=1e-6):
        single = x.astype(jnp.float32)
        return (single * jax.lax.rsqrt(jnp.mean(single * single, -1, keepdims=True) + epsilon)
               ).astype(x.dtype) * gamma

    @staticmethod
    def layer_norm(x):
        single = x.astype(jnp.float32)
        single -= jnp.mean(single, -1, keepdims=True)
        return single * jax.lax.rsqrt(jnp.mean(single * single, -1, keepdims=True) + 1e-5)

    @staticmethod
    def swiglu(x, dim=-1):
        gate, up = jnp.split(x, 2, dim)
        return jax.nn.silu(gate) * up

    @staticmethod
    def rotary_position_embedding(x, cos, sin, mode="half"):
        if mode == "half":
            half = x.shape[-1] // 2
            rotated = jnp.concatenate((-x[..., half:], x[..., :half]), -1)
        else:
            rotated = jnp.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)
        return (x * cos + rotated * sin).astype(x.dtype)

    @staticmethod
    def fusion_attention(query, key, value, scale=1.0, sparse_mode="full"):
        group = query.shape[2] // key.shape[2]
        key, value = jnp.repeat(key, group, 2), jnp.repeat(value, group, 2)
        score = scale * jnp.einsum(
            "bsnd,btnd->bnst", query, key, preferred_element_type=jnp.float32)
        if sparse_mode == "left_up_causal":
            score = jnp.where(jnp.tril(jnp.ones(score.shape[-2:], bool)), score, -jnp.inf)
        return jnp.einsum("bnst,btnd->bsnd", jax.nn.softmax(score, -1).astype(value.dtype), value)

    @staticmethod
    def embedding(ids, table):
        return table[ids]

    @staticmethod
    def cross_entropy(logits, targets, ignore_index=-100, reduction="mean"):
        kept = targets != ignore_index
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits.astype(jnp.float32), -1),
                                     jnp.where(kept, targets, 0)[:, None], 1)[:, 0]
        loss = jnp.where(kept, -picked, 0)
        return {"none": loss, "sum": loss.sum(), "mean": loss.sum() / kept.sum()}[reduction]

    @staticmethod
    def cast(x, dtype):
        return x.astype(dtype)

    @staticmethod
    def apply_fused_adamw(grad,
                          param,
                          m,
                          v,
                          step=1,
                          lr=1e-3,
                          beta1=0.9,
                          beta2=0.999,
                          epsilon=1e-8,
                          weight_decay=0.0):
        m, v = beta1 * m + (1 - beta1) * grad, beta2 * v + (1 - beta2) * grad * grad
        update = m / (1 - beta1**step) / (jnp.sqrt(v / (1 - beta2**step)) + epsilon)
        return param * (1 - lr * weight_decay) - lr * update, m, v


class Jax(unittest.TestCase):
    def setUp(self):
        self.numbers = np.random.default_rng(11)

    def values(self, *shape, dtype=jnp.float32):
        return jnp.asarray(self.numbers.standard_normal(shape), jnp.float32).astype(dtype)

    def compare(self, name, ours, theirs, *leaves):
        """Values and gradients under jit; the reference computes in float32 from the same
        numbers."""
        dtype = leaves[0].dtype.type
        shape = jax.eval_shape(ours, *leaves)
        weight = self.values(*shape.shape,
                             dtype=shape.dtype)  # the gradient of the output, the same for both

        def both(compute):
            @jax.jit
            def run(weight, *x):
                value, back = jax.vjp(compute, *x)
                return value, back(weight)
            return run

        got, have = both(ours)(weight, *leaves)
        truth, want = both(theirs)(weight.astype(jnp.float32),
                                   *[leaf.astype(jnp.float32) for leaf in leaves])
        self.assertEqual(got.shape, truth.shape, name)
        self.assertLessEqual(distance(got, truth), BOUND[dtype], name)
        for index, (h, w) in enumerate(zip(have, want)):
            self.assertEqual(h.dtype, leaves[index].dtype, name)
            self.assertLessEqual(distance(h, w), BOUND[dtype] * WIDER[dtype],
                                 f"{name} gradient {index}")

    def test_values_and_gradients(self):
        targets = jnp.asarray(self.numbers.integers(0, 40, 30)).at[7].set(-100)
        ids = jnp.asarray(self.numbers.integers(0, 12, (3, 5)))
        angle = self.values(1, 9, 1, 16)
        tables = jnp.cos(angle), jnp.sin(angle)
        for dtype in BOUND:
            x = self.values(6, 40, dtype=dtype)
            self.compare("rms_norm", velo.rms_norm, Stock.rms_norm, x, self.values(40, dtype=dtype))
            self.compare("swiglu", velo.swiglu, Stock.swiglu, x)
            self.compare("swiglu along rows", lambda x: velo.swiglu(x, 0),
                         lambda x: Stock.swiglu(x, 0), x)
            q = self.values(2, 9, 4, 16, dtype=dtype)
            k, v = (self.values(2, 9, 2, 16, dtype=dtype) for _ in range(2))
            for mode in ("half", "interleaved"):
                self.compare("rotary " + mode,
                             lambda x: velo.rotary_position_embedding(x, *tables, mode=mode),
                             lambda x: Stock.rotary_position_embedding(x, *tables, mode), q)
            for mode in ("full", "left_up_causal"):
                self.compare(
                    "fusion_attention",
                    lambda q, k, v: velo.fusion_attention(q, k, v, scale=0.25, sparse_mode=mode),
                    lambda q, k, v: Stock.fusion_attention(q, k, v, 0.25, mode), q, k, v)
            self.compare("embedding", lambda t: velo.embedding(ids, t),
                         lambda t: Stock.embedding(ids, t), self.values(12, 20, dtype=dtype))
            for reduction in ("mean", "sum", "none"):
                self.compare("cross_entropy " + reduction,
                             lambda x: velo.cross_entropy(x, targets, reduction=reduction),
                             lambda x: Stock.cross_entropy(x, targets, -100, reduction),
                             self.values(30, 40, dtype=dtype))
            self.compare("add", velo.add, lambda a, b: a + b, x, self.values(6, 40, dtype=dtype))
        self.compare("cast", lambda x: velo.cast(x, jnp.bfloat16).astype(jnp.float32),
                     lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), self.values(6, 40))

    def test_every_operator_gives_the_results_it_knows(self):
        known = set()
        with jax.enable_x64(True):  # the sum of global_norm is float64
            for op in spec.operators.values():
                for tensors, attributes, results in calls(op, self.numbers, velo._DTYPES):
                    made = getattr(velo, op.name)(**tensors, **attributes, outputs=tuple(results))
                    for (name, want), got in zip(results.items(), made):
                        np.testing.assert_allclose(np.asarray(got, np.float64),
                                                   want,
                                                   1e-5,
                                                   1e-6,
                                                   err_msg=f"{op.name}.{name}")
                        known.add(op.name)
        self.assertEqual(known, {op.name for op in spec.operators.values() if not op.takes_lists})

    def test_a_loop_compiles_one_program(self):
        """1500 steps of the jitted update of one small parameter, step and rate as numbers of an
        array: one program, bounded memory."""
        @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
        def update(p, m, v, step):
            return velo.apply_fused_adamw(p, p, m, v, step=step, lr=1e-2 / step)

        state = [self.values(64), jnp.zeros(64), jnp.zeros(64)]
        for step in range(1, 1501):
            if step == 100:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            state = update(*state, jnp.asarray(step))
        jax.block_until_ready(state)
        self.assertEqual(update._cache_size(), 1)
        self.assertLess(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 4096, "kibibytes")

    def test_second_derivatives_are_refused(self):
        x, gain = self.values(4, 8), self.values(8)
        slope = jax.grad(lambda x: velo.rms_norm(x, gain).sum())
        with self.assertRaisesRegex(TypeError,
                                    "velo_rms_norm_backward: .*velo has no second derivatives"):
            jax.grad(lambda x: slope(x).sum())(x)
        with self.assertRaisesRegex(TypeError, "velo_global_norm: .*velo has none of it"):
            jax.grad(velo.global_norm)(x)
        with self.assertRaisesRegex(
                TypeError, "velo_rms_norm: expected a gradient of y alone, got one of rstd"):
            jax.grad(lambda x: velo.rms_norm(x, gain, outputs="rstd").sum())(x)
        product = jax.grad(lambda a: jax.grad(lambda a: (velo.matmul(a, a) ** 2).sum())(a).sum())
        square = self.values(6, 6)
        truth = jax.grad(lambda a: jax.grad(lambda a: ((a @ a) ** 2).sum())(a).sum())
        self.assertLessEqual(distance(product(square), truth(square)), 1e-5)

    def test_gradients_know_of_the_mask(self):
        q, k, v = (self.values(2, 3, n, 16) for n in (5, 7, 7))
        mask, pse = self.values(5, 7) > 0.5, self.values(1, 3, 5, 7)
        given = {"layout": "bnsd", "scale": 0.25, "pse_type": "added_after_scale"}

        def stock(q, k, v, pse):
            score = 0.25 * jnp.einsum("bnsd,bntd->bnst", q, k) + pse
            shown = jnp.where(mask, -1e30, score)
            return jnp.where(mask, 0, jax.nn.softmax(shown)) @ v

        self.compare(
            "mask", lambda q, k, v: velo.fusion_attention(
                q, k, v, atten_mask=mask.astype(jnp.uint8), **given),
            lambda q, k, v: stock(q, k, v, 0), q, k, v)
        self.compare(
            "mask and pse", lambda q, k, v, pse: velo.fusion_attention(
                q, k, v, atten_mask=mask.astype(jnp.uint8), pse=pse, **given), stock, q, k, v, pse)

    def test_tables_of_rotary_embedding_learn(self):
        x, angle = self.values(2, 9, 4, 16), self.values(1, 9, 1, 16)
        self.compare("rotary tables", lambda x, c, s: velo.rotary_position_embedding(x, c, s),
                     lambda x, c, s: Stock.rotary_position_embedding(x, c, s), x, jnp.cos(angle),
                     jnp.sin(angle))

    def test_matmul(self):
        for dtype in BOUND:
            for a, b in itertools.product((0, 1), repeat=2):
                left = self.values(*((24, 7) if a else (3, 7, 24)), dtype=dtype)
                right = self.values(*((10, 24) if b else (24, 10)), dtype=dtype)
                self.compare(f"matmul {a} {b}",
                             lambda x, y, z: velo.matmul(x, y, z, transpose_a=a, transpose_b=b),
                             lambda x, y, z: (x.T if a else x) @ (y.T if b else y) + z, left, right,
                             self.values(10, dtype=dtype))
        weight, cast = self.values(512, 6), {"dtype": jnp.bfloat16}
        factors = self.values(512, 8, **cast), self.values(8, 6, **cast)
        of_bias = jax.grad(lambda bias:
                           (velo.matmul(*factors, bias, dtype="float32") * weight).sum())(
                               self.values(6))
        want = np.float64(weight).sum(
            0)  # of a float32 product, not of its gradient rounded to bfloat16
        self.assertLessEqual(
            np.abs(np.float64(of_bias) - want).max(),
            1e-6 * np.abs(np.float64(weight)).sum(0).max())
        a, b, c = self.values(7, 24), self.values(24, 10), self.values(7, 10)
        self.compare("matmul adds", lambda a, b, c: velo.matmul(a, b, c=c),
                     lambda a, b, c: a @ b + c, a, b, c)

    def test_wrong_calls_name_operator_and_argument(self):
        x, gain = self.values(4, 8), self.values(8)
        for call, text in (
            (lambda: velo.rms_norm(x),
             r"velo_rms_norm: expected rms_norm\(x, gamma, epsilon=1e-06.*missing .*'gamma'"),
            (lambda: velo.swiglu(x, 1.5), r"velo_swiglu: args\.dim: expected an integer, got 1\.5"),
            (lambda: velo.swiglu(x, 2**70),
             r"velo_swiglu: args\.dim: expected an integer of 64 bits, got 1180"),
            (lambda: velo.swiglu(x, True + 0.0),
             r"velo_swiglu: args\.dim: expected an integer, got 1\.0"),
            (lambda: velo.cast(x, "float8"),
             r'velo_cast: args\.dtype: expected one of "float32", "bfloat16", "float16"'),
            (lambda: velo.rms_norm(x, gain, "small"),
             r"velo_rms_norm: args\.epsilon: expected a number, got 'small'"),
            (lambda: velo.rms_norm("x", gain),
             r"velo_rms_norm: args\.x: expected an array, got str"),
            (lambda: velo.rms_norm(x, 1e-6),
             r"velo_rms_norm: args\.gamma: expected an array, got 1e-06"),
            (lambda: velo.apply_fused_adamw(x, x, x, x, 0.1),
             r"velo_apply_fused_adamw: args\.scale: expected an array, got 0"),
            (lambda: velo.rms_norm(x, gain, outputs="z"),
             r"velo_rms_norm: outputs: expected names of y, rstd, got 'z'"),
            (lambda: velo.rms_norm(x, gain, outputs=True),
             r"velo_rms_norm: outputs: expected names of y, rstd, got True"),
            (lambda: jax.jit(lambda d: velo.swiglu(x, d))
             (1), r"velo_swiglu: args\.dim: expected a value that is known"),
            (lambda: velo.apply_fused_adamw(x, x, x, x, step=jnp.ones(
                ())), r"args\.step: expected int32 or int64, got f"),
            (lambda: velo.apply_fused_adamw(x, x, x, x, step=jnp.uint32(7)),
             r"velo_apply_fused_adamw: args\.step: expected int32 or int64, got uint32"),
            (lambda: velo.matmul(x, x, accumulate=1),
             r"velo_matmul: args\.accumulate: expected the sum so far")):
            with self.assertRaisesRegex((TypeError, ValueError), text):
                call()
        with self.assertRaisesRegex(jax.errors.JaxRuntimeError,
                                    r"apply_fused_adamw: args\.step_tensor: expected .* got 0"):
            jax.block_until_ready(velo.apply_fused_adamw(x, x, x, x, step=jnp.asarray(0)))

    def test_true_and_false_are_taken_for_flags_alone(self):
        """Every attribute of every operator: in another's place they were meant for an argument
        that lies elsewhere."""
        kinds = {
            "enumeration": "one of ", "i64": "an integer", "f64": "a number",
            "ints": "a list of integers", "handle": "an integer", "text": "a text"
        }
        for op in spec.operators.values():
            for name, value in itertools.product(op.attribute_names, (True, np.False_)):
                field = op.fields[name]
                if field.kind == "bool":
                    self.assertIn(
                        op.attributes({name: value}).get(name, field.default),
                        (int(value), bool(value)))
                    continue
                for given in (value, [value]) if field.kind == "ints" else (value,):
                    with self.assertRaisesRegex(
                            ValueError,
                            rf"velo_{op.name}: args\.{name}: expected {kinds[field.kind]}.*, got"):
                        op.attributes({name: given})
        q = self.values(1, 4, 2, 8)
        with self.assertRaisesRegex(
                ValueError, r"velo_fusion_attention: args\.layout: expected one of .*, got True"):
            velo.fusion_attention(q, q, q, layout=True)

    def test_a_count_of_steps_in_python_is_warned_of_once(self):
        """Each is a program; an array is one for all. Two steps are a trial, and rates of a few
        groups of parameters are no schedule."""
        state = [self.values(6), self.values(6), jnp.zeros(6), jnp.zeros(6)]
        for name, few, values in (("step", 2, range(2, 7)), ("lr", 8,
                                                             [0.01 * i for i in range(1, 12)])):
            velo._values.clear()
            texts = []
            for value in values:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    velo.apply_fused_adamw(*state, **{name: value})
                    velo.apply_fused_adamw(*state, **{name: jnp.asarray(value)})
                texts.append([(str(w.message), w.filename) for w in caught])
            self.assertEqual([len(each) for each in texts],
                             [0] * few + [1] + [0] * (len(texts) - few - 1), name)
            text, where = texts[few][0]
            self.assertRegex(
                text,
                rf"velo_apply_fused_adamw: args\.{name}: .*{few + 1} have "
                rf"come.*{name}=jnp\.asarray\({name}\)"
            )
            self.assertEqual(where, __file__)

    def test_adamw(self):
        state = [
            self.values(50),
            self.values(50),
            jnp.abs(self.values(50)) * 0.1,
            jnp.abs(self.values(50))
        ]
        for step in (1, 7):
            options = {"lr": 1e-2, "beta1": 0.8, "weight_decay": 0.3}
            before = [np.array(t) for t in state]
            got = velo.apply_fused_adamw(*state, step=step, **options)
            for have, want in zip(got, Stock.apply_fused_adamw(*state, step=step, **options)):
                self.assertLessEqual(distance(have, want), 1e-6)
            for kept, now in zip(before, state):
                self.assertTrue(np.array_equal(kept, now),
                                "an argument that was not donated has changed")

    def test_steps_of_any_integer_that_fits_are_taken(self):
        """A step beyond the integer velo takes would wrap: it is refused, by its dtype, since its
        value is not known yet."""
        state = [self.values(50), self.values(50), jnp.zeros(50), jnp.zeros(50)]
        want = velo.apply_fused_adamw(*state, step=7)
        for kind in ("int8", "uint8", "int16", "uint16", "int32"):
            self.assertTrue(
                np.array_equal(
                    velo.apply_fused_adamw(*state, step=jnp.asarray(7, kind))[0], want[0]), kind)
        with jax.enable_x64(True):
            for kind in ("uint32", "int64"):
                self.assertTrue(
                    np.array_equal(
                        velo.apply_fused_adamw(*state, step=jnp.asarray(7, kind))[0], want[0]),
                    kind)
            with self.assertRaisesRegex(
                    TypeError,
                    r"velo_apply_fused_adamw: args\.step: expected int32 or int64, got uint64"):
                velo.apply_fused_adamw(*state, step=jnp.asarray(7, "uint64"))

    def test_programs_are_exported(self):
        """With the handlers named, as the page says; sizes that are symbols are refused by name."""
        from jax import export
        x, gain = self.values(4, 8), self.values(8)
        step = jax.jit(
            jax.value_and_grad(lambda x, gain: velo.swiglu(velo.rms_norm(x, gain)).sum()))
        with self.assertRaisesRegex(ValueError, "custom_call @velo_"):
            export.export(step)(x, gain)
        names = ("velo_rms_norm", "velo_rms_norm_backward", "velo_swiglu", "velo_swiglu_backward")
        exported = export.export(step,
                                 disabled_checks=[
                                     export.DisabledSafetyCheck.custom_call(name) for name in names
                                 ])(x, gain)
        for got, want in zip(exported.call(x, gain), step(x, gain)):
            self.assertTrue(np.array_equal(got, want))
        rows = jax.ShapeDtypeStruct((export.symbolic_shape("rows")[0], 8), jnp.float32)
        with self.assertRaisesRegex(
                ValueError,
                r"velo_rms_norm: args\.x\.shape: expected sizes that are numbers .*, got \[rows, "
                r"8\]"
        ):
            export.export(step)(rows, gain)

    def test_importing_velo_is_all_that_an_exported_program_needs(self):
        """It calls its handlers by name, in a process that has called none of velo's functions."""
        program = (
            "import jax, jax.numpy as jnp, velo.jax\n"
            "print(jax.ffi.ffi_call('velo_add', jax.ShapeDtypeStruct((2,), "
            "jnp.float32))(jnp.ones(2), jnp.ones(2)))"
        )
        done = subprocess.run([sys.executable, "-c", program],
                              env={**os.environ, "PYTHONPAT"
                                                 "H": os.path.join(ROOT, "capi", "python")},
                              capture_output=True,
                              text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "[2. 2.]\n"), done.stderr)

    def test_donated_buffers_are_updated_in_place(self):
        update = jax.jit(lambda p, g, m, v: velo.apply_fused_adamw(g, p, m, v),
                         donate_argnums=(0, 2, 3))
        p, g, m, v = (self.values(1000) for _ in range(4))
        v = jnp.abs(v)
        places = [t.unsafe_buffer_pointer() for t in (p, m, v)]
        self.assertEqual(places, [t.unsafe_buffer_pointer() for t in update(p, g, m, v)])

    def losses(self, operators, dtype, steps=20):
        """The training example's steps, and the first gradients, with its operators taken from
        `operators`."""
        names = [name for name in vars(Stock) if not name.startswith("_")]
        kept = train.velo
        train.velo = type("operators", (),
                          {name: staticmethod(getattr(operators, name)) for name in names})
        jax.clear_caches()
        try:
            w = train.initial(jax.random.PRNGKey(0))
            m, v = ({name: jnp.zeros(value.shape) for name, value in w.items()} for _ in range(2))
            losses, first = [], None
            for step in range(1, steps + 1):
                start = jax.random.randint(jax.random.PRNGKey(step), (train.BATCH, 1), 0,
                                           train.SYMBOLS)
                symbols = (start + 3 * jnp.arange(train.LENGTH + 1)) % train.SYMBOLS
                if first is None:
                    first = {
                        name: np.array(g)
                        for name, g in jax.grad(train.loss_of)(w, symbols, dtype).items()
                    }
                loss, w, m, v = train.train_step(w, m, v, symbols, jnp.asarray(step), dtype)
                losses.append(float(loss))
            return losses, first
        finally:
            train.velo = kept

    def test_twenty_steps_agree(self):
        ours, our_first = self.losses(velo, jnp.float32)
        theirs, their_first = self.losses(Stock, jnp.float32)
        for have, want in zip(ours, theirs):
            self.assertLessEqual(abs(have - want) / want, 1e-4)
        for name, want in their_first.items():
            self.assertLessEqual(distance(our_first[name], want), 1e-5, name)
        self.assertLess(ours[-1], 0.5 * ours[0], "nothing was learned")
        self.check_bfloat16(their_first)

    def check_bfloat16(self, truth):
        """bfloat16's tolerance is what it costs jax itself: gradients no farther from the float32
        ones than jax's own, within a quarter. The losses of both stay within 2e-2 of each other,
        five roundings by 2^-8."""
        ours, our_first = self.losses(velo, jnp.bfloat16)
        theirs, their_first = self.losses(Stock, jnp.bfloat16)
        for have, want in zip(ours, theirs):
            self.assertLessEqual(abs(have - want) / want, 2e-2)
        for name, want in truth.items():
            self.assertLessEqual(distance(our_first[name], want),
                                 1.25 * distance(their_first[name], want), name)

    def test_refusals_carry_the_record(self):
        x, gain = self.values(4, 8), self.values(7)
        for call in (velo.rms_norm, jax.jit(velo.rms_norm)):
            with self.assertRaisesRegex(
                    ValueError, r"velo_rms_norm: args\.gamma\.shape: expected .*\[8\].*got \[7\]"):
                call(x, gain)
        with self.assertRaisesRegex(
                ValueError,
                r"velo_swiglu: args\.x\.dtype: expected float32, bfloat16 or float16, got int32"):
            velo.swiglu(x.astype(jnp.int32))
        with self.assertRaisesRegex(
                jax.errors.JaxRuntimeError,
                r"velo_xla_embedding: args\.ids: expected indices in \[0, 4\), got 4"):
            jax.block_until_ready(velo.embedding(jnp.asarray([4]), x))
        self.assertEqual(velo.rms_norm(x, self.values(8)).shape, (4, 8))  # the next call is served

    def test_zero_size(self):
        gain = self.values(8)
        self.assertEqual(velo.rms_norm(jnp.zeros((0, 8)), gain).shape, (0, 8))
        dx, dgain = jax.grad(lambda x, g: velo.rms_norm(x, g).sum(), (0, 1))(jnp.zeros((0, 8)),
                                                                             gain)
        self.assertEqual(dx.shape, (0, 8))
        self.assertTrue(np.array_equal(dgain, np.zeros(8)))
        self.assertEqual(velo.swiglu(jnp.zeros((3, 0))).shape, (3, 0))
        for dtype in BOUND:
            empty = jnp.zeros((0, 5, 4, 16), dtype)
            self.assertEqual(
                jax.grad(lambda q: velo.fusion_attention(q, q, q, scale=0.25).astype(jnp.float32).
                         sum())(empty).shape, empty.shape)
            self.assertEqual(
                velo.embedding(jnp.zeros((0,), jnp.int32), jnp.ones((12, 20), dtype)).shape,
                (0, 20))

    def test_layouts_are_read_right(self):
        """Operators get compact buffers: XLA lays out anew what is transposed or broadcast, inside
        a program as outside."""
        x, gain = self.values(40, 6), self.values(40)
        row = self.values(1, 40)
        for dtype in BOUND:
            x, gain, row = (t.astype(dtype) for t in (x, gain, row))
            for view, whole in ((lambda x, _: x.T, np.array(x.T)),
                                (lambda _, row: jnp.broadcast_to(row,
                                                                 (6, 40)), np.tile(row, (6, 1)))):
                want = velo.rms_norm(jnp.asarray(whole), gain)
                self.assertTrue(
                    np.array_equal(
                        jax.jit(lambda x, row, g: velo.rms_norm(view(x, row), g))(x, row, gain),
                        want))
                self.assertTrue(np.array_equal(velo.rms_norm(view(x, row), gain), want))
            for array in (np.array(x).T, np.broadcast_to(np.array(row), (6, 40)),
                          np.array(x)[::2].T):  # numpy's own strides
                weight = gain[: array.shape[1]]
                self.assertTrue(
                    np.array_equal(velo.rms_norm(array, weight),
                                   velo.rms_norm(array.copy(), weight)))
        transposed = jax.grad(lambda x: (velo.swiglu(x.T) * self.values(6, 20)).sum())(self.values(
            40, 6))
        self.assertEqual(transposed.shape, (40, 6))

    def test_a_pack_serves_calls_of_any_context(self):
        """The pack is made and filled in the adapters' own context; jax's calls run in the one on
        XLA's threads, or the host's."""
        lib = velo_ctypes.load(os.environ["VELO_ADAPTERS"])
        own, stream, pack, host = (kind()
                                   for kind in (velo_ctypes.velo_context, velo_ctypes.velo_stream,
                                                velo_ctypes.velo_pack, velo_ctypes.velo_context))
        velo_ctypes.check(lib, lib.velo_adapters_context(ctypes.byref(own)))
        velo_ctypes.check(lib, lib.velo_context_stream(own, ctypes.byref(stream)))
        velo_ctypes.check(lib, lib.velo_context_create(None, ctypes.byref(host)))
        desc = velo_ctypes.velo_pack_desc(dtype=velo_ctypes.velo_dtype(
            velo_ctypes.VELO_DTYPE_FLOAT, 32, 1),
                                          k=48,
                                          n=40)
        velo_ctypes.check(lib, lib.velo_pack_create(own, ctypes.byref(desc), ctypes.byref(pack)))
        a = self.values(7, 48)

        def fill(weight):
            view = velo_ctypes.velo_tensor(data=weight.ctypes.data,
                                           device=velo_ctypes.velo_device(
                                               velo_ctypes.VELO_DEVICE_CPU, 0),
                                           ndim=2,
                                           dtype=desc.dtype,
                                           shape=(ctypes.c_int64 * 2)(48, 40))
            velo_ctypes.check(lib, lib.velo_pack_update(stream, pack, ctypes.byref(view)))

        product = jax.jit(lambda a: velo.matmul(a, packed=pack.value))
        for context in (None, host, None):
            lib.velo_adapters_set_context(context)
            weight = np.array(self.values(48, 40))
            fill(weight)
            self.assertLessEqual(distance(product(a), np.float64(a) @ np.float64(weight)), 1e-6)
        lib.velo_pack_destroy(pack)
        with self.assertRaisesRegex((ValueError, jax.errors.JaxRuntimeError),
                                    r"args\.packed: expected a pack, got a destroyed"):
            jax.block_until_ready(product(a))
        lib.velo_context_destroy(host)

    def test_ten_thousand_calls_leak_nothing(self):
        step = jax.jit(lambda x, g: jax.grad(lambda x, g: velo.swiglu(velo.rms_norm(x, g)).sum(),
                                             (0, 1))(x, g))
        x, gain = self.values(4, 64), self.values(64)

        def calls(count):
            for _ in range(count):
                jax.block_until_ready(step(x, gain))
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        before = calls(1000)
        self.assertLess(calls(10000) - before, 2048, "kibibytes")

    def test_results_do_not_depend_on_jit(self):
        x, gain = self.values(64, 128), self.values(128)
        eager = velo.swiglu(velo.rms_norm(x, gain))
        self.assertTrue(
            np.array_equal(eager,
                           jax.jit(lambda x, g: velo.swiglu(velo.rms_norm(x, g)))(x, gain)))


if __name__ == "__main__":
    unittest.main()
