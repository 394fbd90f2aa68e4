"""AdamW against torch's, and a small decoder trained through velo and through torch."""
import unittest

from torch_case import F, Torch, distance, torch, velo


class Decoder(torch.nn.Module):
    """A small gated decoder from torch's own parts, enough to train."""

    def __init__(self, hidden=64, heads=4, inner=96, symbols=50):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(symbols, hidden), torch.nn.Linear(hidden, symbols, bias=False)
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden, bias=False), torch.nn.Linear(hidden, hidden, bias=False)
        self.gate_proj, self.up_proj = (torch.nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down_proj = torch.nn.Linear(inner, hidden, bias=False)
        self.gains = torch.nn.Parameter(torch.ones(2, hidden))
        self.heads = heads

    def forward(self, symbols, operators):
        x = operators.embedding(symbols, self.embed.weight)
        q, k, v = self.qkv(operators.norm(x, self.gains[0])).unflatten(-1, (3, self.heads, -1)).unbind(2)
        x = x + self.out(operators.attention(q, k, v).flatten(2))
        h = operators.norm(x, self.gains[1])
        x = x + self.down_proj(operators.gated(torch.cat((self.gate_proj(h), self.up_proj(h)), -1)))
        return self.head(x)


class Stock:
    """The decoder's operators as torch composes them."""

    embedding = staticmethod(lambda ids, table: F.embedding(ids, table))
    loss = staticmethod(lambda logits, targets: F.cross_entropy(logits, targets))

    @staticmethod
    def norm(x, gain):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * gain

    @staticmethod
    def attention(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        score = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        hidden = torch.ones(score.shape[-2:], dtype=torch.bool).triu(1)
        return (score.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(1, 2)

    @staticmethod
    def gated(x):
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up


class Velo:
    """The same through velo."""

    embedding = staticmethod(velo.embedding)
    norm = staticmethod(lambda x, gain: velo.rms_norm(x, gain, 1e-6))
    attention = staticmethod(lambda q, k, v: velo.fusion_attention(q, k, v, causal=True))
    gated = staticmethod(velo.swiglu)
    loss = staticmethod(velo.cross_entropy)


def train(operators, optimizer_of, dtype=torch.float32, steps=20):
    """Losses of the steps and the first gradients."""
    torch.manual_seed(3)
    model = Decoder().to(dtype)
    optimizer = optimizer_of(model.parameters(), lr=1e-3, weight_decay=0.1)
    losses, first = [], None
    data = torch.randint(0, 50, (steps, 2, 4, 33), generator=torch.Generator().manual_seed(5))
    for symbols in data[:, 0]:
        optimizer.zero_grad()
        logits = model(symbols[:, :-1], operators)
        loss = operators.loss(logits.flatten(0, 1), symbols[:, 1:].flatten())
        loss.backward()
        first = first or [p.grad.clone() for p in model.parameters()]
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses, first


class Optimizer(Torch):
    def test_twenty_steps_agree(self):
        """Losses and the first gradients. bfloat16's tolerance is what it costs torch itself: gradients no farther from the float32
        ones than torch's own, within a quarter, and losses within 2e-2, five roundings by 2^-8."""
        truth = train(Stock, torch.optim.AdamW)[1]
        for dtype, bound in ((torch.float32, 1e-4), (torch.bfloat16, 2e-2)):
            ours, our_first = train(Velo, velo.AdamW, dtype)
            theirs, their_first = train(Stock, torch.optim.AdamW, dtype)
            for ours_step, theirs_step in zip(ours, theirs):
                self.assertLessEqual(abs(ours_step - theirs_step) / theirs_step, bound, dtype)
            for have, stock, want in zip(our_first, their_first, truth):
                self.assertLessEqual(distance(have, want), max(1e-5, 1.25 * distance(stock, want)), dtype)

    def test_adamw_options(self):
        for options in ({}, {"amsgrad": True}, {"maximize": True}, {"weight_decay": 0.3, "betas": (0.8, 0.9)}):
            ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
            a, b = velo.AdamW([ours], lr=1e-2, **options), torch.optim.AdamW([theirs], lr=1e-2, **options)
            for step in range(5):
                ours.grad = theirs.grad = torch.sin(torch.arange(50.0) + step)
                a.step(), b.step()
            self.assertLessEqual(distance(ours.detach(), theirs.detach()), 1e-6, options)

    def test_adamw_clips_in_the_same_pass(self):
        ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
        a, b = velo.AdamW([ours], lr=1e-2, max_norm=0.5), torch.optim.AdamW([theirs], lr=1e-2)
        ours.grad, theirs.grad = torch.ones(50), torch.ones(50)
        norm = torch.nn.utils.clip_grad_norm_([theirs], 0.5)
        a.step(), b.step()
        self.assertAlmostEqual(float(a.norm), float(norm), places=5)
        self.assertLessEqual(distance(ours.detach(), theirs.detach()), 1e-6)
        self.assertTrue(torch.equal(ours.grad, torch.ones(50)))


if __name__ == "__main__":
    unittest.main()
