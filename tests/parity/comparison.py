"""How an operator's results are compared with torch's. A program that imports this module takes
the library from its arguments."""
import sys
import unittest

from frameworks import torch
from velo_binding import Velo

F = torch.nn.functional

LIBRARY = sys.argv.pop(1)
TYPES = (torch.float32, torch.bfloat16, torch.float16)
BOUND = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}


def distance(got, truth):
    """Relative distance in the 2-norm."""
    got, truth = got.double(), truth.double()
    scale = truth.norm()
    return float((got - truth).norm() / (scale if scale > 0 else 1))


def values(*shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(*shape) * scale).to(dtype)


def leaf(tensor):
    """The same values as a float32 leaf whose gradient autograd computes."""
    return tensor.detach().float().clone().requires_grad_()


class Comparison(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.velo = Velo(LIBRARY)

    def tearDown(self):
        self.velo.close()

    def close(self, name, got, truth, dtype=None):
        """dtype: what `got` was computed from, where that is narrower."""
        self.assertEqual(tuple(got.shape), tuple(truth.shape), name)
        bound = BOUND[dtype or (got.dtype if got.dtype in TYPES else torch.float32)]
        self.assertLessEqual(distance(got, truth), bound, name)
