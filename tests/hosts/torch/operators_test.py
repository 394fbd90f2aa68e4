"""Operators as functions: values and gradients against torch's, layouts, empty tensors, refusals,
leaks, forks, threads."""
import ctypes
import gc
import itertools
import resource
import unittest

from torch_case import BOUND, F, MODERN, TYPES, Torch, distance, torch, values, velo

import velo.ctypes as velo_ctypes
from velo.torch import dispatcher, irregular


def gated(x):
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


def causal_attention(q, k, v):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    score = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    hidden = torch.ones(score.shape[-2:], dtype=torch.bool).triu(1)
    return (score.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(1, 2)


class Operators(Torch):
    def compare(self, name, dtype, ours, theirs, leaves):
        """Values and gradients of two ways to compute the same."""
        got, truth = ours(*leaves), theirs(
            *[leaf.detach().float().requires_grad_() for leaf in leaves])
        weight = torch.randn(truth.shape)
        reference = [leaf.detach().float().requires_grad_() for leaf in leaves]
        want = torch.autograd.grad((theirs(*reference) * weight).sum(), reference)
        have = torch.autograd.grad((got.float() * weight.to(got.dtype).float()).sum(), leaves)
        self.assertLessEqual(distance(got, truth), BOUND[dtype], name)
        for index, (h, w) in enumerate(zip(have, want)):
            self.assertEqual(h.dtype, leaves[index].dtype, name)
            self.assertLessEqual(distance(h, w),
                                 BOUND[dtype] * (1 if dtype == torch.float32 else 4),
                                 f"{name} gradient {index}")

    def test_values_and_gradients(self):
        targets = torch.randint(0, 40, (30,))
        for dtype in TYPES:
            x = values(6, 40, dtype=dtype)
            norm = lambda x, g: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6
                                               ) * g  # noqa: E731
            self.compare("rms_norm", dtype, velo.rms_norm, norm, (x, values(40, dtype=dtype)))
            self.compare("swiglu", dtype, velo.swiglu, gated, (x,))
            self.compare("cross_entropy", dtype, lambda l: velo.cross_entropy(l, targets).view(1),
                         lambda l: F.cross_entropy(l, targets).view(1),
                         (values(30, 40, dtype=dtype),))
            qkv = [values(2, 9, 4, 16, dtype=dtype) for _ in range(3)]
            self.compare("fusion_attention", dtype,
                         lambda q, k, v: velo.fusion_attention(q, k, v, causal=True),
                         causal_attention, qkv)
            self.compare("matmul", dtype, lambda a, b: velo.matmul(a, b, transpose_b=True),
                         lambda a, b: a @ b.t(),
                         (values(2, 7, 24, dtype=dtype), values(10, 24, dtype=dtype)))
            self.compare("add", dtype, velo.add, torch.add, (x, values(6, 40, dtype=dtype)))
            ids = torch.randint(0, 12, (3, 5))
            self.compare("embedding", dtype, lambda t: velo.embedding(ids, t),
                         lambda t: F.embedding(ids, t), (values(12, 20, dtype=dtype),))
            angle = torch.rand(1, 9, 1, 16)
            cos, sin = angle.cos(), angle.sin()
            self.compare("rotary_position_embedding", dtype,
                         lambda x: velo.rotary_position_embedding(x, cos, sin),
                         lambda x: x * cos + torch.cat(
                             (-x[..., 8:], x[..., :8]), -1) * sin, (qkv[0],))
        self.compare("cast", torch.bfloat16, lambda x: velo.cast(x, torch.bfloat16),
                     lambda x: x * 1, (values(6, 40),))

    def test_the_bias_gradient_of_a_matmul_is_summed_before_it_is_rounded(self):
        """bfloat16 factors, a float32 product: its gradient is float32, and so is its sum over
        rows."""
        a, b = torch.randn(512, 8).bfloat16(), torch.randn(8, 6).bfloat16()
        bias, weight = torch.randn(6, requires_grad=True), torch.randn(512, 6)
        (velo.matmul(a, b, bias, dtype="float32") * weight).sum().backward()
        error = (bias.grad.double() - weight.double().sum(0)).abs().max()
        self.assertLessEqual(error, 1e-6 * weight.abs().sum(0).max())

    def test_every_operator_of_the_library_is_there(self):
        """By the library's own description: a function of its name, or the gradient of one, and its
        forms in torch's dispatcher."""
        for name, operator in velo.library().operators.items():
            if operator.gradient_of is None:
                self.assertTrue(callable(getattr(velo, name)), name)
            forms = getattr(torch.ops.velo, name)
            with self.subTest(name):
                self.assertTrue(hasattr(forms, "out"))
                for form in dispatcher.overloads(operator):
                    schema = str(getattr(forms, form or "default")._schema)
                    self.assertEqual(
                        schema,
                        str(torch._C.parse_schema("velo::" + dispatcher.schema_of(operator, form))),
                        "the adapter and Python define the same")

    def test_nothing_is_copied(self):
        x, y = torch.zeros(1000), torch.zeros(1000)
        velo.call("add", a=x, b=torch.ones(1000), y=x)
        self.assertTrue(torch.equal(x, torch.ones(1000)))
        wide = torch.arange(24.0).view(2, 3, 4).transpose(0, 1)
        cos = torch.ones(1, 3, 1, 4)
        rotated = torch.empty(1, 3, 2, 4)
        velo.call("rotary_position_embedding",
                  x=wide.unsqueeze(0),
                  cos=cos,
                  sin=torch.zeros_like(cos),
                  y=rotated)
        self.assertTrue(torch.equal(rotated[0], wide))
        del y

    def test_torch_counts_what_is_written(self):
        """By torch.ops too, where there is no adapter."""
        x, gain = torch.randn(4, 8), torch.ones(8)
        for run in (lambda y: velo.call("rms_norm", x=x, gamma=gain, y=y),
                    lambda y: torch.ops.velo.rms_norm.out(x, gain, y)):
            leaf = torch.randn(4, 8, requires_grad=True)
            y = leaf.exp()
            run(y.detach())
            self.assertEqual((x._version, gain._version), (0, 0))
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                y.sum().backward()

    def test_layouts_are_read_right_or_refused_by_name(self):
        gain = torch.ones(8)
        with self.assertRaisesRegex(velo.VeloError, r"args\.x\.strides"):
            velo.call("rms_norm", x=torch.randn(8, 4).t(), gamma=gain, y=torch.empty(4, 8))
        with self.assertRaisesRegex(velo.VeloError, r"args\.x\.strides"):
            velo.call("rms_norm", x=torch.randn(1, 8).expand(4, 8), gamma=gain, y=torch.empty(4, 8))
        x = torch.randn(8, 4)
        self.assertLessEqual(
            distance(velo.rms_norm(x.t(), gain), velo.rms_norm(x.t().contiguous(), gain)), 0)
        self.assertEqual(velo.rms_norm(torch.empty(0, 8), gain).shape, (0, 8))
        expanded = torch.randn(2, 5, 1, 16).expand(2, 5, 4, 16)
        got = velo.fusion_attention(expanded, expanded, expanded)
        self.assertLessEqual(distance(got, velo.fusion_attention(*[expanded.contiguous()] * 3)), 0)

    def operators(self, dtype, batch):
        """Every function with tensors it takes: {name: (function, leaves)}, the leaves 2-D or 4-D
        with `batch` first."""
        x, q = torch.randn(batch, 8).to(dtype), torch.randn(batch, 5, 4, 16).to(dtype)
        ids, angle = torch.arange(batch) % 12, torch.rand(batch, 5, 1, 16)
        return {
            "rms_norm": (velo.rms_norm, (x, torch.randn(8).to(dtype))), "swiglu":
                (velo.swiglu, (x,)), "fusion_attention": (velo.fusion_attention, (q, q * 2, q * 3)),
            "add": (velo.add, (x, x * 2)), "rotary_position_embedding":
                (velo.rotary_position_embedding, (q, angle.cos(), angle.sin())), "embedding":
                    (lambda t: velo.embedding(ids, t), (torch.randn(12, 8).to(dtype),)),
            "cross_entropy": (lambda x: velo.cross_entropy(x, ids % 8, reduction="none"), (x,)),
            "matmul": (velo.matmul, (x, torch.randn(8, 6).to(dtype))), "cast":
                (lambda x: velo.cast(x, torch.float32), (x,)),
        }

    def test_every_operator_reads_every_layout(self):
        """Turned, with gaps, and broadcast by stride 0: the functions give what they give for a
        compact copy, gradients too."""

        def gaps(t):
            wide = torch.full((*t.shape[:-1], 2 * t.shape[-1]), float("nan"), dtype=t.dtype)
            wide[..., ::2] = t
            return wide[..., ::2]

        views = {
            "transposed": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
            "with gaps": gaps, "broadcast": lambda t: t[:1].expand(t.shape)
        }
        for dtype in TYPES:
            for name, (function, leaves) in self.operators(dtype, 6).items():
                for (layout, view), index in itertools.product(views.items(), range(len(leaves))):
                    viewed = [view(t) if i == index else t for i, t in enumerate(leaves)]
                    both = []
                    for tensors in (viewed, [t.contiguous().clone() for t in viewed]):
                        tensors = [t.detach().requires_grad_() for t in tensors]
                        out = function(*tensors)
                        weight = torch.linspace(-1, 1, out.numel()).view(out.shape).to(out.dtype)
                        gradients = torch.autograd.grad(out,
                                                        tensors,
                                                        view(weight),
                                                        allow_unused=True)
                        both.append([out, *[g for g in gradients if g is not None]])
                    for a, b in zip(*both):
                        self.assertTrue(torch.equal(a, b),
                                        f"{name} {dtype}, argument {index} {layout}")

    def test_raw_calls_read_every_layout_or_refuse_it_by_name(self):
        """velo.call hands over tensors as they are: whatever it takes, it reads right."""
        for dtype, batch in itertools.product(TYPES, (6, 1)):
            x = torch.randn(batch, 8).to(dtype)
            strided = {
                "transposed": x.t().contiguous().t(), "gaps": x.repeat_interleave(2, -1)[..., ::2],
                "broadcast": x[:1].expand(6, 8), "rows apart": torch.cat((x, x), -1)[:, :8]
            }
            for layout, view in strided.items():
                for name, values in (("rms_norm", {"x": view, "gamma": torch.ones(8, dtype=dtype)}),
                                     ("swiglu", {"x": view}), ("cast", {"x": view, "dtype": 0}),
                                     ("matmul", {"a": view, "b": torch.eye(8).to(dtype)})):
                    outputs = {
                        n: torch.empty(*s, dtype=t) for n, (s, t) in velo.infer(
                            name, **{
                                k: v.contiguous() if isinstance(v, torch.Tensor) else v
                                for k, v in values.items()
                            }).items() if n in ("y", "c")
                    }
                    key = "a" if name == "matmul" else "x"
                    try:
                        velo.call(name, **values, **outputs)
                    except velo.VeloError as refused:
                        self.assertRegex(str(refused), rf"velo_{name}: args\.{key}\.strides",
                                         layout)
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
                for leaf, gradient in zip(leaves,
                                          torch.autograd.grad(out, leaves, out, allow_unused=True)):
                    if gradient is not None:
                        self.assertTrue(torch.equal(gradient, torch.zeros_like(leaf)), name)

    def test_values_that_do_not_fit_are_named(self):
        x = torch.ones(4, 8)
        for wrong, text in (
            (lambda: velo.cross_entropy(x, torch.zeros(4, dtype=torch.int64), reduction="avg"),
             "reduction is none, mean, sum; got 'avg'"),
            (lambda: velo.cast(x, torch.float64),
             "dtype is float32, bfloat16, float16; got torch.float64"),
            (lambda: velo.swiglu(x, dim=1.5), "dim is an integer; got 1.5"),
            (lambda: velo.swiglu(x, dim=1 << 64),
             "dim is an integer of 64 bits; got 18446744073709551616"),
            (lambda: velo.rms_norm(x, x[0], epsilon="1e-6"), "epsilon is a number; got '1e-6'"),
            (lambda: velo.call("swiglu", x=x, y=x[:, :4], dim=-1.0), "dim is an integer; got -1.0"),
            (lambda: velo.call("swiglu", x=x, y=x[:, :4], dim=True),
             "dim is an integer; got True"), (lambda: velo.infer("cast", x=x, dtype=True),
                                              "dtype is float32, bfloat16, float16; got True"),
            (lambda: velo.rotary_position_embedding(x, x, x, True),
             "mode is half, interleaved; got True"), (lambda: velo.rms_norm(x, x[0], True),
                                                      "epsilon is a number; got True"),
            (lambda: velo.matmul(x, x, transpose_b=2),
             "transpose_b is True or False; got 2"), (lambda: velo.matmul(x, x, transpose_b="b"),
                                                      "transpose_b is True or False; got 'b'"),
            (lambda: velo.matmul(x, x, True), "velo_matmul: bias is a torch.Tensor; got True"),
            (lambda: velo.rms_norm(x, 1e-6), "velo_rms_norm: gamma is a torch.Tensor; got 1e-06"),
            (lambda: velo.fusion_attention(x, x, x, 0.25),
             "velo_fusion_attention: causal is True or False; got 0.25"),
            (lambda: velo.fusion_attention(x, x, x, True, True),
             "scale is a number; got True"), (lambda: velo.call("foo", x=x),
                                              "velo has no operator 'foo'; it has rms_norm"),
            (lambda: velo.call("add", a=x, c=1), "velo_add has no field c; it has a, b, y"),
            (lambda: velo.call("add", a=x.to(torch.complex64), b=x, y=x),
             "expected f32 or bf16 or f16, got torch.complex64"),
            (lambda: velo.infer("add", a=x.to(torch.complex64), b=x),
             "expected f32 or bf16 or f16, got torch.complex64"),
            (lambda: velo.call("add", a=x.to_sparse(), b=x, y=x),
             "expected a dense tensor on the CPU")):
            with self.assertRaisesRegex((ValueError, TypeError, AttributeError, velo.VeloError),
                                        text):
                wrong()

    def test_second_derivatives_are_refused(self):
        leaves = values(4, 8), values(8)
        dx, = torch.autograd.grad(velo.rms_norm(*leaves).sum(), leaves[:1], create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "rms_norm has a first derivative and no second"):
            torch.autograd.grad(dx.sum(), leaves)

    def test_every_function_is_differentiated_twice_or_refused(self):
        targets, ids, angle = torch.randint(0, 40,
                                            (30,)), torch.randint(0, 12,
                                                                  (3, 5)), torch.rand(1, 9, 1, 16)
        qkv = [values(2, 9, 4, 16) for _ in range(3)]
        every = {
            "rms_norm": (velo.rms_norm, None, (values(4, 8), values(8))),
            "swiglu": (velo.swiglu, None, (values(4, 8),)), "rotary_position_embedding":
                (lambda x: velo.rotary_position_embedding(x, angle.cos(), angle.sin()), None,
                 qkv[:1]), "fusion_attention": (velo.fusion_attention, None, qkv), "embedding":
                     (lambda t: velo.embedding(ids, t), None, (values(12, 20),)),
            "cross_entropy": (lambda x: velo.cross_entropy(x, targets), None, (values(30, 40),)),
            "vocab_parallel_cross_entropy":
                (lambda x: velo.vocab_parallel_cross_entropy(x, targets), None, (values(30, 40),)),
            "row_parallel_linear": (velo.row_parallel_linear, None, (values(4, 8), values(6, 8))),
            "add": (velo.add, torch.add, (values(4, 8), values(4, 8))), "cast":
                (lambda x: velo.cast(x, torch.float32), lambda x: x * 1, (values(4, 8),)),
        }
        every["parallel_rms_norm"] = (velo.parallel_rms_norm, None, (values(4, 8), values(8)))
        every["sinkhorn"] = (lambda x: velo.sinkhorn(x, max_rounds=3), None, (values(4, 8),))
        for name in ("layer_norm", "parallel_layer_norm", "silu", "relu", "gelu", "fast_gelu",
                     "reglu", "geglu", "softmax"):
            every[name] = (getattr(velo, name), None, (values(4, 8),))
        every["dropout"] = (lambda x: velo.dropout(x, p=0.5), None, (values(4, 8),))
        for a, b in itertools.product((False, True), repeat=2):
            every[f"matmul {a} {b}"] = (
                lambda x, y, z, a=a, b=b: velo.matmul(x, y, z, transpose_a=a, transpose_b=b),
                lambda x, y, z, a=a, b=b: (x.t() if a else x) @ (y.t() if b else y) + z,
                (values(*((24, 7) if a else (7, 24))), values(*((10, 24) if b else (24, 10))),
                 values(10)))
        derived = {
            name for name, operator in velo.library().operators.items()
            if not operator.gradient_of and (operator.gradient or name in irregular.GRADIENTS)
        }
        # Those that take lists or read several gradients: dispatcher_test.py calls them.
        others = {
            "dropout_add_rms_norm", "dropout_add_layer_norm", "unpad_softmax", "unpad_seqlen",
            "pad_seqlen", "grouped_matmul", "moe_token_permute", "moe_token_unpermute",
            "capacity_gate", "topk_router", "unpad_rope", "flash_attention", "weight_quant_matmul",
            "matmul_add", "unpad_strided_batch_matmul", "matmul_swiglu", "rms_norm_matmul"
        }
        # Their gradients read what the forward pass keeps only where it is asked to, or sizes that
        # it derives.
        refused = {
            "context_parallel_attention": qkv,
            "column_parallel_linear": (values(4, 8), values(6, 8)),
            "vocab_parallel_embedding": (ids, values(12, 20))
        }
        for name, given in refused.items():
            with self.assertRaisesRegex(velo.VeloError, "torch cannot follow it to its gradient"):
                getattr(velo, name)(
                    *(x.requires_grad_() if x.is_floating_point() else x for x in given))
        self.assertEqual({name.split()[0] for name in every}, derived - others - refused.keys())

        def penalty(compute, leaves):
            made = compute(*leaves)
            slopes = torch.autograd.grad(made.sin().sum(), leaves, create_graph=True)
            return torch.autograd.grad(sum(slope.square().sum() for slope in slopes), leaves)

        for name, (ours, stock, leaves) in every.items():
            if stock is None:
                with self.assertRaisesRegex(RuntimeError,
                                            f"{name} has a first derivative and no second"):
                    penalty(ours, leaves)
            else:
                for have, want in zip(penalty(ours, leaves), penalty(stock, leaves)):
                    self.assertLessEqual(distance(have, want), 1e-4, name)

    @unittest.skipUnless(MODERN, "torch 1.13 mixes devices without a word")
    def test_devices_are_not_mixed(self):
        with self.assertRaisesRegex(RuntimeError, "expected (meta|cpu)"):
            velo.add(torch.ones(4), torch.ones(4, device="meta"))

    def test_negated_views_are_read_as_what_they_show(self):
        view = torch.complex(torch.ones(3, 8), torch.rand(3, 8)).conj().imag
        self.assertTrue(view.is_neg())
        y = torch.empty(3, 8)
        velo.call("add", a=view, b=torch.zeros(3, 8), y=y)
        self.assertTrue(torch.equal(y, view))
        self.assertTrue(torch.equal(velo.add(view, torch.zeros(3, 8)), view))
        with self.assertRaisesRegex(velo.VeloError, "args.y: expected a tensor to write to"):
            velo.call("add", a=y, b=y, y=view)

    def test_tables_of_rotation_have_gradients(self):
        x, cos, sin = values(2, 3, 5, 8), values(1, 3, 1, 8), values(1, 3, 1, 8)
        turned = torch.cat((-x[..., 4:], x[..., :4]), -1)
        for got, want in zip(
                torch.autograd.grad(
                    velo.rotary_position_embedding(x, cos, sin).sin().sum(), (x, cos, sin)),
                torch.autograd.grad((x * cos + turned * sin).sin().sum(), (x, cos, sin))):
            self.assertLessEqual(distance(got, want), 1e-5)

    def test_an_input_that_gets_no_gradient_is_refused_by_name(self):
        x, weight = values(30, 64), torch.randint(-128, 128, (64, 40), dtype=torch.int8)
        targets = torch.randint(0, 64, (30,))
        calls = {
            "cross_entropy: args.class_weights":
                (lambda w: velo.cross_entropy(x, targets, class_weights=w), 64),
            "weight_quant_matmul: args.scale":
                (lambda s: velo.weight_quant_matmul(x, weight=weight, scale=s), 40)
        }
        for name, (compute, size) in calls.items():
            wanted = torch.rand(size).requires_grad_()
            with self.assertRaisesRegex(velo.VeloError,
                                        f"{name}: expected a tensor that requires no gradient"):
                compute(wanted)
            with torch.no_grad():
                expected = compute(wanted)
            got = compute(wanted.detach())
            self.assertTrue(torch.equal(got.detach(), expected), name)
            self.assertGreater(float(torch.autograd.grad(got.sum(), x)[0].abs().sum()), 0, name)

    def test_differentiating_an_operator_without_gradient_is_refused(self):
        x = values(4, 8)
        with torch.no_grad():
            expected = velo.reduce_max_abs(x)
            self.assertFalse(expected.requires_grad)
        largest = velo.reduce_max_abs(x)
        self.assertTrue(torch.equal(largest.detach(), expected))
        with self.assertRaisesRegex(velo.VeloError, "velo_reduce_max_abs: velo has no gradient"):
            (largest + x.sum()).backward()

    def test_refusals_carry_the_record(self):
        for device in ("cpu", "meta") if MODERN else (
                "cpu",):  # on meta it is the inference of shapes that refuses
            with self.assertRaisesRegex(
                    Exception,
                    r"velo(_|::)rms_norm: args\.gamma\.shape: expected \[8\], got \[7\]"):
                torch.ops.velo.rms_norm(torch.ones(4, 8, device=device), torch.ones(7,
                                                                                    device=device))
        with self.assertRaisesRegex(velo.VeloError,
                                    r"velo_add: args\.b\.shape: expected .*\[3\].*got \[4\]"):
            velo.call("add", a=torch.ones(3), b=torch.ones(4), y=torch.ones(3))
        with self.assertRaisesRegex(
                velo.VeloError,
                r"args\.x\.dtype: expected float32, bfloat16 or float16, got float64"):
            velo.call("swiglu",
                      x=torch.ones(4, dtype=torch.float64),
                      y=torch.ones(2, dtype=torch.float64))
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

    def test_threads_follow_torch(self):
        """By ctypes there is a context for each number of threads; the adapter's runs on torch's
        threads, however many."""
        library, before = velo.library(), torch.get_num_threads()
        try:
            for threads in (1, 2, 1):
                torch.set_num_threads(threads)
                velo.rms_norm(torch.randn(2, 8), torch.ones(8))
                stats = velo_ctypes.velo_context_stats()
                adapters = library.contexts_of_adapter()
                library.check(
                    library.c.velo_context_get_stats((adapters or [library.context()[0]])[0],
                                                     ctypes.byref(stats)))
                self.assertGreater(stats.operator_calls, 0)
                if not adapters:
                    self.assertEqual(stats.threads, threads)
        finally:
            torch.set_num_threads(before)

    def test_a_forked_worker_gets_a_clear_error(self):
        torch.set_num_threads(
            1)  # as the workers have it: torch 2.9 leads to a context by number of threads
        velo.rms_norm(torch.randn(2, 8), torch.ones(8))

        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return velo.rms_norm(torch.randn(2, 8), torch.ones(8))

        loader = torch.utils.data.DataLoader(Data(),
                                             num_workers=2,
                                             timeout=60,
                                             multiprocessing_context="fork")
        with self.assertRaisesRegex(
                RuntimeError,
                "expected a (stream|context) made in this process, got one made before fork"):
            list(loader)
        velo.rms_norm(torch.randn(2, 8), torch.ones(8))  # the parent goes on


if __name__ == "__main__":
    unittest.main()
