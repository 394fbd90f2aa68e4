"""Shared by the tests of velo.torch: torch or a skip that says so, tensors to differentiate, the
distance of two tensors."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "parity"), os.path.join(ROOT, "capi", "python")]

from frameworks import torch  # noqa: E402

import velo.torch as velo  # noqa: E402

F = torch.nn.functional
MODERN = int(torch.__version__.split(".")[0]) >= 2
TYPES = (torch.float32, torch.bfloat16, torch.float16)
BOUND = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}


def distance(got, truth):
    got, truth = got.detach().double(), truth.detach().double()
    return float((got - truth).norm() / truth.norm())


def values(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype).requires_grad_()


def transformers():
    """The package, or a skip; where CI promised it, a failure."""
    if not MODERN:
        raise unittest.SkipTest("transformers needs torch 2")
    try:
        import transformers
    except ImportError as missing:
        if os.environ.get("CI") == "true":
            raise
        raise unittest.SkipTest(str(missing)) from None
    return transformers


class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)
