"""Trains a small gated decoder in MindSpore with velo's operators, compiled as one graph: a
training loop with velo.mindspore.

Usage: VELO_ADAPTERS=.../libvelo_adapters.so python train.py [steps] [float32|bfloat16]

In bfloat16 it runs operator by operator: MindSpore's graph mode has no reshape of that dtype on the
CPU.
"""
import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops

import velo.mindspore as velo

SYMBOLS, HIDDEN, HEADS, INNER, LENGTH, BATCH = 64, 64, 4, 96, 32, 8


class Decoder(nn.Cell):
    """One layer. `operators` makes the cells it is built from, so that others than velo's can stand
    in."""

    def __init__(self, operators=velo, dtype=ms.float32):
        super().__init__()
        numbers = np.random.default_rng(0)

        def weight(name, *shape):
            return ms.Parameter(ms.Tensor(0.1 * numbers.standard_normal(shape),
                                          ms.float32).astype(dtype),
                                name=name)

        self.table, self.head = weight("table", SYMBOLS, HIDDEN), weight("head", HIDDEN, SYMBOLS)
        self.qkv, self.out = weight("qkv", HIDDEN, 3 * HIDDEN), weight("out", HIDDEN, HIDDEN)
        self.gate_up, self.down = weight("gate_up", HIDDEN,
                                         2 * INNER), weight("down", INNER, HIDDEN)
        self.gain1 = ms.Parameter(ops.ones(HIDDEN, dtype), name="gain1")
        self.gain2 = ms.Parameter(ops.ones(HIDDEN, dtype), name="gain2")
        width = HIDDEN // HEADS
        angle = np.outer(np.arange(LENGTH), 10000.0 ** (-np.arange(0, width, 2) / width))
        angle = np.concatenate((angle, angle), -1)[None, :, None, :]
        self.cos, self.sin = ms.Tensor(np.cos(angle),
                                       ms.float32), ms.Tensor(np.sin(angle), ms.float32)
        self.embedding, self.norm, self.swiglu = operators.Embedding(
            SYMBOLS), operators.RmsNorm(), operators.Swiglu()
        self.rotary, self.loss = operators.RotaryPositionEmbedding(
            gradients="x"), operators.CrossEntropy()
        self.attention = operators.FusionAttention(scale=width**-0.5, sparse_mode="left_up_causal")
        self.matmul, self.add = operators.Matmul(), operators.Add()

    def construct(self, symbols, targets):
        x = self.embedding(symbols, self.table)
        qkv = self.matmul(self.norm(x, self.gain1).reshape(-1, HIDDEN),
                          self.qkv).reshape(BATCH, LENGTH, 3 * HEADS, -1)
        q, k, v = ops.split(qkv, HEADS, 2)
        mixed = self.attention(self.rotary(q, self.cos, self.sin),
                               self.rotary(k, self.cos, self.sin), v)
        x = self.add(x.reshape(-1, HIDDEN), self.matmul(mixed.reshape(-1, HIDDEN), self.out))
        x = self.add(
            x,
            self.matmul(self.swiglu(self.matmul(self.norm(x, self.gain2), self.gate_up)),
                        self.down))
        return self.loss(self.matmul(x, self.head), targets)


def batches(steps):
    """Counting in threes: learnable at once."""
    starts = np.random.default_rng(1).integers(0, SYMBOLS, (steps, BATCH, 1))
    for start in starts:
        symbols = (start + 3 * np.arange(LENGTH + 1)) % SYMBOLS
        yield ms.Tensor(symbols[:, :-1], ms.int32), ms.Tensor(symbols[:, 1:].reshape(-1), ms.int32)


def main(steps, dtype):
    ms.set_context(mode=ms.GRAPH_MODE if dtype == ms.float32 else ms.PYNATIVE_MODE)
    model = Decoder(dtype=dtype)
    weights = model.trainable_params()
    optimizer = velo.AdamW(weights, lr=3e-3)
    gradient = ms.value_and_grad(model, None, weights)
    for step, (symbols, targets) in enumerate(batches(steps), 1):
        loss, gradients = gradient(symbols, targets)
        optimizer.step(gradients)
        print(f"step {step:3d}  loss {float(loss):.4f}")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 10,
        getattr(ms, sys.argv[2] if len(sys.argv) > 2 else "float32"))
