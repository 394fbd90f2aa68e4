"""torch.compile and torch.export through velo's operators."""
import unittest

from torch_case import Torch, torch, values, velo


class Compile(Torch):
    @unittest.skipUnless(hasattr(torch, "compile"), "this torch has no compile")
    def test_compiles_whole(self):
        x, gain = values(4, 64), values(64)

        def step(x, gain):
            return velo.swiglu(velo.rms_norm(x, gain) * 2).sum()

        compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
        got = torch.autograd.grad(compiled(x, gain), (x, gain))
        want = torch.autograd.grad(step(x, gain), (x, gain))
        for g, w in zip(got, want):
            self.assertTrue(torch.equal(g, w))


if __name__ == "__main__":
    unittest.main()
