"""AdamW against torch's, and a small decoder trained through velo and through torch."""
import copy
import pickle
import unittest
import unittest.mock

from torch_case import F, MODERN, Torch, distance, torch, velo

from velo.torch import costs

FUSED = hasattr(torch, "_fused_adamw_")  # torch 2.4 has it on the CPU


class Decoder(torch.nn.Module):
    """A small gated decoder from torch's own parts, enough to train."""

    def __init__(self, hidden=64, heads=4, inner=96, symbols=50):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(symbols, hidden), torch.nn.Linear(hidden,
                                                                                     symbols,
                                                                                     bias=False)
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden,
                                             bias=False), torch.nn.Linear(hidden,
                                                                          hidden,
                                                                          bias=False)
        self.gate_proj, self.up_proj = (
            torch.nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down_proj = torch.nn.Linear(inner, hidden, bias=False)
        self.gains = torch.nn.Parameter(torch.ones(2, hidden))
        self.heads = heads

    def forward(self, symbols, operators):
        x = operators.embedding(symbols, self.embed.weight)
        q, k, v = self.qkv(operators.norm(x,
                                          self.gains[0])).unflatten(-1,
                                                                    (3, self.heads, -1)).unbind(2)
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
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(
            x.dtype) * gain

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
        """Losses and the first gradients. bfloat16's tolerance is what it costs torch itself:
        gradients no farther from the float32 ones than torch's own, within a quarter, and losses
        within 2e-2, five roundings by 2^-8."""
        truth = train(Stock, torch.optim.AdamW)[1]
        for dtype, bound in ((torch.float32, 1e-4), (torch.bfloat16, 2e-2)):
            ours, our_first = train(Velo, velo.AdamW, dtype)
            theirs, their_first = train(Stock, torch.optim.AdamW, dtype)
            for ours_step, theirs_step in zip(ours, theirs):
                self.assertLessEqual(abs(ours_step - theirs_step) / theirs_step, bound, dtype)
            for have, stock, want in zip(our_first, their_first, truth):
                self.assertLessEqual(distance(have, want), max(1e-5, 1.25 * distance(stock, want)),
                                     dtype)

    def test_adamw_options(self):
        for options in ({}, {"amsgrad": True}, {"maximize": True},
                        {"weight_decay": 0.3, "betas": (0.8, 0.9)}):
            ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
            a, b = velo.AdamW([ours], lr=1e-2, **options), torch.optim.AdamW([theirs],
                                                                             lr=1e-2,
                                                                             **options)
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

    @unittest.skipUnless(FUSED, "this torch has no fused AdamW on the CPU")
    def test_small_parameters_are_torchs_where_fused_is_asked_for(self):
        sizes = (50, costs.fused_elements())
        ours, theirs = ([torch.nn.Parameter(torch.linspace(-1, 1, n)) for n in sizes]
                        for _ in range(2))
        a, b = velo.AdamW(ours, fused=True), torch.optim.AdamW(theirs, fused=True)
        with unittest.mock.patch.object(velo.AdamW, "_step_of_velo", autospec=True,
                                        side_effect=velo.AdamW._step_of_velo) as by_velo:
            for step in range(3):
                for p in ours + theirs:
                    p.grad = torch.sin(torch.arange(len(p)) + float(step))
                a.step(), b.step()
        self.assertEqual([call.args[1] is ours[1] for call in by_velo.call_args_list], [True] * 3)
        self.assertTrue(torch.equal(ours[0], theirs[0]))
        self.assertLessEqual(distance(ours[1], theirs[1]), 1e-6)

    def test_takes_what_torchs_takes(self):
        for options in ({"fused": True}, {"foreach": True}, {"foreach": False,
                                                             "capturable": False}):
            parameter = torch.nn.Parameter(torch.ones(4))
            optimizer = velo.AdamW([parameter], **options) if MODERN else velo.AdamW([parameter],
                                                                                     foreach=False)
            self.assertIsInstance(optimizer, torch.optim.AdamW)
            parameter.grad = torch.ones(4)
            optimizer.step()
            self.assertLess(float(parameter[0]), 1)

    def test_moments_and_masters_stay_float32_through_a_checkpoint(self):
        """A resumed run takes the very steps of one that was not interrupted."""
        for dtype in (torch.bfloat16, torch.float16):
            self.resumes(dtype)

    def resumes(self, dtype):
        start = torch.linspace(-1, 1, 64).to(dtype)
        one, two = (torch.nn.Parameter(start.clone()) for _ in range(2))
        whole, first = velo.AdamW([one], lr=1e-3), velo.AdamW([two], lr=1e-3)
        for step in range(6):
            if step == 3:
                three = torch.nn.Parameter(two.detach().clone())
                resumed, saved = velo.AdamW([three], lr=5.0), copy.deepcopy(first.state_dict())
                resumed.load_state_dict(saved)
                two, first = three, resumed
                self.assertTrue(all(t.dtype == torch.float32 for t in first.state[two].values()))
            one.grad = two.grad = torch.sin(torch.arange(64.0) + step).to(dtype)
            whole.step(), first.step()
        self.assertTrue(torch.equal(one, two))
        exact = torch.nn.Parameter(start.float())
        stock = torch.optim.AdamW([exact], lr=1e-3)
        for step in range(6):
            exact.grad = torch.sin(torch.arange(64.0) + step).to(dtype).float()
            stock.step()
        self.assertLessEqual(distance(whole.state[one]["master"], exact), 1e-6)

    @unittest.skipUnless(MODERN, "torch 1.13 keeps other state")
    def test_state_goes_to_torchs_and_back(self):
        parameters = [torch.nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2)]
        optimizers = [
            velo.AdamW(parameters[:1], lr=1e-2),
            torch.optim.AdamW(parameters[1:], lr=1e-2)
        ]
        for step in range(6):
            for parameter, optimizer in zip(parameters, optimizers):
                parameter.grad = torch.sin(torch.arange(50.0) + step)
                optimizer.step()
            if step == 2:
                states = [copy.deepcopy(o.state_dict()) for o in optimizers]
                optimizers[0].load_state_dict(states[1])
                optimizers[1].load_state_dict(states[0])
        self.assertLessEqual(distance(*parameters), 1e-6)

    def test_other_parameters_go_to_torchs_step(self):
        start = [torch.linspace(-1, 1, 20), torch.linspace(-1, 1, 20).double()]
        ours, theirs = ([torch.nn.Parameter(t.clone()) for t in start] for _ in range(2))
        a, b = velo.AdamW(ours, lr=1e-2), torch.optim.AdamW(theirs, lr=1e-2)
        for step in range(3):
            for p, q in zip(ours, theirs):
                p.grad = q.grad = torch.sin(torch.arange(20.0) + step).to(p.dtype)
            a.step(), b.step()
        for p, q in zip(ours, theirs):
            self.assertLessEqual(distance(p, q), 1e-6)

    @unittest.skipUnless(MODERN, "torch 1.13 keeps other state")
    def test_parameters_of_any_strides(self):
        """Channels last, transposed, a part of another; and moments that come from a parameter of
        other strides."""
        start = torch.linspace(-1, 1, 2 * 3 * 4 * 5).view(2, 3, 4, 5)
        for make in (lambda: start.clone(memory_format=torch.channels_last),
                     lambda: start.clone().transpose(0, 3), lambda: start.clone()[:, :2]):
            ours, theirs = torch.nn.Parameter(make()), torch.nn.Parameter(make())
            a, b = velo.AdamW([ours], lr=1e-2), torch.optim.AdamW([theirs], lr=1e-2)
            for step in range(4):
                if step == 2:
                    saved, ours = a.state_dict(), torch.nn.Parameter(ours.detach().contiguous())
                    a = velo.AdamW([ours], lr=1e-2)
                    a.load_state_dict(saved)
                for p in (ours, theirs):
                    p.grad = torch.sin(torch.arange(float(p.numel())) + step).view(p.shape)
                a.step(), b.step()
            self.assertLessEqual(distance(ours, theirs), 1e-6)

    def test_expanded_parameters_are_refused_as_torch_refuses_them(self):
        """Also of torch's fused step, which would write past their end; no other parameter of the
        step has changed."""
        for options in ({}, {"foreach": False}, {"amsgrad": True},
                        *([{"fused": True}] if MODERN else [])):
            plain, expanded = torch.nn.Parameter(torch.ones(4)), torch.nn.Parameter(
                torch.linspace(-1, 1, 4).expand(3, 4))
            optimizer, before = velo.AdamW([plain, expanded], **options), expanded.detach().clone()
            plain.grad, expanded.grad = torch.ones(4), torch.ones(3, 4)
            with self.assertRaisesRegex(RuntimeError,
                                        "more than one element of the written-to tensor"):
                optimizer.step()
            self.assertTrue(
                torch.equal(plain, torch.ones(4)) and torch.equal(expanded, before), options)
        alone = torch.nn.Parameter(torch.ones(3).as_strided((1, 3), (0, 1)))
        optimizer = velo.AdamW([alone], lr=0.1, weight_decay=0.0)
        alone.grad = torch.ones(3).expand(1, 3)
        optimizer.step()
        self.assertLessEqual(distance(alone, torch.full((1, 3), 0.9)), 1e-6)

    def test_a_norm_to_clip_at_is_a_number(self):
        for norm in (True, -1.0, float("nan")):
            with self.assertRaisesRegex(ValueError, "AdamW: max_norm must be a number >= 0, got"):
                velo.AdamW([torch.nn.Parameter(torch.ones(2))], max_norm=norm)

    def test_copies_and_pickles_go_on(self):
        ours = torch.nn.Parameter(torch.linspace(-1, 1, 20).bfloat16())
        first = velo.AdamW([ours], lr=1e-2, max_norm=0.25)
        ours.grad = torch.ones(20).bfloat16()
        first.step()
        for other in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
            theirs, = other.param_groups[0]["params"]
            theirs.grad = torch.ones(20).bfloat16()
            other.step()
            self.assertEqual(other.max_norm, 0.25)
            copies = copy.deepcopy(first)
            again, = copies.param_groups[0]["params"]
            again.grad = torch.ones(20).bfloat16()
            copies.step()
            self.assertTrue(torch.equal(theirs, again))

    def test_a_master_follows_what_others_write(self):
        parameter = torch.nn.Parameter(torch.linspace(-1, 1, 20).bfloat16())
        optimizer = velo.AdamW([parameter], lr=1e-3, weight_decay=0.0)

        def step(optimizer):
            parameter.grad = torch.ones(20).bfloat16()
            optimizer.step()

        step(optimizer)
        kept = optimizer.state[parameter]["master"].clone()
        with torch.no_grad():
            parameter[:10] = 3.0
        step(optimizer)
        self.assertLessEqual(float((parameter.detach()[:10].float() - 3).abs().max()), 0.01)
        self.assertLessEqual(distance(optimizer.state[parameter]["master"][10:], kept[10:] - 1e-3),
                             1e-5)
        stock = torch.optim.AdamW([parameter], lr=0.5)
        stock.load_state_dict(optimizer.state_dict())
        stock.param_groups[0]["lr"] = 0.5
        step(stock)
        before = parameter.detach().clone()
        back = velo.AdamW([parameter])
        back.load_state_dict(stock.state_dict())
        back.param_groups[0]["lr"] = 1e-3
        step(back)
        self.assertLessEqual(float((parameter.detach() - before).abs().max()), 0.02)

    @unittest.skipUnless(MODERN, "torch 1.13 hooks no steps")
    def test_hooks_run_once(self):
        parameters, seen = [
            torch.nn.Parameter(torch.ones(4, dtype=dtype))
            for dtype in (torch.float32, torch.float64)
        ], []
        torch.optim.AdamW(parameters)  # torch hooks a class with its first optimizer
        optimizer = velo.AdamW(parameters)
        optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
        optimizer.register_step_post_hook(lambda *_: seen.append("after"))
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        self.assertEqual(seen, ["before", "after"])

    def test_a_refused_step_changes_nothing(self):
        parameters = [torch.nn.Parameter(torch.ones(8)) for _ in range(2)]
        optimizer = velo.AdamW(parameters)
        for parameter in parameters:
            parameter.grad = torch.ones(8)
        optimizer.step()
        before = copy.deepcopy((parameters, optimizer.state_dict()))
        optimizer.state[parameters[1]]["exp_avg"] = torch.zeros(7)
        with self.assertRaisesRegex(
                ValueError, r"state exp_avg is torch.float32 \(7,\) for a parameter of \(8,\)"):
            optimizer.step()
        self.assertTrue(torch.equal(parameters[0], before[0][0]))
        self.assertEqual(float(optimizer.state[parameters[0]]["step"]), 1)
        optimizer.param_groups[0]["betas"] = (0.9, 1.5)
        with self.assertRaisesRegex(ValueError, "betas in"):
            optimizer.step()
        with self.assertRaises(ValueError):
            velo.AdamW(parameters, lr=-1.0)


if __name__ == "__main__":
    unittest.main()
