"""The form of the acceptance cases: every element within atol + rtol |truth|, both one number by
dtype, and full or reduced shapes. A program that imports this module takes --full from its
arguments.
"""
import sys

FULL = "--full" in sys.argv
if FULL:
    sys.argv.remove("--full")

from comparison import Comparison, torch  # noqa: E402

TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-3, torch.bfloat16: 5e-3}
HALVES = (torch.float16, torch.bfloat16)
EVERY = (torch.float32, *HALVES)


def reduced(full, default):
    """A size upstream, or the one that takes its place where the processor is to be quick."""
    return full if FULL else default


class AcceptanceCase(Comparison):
    def allclose(self, name, got, truth, tolerance):
        self.assertEqual(tuple(got.shape), tuple(truth.shape), name)
        got, truth = got.double(), truth.double()
        excess = ((got - truth).abs() - tolerance * (1 + truth.abs())).max().item()
        self.assertLessEqual(excess, 0, f"{name}: beyond {tolerance}")
