"""velo.torch against torch itself: gradients, compile, enable() on models, copies, leaks, forks, refusals.

Usage: torch_test.py (VELO_LIBRARY names libvelo.so). Parts that this torch is too old for, or that need transformers, are skipped
by name; with CI=true in the environment transformers must be there for torch 2.
"""
import ctypes
import gc
import itertools
import os
import resource
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "parity"))
sys.path.insert(0, os.path.join(ROOT, "examples", "python"))

from frameworks import torch  # noqa: E402

import velo.ctypes as velo_ctypes  # noqa: E402
import velo.torch as velo  # noqa: E402

F = torch.nn.functional
MODERN = int(torch.__version__.split(".")[0]) >= 2
TYPES = (torch.float32, torch.bfloat16)
BOUND = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def distance(got, truth):
    return float((got.double() - truth.double()).norm() / truth.double().norm())


def values(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype).requires_grad_()


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


class ShiftedRMSNorm(torch.nn.Module):
    """Called like velo's, but its gain is 1 + weight, as Gemma has it."""

    def __init__(self):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.linspace(-0.5, 0.5, 16)), 1e-6

    def forward(self, x):
        return Stock.norm(x, 1 + self.weight)


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


class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)

    def compare(self, name, dtype, ours, theirs, leaves):
        """Values and gradients of two ways to compute the same."""
        got, truth = ours(*leaves), theirs(*[leaf.detach().float().requires_grad_() for leaf in leaves])
        weight = torch.randn(truth.shape)
        reference = [leaf.detach().float().requires_grad_() for leaf in leaves]
        want = torch.autograd.grad((theirs(*reference) * weight).sum(), reference)
        have = torch.autograd.grad((got.float() * weight.to(got.dtype).float()).sum(), leaves)
        self.assertLessEqual(distance(got, truth), BOUND[dtype], name)
        for index, (h, w) in enumerate(zip(have, want)):
            self.assertEqual(h.dtype, leaves[index].dtype, name)
            self.assertLessEqual(distance(h, w), BOUND[dtype] * (4 if dtype == torch.bfloat16 else 1), f"{name} gradient {index}")

    def test_values_and_gradients(self):
        targets = torch.randint(0, 40, (30,))
        for dtype in TYPES:
            x = values(6, 40, dtype=dtype)
            norm = lambda x, g: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g  # noqa: E731
            self.compare("rms_norm", dtype, velo.rms_norm, norm, (x, values(40, dtype=dtype)))
            self.compare("swiglu", dtype, velo.swiglu, Stock.gated, (x,))
            self.compare("cross_entropy", dtype, lambda l: velo.cross_entropy(l, targets).view(1),
                         lambda l: F.cross_entropy(l, targets).view(1), (values(30, 40, dtype=dtype),))
            qkv = [values(2, 9, 4, 16, dtype=dtype) for _ in range(3)]
            self.compare("fusion_attention", dtype, lambda q, k, v: velo.fusion_attention(q, k, v, causal=True),
                         Stock.attention, qkv)
            self.compare("matmul", dtype, lambda a, b: velo.matmul(a, b, transpose_b=True), lambda a, b: a @ b.t(),
                         (values(2, 7, 24, dtype=dtype), values(10, 24, dtype=dtype)))
            self.compare("add", dtype, velo.add, torch.add, (x, values(6, 40, dtype=dtype)))
            ids = torch.randint(0, 12, (3, 5))
            self.compare("embedding", dtype, lambda t: velo.embedding(ids, t), lambda t: F.embedding(ids, t),
                         (values(12, 20, dtype=dtype),))
            angle = torch.rand(1, 9, 1, 16)
            cos, sin = angle.cos(), angle.sin()
            self.compare("rotary_position_embedding", dtype, lambda x: velo.rotary_position_embedding(x, cos, sin),
                         lambda x: x * cos + torch.cat((-x[..., 8:], x[..., :8]), -1) * sin, (qkv[0],))
        self.compare("cast", torch.bfloat16, lambda x: velo.cast(x, torch.bfloat16), lambda x: x * 1, (values(6, 40),))

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

    @unittest.skipUnless(MODERN, "transformers needs torch 2")
    def test_enable_on_llama(self):
        try:
            from transformers import LlamaConfig, LlamaForCausalLM
        except ImportError as missing:
            if os.environ.get("CI") == "true":
                raise
            self.skipTest(str(missing))
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
            self.assertIn("_Matmul", type(got.grad_fn).__name__)
            self.assertNotIn("_Matmul", type(layer(x[:1, :1]).grad_fn).__name__, "a small product is not worth a call")
            if MODERN:
                with torch.autocast("cpu"):
                    self.assertEqual(layer(x).dtype, torch.bfloat16)
        for g, w in zip((got, *gots), (want, *wants)):
            self.assertLessEqual(distance(g.detach(), w.detach()), 1e-5)
        with velo.enable(stack, level=0) as done:
            self.assertNotIn("_Matmul", type(stack(x).grad_fn).__name__)
            self.assertEqual(sum("Linear" in why for _, why in done.left), 2)
        velo.library().configure("level", 2)

    def test_threads_follow_torch(self):
        library, before = velo.library(), torch.get_num_threads()
        try:
            for threads in (1, 2, 1):
                torch.set_num_threads(threads)
                velo.rms_norm(torch.randn(2, 8), torch.ones(8))
                stats = velo_ctypes.velo_context_stats()
                library.check(library.c.velo_context_get_stats(library.context()[0], ctypes.byref(stats)))
                self.assertEqual(stats.threads, threads)
                self.assertGreater(stats.operator_calls, 0)
        finally:
            torch.set_num_threads(before)

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

    def test_nothing_is_copied(self):
        x, y = torch.zeros(1000), torch.zeros(1000)
        velo.call("add", a=x, b=torch.ones(1000), y=x)
        self.assertTrue(torch.equal(x, torch.ones(1000)))
        wide = torch.arange(24.0).view(2, 3, 4).transpose(0, 1)
        cos = torch.ones(1, 3, 1, 4)
        rotated = torch.empty(1, 3, 2, 4)
        velo.call("rotary_position_embedding", x=wide.unsqueeze(0), cos=cos, sin=torch.zeros_like(cos), y=rotated)
        self.assertTrue(torch.equal(rotated[0], wide))
        del y

    def test_layouts_are_read_right_or_refused_by_name(self):
        gain = torch.ones(8)
        with self.assertRaisesRegex(velo.VeloError, r"args\.x\.strides"):
            velo.call("rms_norm", x=torch.randn(8, 4).t(), gamma=gain, y=torch.empty(4, 8))
        with self.assertRaisesRegex(velo.VeloError, r"args\.x\.strides"):
            velo.call("rms_norm", x=torch.randn(1, 8).expand(4, 8), gamma=gain, y=torch.empty(4, 8))
        x = torch.randn(8, 4)
        self.assertLessEqual(distance(velo.rms_norm(x.t(), gain), velo.rms_norm(x.t().contiguous(), gain)), 0)
        self.assertEqual(velo.rms_norm(torch.empty(0, 8), gain).shape, (0, 8))
        expanded = torch.randn(2, 5, 1, 16).expand(2, 5, 4, 16)
        got = velo.fusion_attention(expanded, expanded, expanded)
        self.assertLessEqual(distance(got, velo.fusion_attention(*[expanded.contiguous()] * 3)), 0)

    def operators(self, dtype, batch):
        """Every function with tensors it takes: {name: (function, leaves)}, the leaves 2-D or 4-D with `batch` first."""
        x, q = torch.randn(batch, 8).to(dtype), torch.randn(batch, 5, 4, 16).to(dtype)
        ids, angle = torch.arange(batch) % 12, torch.rand(batch, 5, 1, 16)
        return {
            "rms_norm": (velo.rms_norm, (x, torch.randn(8).to(dtype))), "swiglu": (velo.swiglu, (x,)),
            "fusion_attention": (velo.fusion_attention, (q, q * 2, q * 3)), "add": (velo.add, (x, x * 2)),
            "rotary_position_embedding": (velo.rotary_position_embedding, (q, angle.cos(), angle.sin())),
            "embedding": (lambda t: velo.embedding(ids, t), (torch.randn(12, 8).to(dtype),)),
            "cross_entropy": (lambda x: velo.cross_entropy(x, ids % 8, reduction="none"), (x,)),
            "matmul": (velo.matmul, (x, torch.randn(8, 6).to(dtype))), "cast": (lambda x: velo.cast(x, torch.float32), (x,)),
        }

    def test_every_operator_reads_every_layout(self):
        """Turned, with gaps, and broadcast by stride 0: the functions give what they give for a compact copy, gradients too."""

        def gaps(t):
            wide = torch.full((*t.shape[:-1], 2 * t.shape[-1]), float("nan"), dtype=t.dtype)
            wide[..., ::2] = t
            return wide[..., ::2]

        views = {"transposed": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1), "with gaps": gaps,
                 "broadcast": lambda t: t[:1].expand(t.shape)}
        for dtype in TYPES:
            for name, (function, leaves) in self.operators(dtype, 6).items():
                for (layout, view), index in itertools.product(views.items(), range(len(leaves))):
                    viewed = [view(t) if i == index else t for i, t in enumerate(leaves)]
                    both = []
                    for tensors in (viewed, [t.contiguous().clone() for t in viewed]):
                        tensors = [t.detach().requires_grad_() for t in tensors]
                        out = function(*tensors)
                        weight = torch.linspace(-1, 1, out.numel()).view(out.shape).to(out.dtype)
                        gradients = torch.autograd.grad(out, tensors, view(weight), allow_unused=True)
                        both.append([out, *[g for g in gradients if g is not None]])
                    for a, b in zip(*both):
                        self.assertTrue(torch.equal(a, b), f"{name} {dtype}, argument {index} {layout}")

    def test_raw_calls_read_every_layout_or_refuse_it_by_name(self):
        """velo.call hands over tensors as they are: whatever it takes, it reads right."""
        for dtype, batch in itertools.product(TYPES, (6, 1)):
            x = torch.randn(batch, 8).to(dtype)
            strided = {"transposed": x.t().contiguous().t(), "gaps": x.repeat_interleave(2, -1)[..., ::2],
                       "broadcast": x[:1].expand(6, 8), "rows apart": torch.cat((x, x), -1)[:, :8]}
            for layout, view in strided.items():
                for name, values in (("rms_norm", {"x": view, "gamma": torch.ones(8, dtype=dtype)}), ("swiglu", {"x": view}),
                                     ("cast", {"x": view, "dtype": 0}), ("matmul", {"a": view, "b": torch.eye(8).to(dtype)})):
                    outputs = {n: torch.empty(*s, dtype=t) for n, (s, t) in velo.infer(name, **{
                        k: v.contiguous() if isinstance(v, torch.Tensor) else v for k, v in values.items()}).items()
                        if n in ("y", "c")}
                    key = "a" if name == "matmul" else "x"
                    try:
                        velo.call(name, **values, **outputs)
                    except velo.VeloError as refused:
                        self.assertRegex(str(refused), rf"velo_{name}: args\.{key}\.strides", layout)
                        continue
                    again = {n: torch.empty_like(t) for n, t in outputs.items()}
                    velo.call(name, **{**values, key: view.contiguous()}, **again)
                    for n in outputs:
                        self.assertTrue(torch.equal(outputs[n], again[n]), f"{name} {layout}")

    def test_zero_size(self):
        for dtype in TYPES:
            for name, (function, leaves) in self.operators(dtype, 0).items():
                leaves = [t.requires_grad_() for t in leaves]
                out = function(*leaves)
                self.assertEqual(out.shape[0], 0, name)
                for leaf, gradient in zip(leaves, torch.autograd.grad(out, leaves, out, allow_unused=True)):
                    if gradient is not None:
                        self.assertTrue(torch.equal(gradient, torch.zeros_like(leaf)), name)

    def test_refusals_carry_the_record(self):
        with self.assertRaisesRegex(velo.VeloError, r"velo_add: args\.b\.shape: expected .*\[3\].*got \[4\]"):
            velo.call("add", a=torch.ones(3), b=torch.ones(4), y=torch.ones(3))
        with self.assertRaisesRegex(velo.VeloError, r"args\.x\.dtype: expected float32 or bfloat16, got float64"):
            velo.call("swiglu", x=torch.ones(4, dtype=torch.float64), y=torch.ones(2, dtype=torch.float64))
        with self.assertRaisesRegex(velo.VeloError, "meta|CPU|data"):
            velo.call("swiglu", x=torch.ones(4, device="meta"), y=torch.ones(2))
        with self.assertRaisesRegex(TypeError, "no field"):
            velo.call("add", a=torch.ones(3), c=1)

    def test_ten_thousand_calls_leak_nothing(self):
        x, y, leaves = torch.randn(4, 64), torch.empty(4, 32), (values(4, 64), values(64))

        def calls(count):
            for _ in range(count):
                velo.call("swiglu", x=x, y=y)
                torch.autograd.grad(velo.rms_norm(*leaves).sum(), leaves)
            gc.collect()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        before = calls(1000)
        self.assertLess(calls(10000) - before, 2048, "kibibytes")

    def test_a_forked_worker_gets_a_clear_error(self):
        velo.rms_norm(torch.randn(2, 8), torch.ones(8))

        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return velo.rms_norm(torch.randn(2, 8), torch.ones(8))

        loader = torch.utils.data.DataLoader(Data(), num_workers=2, timeout=60, multiprocessing_context="fork")
        with self.assertRaisesRegex(RuntimeError, "expected a (stream|context) made in this process, got one made before fork"):
            list(loader)
        velo.rms_norm(torch.randn(2, 8), torch.ones(8))  # the parent goes on


if __name__ == "__main__":
    unittest.main()
