"""enable(): what it replaces computes the same, what only looks alike is left, and disable()
restores the very model.

The models are small; sizes that are worth velo's call are forced where a test is about something
else.
"""
import copy
import io
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

from torch_case import F, MODERN, Torch, distance, torch, transformers, values, velo

from velo.torch import costs
from velo.torch.replacement import Entry, Shared

FROM_NINE = hasattr(torch.library, "get_kernel")  # where torch lets its kernels be replaced


class RMSNorm(torch.nn.Module):
    """As Llama has it; gain says what is multiplied."""

    def __init__(self, size=16, gain=lambda w: w, floor="eps"):
        super().__init__()
        self.weight, self.eps, self.gain = torch.nn.Parameter(torch.ones(size)), 1e-6, gain
        self.floor = 1e-3
        self.epsilon_name = floor

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) +
                               getattr(self, self.epsilon_name)) * self.gain(self.weight)


def plain_gain(w):
    return w


def shifted_gain(w):
    return 1 + w


def exponential_gain(w):
    return (w - 1).exp()


class GatedMlp(torch.nn.Module):
    def __init__(self, size=16, inner=32, factor=1.0, dropout=0.0):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(size, inner, bias=False) for _ in range(2))
        self.down_proj, self.act_fn = torch.nn.Linear(inner, size, bias=False), torch.nn.SiLU()
        self.factor, self.dropout = factor, dropout

    def forward(self, x):
        y = F.dropout(self.act_fn(self.gate_proj(x)) * self.up_proj(x), self.dropout, self.training)
        return self.factor * self.down_proj(y)


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    """Pairs neighbors, where the usual function of this name pairs halves."""
    rotated = [torch.stack((-t[..., 1::2], t[..., ::2]), -1).flatten(-2) for t in (q, k)]
    return tuple(t * cos.unsqueeze(unsqueeze_dim) + r * sin.unsqueeze(unsqueeze_dim)
                 for t, r in zip((q, k), rotated))


def block():
    return torch.nn.Sequential(RMSNorm(gain=plain_gain), GatedMlp())


def multiplied(*types):
    """Those whose matrices this torch multiplies: torch 1.13 has no float16 product on CPUs."""
    return [(dtype, bound) for dtype, bound in types if MODERN or dtype != torch.float16]


class Enable(Torch):
    def setUp(self):
        super().setUp()
        for name, always in {
                "gated_elements": 0, "activation_elements": 0,
                "cross_entropy": True, "norm": True, "rotary": True,
                "layer_norm_elements": 0
        }.items():
            self.addCleanup(setattr, costs, name, getattr(costs, name))
            setattr(costs, name, lambda *_, always=always: always)

    def agree(self, model, x, bound=1e-5):
        """Whether the model computes what it does without velo, gradients too."""
        with_velo = self.run_through(model, x)
        for module in model.modules():
            module.__dict__.pop("forward", None)
        for got, want in zip(with_velo, self.run_through(model, x)):
            self.assertLessEqual(distance(got, want), bound)

    @staticmethod
    def run_through(model, x):
        y = model(x)
        return [y.detach(), *torch.autograd.grad(y.sin().sum(), list(model.parameters()))]

    def test_llama(self):
        LlamaConfig, LlamaForCausalLM = (
            getattr(transformers(), name) for name in ("LlamaConfig", "LlamaForCausalLM"))
        config = LlamaConfig(vocab_size=260,
                             hidden_size=64,
                             intermediate_size=176,
                             num_hidden_layers=2,
                             num_attention_heads=4,
                             num_key_value_heads=2,
                             max_position_embeddings=64)
        symbols = torch.randint(0, 260, (2, 32))
        for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2), (torch.float16, 1e-2)):
            model = LlamaForCausalLM(config).to(dtype)

            def run():
                model.zero_grad()
                loss = model(input_ids=symbols, labels=symbols).loss
                loss.backward()
                return loss.detach(), [p.grad.clone() for p in model.parameters()]

            stock_loss, stock = run()
            with velo.enable(model) as done:
                loss, gradients = run()
                ran = [entry.what for entry in done.entries if entry.called]
                for kind in ("rms_norm", "swiglu", "rotary", "fusion_attention", "cross_entropy"):
                    self.assertTrue(any(kind in what for what in ran), (kind, str(done)))
                self.assertEqual([
                    where for where, what in done.never_called
                    if what.split()[0] not in ("matmul", "apply_fused_adamw,")
                ], [])
                self.assertTrue(any("Embedding" in why for _, why in done.left))
            self.assertLessEqual(
                abs(float(loss - stock_loss)) / float(stock_loss),
                1e-5 if dtype == torch.float32 else 1e-2)
            for have, want in zip(gradients, stock):
                self.assertLessEqual(distance(have, want), bound)
            again, _ = run()
            self.assertEqual(float(again), float(stock_loss), "disable() did not restore the model")

    def test_what_only_looks_alike_is_left(self):
        model = torch.nn.Sequential(RMSNorm(gain=exponential_gain),
                                    RMSNorm(gain=plain_gain, floor="floor"), GatedMlp(factor=0.5),
                                    GatedMlp(dropout=0.5), torch.nn.LayerNorm((4, 16)),
                                    RMSNorm(gain=shifted_gain)).eval()
        x, tables, heads = torch.randn(4, 16), torch.rand(2, 1, 3, 8), torch.randn(2, 1, 2, 3, 8)
        want, rotated = model(x), apply_rotary_pos_emb(*heads, *tables)
        with velo.enable(model) as done:
            self.assertLessEqual({"0", "1", "2", "3", "4", __name__},
                                 {where for where, _ in done.left}, done.left)
            self.assertIn(("5", "rms_norm with a gain of 1 + weight"), done.replaced)
            self.assertLessEqual(distance(model(x), want), 1e-6)
            self.assertTrue(all(not m.training for m in model.modules()),
                            "trying a module left it in another mode")
            for have, right in zip(apply_rotary_pos_emb(*heads, *tables), rotated):
                self.assertTrue(torch.equal(have, right))

    def test_what_tells_a_module_from_its_like_is_seen(self):
        """A private attribute or a buffer of one of two, a buffer loaded later, a norm over another
        dimension."""

        class Scaled(RMSNorm):
            def __init__(self, scale):
                super().__init__(gain=plain_gain)
                self._scale = scale

            def forward(self, x):
                return super().forward(x) * self._scale

        class BufferedRMSNorm(RMSNorm):
            def __init__(self, scale):
                super().__init__(gain=plain_gain)
                self.register_buffer("scale", torch.tensor(scale))

            def forward(self, x):
                return super().forward(x) * self.scale

        class ChannelRMSNorm(RMSNorm):
            def forward(self, x):
                weight = self.weight.view(-1, *[1] * (x.dim() - 2))
                return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + self.eps) * weight

        Scaled.__name__ = "ScaledRMSNorm"
        model, x = torch.nn.Sequential(Scaled(1.0), Scaled(2.0), BufferedRMSNorm(1.0),
                                       ChannelRMSNorm()), torch.randn(2, 16, 3, 16)
        with velo.enable(model) as done:
            self.assertEqual([where for where, _ in done.replaced if where in "0123"], ["0"])
            got = model(x)
        self.assertLessEqual(distance(got, model(x)), 1e-6)

    def test_copies_compute_with_their_own_weights(self):
        model, x = block(), torch.randn(4, 16)
        with velo.enable(model) as done:
            changed = copy.deepcopy(model)
            with torch.no_grad():
                for parameter in changed.parameters():
                    parameter.mul_(1.5)
            self.assertGreater(distance(changed(x), model(x)), 0.1)
            self.assertTrue(all(
                entry.called for entry in done.entries if entry.where in ("0", "1")))
            self.agree(changed, x)

    def test_pickle_and_state_dict(self):
        model, x = block(), torch.randn(4, 16)
        names = list(model.state_dict())
        with velo.enable(model):
            self.assertEqual(list(model.state_dict()), names)
            self.assertLessEqual(distance(pickle.loads(pickle.dumps(model))(x), model(x)), 1e-6)
            file = io.BytesIO()
            torch.save(model, file)
            file.seek(0)
            loaded = torch.load(file, **({"weights_only": False} if MODERN else {}))
            with velo.enable(loaded) as again:
                self.assertIn("rms_norm", dict(again.replaced)["0"])

    def test_layers_and_hooks_put_in_later_are_seen(self):
        x = torch.randn(4, 16)
        for change in ("hook", "layer", "forward", "weight"):
            model, seen = block(), []
            with velo.enable(model):
                model(x)
                gate = model[1].gate_proj
                if change == "hook":
                    gate.register_forward_hook(lambda *_: seen.append(1))
                elif change == "layer":
                    model[1].gate_proj = torch.nn.Sequential(gate, torch.nn.Identity())
                elif change == "forward":
                    gate.forward = lambda x: seen.append(1) or F.linear(x, gate.weight) * 2
                else:
                    model[1].gate_proj.weight = torch.nn.Parameter(torch.randn(32, 16))
                got = model(x)
                model[0].__dict__.pop("forward"), model[1].__dict__.pop("forward")
                self.assertLessEqual(distance(got, model(x)), 1e-5, change)
            self.assertTrue(seen or change in ("layer", "weight"), change)

    def test_a_forward_replaced_by_others_stays(self):
        model, x = block(), torch.randn(4, 16)
        model[0].forward = lambda x: x * 3
        with velo.enable(model) as done:
            self.assertIn(("0", "its forward has been replaced by somebody else"), done.left)
            self.assertTrue(torch.equal(model[0](x), x * 3))
            inner = model[1].forward  # as accelerate does: kept, and called by what takes its place
            model[1].forward = lambda x: inner(x) + 1
        self.assertIn("forward", model[1].__dict__, "disable() took somebody else's forward off")
        self.assertLessEqual(distance(model[1](x) - 1, GatedMlp.forward(model[1], x)), 1e-6)

    def test_a_forward_given_to_the_class_later_runs(self):
        model, x = torch.nn.Sequential(RMSNorm(gain=plain_gain)), torch.randn(4, 16)
        with velo.enable(model), unittest.mock.patch.object(RMSNorm, "forward",
                                                            lambda self, x: x + 1):
            self.assertTrue(torch.equal(model(x), x + 1))

    def test_threads_may_enable_at_once(self):
        """State of the process is installed once and removed once."""
        installed, removed = [], []

        def install(shared):
            installed.append(time.sleep(0.05))  # while another thread comes
            return lambda: removed.append(time.sleep(0.05))

        shared, entries = Shared(install), [Entry("here", "something") for _ in range(3)]
        for act in (shared.add, shared.drop):
            threads = [threading.Thread(target=act, args=(entry,)) for entry in entries]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual((len(installed), len(removed), shared.users), (1, 1, []))

    def test_any_order_of_disable_restores_everything(self):
        model, other = block(), block()
        before = torch.optim.AdamW, velo.library().get("level")
        first, second = velo.enable(model, level=1), velo.enable(other, level=0)
        self.assertEqual(velo.library().get("level"), "0")
        first.disable()
        self.assertIs(torch.optim.AdamW, velo.AdamW)
        self.assertEqual(velo.library().get("level"), "0")
        second.disable()
        second.disable()
        self.assertEqual((torch.optim.AdamW, velo.library().get("level")), before)
        self.assertFalse(any("forward" in m.__dict__ for m in [*model.modules(), *other.modules()]))
        with velo.enable():
            torch.optim.AdamW = dict  # somebody else's
        self.assertIs(torch.optim.AdamW, dict)
        torch.optim.AdamW = before[0]

    def test_what_is_not_plain_falls_through(self):
        model, x = block(), torch.randn(4, 16)
        want = model(x)
        with velo.enable(model):
            if hasattr(torch, "func"):
                torch.func.jacrev(lambda x: torch.func.functional_call(
                    model, dict(model.named_parameters()), (x,)))(x[0])
                self.assertLessEqual(distance(torch.func.vmap(model)(x), want), 1e-5)
                torch.func.jvp(model, (x,), (x,))
            with torch.autograd.forward_ad.dual_level():
                torch.autograd.forward_ad.unpack_dual(
                    model(torch.autograd.forward_ad.make_dual(x, x)))

            class Subclass(torch.Tensor):
                pass

            self.assertIs(type(model(x.as_subclass(Subclass))), Subclass)
            self.assertEqual(model[0](x[0]).shape, (16,))
            self.assertEqual(model(x.double()[:0].float()).shape, (0, 16))

    @unittest.skipUnless(FROM_NINE, "this torch does not let its kernels be replaced")
    def test_attention_falls_through(self):
        q = torch.randn(2, 4, 64, 16)
        cases = {
            "mask": dict(attn_mask=torch.ones(64, 64, dtype=torch.bool).tril()), "wide": {},
            "one head of keys": {}, "three dimensions": {}, "causal": dict(is_causal=True),
            "value width": {}
        }
        taken = ("mask", "causal", "one head of keys") + (
            ("three dimensions",) if torch.__version__ >= "2.10" else ())
        for name, options in cases.items():
            query = {"wide": torch.randn(1, 1, 64, 520), "three dimensions": q[0]}.get(name, q)
            key = q[:, :1].expand(2, 4, 64, 16) if name == "one head of keys" else query
            value = key[..., :8] if name == "value width" else key
            want = F.scaled_dot_product_attention(query, key, value, **options)
            with velo.enable() as done:
                got = F.scaled_dot_product_attention(query, key, value, **options)
                ran = next(e.called for e in done.entries if "attention" in e.what)
            self.assertLessEqual(distance(got, want), 1e-5, name)
            self.assertEqual(ran, name in taken, name)

    @unittest.skipUnless(FROM_NINE, "this torch does not let its kernels be replaced")
    def test_attention_takes_masks(self):
        """Boolean and added ones, a tensor for all heads or for some; a row that sees nothing."""
        hidden = torch.rand(2, 1, 64, 70) < 0.3
        hidden[1, :, 5] = True
        masks = {"boolean": ~hidden, "added": torch.randn(2, 4, 64, 70),
                 "two dimensions": torch.randn(64, 70), "spread": torch.randn(1, 4, 1, 70),
                 "expanded": torch.randn(1, 1, 64, 70).expand(2, 4, 64, 70)}

        def passes(mask, dtype):
            torch.manual_seed(3)
            leaves = [torch.randn(2, 4, n, 16).to(dtype).requires_grad_() for n in (64, 70, 70)]
            mask = mask if mask.dtype == torch.bool else mask.to(dtype)
            out = F.scaled_dot_product_attention(*leaves, attn_mask=mask)
            return [out, *torch.autograd.grad(out.float().square().sum(), leaves)]

        for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2), (torch.float16, 4e-3)):
            for name, mask in masks.items():
                want = passes(mask, dtype)
                with velo.enable() as done:
                    got = passes(mask, dtype)
                    ran = next(e.called for e in done.entries if "attention" in e.what)
                self.assertTrue(ran, name)
                for a, b in zip(got, want):
                    self.assertLessEqual(distance(a.float(), b.float()), bound, (name, dtype))

    @unittest.skipUnless(FROM_NINE, "this torch does not let its kernels be replaced")
    def test_autocast_keeps_torchs_rules(self):
        q, logits, targets = torch.randn(1, 2, 32,
                                         16), torch.randn(32, 64), torch.randint(0, 64, (32,))
        model, x = block(), torch.randn(4, 16)
        for enabled in (False, True):
            with velo.enable(model) if enabled else torch.enable_grad(), torch.autocast("cpu"):
                types = (F.scaled_dot_product_attention(q, q, q, is_causal=True).dtype,
                         F.cross_entropy(logits, targets).dtype,
                         F.cross_entropy(logits.bfloat16(), targets).dtype, model(x).dtype)
            self.assertEqual(types, types if not enabled else stock)
            stock = types

    def test_layer_norms(self):
        for dtype, bound in multiplied((torch.float32, 1e-5), (torch.bfloat16, 2e-2),
                                       (torch.float16, 3e-3)):
            for options in ({}, {"bias": False}, {"elementwise_affine": False}):
                if "bias" in options and not MODERN:
                    continue
                model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.LayerNorm(
                    24, eps=1e-3, **options)).to(dtype)
                with velo.enable(model) as done:
                    self.assertIn(("1", "layer_norm"), done.replaced)
                    self.agree(model, torch.randn(5, 3, 16, dtype=dtype), bound)
        model, x = torch.nn.Sequential(torch.nn.LayerNorm(16)), torch.randn(4, 16)
        want = model(x.bfloat16().float())
        with velo.enable(model) as done:
            with torch.autocast("cpu"):  # torch computes in float32 there
                self.assertEqual(model(x).dtype, torch.float32)
            self.assertLessEqual(distance(model(x.bfloat16().float()), want), 1e-6)
            self.assertEqual([e.called for e in done.entries if e.where == "0"], [True])
            with self.assertRaisesRegex(RuntimeError, "normalized_shape"):
                model(torch.randn(4, 8))

    def test_activations(self):
        class Quick(torch.nn.Module):
            def forward(self, x):
                return x * torch.sigmoid(1.702 * x)

        class QuickGELU(Quick):
            pass

        class WideGELU(torch.nn.Module):
            def forward(self, x):
                return F.gelu(1.01 * x, approximate="tanh")

        kinds = {
            "silu": torch.nn.SiLU(), "gelu by tanh": torch.nn.GELU("tanh"),
            "fast_gelu": QuickGELU()
        }
        for dtype, bound in multiplied((torch.float32, 1e-5), (torch.bfloat16, 2e-2),
                                       (torch.float16, 3e-3)):
            for what, module in kinds.items():
                model = torch.nn.Sequential(torch.nn.Linear(16, 24), module).to(dtype)
                with velo.enable(model) as done:
                    self.assertIn(("1", what), done.replaced)
                    self.agree(model, torch.randn(5, 3, 16, dtype=dtype), bound)
                    self.assertEqual([e.called for e in done.entries if e.where == "1"], [True])
        with velo.enable(
                torch.nn.Sequential(torch.nn.GELU(), WideGELU(), torch.nn.SiLU(True))) as done:
            self.assertEqual(
                dict(done.left)["0"], "torch's own gelu by the error function is as fast")
            self.assertEqual(dict(done.left)["1"], "velo has no WideGELU")
        x = torch.randn(4, 8)
        with velo.enable(torch.nn.Sequential(torch.nn.SiLU(True))):
            kept = x.clone()
            self.assertEqual(torch.nn.SiLU(True)(kept).data_ptr(), kept.data_ptr())

    def test_a_gradient_penalty_through_activations(self):
        for module in (torch.nn.SiLU(), torch.nn.GELU("tanh")):
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), module)
            x, weight = values(4, 8), model[0].weight

            def penalty():
                slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
                return torch.autograd.grad(slope.square().sum(), weight)[0]

            want = penalty()
            with velo.enable(model) as done:
                self.assertLessEqual(distance(penalty(), want), 1e-5)
                self.assertEqual([e.called for e in done.entries if e.where == "1"], [True])

    def test_gated_mlps_with_gelu(self):
        for act in (torch.nn.GELU(), torch.nn.GELU("tanh")):
            for dtype, bound in multiplied((torch.float32, 1e-5), (torch.float16, 5e-3)):
                mlp = GatedMlp()
                mlp.act_fn = act
                with velo.enable(mlp.to(dtype)) as done:
                    self.assertIn(("GatedMlp", "gate and up into one buffer, geglu"),
                                  done.replaced)
                    self.assertNotIn("act_fn", [where for where, _ in done.replaced + done.left])
                    self.agree(mlp, torch.randn(6, 16, dtype=dtype), bound)
                    self.assertEqual([e.called for e in done.entries if e.where == "GatedMlp"],
                                     [True])

    @unittest.skipUnless(FROM_NINE, "this torch does not let its kernels be replaced")
    def test_cross_entropy_with_weights_and_smoothing(self):
        logits, targets = values(12, 32), torch.randint(0, 32, (12,))
        targets[3] = -100
        for reduction in ("none", "sum", "mean"):
            for weight in (None, torch.rand(32)):
                for smoothing in (0.0, 0.2):
                    def run():
                        loss = F.cross_entropy(logits, targets, weight, reduction=reduction,
                                               label_smoothing=smoothing)
                        return loss.detach(), torch.autograd.grad(loss.sum(), logits)[0]

                    with velo.enable() as done:
                        got = run()
                        called = [e.called for e in done.entries if "cross_entropy" in e.where]
                    self.assertEqual(called, [True])
                    for have, want in zip(got, run()):
                        self.assertLessEqual(distance(have, want), 1e-5)

    def test_all_targets_ignored(self):
        logits, targets = torch.randn(8, 32), torch.full((8,), -100)
        want = F.cross_entropy(logits, targets)
        with velo.enable():
            got = F.cross_entropy(logits, targets)
        self.assertTrue(bool(torch.isnan(want)) == bool(torch.isnan(got)), (want, got))

    def test_the_gated_mlp_copies_no_weights(self):
        """Bytes kept for the gradient: x, and the products once; the weights are the model's
        own."""
        rows, size, inner = 64, 16, 48
        mlp, x, kept = GatedMlp(size, inner), torch.randn(rows, size), {}

        def keep(tensor):
            kept[tensor.untyped_storage().data_ptr() if MODERN else tensor.storage().data_ptr(
            )] = tensor.numel()
            return tensor

        with velo.enable(mlp) as done, torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            mlp(x).sum()
        self.assertIn("gate and up", str([e.what for e in done.entries if e.called]))
        for parameter in mlp.parameters():
            kept.pop(parameter.data_ptr())
        self.assertLessEqual(sum(kept.values()), rows * (size + 3 * inner))

    def test_linear_layers(self):
        layer, frozen = torch.nn.Linear(512, 640), torch.nn.Linear(640, 512,
                                                                   bias=False).requires_grad_(False)
        x = values(2, 64, 512)
        stack = torch.nn.Sequential(layer, frozen)

        def run():
            y = stack(x)
            return y, torch.autograd.grad(y.sin().sum(), (x, layer.weight, layer.bias))

        want, wants = run()
        with velo.enable(stack):
            got, gots = run()
            self.assertIn("Matmul", type(got.grad_fn).__name__)
            self.assertNotIn("Matmul",
                             type(layer(x[:1, :1]).grad_fn).__name__,
                             "a small product is not worth a call")
            if MODERN:
                with torch.autocast("cpu"):
                    self.assertEqual(layer(x).dtype, torch.bfloat16)
        for g, w in zip((got, *gots), (want, *wants)):
            self.assertLessEqual(distance(g, w), 1e-5)
        with velo.enable(stack, level=0) as done:
            self.assertNotIn("Matmul", type(stack(x).grad_fn).__name__)
            self.assertEqual(sum("level 0" in why for _, why in done.left), 2)

    def test_a_gradient_penalty_through_linear_layers(self):
        stack, x = torch.nn.Sequential(torch.nn.Linear(512, 640), torch.nn.Tanh(),
                                       torch.nn.Linear(640, 512)), values(2, 64, 512)

        def penalty():
            y = stack(x)
            slope, = torch.autograd.grad(y.square().sum(), x, create_graph=True)
            return torch.autograd.grad((slope.norm(dim=-1) - 1).square().mean(),
                                       (x, *stack.parameters())), y

        want, _ = penalty()
        with velo.enable(stack):
            got, y = penalty()
            self.assertIn("Matmul", type(y.grad_fn).__name__)
        for g, w in zip(got, want):
            self.assertLessEqual(distance(g, w), 1e-4)

    def test_the_slow_way_is_reported(self):
        """By ctypes everything works, a hundred microseconds a call: whoever reads the report
        learns why."""
        with tempfile.TemporaryDirectory() as folder:
            alone = {**os.environ, "VELO_LIBRARY": shutil.copy(os.environ["VELO_LIBRARY"], folder)}
            alone.pop("VELO_ADAPTERS", None)
            program = (f"import sys; sys.path[:0] = {sys.path!r}; import velo.torch; "
                       f"print(velo.torch.enable())")
            done = subprocess.run([sys.executable, "-c", program],
                                  env=alone,
                                  capture_output=True,
                                  text=True,
                                  check=True)
        self.assertRegex(done.stdout,
                         "torch's dispatcher: every call goes by ctypes.*libvelo_adapters.so.1")

    def test_nonsense_is_refused(self):
        """Before anything is replaced: what follows finds torch as it was."""
        adamw, optimizer = torch.optim.AdamW, torch.optim.SGD([torch.ones(1)], lr=0.1)
        for arguments, text in (({"level": 3}, "level must be 0, 1 or 2, got 3"), ({"level":
            True}, "level must be .*, got True"), ({"level": 1.0}, "level must be .*, got 1.0"),
                                ({"level": "2"}, "level must be .*, got '2'"),
                                ({"model": "Llama"},
                                 "model must be a torch.nn.Module or None, got 'Llama'"),
                                ({"optimizer": optimizer},
                                 "optimizer must be True or False, got SGD"),
                                ({"optimizer": None}, "optimizer must be True or False, got None")):
            with self.assertRaisesRegex((TypeError, ValueError), f"enable: {text}"):
                velo.enable(**arguments)
            self.assertIs(torch.optim.AdamW, adamw)
            with velo.enable(level=1):
                pass
        self.assertEqual(velo.library().get("level"), "2")

    def test_a_level_that_one_context_refuses_leaves_nothing_behind(self):
        library = velo.library()
        contexts, adamw, set_key = [library.context()[0], *library.contexts_of_adapter()
                                   ], torch.optim.AdamW, library.c.velo_config_set
        for refusing in contexts:

            def refuse(context, key, value, refusing=refusing):
                return 4 if value == b"1" and context.value == refusing.value else set_key(
                    context, key, value)

            with unittest.mock.patch.object(library.c, "velo_config_set",
                                            refuse), self.assertRaises(velo.VeloError):
                velo.enable(level=1)
            self.assertEqual([library._value(context, b"level") for context in contexts],
                             [b"2"] * len(contexts))
            with velo.enable(level=0):
                self.assertEqual(library.get("level"), "0")
            self.assertEqual((library.get("level"), torch.optim.AdamW), ("2", adamw))

    def test_one_undo_that_fails_keeps_no_other_from_being_done(self):
        model, adamw = block(), torch.optim.AdamW
        done = velo.enable(model, level=1)

        def fail():
            raise RuntimeError("no way back")

        done._undo.insert(1, fail)
        done._undo.append(fail)
        with self.assertRaisesRegex(RuntimeError, "no way back"):
            done.disable()
        self.assertFalse(any("forward" in m.__dict__ for m in model.modules()))
        self.assertEqual((torch.optim.AdamW, velo.library().get("level")), (adamw, "2"))
        with velo.enable(model):
            pass

    def test_the_report_says_what_a_parameter_is(self):
        class Quantized(torch.Tensor):
            pass

        kinds = {
            "0": (lambda m: m.double(), "in torch.float64"),
            "1": (lambda m: m.to("meta"), "on the meta device: call enable() again")
        }
        if MODERN:
            kinds["2"] = (lambda m: self.with_weights(m, lambda w: w.as_subclass(Quantized)),
                          "a Quantized, and velo computes on tensors")
            kinds["3"] = (lambda m: self.with_weights(m, self.distributed),
                          "a DTensor, and velo computes on tensors")
        for make, subject in ((lambda: RMSNorm(gain=plain_gain),
                               "its gain is"), (lambda: torch.nn.Linear(512, 640), "its weight is"),
                              (GatedMlp, "a weight of its layers is")):
            model = torch.nn.Sequential(*(change(make()) for change, _ in kinds.values()))
            with velo.enable(model) as done:
                left = dict(done.left)
                for where, (_, text) in kinds.items():
                    self.assertIn(f"{subject} {text}", left[where])

    @staticmethod
    def with_weights(module, change):
        for part in module.modules():
            for name, weight in list(part.named_parameters(recurse=False)):
                del part._parameters[name]
                part.__dict__[name] = change(weight.detach())
        return module

    def distributed(self, weight):
        from torch.distributed.tensor import distribute_tensor
        return distribute_tensor(weight, self.mesh())

    def mesh(self):
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo",
                                                 store=torch.distributed.HashStore(),
                                                 rank=0,
                                                 world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
        return torch.distributed.device_mesh.init_device_mesh("cpu", (1,))

    @unittest.skipUnless(MODERN, "torch 1.13 makes no layers on a device given by a with statement")
    def test_a_model_on_meta_is_enabled_again_when_it_has_values(self):
        with torch.device("meta"):
            model = block()
        with velo.enable(model) as first:
            self.assertEqual([where for where, _ in first.replaced if where in ("0", "1")], [])
            self.assertIn("on the meta device: call enable() again", str(first))
            model.to_empty(device="cpu")
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.copy_(torch.rand(parameter.shape) + 0.5)
            x = torch.randn(4, 16)
            want = model(x)
            with velo.enable(model) as again:
                self.assertLessEqual(distance(model(x), want), 1e-5)
                self.assertEqual({where for where, _ in again.replaced if where in ("0", "1")},
                                 {"0", "1"})

    def test_an_interrupted_enable_leaves_nothing_behind(self):
        class Interrupting(torch.nn.Module):
            def named_modules(self, *arguments, **options):
                yield "first", first
                raise KeyboardInterrupt

        first, adamw = RMSNorm(gain=plain_gain), torch.optim.AdamW
        with self.assertRaises(KeyboardInterrupt):
            velo.enable(Interrupting())
        self.assertNotIn("forward", first.__dict__)
        self.assertIs(torch.optim.AdamW, adamw)

    def test_a_module_that_cannot_be_copied_is_left(self):
        norms = torch.nn.Sequential(RMSNorm(gain=plain_gain), RMSNorm(gain=plain_gain))
        norms[0].last = norms[0](torch.randn(2, 16))
        with velo.enable(norms) as done:
            self.assertIn("it cannot be tried: RuntimeError", dict(done.left)["0"])
            self.assertIn(("1", "rms_norm"), done.replaced)

    def test_a_copy_that_outlives_its_enable_is_enabled_anew(self):
        model = RMSNorm(gain=plain_gain)
        with velo.enable(model):
            kept = copy.deepcopy(model)
        with velo.enable(kept) as done:
            kept(torch.randn(2, 16))
            self.assertIn(("RMSNorm", "rms_norm"), done.replaced)
            self.assertNotIn(("RMSNorm", "rms_norm"), done.never_called)
        self.assertNotIn("forward", kept.__dict__)

    def test_the_report_knows_an_optimizer_that_has_run(self):
        model = torch.nn.Linear(4, 4)
        with velo.enable() as done:
            optimizer = torch.optim.AdamW(model.parameters())
            self.assertIn("torch.optim.AdamW", [where for where, _ in done.never_called])
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
            self.assertNotIn("torch.optim.AdamW", [where for where, _ in done.never_called])

    def test_levels_agree(self):
        x, gain = torch.randn(8, 64), torch.randn(64)
        results = []
        for level in (0, 1, 2):
            with velo.enable(level=level):
                results.append(velo.rms_norm(x, gain))
        for result in results:
            self.assertLessEqual(distance(result, results[0]), 1e-6)


if __name__ == "__main__":
    unittest.main()
