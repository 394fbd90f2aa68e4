"""What the field table does not say: gradients that no operator of velo's own computes, and the few
spellings of torch's own.

Three operators have a gradient made of other operators. An attribute that only the gradient has
comes from the forward arguments. Attention is spelled as torch users do, its scale 1 / sqrt(D)
unless given.
"""
import torch

from .dispatcher import overload

_add, _cast, _matmul = overload("add"), overload("cast"), overload("matmul")


class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return _add(a, b)

    @staticmethod
    def backward(ctx, dy):
        return dy, dy


class Cast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dtype):
        ctx.dtype = x.dtype
        return _cast(x, dtype)

    @staticmethod
    def backward(ctx, dy):
        return dy.to(ctx.dtype), None


class Matmul(torch.autograd.Function):
    """Each gradient is one more product, of the factors as they are stored, which has gradients in
    turn where a graph is asked for."""

    @staticmethod
    def forward(ctx, a, b, bias, transpose_a, transpose_b, dtype):
        ctx.save_for_backward(a, b)
        ctx.options = transpose_a, transpose_b, None if bias is None else bias.dtype
        return _matmul(a, b, bias, transpose_a, transpose_b, dtype)

    @staticmethod
    def backward(ctx, dc):
        a, b = ctx.saved_tensors
        of_a, of_b, bias = ctx.options
        exact, dc = dc, dc.to(
            a.dtype).contiguous()  # the product may be float32, of bfloat16 factors
        flat_a, flat_dc = a.reshape(-1, a.shape[-1]), dc.view(-1, dc.shape[-1])
        da = db = dbias = None
        product = Matmul.apply if torch.is_grad_enabled() else _matmul
        if ctx.needs_input_grad[0]:
            da = product(b, dc, None, of_b, True, 0) if of_a else product(
                dc, b, None, False, not of_b, 0)
        if ctx.needs_input_grad[1]:
            db = product(flat_dc, flat_a, None, True, of_a, 0) if of_b else product(
                flat_a, flat_dc, None, not of_a, False, 0)
        if ctx.needs_input_grad[2]:
            dbias = exact.reshape(-1, exact.shape[-1]).sum(0, dtype=torch.float32).to(bias)
        return da, db, dbias, None, None, None


GRADIENTS = {"add": Add, "cast": Cast, "matmul": Matmul}
ATTRIBUTES = {("embedding_backward", "rows"): lambda ids, table: table.shape[0]}


def _fusion_attention(derived):
    def fusion_attention(query, key, value, causal=False, scale=None, **fields):
        """[B, S, N, D] tensors, strided if need be; key and value may have fewer heads. causal: row
        i sees keys j <= i."""
        if not isinstance(causal, bool):
            raise TypeError(f"velo_fusion_attention: causal is True or False; got {causal!r}"[:200])
        fields.setdefault("sparse_mode", "left_up_causal" if causal else "full")
        return derived(query,
                       key,
                       value,
                       scale=query.shape[-1]**-0.5 if scale is None else scale,
                       **fields)

    return fusion_attention


SPELLINGS = {"fusion_attention": _fusion_attention}
