"""velo for JAX: its operators as jax functions with gradients, under jit, by XLA's foreign function interface.

    import velo.jax as velo
    y = velo.rms_norm(x, gamma)         # differentiable, jit-able, on XLA's own threads

libvelo_adapters.so exports one handler an operator (velo_xla_<op>); registering them is all that is needed, nothing is compiled
and nothing is copied. Each function here is a jax.custom_vjp over one or two of them. Gradients of float32 sums (gains, tables,
weights) come back in the dtype of what they belong to. velo/_libraries.py says where the library
is found.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from velo import _libraries

_library = _libraries.adapters()


@functools.lru_cache(maxsize=None)
def _target(name):
    """Registers an operator's handler with XLA on first use."""
    handler = getattr(_library, "velo_xla_" + name)
    jax.ffi.register_ffi_target("velo_" + name, jax.ffi.pycapsule(handler), platform="cpu", api_version=1)
    return "velo_" + name


def _call(name, outputs, *tensors, aliases=None, **attributes):
    """One operator: outputs as jax.ShapeDtypeStructs, inputs in field order, attributes by field name."""
    typed = {key: value if isinstance(value, str) else np.float64(value) if isinstance(value, float) else np.int64(value)
             for key, value in attributes.items()}
    return jax.ffi.ffi_call(_target(name), outputs, input_output_aliases=aliases or {})(*tensors, **typed)


def _like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


# ---- rms_norm

@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def rms_norm(x, gamma, epsilon=1e-6):
    return _rms_norm_forward(x, gamma, epsilon)[0]


def _rms_norm_forward(x, gamma, epsilon):
    statistics = x.shape[: x.ndim - gamma.ndim] + (1,) * gamma.ndim
    y, rstd = _call("rms_norm", (_like(x), _like(x, statistics, jnp.float32)), x, gamma, epsilon=float(epsilon))
    return y, (x, gamma, rstd)


def _rms_norm_backward(_epsilon, saved, dy):
    x, gamma, rstd = saved
    dx, dgamma = _call("rms_norm_backward", (_like(x), _like(gamma, dtype=jnp.float32)), dy, x, gamma, rstd)
    return dx, dgamma.astype(gamma.dtype)


rms_norm.defvjp(_rms_norm_forward, _rms_norm_backward)


# ---- swiglu

@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def swiglu(x, dim=-1):
    return _swiglu_forward(x, dim)[0]


def _swiglu_forward(x, dim):
    shape = list(x.shape)
    shape[dim] //= 2
    return _call("swiglu", _like(x, tuple(shape)), x, dim=dim), x


def _swiglu_backward(dim, x, dy):
    return (_call("swiglu_backward", _like(x), dy, x, dim=dim),)


swiglu.defvjp(_swiglu_forward, _swiglu_backward)


# ---- rotary_position_embedding

@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def rotary_position_embedding(x, cos, sin, mode="half"):
    """x is 4-D; cos and sin broadcast against it. The tables get no gradient."""
    return _rotary_forward(x, cos, sin, mode)[0]


def _rotary_forward(x, cos, sin, mode):
    return _call("rotary_position_embedding", _like(x), x, cos, sin, mode=mode), (cos, sin)


def _rotary_backward(mode, saved, dy):
    cos, sin = saved
    dx = _call("rotary_position_embedding_backward", _like(dy), dy, cos, sin, mode=mode)
    return dx, jnp.zeros_like(cos), jnp.zeros_like(sin)


rotary_position_embedding.defvjp(_rotary_forward, _rotary_backward)


# ---- fusion_attention

@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def fusion_attention(query, key, value, causal=False, scale=None):
    """[B, S, N, D] tensors; key and value may have fewer heads. causal: row i sees keys j <= i."""
    return _attention_forward(query, key, value, causal, scale)[0]


def _attention_options(query, causal, scale):
    return {"layout": "bsnd", "head_num": query.shape[2], "sparse_mode": "left_up_causal" if causal else "full",
            "scale": float(query.shape[-1] ** -0.5 if scale is None else scale)}


def _attention_forward(query, key, value, causal, scale):
    batch, length, heads, _ = query.shape
    statistics = _like(query, (batch, heads, length), jnp.float32)
    out, top, total = _call("fusion_attention", (_like(query, query.shape[:3] + value.shape[3:]), statistics, statistics),
                            query, key, value, **_attention_options(query, causal, scale))
    return out, (query, key, value, top, total, out)


def _attention_backward(causal, scale, saved, dy):
    query, key, value, top, total, out = saved
    return tuple(_call("fusion_attention_backward", (_like(query), _like(key), _like(value)), query, key, value, dy, top,
                       total, out, **_attention_options(query, causal, scale)))


fusion_attention.defvjp(_attention_forward, _attention_backward)


# ---- embedding

@jax.custom_vjp
def embedding(ids, table):
    return _embedding_forward(ids, table)[0]


def _embedding_forward(ids, table):
    return _call("embedding", _like(table, ids.shape + table.shape[1:]), ids, table), (ids, table)


def _embedding_backward(saved, dy):
    ids, table = saved
    dtable = _call("embedding_backward", _like(table, dtype=jnp.float32), ids, dy, rows=table.shape[0])
    return np.zeros(ids.shape, jax.dtypes.float0), dtable.astype(table.dtype)


embedding.defvjp(_embedding_forward, _embedding_backward)


# ---- cross_entropy

@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def cross_entropy(logits, targets, ignore_index=-100, reduction="mean"):
    return _cross_entropy_forward(logits, targets, ignore_index, reduction)[0]


def _cross_entropy_forward(logits, targets, ignore_index, reduction):
    tokens = logits.shape[:1]
    loss, lse = _call("cross_entropy", (_like(logits, tokens if reduction == "none" else (), jnp.float32),
                                        _like(logits, tokens, jnp.float32)), logits, targets, ignore_index=ignore_index,
                      reduction=reduction)
    return loss, (logits, targets, lse)


def _cross_entropy_backward(ignore_index, reduction, saved, dloss):
    logits, targets, lse = saved
    dlogits = _call("cross_entropy_backward", _like(logits), dloss, logits, targets, lse, ignore_index=ignore_index,
                    reduction=reduction)
    return dlogits, np.zeros(targets.shape, jax.dtypes.float0)


cross_entropy.defvjp(_cross_entropy_forward, _cross_entropy_backward)


# ---- add, cast and the optimizer

@jax.custom_vjp
def add(a, b):
    return _call("add", _like(a), a, b)


add.defvjp(lambda a, b: (add(a, b), None), lambda _, dy: (dy, dy))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def cast(x, dtype):
    return _call("cast", _like(x, dtype=dtype), x, dtype=jnp.dtype(dtype).name)


cast.defvjp(lambda x, dtype: (cast(x, dtype), x[..., :0]), lambda _dtype, empty, dy: (cast(dy, empty.dtype.type),))


def apply_fused_adamw(param, grad, m, v, step, lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0):
    """The updated (param, m, v). Under jit with donated buffers nothing is copied. `step` counts from 1, a Python integer."""
    return tuple(_call("apply_fused_adamw", (_like(param), _like(m), _like(v)), grad, param, m, v,
                       aliases={1: 0, 2: 1, 3: 2}, fields="grad,param,m,v->param,m,v", step=step, lr=float(lr),
                       beta1=float(beta1), beta2=float(beta2), epsilon=float(epsilon), weight_decay=float(weight_decay)))
