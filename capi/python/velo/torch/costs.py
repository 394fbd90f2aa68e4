"""From what size on velo's kernel is worth its call, where that is not always. Measured with one
thread of a Zen 4 server that was busy, beside torch 2.15's own in turns: below the size the two are
even or torch wins.

By the adapter a call costs 4 microseconds, by ctypes 100; a call that costs more pays from a larger
size on.
"""
import torch

from .dispatcher import by_adapter

_CALL = 1 if by_adapter else 16


def linear(x, weight):
    """float32 products of 2^24 multiplications and 16 rows; torch's products of 16 bits are as
    fast as velo's."""
    return x.dtype == torch.float32 and x.numel() >= linear_elements(*weight.shape)


def linear_elements(outputs, inputs):
    """Elements of x from which on that holds."""
    return max(-(-(1 << 24) // max(outputs, 1)), 16 * inputs)


def could_pay_linear(weight):
    """Whether 64 rows would be worth it. A smaller layer would pay in decoding for what it wins in
    training."""
    return weight.dtype == torch.float32 and weight.numel() << 6 >= 1 << 24


def cross_entropy(logits):
    return logits.numel() >= _CALL << 15


def gated_elements():
    """Elements of the products, rows by inner size: below, two operators that torch saves cost less
    than the Python here."""
    return 1 << 18


def activation_elements(name):
    """torch has gelu by tanh in many instructions and x sigmoid(1.702 x) in three operators: velo
    is 2 to 5 times as fast from here on. silu is 1.5 to 2 times as fast, with its gradient even at
    2^17 elements and 1.4 to 1.7 times beyond."""
    return _CALL << (18 if name == "silu" else 14)


def fused_elements():
    """Elements of a float32 parameter from which on velo stands beside torch's fused AdamW: at 2^12
    it takes 2.3 times as long, which is Python for each parameter; from 2^20 on 0.9 to 1.05
    times."""
    return 1 << 16


def norm(x):
    return by_adapter or x.numel() >= 1 << 15


def layer_norm_elements():
    """Forward and backward together; torch's are compiled for a small call."""
    return _CALL << 16


def rotary(query):
    return by_adapter or query.numel() >= 1 << 15
