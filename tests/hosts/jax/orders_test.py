"""One process, several derivatives: what was asked of a function before changes no gradient that is
asked of it later.

JAX keeps traces by shapes. Whether an input is perturbed belongs to the gradient that is asked for,
so a kept trace must not carry it: for every derived function each set of inputs is differentiated,
directly and through a `lax.scan` whose initial carry is not, before and after the derivative of all
inputs, from empty caches.

VELO_ADAPTERS names libvelo_adapters.so.
"""
import itertools
import unittest

import jax_test
from jax_test import Stock, distance, gated, jax, jnp, np, spec, velo


def two_largest(x):
    """The weights of a token's two choices, which sum to 1."""
    return jax.nn.softmax(jax.lax.top_k(x, 2)[0])


def examples(values, integers):
    """By operator: velo's function, JAX's, and the inputs that can be differentiated."""
    targets, ids, angle = integers(40, 30), integers(12, 15).reshape(3, 5), values(1, 9, 1, 16)
    q, k, v = values(2, 9, 4, 16), values(2, 9, 2, 16), values(2, 9, 2, 16)
    return {
        "rms_norm": (velo.rms_norm, Stock.rms_norm, (values(6, 40), values(40))),
        "swiglu": (velo.swiglu, Stock.swiglu, (values(6, 40),)), "rotary_position_embedding":
            (velo.rotary_position_embedding, Stock.rotary_position_embedding, (q, jnp.cos(angle),
                                                                               jnp.sin(angle))),
        "fusion_attention": (lambda q, k, v: velo.fusion_attention(q, k, v, scale=0.25),
                             lambda q, k, v: Stock.fusion_attention(q, k, v, 0.25), (q, k, v)),
        "embedding": (lambda t: velo.embedding(ids, t), lambda t: Stock.embedding(ids, t),
                      (values(12, 20),)), "cross_entropy":
                          (lambda x: velo.cross_entropy(x, targets),
                           lambda x: Stock.cross_entropy(x, targets), (values(30, 40),)),
        "vocab_parallel_embedding": (lambda t: velo.vocab_parallel_embedding(ids, t),
                                     lambda t: Stock.embedding(ids, t), (values(12, 20),)),
        "vocab_parallel_cross_entropy":
            (lambda x: velo.vocab_parallel_cross_entropy(x, targets).mean(),
             lambda x: Stock.cross_entropy(x, targets), (values(30, 40),)), "add":
                               (velo.add, jnp.add, (values(6, 40), values(6, 40))),
        "layer_norm": (velo.layer_norm, Stock.layer_norm, (values(6, 40),)),
        "parallel_layer_norm": (velo.parallel_layer_norm, Stock.layer_norm, (values(6, 40),)),
        "parallel_rms_norm": (velo.parallel_rms_norm, Stock.rms_norm, (values(6, 40), values(40))),
        "softmax": (velo.softmax, jax.nn.softmax, (values(6, 40),)),
        "silu": (velo.silu, jax.nn.silu, (values(6, 40),)),
        "relu": (velo.relu, jax.nn.relu, (values(6, 40),)),
        "gelu": (velo.gelu, lambda x: jax.nn.gelu(x, approximate=False), (values(6, 40),)),
        "fast_gelu": (velo.fast_gelu, lambda x: x * jax.nn.sigmoid(1.702 * x), (values(6, 40),)),
        "geglu": (velo.geglu, gated(lambda x: jax.nn.gelu(x, approximate=False)),
                  (values(6, 40),)),
        "reglu": (velo.reglu, gated(jax.nn.relu), (values(6, 40),)),
        "cast": (lambda x: velo.cast(x, "float32"), lambda x: x, (values(6, 40),)), "matmul":
            (velo.matmul, lambda a, b, c: a @ b + c, (values(7, 24), values(24, 10), values(10))),
        "column_parallel_linear":
            (lambda x, w, b: velo.column_parallel_linear(x, w, bias=b, sequence_parallel=True),
             lambda x, w, b: x @ w.T + b, (values(6, 40), values(10, 40), values(10))),
        "row_parallel_linear": (velo.row_parallel_linear, lambda x, w: x @ w.T, (values(6, 40),
                                                                                 values(10, 40))),
        "topk_router": (lambda x: velo.topk_router(x, k=2)[0], two_largest, (values(30, 8),)),
        "capacity_gate": (lambda x: velo.capacity_gate(x, k=2, capacity=30)[0], two_largest,
                          (values(30, 8),)),
    }


def ways(compute, leaves):
    """Gradients by name: of each set of inputs, and of all but the carry of a scan, whose initial
    value is a constant."""
    def plain(wanted):
        def loss(*chosen):
            given = dict(zip(wanted, chosen))
            return jnp.sin(compute(*(given.get(i, leaf) for i, leaf in enumerate(leaves)))).mean()
        return lambda: jax.grad(loss, tuple(range(len(wanted))))(*(leaves[i] for i in wanted))

    def scanned(carried):
        def loss(scale, *others):
            def step(carry, _):
                given = list(others[:carried]) + [carry] + list(others[carried:])
                return carry + scale * jnp.sin(compute(*given)).mean(), None
            return jnp.square(jax.lax.scan(step, leaves[carried], None, length=3)[0]).mean()
        others = leaves[:carried] + leaves[carried + 1:]
        return lambda: jax.grad(loss, tuple(range(1 + len(others))))(jnp.float32(1.5), *others)

    every = range(len(leaves))
    sets = [
        chosen for count in range(1,
                                  len(leaves) + 1)
        for chosen in itertools.combinations(every, count)
    ]
    return {
        **{f"of {chosen}": plain(chosen) for chosen in sets},
        **{f"scanned over {i}": scanned(i) for i in every}
    }


class Orders(unittest.TestCase):
    def test_no_gradient_depends_on_the_one_before(self):
        numbers = np.random.default_rng(5)

        def values(*shape):
            return jnp.asarray(numbers.standard_normal(shape), jnp.float32)

        every = examples(values,
                         lambda below, count: jnp.asarray(numbers.integers(0, below, count)))
        derived = {
            op.name
            for op in spec.operators.values()
            if op.gradient is not None or op.name in velo._IRREGULAR
        }
        # Their gradients follow the rules of those that are tried.
        untried = {
            "context_parallel_attention", "dropout", "dropout_add_layer_norm",
            "dropout_add_rms_norm", "flash_attention", "grouped_matmul", "matmul_add",
            "matmul_swiglu", "moe_token_permute", "moe_token_unpermute", "pad_seqlen",
            "rms_norm_matmul", "sinkhorn", "unpad_rope", "unpad_seqlen",
            "unpad_softmax", "unpad_strided_batch_matmul", "weight_quant_matmul"
        }
        self.assertEqual(set(every), derived - untried)
        for name, (ours, stock, leaves) in every.items():
            truth = {way: gradient() for way, gradient in ways(stock, leaves).items()}
            asked = ways(ours, leaves)
            whole = f"of {tuple(range(len(leaves)))}"
            for other in asked.keys() - {whole}:
                for order in ((whole, other), (other, whole)):
                    jax.clear_caches()
                    for way in order:
                        for got, want in zip(asked[way](), truth[way]):
                            self.assertLessEqual(distance(got, want), 1e-4,
                                                 f"{name}: {way}, {order[0]} first")


if __name__ == "__main__":
    unittest.main()
