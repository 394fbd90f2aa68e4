"""velo's sinkhorn and its gradient against Megatron-Core's function, which computes in float32, and
its autograd."""
import os
import sys
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, part) for part in ("tests/parity", "capi/python")]

from frameworks import torch  # noqa: E402

from velo.torch.binding import call  # noqa: E402

warnings.simplefilter("ignore")  # that Megatron-Core goes without Apex
from megatron.core.transformer.moe.moe_utils import sinkhorn  # noqa: E402


def close(name, got, truth):
    far = float((got - truth).norm() / truth.norm())
    assert far < 2e-5, f"{name}: {far:.1e} from Megatron-Core's"


def main():
    random = torch.Generator().manual_seed(3)
    for tokens, experts in ((16, 4), (300, 64), (50, 7)):
        logits = 2 * torch.randn(tokens, experts, generator=random)
        dy = torch.randn(tokens, experts, generator=random)
        theirs = logits.clone().requires_grad_()
        wanted = sinkhorn(theirs)
        wanted.backward(dy)
        y, dlogits = torch.empty_like(logits), torch.empty_like(logits)
        call("sinkhorn", logits=logits, y=y)
        call("sinkhorn_backward", logits=logits, dy=dy, dlogits=dlogits)
        close("y", y, wanted.detach())
        close("gradient", dlogits, theirs.grad)
        assert torch.equal(y.argmax(1), wanted.argmax(1)), "another choice than Megatron-Core's"
    print("sinkhorn and its gradient are Megatron-Core's")


if __name__ == "__main__":
    main()
