"""ONNX's nodes as calls of velo: for each ONNX operator a function of the node's inputs and
attributes that returns its outputs, None for those that velo has no part in.

What ONNX has and velo lacks is asked of velo all the same, as a field or an operator of ONNX's
name: velo refuses it, and the case begins to work on the day that velo has it. Inputs may be seen
in another shape or order of dimensions; nothing is computed here that velo should compute.
"""
import torch

import attention_nodes
from velo_call import Refused, run


def only(result):
    return [result["y"]]


def relu(_, x):
    return only(run("relu", x=x))


def swish(attributes, x):
    return only(run("silu", x=x, alpha=unless(attributes, "alpha", 1.0)))


def swiglu(attributes, a, b):
    return only(
        run("swiglu", x=torch.cat((a, b), -1), alpha=unless(attributes, "alpha", 1.0)))


def gelu(attributes, x):
    return only(run("gelu", x=x, approximate=attributes.get("approximate", "none")))


def unless(attributes, name, usual):
    """An attribute's value, None where it says what velo does without it."""
    value = attributes.get(name, usual)
    return None if value == usual else value


def softmax(attributes, x):
    axis = attributes.get("axis", -1)
    return [run("softmax", x=x.movedim(axis, -1).contiguous())["y"].movedim(-1, axis)]


def log_softmax(_, x):
    return only(run("log_softmax", x=x))


def rms_normalization(attributes, x, scale):
    return only(run("rms_norm", x=x, gamma=scale, epsilon=attributes.get("epsilon")))


def layer_normalization(attributes, x, scale, bias=None):
    got = run("layer_norm", x=x, gamma=scale, beta=bias, epsilon=attributes.get("epsilon"))
    return [got["y"], got["mean"], got["rstd"]]


def rotary_embedding(attributes, x, cos, sin, positions=None):
    interleaved, heads = attributes.get("interleaved", 0), attributes.get("num_heads", 0)
    if interleaved:
        cos, sin = (table.repeat_interleave(2, -1) for table in (cos, sin))
    else:
        cos, sin = (torch.cat((table, table), -1) for table in (cos, sin))
    shape, at = x.shape, 1
    if x.dim() == 3:  # [B, S, N D]
        x, at = x.unflatten(-1, (heads, -1)), 2
    if positions is None:  # [B, S, R]
        cos, sin = cos.unsqueeze(at), sin.unsqueeze(at)
    else:
        positions = positions.unsqueeze(at)
    got = run("rotary_position_embedding",
              x=x,
              cos=cos,
              sin=sin,
              positions=positions,
              mode="interleaved" if interleaved else "half")
    return [got["y"].reshape(shape)]


def softmax_cross_entropy(attributes, scores, labels, weights=None):
    """Scores are [N, C, d..]: the classes become the last dimension of rows."""
    rows = scores.movedim(1, -1)
    got = run("cross_entropy",
              logits=rows.reshape(-1, rows.shape[-1]),
              targets=labels.reshape(-1),
              class_weights=weights,
              ignore_index=attributes.get("ignore_index"),
              reduction=attributes.get("reduction", "mean"),
              log_prob=attributes["outputs"] > 1 or None)
    loss = got["loss"]
    return [loss.reshape(labels.shape) if loss.dim() else loss]


def negative_log_likelihood_loss(_, scores, labels, weights=None):
    return only(run("negative_log_likelihood_loss", x=scores, targets=labels))


def matmul(_, a, b):
    """One vector is a row or a column; more dimensions of b are a batch of weights."""
    c = run("matmul", a=a[None] if a.dim() == 1 else a, b=b[:, None] if b.dim() == 1 else b)["c"]
    c = c.squeeze(-1) if b.dim() == 1 else c
    return [c.squeeze(-1 if b.dim() == 1 else -2) if a.dim() == 1 else c]


def gemm(attributes, a, b, c=None):
    given = {
        "a": a, "b": b, "transpose_a": attributes.get("transA"),
        "transpose_b": attributes.get("transB"), "alpha": unless(attributes, "alpha", 1.0),
        "beta": unless(attributes, "beta", 1.0)
    }
    if c is None:
        return [run("matmul", **given)["c"]]
    return [run("matmul_add", add=c, **given)["c"]]


def matmul_integer(_, a, b, a_zero_point=None, b_zero_point=None):
    return [
        run("quant_grouped_matmul", x=a, weight=b, x_offset=a_zero_point,
            weight_offset=b_zero_point)["y"]
    ]


def quantize_linear(_, x, scale, zero_point=None):
    return only(run("quantize", x=x, y_scale=scale, y_zero_point=zero_point))


def dynamic_quantize_linear(_, x):
    """ONNX's is asymmetric, in unsigned numbers; velo's symmetric."""
    return only(run("quantize", x=x, y_zero_point=True))


def dequantize_linear(_, x, scale, zero_point=None):
    return only(run("dequantize", x=x, scale=scale, zero_point=zero_point))


def dropout(attributes, x, ratio=None, training=None):
    """Outside training nothing is dropped. What is dropped in training ONNX leaves to the
    generator, which is numpy's in its cases."""
    p = attributes.get("ratio", 0.5) if ratio is None else float(ratio)
    if training is None or not bool(training):
        p = 0.0
    if p != 0:
        raise Refused("ONNX leaves the generator open, and its cases draw from numpy's")
    got = run("dropout", x=x, p=p)
    return [got["y"], got["mask"].bool()]


def add(_, a, b):
    return only(run("add", a=a, b=b))


def cast(attributes, x):
    if isinstance(attributes["to"], str):  # a type that torch has none of
        return only(run("cast", x=torch.zeros(1), dtype=attributes["to"]))
    return only(run("cast", x=x, dtype=attributes["to"]))


def cast_like(attributes, x, like):
    return cast({"to": like.dtype, **attributes}, x)


def gather(attributes, table, indices):
    """Along the first dimension, entries are rows of a table."""
    axis = attributes.get("axis", 0)
    got = run("embedding",
              table=table.flatten(1) if table.dim() > 1 else table[:, None],
              ids=indices,
              axis=axis or None)
    return [got["y"].reshape(*indices.shape, *table.shape[1:])]


def adam(attributes, rate, step, *tensors):
    """All parameters, then their gradients, first and second moments; what comes back is in this
    order, too."""
    count = len(tensors) // 4
    made = [
        run("apply_fused_adamw",
            grad=tensors[count + i],
            param=tensors[i],
            m=tensors[2 * count + i],
            v=tensors[3 * count + i],
            step=int(step) + 1,
            lr=float(rate),
            norm_coefficient=unless(attributes, "norm_coefficient", 0.0)) for i in range(count)
    ]
    return [one[name] for name in ("param", "m", "v") for one in made]


OPERATORS = {
    "Adam": adam, "Add": add, "Attention": attention_nodes.attention, "Cast": cast,
    "CastLike": cast_like, "DequantizeLinear": dequantize_linear, "Dropout": dropout,
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "FlexAttention": attention_nodes.flex_attention, "Gather": gather, "Gelu": gelu, "Gemm": gemm,
    "LayerNormalization": layer_normalization, "LogSoftmax": log_softmax, "MatMul": matmul,
    "MatMulInteger": matmul_integer, "NegativeLogLikelihoodLoss": negative_log_likelihood_loss,
    "QuantizeLinear": quantize_linear, "RMSNormalization": rms_normalization, "Relu": relu,
    "RotaryEmbedding": rotary_embedding, "Softmax": softmax,
    "SoftmaxCrossEntropyLoss": softmax_cross_entropy, "SwiGLU": swiglu, "Swish": swish
}
