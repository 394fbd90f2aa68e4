"""enable() under the ways in which others train: gradient checkpointing of either kind,
DistributedDataParallel over gloo.

The same steps with velo and without, on a model of norms, gated MLPs and attention; what was
replaced must have run.
"""
import os
import tempfile
import unittest

from enable_test import FROM_NINE, GatedMlp, RMSNorm, plain_gain
from torch_case import F, Torch, distance, torch, velo

from torch.utils.checkpoint import checkpoint

RANKS, STEPS, ROWS, WIDTH = 2, 3, 32, 64


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = (RMSNorm(WIDTH, plain_gain) for _ in range(2))
        # no bias: the gradient of the keys' is 0 but for rounding, which AdamW would make as large
        # as any other
        self.heads, self.mlp = torch.nn.Linear(WIDTH, 3 * WIDTH,
                                               bias=False), GatedMlp(WIDTH, 2 * WIDTH)

    def forward(self, x):
        query, key, value = self.heads(self.before(x)).unflatten(-1, (3, 4, WIDTH // 4)).unbind(-3)
        tensors = [t.transpose(1, 2) for t in (query, key, value)]
        x = x + F.scaled_dot_product_attention(*tensors, is_causal=True).transpose(1, 2).flatten(2)
        return x + self.mlp(self.after(x))


class Model(torch.nn.Module):
    def __init__(self, reentrant=None):
        super().__init__()
        self.blocks, self.reentrant = torch.nn.ModuleList([Block(), Block()]), reentrant

    def forward(self, x):
        for block in self.blocks:
            x = block(x) if self.reentrant is None else checkpoint(
                block, x, use_reentrant=self.reentrant)
        return x


def train(model, wrap=lambda model: model, seed=0):
    """The losses of a few steps and the parameters after them."""
    run, optimizer, losses = wrap(model), torch.optim.AdamW(model.parameters(), lr=1e-2), []
    generator = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        x = torch.randn(2, ROWS, WIDTH, generator=generator).requires_grad_()
        loss = (run(x) - x.detach().roll(1, 1)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses), torch.cat([p.detach().flatten() for p in model.parameters()])


def made(**options):
    torch.manual_seed(5)
    return Model(**options)


def ran(done):
    return {
        word for entry in done.entries if entry.called
        for word in ("rms_norm", "fusion_attention", "apply_fused_adamw") if word in entry.what
    }


def rank(number, store, results):
    torch.distributed.init_process_group("gloo",
                                         init_method="file://" + store,
                                         rank=number,
                                         world_size=RANKS)
    torch.set_num_threads(1)
    parallel = torch.nn.parallel.DistributedDataParallel
    stock, model = train(made(), parallel, seed=number), made()
    with velo.enable(model) as done:
        with_velo = train(model, parallel, seed=number)
    results[number] = stock, with_velo, ran(done)
    torch.distributed.destroy_process_group()


@unittest.skipUnless(FROM_NINE, "attention is replaced with torch 2.9 and later")
class Training(Torch):
    def assert_close(self, got, want):
        for have, right in zip(got, want):
            self.assertLessEqual(distance(have, right), 1e-4)

    def test_gradient_checkpointing(self):
        want = train(made())
        for reentrant in (True, False):
            model = made(reentrant=reentrant)
            with velo.enable(model) as done:
                self.assert_close(train(model), want)
                self.assertEqual(len(ran(done)), 3, str(done))

    @unittest.skipUnless(torch.distributed.is_available() and torch.distributed.is_gloo_available(),
                         "this torch has no gloo")
    def test_ranks_that_share_their_gradients(self):
        with tempfile.TemporaryDirectory() as folder, torch.multiprocessing.get_context(
                "spawn").Manager() as manager:
            results = manager.dict()
            torch.multiprocessing.spawn(rank, (os.path.join(folder, "store"), results),
                                        nprocs=RANKS)
            ranks = [results[number] for number in range(RANKS)]
        for stock, with_velo, words in ranks:
            self.assert_close(with_velo, stock)
            self.assertEqual(len(words), 3, words)
        self.assertTrue(torch.equal(ranks[0][1][1], ranks[1][1][1]),
                        "the ranks' parameters are not the same")
        self.assertFalse(torch.equal(ranks[0][1][0], ranks[1][1][0]), "the ranks saw the same rows")


if __name__ == "__main__":
    unittest.main()
