"""Trains a small gated decoder in JAX with velo's operators, under jit: the shape of a training
loop with velo.jax.

Usage: VELO_ADAPTERS=.../libvelo_adapters.so python train.py [steps] [float32|bfloat16]

The dtype is the one to compute in; weights, their gradients and moments are float32 either way.
"""
import functools
import sys

import jax
import jax.numpy as jnp

import velo.jax as velo

SYMBOLS, HIDDEN, HEADS, INNER, LENGTH, BATCH = 64, 64, 4, 96, 32, 8


def initial(key):
    shapes = {
        "table": (SYMBOLS, HIDDEN), "qkv": (HIDDEN, 3 * HIDDEN), "out": (HIDDEN, HIDDEN),
        "gate_up": (HIDDEN, 2 * INNER), "down": (INNER, HIDDEN), "head": (HIDDEN, SYMBOLS)
    }
    keys = jax.random.split(key, len(shapes))
    weights = {
        name: 0.1 * jax.random.normal(k, shape) for k, (name, shape) in zip(keys, shapes.items())
    }
    return {**weights, "gain1": jnp.ones(HIDDEN), "gain2": jnp.ones(HIDDEN)}


def rotary_tables():
    width = HIDDEN // HEADS
    angle = jnp.outer(jnp.arange(LENGTH), 10000.0 ** (-jnp.arange(0, width, 2) / width))
    angle = jnp.concatenate((angle, angle), -1)[None, :, None, :]
    return jnp.cos(angle), jnp.sin(angle)


def loss_of(w, symbols, dtype=jnp.float32):
    w = {
        name: value if value.dtype == dtype else velo.cast(value, dtype)
        for name, value in w.items()
    }
    x = velo.embedding(symbols[:, :-1], w["table"])
    q, k, v = jnp.split(
        (velo.rms_norm(x, w["gain1"]) @ w["qkv"]).reshape(BATCH, LENGTH, 3 * HEADS, -1), 3, 2)
    cos, sin = rotary_tables()
    q, k = (velo.rotary_position_embedding(t, cos, sin) for t in (q, k))
    x = x + velo.fusion_attention(q, k, v, scale=q.shape[-1]**-0.5,
                                  sparse_mode="left_up_causal").reshape(x.shape) @ w["out"]
    x = x + velo.swiglu(velo.rms_norm(x, w["gain2"]) @ w["gate_up"]) @ w["down"]
    return velo.cross_entropy((x @ w["head"]).reshape(-1, SYMBOLS), symbols[:, 1:].reshape(-1))


@functools.partial(jax.jit, static_argnames=("dtype",), donate_argnums=(0, 1, 2))
def train_step(w, m, v, symbols, step, dtype=jnp.float32):
    """Loss, gradients and update in one program, compiled once: the step's number is an array.
    Donated buffers are updated in place."""
    loss, gradients = jax.value_and_grad(loss_of)(w, symbols, dtype)
    updated = {
        name: velo.apply_fused_adamw(gradients[name], w[name], m[name], v[name], step=step, lr=3e-3)
        for name in w
    }
    return loss, *({name: triple[i] for name, triple in updated.items()} for i in range(3))


def main(steps, dtype):
    w = initial(jax.random.PRNGKey(0))
    m = {name: jnp.zeros_like(value) for name, value in w.items()}
    v = {name: jnp.zeros_like(value) for name, value in w.items()}
    starts = jax.random.randint(jax.random.PRNGKey(1), (steps, BATCH, 1), 0, SYMBOLS)
    for step in range(1, steps + 1):
        symbols = (starts[step - 1] +
                   3 * jnp.arange(LENGTH + 1)) % SYMBOLS  # counting in threes: learnable at once
        loss, w, m, v = train_step(w, m, v, symbols, jnp.asarray(step), dtype)
        print(f"step {step:3d}  loss {float(loss):.4f}")
    return float(loss)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 10,
        jnp.dtype(sys.argv[2] if len(sys.argv) > 2 else "float32"))
