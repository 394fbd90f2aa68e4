"""f(x Wg^T) * (x Wu^T), f silu or gelu, the two products written into the halves of one buffer
that swiglu or geglu reads.

Neither the weights nor the products are copied: a forward that is to be differentiated keeps x and
the buffer, where torch's own way keeps x, both products and f of one. The buffer is [2, rows,
inner], so that both halves are compact.
"""
import torch

from . import costs
from .binding import VeloError
from .dispatcher import overload

# what multiplies: velo's operator, its gradient, attributes behind the tensors
FORMS = {
    "silu": (overload("swiglu"), overload("swiglu_backward"), (0,)),
    "gelu": (overload("geglu"), overload("geglu_backward"), (0, 0)),
    "gelu by tanh": (overload("geglu"), overload("geglu_backward"), (0, 1))
}
_multiply = overload("matmul", "out")


def _product(a, b, out):
    """out = a b, where b may be a transposed view."""
    turned = b.stride(-1) != 1
    if costs.linear(a, b.t()) and a.is_contiguous():
        _multiply(a, b.t() if turned else b, 0, None, out, False, turned, False, 0)
    else:
        torch.mm(a, b, out=out)


def _forward(x, gate, up, form):
    run, _, attributes = FORMS[form]
    rows = x.reshape(-1, x.shape[-1])
    both = torch.empty((2, rows.shape[0], gate.shape[0]), dtype=x.dtype)
    _product(rows, gate.t(), both[0])
    _product(rows, up.t(), both[1])
    return run(both, *attributes).view(*x.shape[:-1], gate.shape[0]), both


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate, up, form):
        y, both = _forward(x, gate, up, form)
        ctx.form = form
        ctx.save_for_backward(x, gate, up, both)
        return y

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise VeloError(
                "velo's gated MLP has a first derivative and no second: velo.torch.enable() it "
                "not, where you need one"
            )
        x, gate, up, both = ctx.saved_tensors
        rows = x.reshape(-1, x.shape[-1])
        _, run_back, attributes = FORMS[ctx.form]
        dgate, dup = run_back(dy.reshape(1, *both.shape[1:]), both, *attributes)
        dx = dwg = dwu = None
        if ctx.needs_input_grad[0]:
            dx = torch.addmm(dgate @ gate, dup, up).view(x.shape)
        if ctx.needs_input_grad[1]:
            dwg = dgate.t() @ rows
        if ctx.needs_input_grad[2]:
            dwu = dup.t() @ rows
        return dx, dwg, dwu, None


def product(x, gate, up, form):
    if torch.is_grad_enabled() and (x.requires_grad or gate.requires_grad or up.requires_grad):
        return _Gated.apply(x, gate, up, form)
    return _forward(x, gate, up, form)[0]
