"""velo.jax under vmap, shard_map and over four devices: the same numbers as one call after another,
and rows stay where they are.

VELO_ADAPTERS names libvelo_adapters.so. What the description calls independent is held to it on the
operators' own examples.
"""
import os
import sys
import unittest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS",
                                         "") + " --xla_force_host_platform_device_count=4"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [
    os.path.join(HERE, ".."),
    os.path.join(HERE, "..", "..", "..", "capi", "python")
]

from framework import need  # noqa: E402

jax = need("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P  # noqa: E402

import velo.jax as velo  # noqa: E402
from operator_examples import calls  # noqa: E402
from velo import spec  # noqa: E402

jax.config.update("jax_enable_x64", True)  # for the float64 sum of global_norm's examples


def close(got, want, bound=1e-5):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return np.linalg.norm(got - want) <= bound * max(np.linalg.norm(want), 1e-30)


class Devices(unittest.TestCase):
    def setUp(self):
        self.numbers = np.random.default_rng(11)
        self.mesh = jax.make_mesh((4,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))

    def values(self, *shape, dtype=jnp.float32):
        return jnp.asarray(self.numbers.standard_normal(shape), jnp.float32).astype(dtype)

    def spread(self, x, *axes):
        return jax.device_put(x, NamedSharding(self.mesh, P(*axes)))

    def check(self, what, got, want, bound=1e-5):
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            self.assertEqual(g.shape, w.shape, what)
            self.assertTrue(close(g, w, bound), what)

    # ---- what the description says of rows

    def test_independent_axes_are_independent(self):
        """Each entry of an independent axis alone gives its entry of the outputs, and sums add up
        over all entries."""
        tried = set()
        for op in spec.operators.values():
            for tensors, attributes, _known in calls(op, self.numbers, velo._DTYPES):
                checked = op.attributes(attributes)
                shapes = {name: t.shape for name, t in tensors.items()}
                made = {
                    name: shape for name, (shape, _) in op.infer(
                        {name: (t.shape, velo._NAMES[t.dtype])
                         for name, t in tensors.items()}, checked).items()
                }
                axes = op.axes(checked, {**made, **shapes})
                outputs = tuple(made)
                whole = self.run_op(op, tensors, attributes, outputs)
                for axis in {a for name in axes for a in axes[name] if a}:
                    self.hold(op, axis, axes, tensors, attributes, outputs, whole)
                    tried.add(op.name)
        self.assertEqual(tried, {op.name for op in spec.operators.values() if op.rows})

    def run_op(self, op, tensors, attributes, outputs):
        return dict(zip(outputs, getattr(velo, op.name)(**tensors, **attributes, outputs=outputs)))

    def hold(self, op, axis, axes, tensors, attributes, outputs, whole):
        size = next(
            t.shape[axes[name].index(axis)] for name, t in tensors.items() if axis in axes[name])
        parts = []
        for i in range(size):
            part = {
                name: np.take(t, [i], axes[name].index(axis)) if axis in axes[name] else t
                for name, t in tensors.items()
            }
            parts.append(self.run_op(op, part, attributes, outputs))
        for name in outputs:
            got = [np.asarray(part[name], np.float64) for part in parts]
            got = np.concatenate(got, axes[name].index(axis)) if axis in axes[name] else np.sum(
                got, 0)
            self.assertTrue(close(got, whole[name]), f"{op.name}.{name} along {axis}")

    # ---- vmap

    def test_vmap_gives_what_one_call_after_another_gives(self):
        for op in spec.operators.values():
            for tensors, attributes, _known in calls(op, self.numbers, velo._DTYPES):
                names = list(tensors)
                stacked = {
                    name: np.stack([t, t[::-1], t] if t.ndim else [t] * 3)
                    for name, t in tensors.items()
                }
                for batched in ([True] * len(names),
                                *([i == j for i in range(len(names))] for j in range(len(names)))):
                    if "dcombine" in names and not all(batched):
                        continue  # positions are of these indices alone
                    def call(*given):
                        return getattr(velo, op.name)(**dict(zip(names, given)), **attributes)
                    got = jax.vmap(call, [0 if b else None for b in batched])(
                        *(stacked[name] if b else tensors[name] for name, b in zip(names, batched)))
                    each = [
                        call(*(stacked[name][i] if b else tensors[name]
                               for name, b in zip(names, batched)))
                        for i in range(3)
                    ]
                    self.check(f"{op.name} {batched}", got,
                               jax.tree.map(lambda *t: jnp.stack(t), *each))

    def test_vmap_of_rows_is_one_call(self):
        gain, table = self.values(8), self.values(9, 8)
        head = self.values(5, 9, 2, 16)
        for call, x in ((lambda x: velo.rms_norm(x, gain), self.values(5, 4,
                                                                       8)), (velo.swiglu,
                                                                             self.values(5, 4, 8)),
                        (lambda i: velo.embedding(i, table), jnp.zeros(
                            (5, 4), jnp.int32)), (lambda x: velo.add(x, gain), self.values(5, 8)),
                        (lambda q: velo.fusion_attention(q[None], q[None], q[None]),
                         head), (lambda x: velo.cross_entropy(x, jnp.zeros(4, jnp.int32)),
                                 self.values(5, 4, 8))):
            text = str(jax.make_jaxpr(jax.vmap(call))(x))
            self.assertEqual((text.count("ffi_call["), text.count("scan[")), (1, 0), text)

    def test_vmap_of_gradients(self):
        x, gain = self.values(5, 4, 8), self.values(8)
        grad = jax.grad(lambda x, g: (velo.rms_norm(x, g) ** 2).sum(), (0, 1))
        self.check("per entry",
                   jax.vmap(grad, (0, None))(x, gain),
                   [jnp.stack(t) for t in zip(*(grad(each, gain) for each in x))])
        together = jax.grad(lambda x, g: (jax.vmap(velo.rms_norm, (0, None))(x, g)**2).sum(),
                            (0, 1))
        self.check("of all", together(x, gain), grad(x, gain))
        nested = jax.vmap(jax.vmap(velo.rms_norm, (0, None)), (0, None))(x[:, :, None], gain)
        self.check("nested", nested, velo.rms_norm(x[:, :, None], gain))

    # ---- shard_map

    def test_gradients_under_shard_map_with_its_default_check(self):
        x, gain, table = self.values(8, 4, 16), self.values(16), self.values(12, 16)
        ids, targets = jnp.arange(8).reshape(8, 1) % 12, jnp.arange(32).reshape(8, 4) % 16

        def loss(w, ids, x, targets):
            y = velo.rms_norm(x + velo.embedding(ids, w["table"]), w["gain"])
            y = velo.add(y, velo.swiglu(velo.matmul(y, w["up"])))
            q = y.reshape(*y.shape[:2], 2, 8)
            y = velo.fusion_attention(q, q, q, scale=0.3).reshape(y.shape)
            return velo.cross_entropy(y.reshape(-1, 16), targets.reshape(-1), reduction="sum")

        w = {"gain": gain, "table": table, "up": self.values(16, 32)}

        def step(w, ids, x, targets):
            value, gradients = jax.value_and_grad(loss)(w, ids, x, targets)
            return jax.lax.psum(value, "rows"), gradients

        rows = P("rows")
        mapped = jax.jit(
            jax.shard_map(step,
                          mesh=self.mesh,
                          in_specs=(P(), rows, rows, rows),
                          out_specs=(P(), P())))
        self.check("shard_map", mapped(w, ids, x, targets),
                   jax.value_and_grad(loss)(w, ids, x, targets), 1e-4)
        per_row = jax.jit(
            jax.shard_map(jax.grad(lambda x, g: (velo.rms_norm(x, g)**2).sum(), (0, 1)),
                          mesh=self.mesh,
                          in_specs=(rows, P()),
                          out_specs=(rows, P())))
        self.check("both", per_row(x, gain),
                   jax.grad(lambda x, g: (velo.rms_norm(x, g)**2).sum(), (0, 1))(x, gain))

    # ---- over devices

    def text_of(self, call, *given):
        return jax.jit(call).lower(*given).compile().as_text()

    def stays(self, text, what):
        moved = [
            word for word in ("all-gather", "all-to-all", "collective-permute") if word in text
        ]
        self.assertEqual(moved, [], what)

    def test_rows_stay_where_they_are(self):
        x, gain, table = self.spread(self.values(8, 6, 16),
                                     "rows"), self.values(16), self.values(12, 16)
        ids = self.spread(jnp.arange(48).reshape(8, 6) % 12, "rows")
        q = self.spread(self.values(8, 6, 2, 8), "rows")
        angle = self.values(1, 6, 1, 8)
        logits, targets = self.spread(self.values(48, 16),
                                      "rows"), self.spread(jnp.arange(48) % 16, "rows")
        cases = {
            "rms_norm": (lambda x: velo.rms_norm(x, gain), x), "swiglu": (velo.swiglu, x),
            "cast": (lambda x: velo.cast(x, "bfloat16"), x), "embedding":
                (lambda i: velo.embedding(i, table), ids), "add": (lambda x: velo.add(x, x), x),
            "matmul": (lambda x: velo.matmul(x, table, transpose_b=1), x), "fusion_attention":
                (lambda q: velo.fusion_attention(q, q, q), q), "rotary":
                    (lambda q: velo.rotary_position_embedding(q, angle, angle), q), "cross_entropy":
                        (lambda x: velo.cross_entropy(x, targets, reduction="none"), logits)
        }
        for name, (call, given) in cases.items():
            for made in (jax.jit(call)(given), call(given)):
                self.assertEqual(made.sharding.spec[0], "rows", name)
                self.check(name, made, call(np.asarray(given)))
            self.stays(self.text_of(call, given), name)
        columns = self.spread(self.values(8, 16), None, "rows")  # no rows: gathered, and right
        self.check("columns",
                   jax.jit(lambda x: velo.rms_norm(x, gain))(columns),
                   velo.rms_norm(np.asarray(columns), gain))
        uneven = self.values(6, 16)
        self.check(
            "uneven",
            jax.jit(lambda x: velo.rms_norm(
                jax.lax.with_sharding_constraint(x, NamedSharding(self.mesh, P("rows"))), gain))(
                    uneven), velo.rms_norm(uneven, gain))

    def test_gradients_are_summed_over_devices(self):
        x, gain, table = self.values(8, 6, 16), self.values(16), self.values(12, 16)
        ids, targets = jnp.arange(48).reshape(8, 6) % 12, jnp.arange(48) % 16

        def loss(gain, table, ids, x, targets):
            y = velo.rms_norm(x + velo.embedding(ids, table), gain)
            return velo.cross_entropy(
                velo.matmul(y, table, transpose_b=1).reshape(48, 12)[:, :12], targets % 12)

        spread = [gain, table, *(self.spread(t, "rows") for t in (ids, x, targets))]
        grad = jax.grad(loss, (0, 1, 3))
        text = self.text_of(grad, *spread)
        self.stays(text, "gradients")
        self.assertTrue("all-reduce" in text)
        self.check("gradients", jax.jit(grad)(*spread), grad(gain, table, ids, x, targets))

    def test_a_spread_optimizer_state_stays_spread(self):
        state = [self.values(8, 16) for _ in range(3)] + [jnp.abs(self.values(8, 16))]
        want = velo.apply_fused_adamw(*state, step=jnp.asarray(3), lr=jnp.asarray(0.1))
        for axes in (("rows",), (None, "rows")):
            spread = [self.spread(t, *axes) for t in state]
            step = jax.jit(
                lambda g, p, m, v, step: velo.apply_fused_adamw(g, p, m, v, step=step, lr=0.1))
            made = step(*spread, jnp.asarray(3))
            self.check("adamw", made, want)
            for t in made:
                self.assertEqual(t.sharding.shard_shape(t.shape),
                                 spread[0].sharding.shard_shape(t.shape))
            self.stays(self.text_of(step, *spread, jnp.asarray(3)), "adamw")


if __name__ == "__main__":
    unittest.main()
