"""enable(): what it replaces computes the same, what only looks alike is left, and disable() undoes it."""
import unittest

from torch_case import F, MODERN, Torch, distance, torch, transformers, values, velo


class ShiftedRMSNorm(torch.nn.Module):
    """Called like velo's, but its gain is 1 + weight, as Gemma has it."""

    def __init__(self):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.linspace(-0.5, 0.5, 16)), 1e-6

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


class ScaledMlp(torch.nn.Module):
    """Has the parts of a gated MLP, and a factor beside them."""

    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (torch.nn.Linear(16, 16, bias=False) for _ in range(3))
        self.act_fn = torch.nn.SiLU()

    def forward(self, x):
        return 0.5 * self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    """Pairs neighbors, where the usual function of this name pairs halves."""
    rotated = [torch.stack((-t[..., 1::2], t[..., ::2]), -1).flatten(-2) for t in (q, k)]
    return tuple(t * cos.unsqueeze(unsqueeze_dim) + r * sin.unsqueeze(unsqueeze_dim) for t, r in zip((q, k), rotated))


class Enable(Torch):
    def test_enable_on_llama(self):
        LlamaConfig, LlamaForCausalLM = (getattr(transformers(), name) for name in ("LlamaConfig", "LlamaForCausalLM"))
        config = LlamaConfig(vocab_size=260, hidden_size=64, intermediate_size=176, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, max_position_embeddings=64)
        symbols = torch.randint(0, 260, (2, 32))
        for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2)):
            model = LlamaForCausalLM(config).to(dtype)

            def run():
                model.zero_grad()
                loss = model(input_ids=symbols, labels=symbols).loss
                loss.backward()
                return loss.detach(), [p.grad.clone() for p in model.parameters()]

            stock_loss, stock = run()
            with velo.enable(model) as done:
                replaced = [what for _, what in done.replaced]
                for kind in ("rms_norm", "swiglu", "rotary", "fusion_attention", "cross_entropy", "adamw"):
                    self.assertTrue(any(kind in what for what in replaced), kind)
                self.assertTrue(any("Embedding" in why for _, why in done.left))
                loss, gradients = run()
            self.assertLessEqual(abs(float(loss - stock_loss)) / float(stock_loss), 1e-5 if dtype == torch.float32 else 1e-2)
            for have, want in zip(gradients, stock):
                self.assertLessEqual(distance(have, want), bound)
            again, _ = run()
            self.assertEqual(float(again), float(stock_loss), "disable() did not restore the model")

    def test_enable_leaves_what_only_looks_alike(self):
        model = torch.nn.Sequential(ShiftedRMSNorm(), ScaledMlp())
        x, tables = torch.randn(4, 16), torch.rand(2, 1, 3, 8)
        heads = torch.randn(2, 1, 2, 3, 8)
        want, rotated = model(x), apply_rotary_pos_emb(*heads, *tables)
        with velo.enable(model) as done:
            self.assertTrue({"0", "1", __name__} <= {where for where, _ in done.left}, done.left)
            self.assertLessEqual(distance(model(x).detach(), want.detach()), 1e-6)
            for have, right in zip(apply_rotary_pos_emb(*heads, *tables), rotated):
                self.assertTrue(torch.equal(have, right))

    def test_enabled_linear_layers(self):
        layer, frozen = torch.nn.Linear(256, 512), torch.nn.Linear(512, 256, bias=False).requires_grad_(False)
        x = values(2, 128, 256)
        stack = torch.nn.Sequential(layer, frozen)

        def run():
            y = stack(x)
            return y, torch.autograd.grad(y.sin().sum(), (x, layer.weight, layer.bias))

        want, wants = run()
        with velo.enable(stack):
            got, gots = run()
            self.assertIn("Matmul", type(got.grad_fn).__name__)
            self.assertNotIn("Matmul", type(layer(x[:1, :1]).grad_fn).__name__, "a small product is not worth a call")
            if MODERN:
                with torch.autocast("cpu"):
                    self.assertEqual(layer(x).dtype, torch.bfloat16)
        for g, w in zip((got, *gots), (want, *wants)):
            self.assertLessEqual(distance(g.detach(), w.detach()), 1e-5)
        with velo.enable(stack, level=0) as done:
            self.assertNotIn("Matmul", type(stack(x).grad_fn).__name__)
            self.assertEqual(sum("Linear" in why for _, why in done.left), 2)
        velo.library().configure("level", 2)

    def test_enable_undoes_itself_and_refuses_nonsense(self):
        before = (F.cross_entropy, torch.optim.AdamW)
        with velo.enable() as done:
            self.assertIs(torch.optim.AdamW, velo.AdamW)
            loss = F.cross_entropy(torch.randn(4, 5), torch.tensor([0, 1, 2, 3]), label_smoothing=0.1)
            self.assertTrue(torch.isfinite(loss))
            self.assertIn("cross_entropy", str(done))
        self.assertEqual(before, (F.cross_entropy, torch.optim.AdamW))
        with self.assertRaisesRegex(ValueError, "level"):
            velo.enable(level=3)

    def test_levels_agree(self):
        x, gain = torch.randn(8, 64), torch.randn(64)
        results = []
        for level in (0, 1, 2):
            with velo.enable(level=level):
                results.append(velo.rms_norm(x, gain))
        velo.library().configure("level", 2)
        for result in results:
            self.assertLessEqual(distance(result, results[0]), 1e-6)


if __name__ == "__main__":
    unittest.main()
