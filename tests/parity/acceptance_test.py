"""The acceptance cases of MindSpeed's and AscendSpeed's custom operators, on velo.

Each case has the shapes, dtypes and tolerances of the test upstream. The truth is computed in
double precision from the same inputs. Where a shape upstream is made for an accelerator, the
default run has a part of it; with --full the whole. Usage: acceptance_test.py LIBVELO [--full]
"""
import math
import unittest

from acceptance import EVERY, HALVES, AcceptanceCase, reduced
from attention_acceptance import AttentionAcceptance
from comparison import F, torch, values
from velo_binding import VeloError


def lengths_of(batch, low=100, high=300):
    return torch.randint(low, high, (batch,)).tolist()


class Acceptance(AttentionAcceptance, AcceptanceCase):
    # 2.3, 2.6: norms

    def test_dropout_add_rms_norm(self):
        x, weight, out = values(6, 60, 1024), values(1024), torch.empty(6, 60, 1024)
        self.velo.dropout_add_rms_norm(x=x, gamma=weight, y=out, p=0.0, epsilon=1e-5)
        wide = x.double()
        truth = wide * (wide.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * weight.double()
        self.allclose("out", out, truth, 1e-3)

    def test_dropout_add_layer_norm_with_everything(self):
        x, residual, weight, bias = (values(*shape) for shape in ((4, 6, 128), (4, 6, 128), (128,),
                                                                  (128,)))
        rows, columns, out, z = values(4, 6), values(128), torch.empty_like(x), torch.empty_like(x)
        mask = torch.empty(4, 6, 128, dtype=torch.uint8)
        given = dict(x=x, residual=residual, gamma=weight, beta=bias, rowscale=rows,
                     layerscale=columns, y=out, pre_norm=z, mask=mask, seed=3)
        for p in (0.25, 1.0):
            self.velo.dropout_add_layer_norm(p=p, **given)
            kept = x.double() * rows.double()[..., None] * columns.double() * mask.double()
            total = (kept / (1 - p) if p < 1 else 0) + residual.double()
            truth = F.layer_norm(total, (128,), weight.double(), bias.double())
            self.allclose("pre_norm", z, total, 1e-4)
            self.allclose("out", out, truth, 1e-4)
        self.assertFalse(mask.any())

    def test_residual_in_fp32_acts_without_a_residual_alone(self):
        for dtype in HALVES:
            x, weight = values(4, 6, 128, dtype=dtype), values(128, dtype=dtype)
            out, wide = torch.empty_like(x), torch.empty(4, 6, 128)
            self.velo.dropout_add_rms_norm(x=x, gamma=weight, y=out, pre_norm=wide,
                                           residual_in_fp32=True)
            self.assertTrue(torch.equal(wide, x.float()))
            with self.assertRaisesRegex(VeloError, "pre_norm"):
                self.velo.dropout_add_rms_norm(x=x, residual=x, gamma=weight, y=out, pre_norm=wide,
                                               residual_in_fp32=True)

    def test_rms_norm_thirty_times(self):
        for dtype, tolerance in zip(HALVES, (1e-3, 4e-3)):
            x, gamma = values(6, 60, 1024, dtype=dtype), values(1024, dtype=dtype)
            for _ in range(30):
                y = torch.empty_like(x)
                self.velo.rms_norm(x=x, gamma=gamma, y=y, epsilon=1e-6)
                wide = x.double()
                truth = wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
                self.allclose("y", y, truth * gamma.double(), tolerance)
                x = y / y.abs().max()

    def test_rms_norm_over_two_dimensions(self):
        x, gamma, y = values(5, 6, 32), values(6, 32), torch.empty(5, 6, 32)
        rstd = torch.empty(5, 1, 1)
        self.velo.rms_norm(x=x, gamma=gamma, y=y, rstd=rstd)
        truth = (x.double().square().mean((1, 2), keepdim=True) + 1e-6).rsqrt()
        self.allclose("rstd", rstd, truth, 1e-6)
        self.allclose("y", y, x.double() * truth * gamma.double(), 1e-6)

    # 2.5: rotary

    def rotated(self, x, mode):
        if mode == "half":
            a, b = x.chunk(2, -1)
            return torch.cat((-b, a), -1)
        return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)

    def test_rotary_of_a_model(self):
        for dtype, tolerance in zip(HALVES, (1e-3, 4e-3)):
            x, angle = values(2, 2, 5, 128, dtype=dtype), values(1, 2, 1, 128)
            cos, sin, y = angle.cos().to(dtype), angle.sin().to(dtype), torch.empty_like(x)
            self.velo.rotary_position_embedding(x=x, cos=cos, sin=sin, y=y)
            truth = x.double() * cos.double() + self.rotated(x.double(), "half") * sin.double()
            self.allclose("y", y, truth, tolerance)

    def test_rotary_kernel(self):
        length = reduced(4096, 512)
        for dtype, tolerance in zip(EVERY, (1e-3, 1e-3, 4e-3)):
            x = values(2, length, 5, 128, dtype=dtype)
            angle = torch.rand(1, length, 1, 128) * 6
            cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
            for mode in ("half", "interleaved"):
                y = torch.empty_like(x)
                self.velo.rotary_position_embedding(x=x, cos=cos, sin=sin, y=y, mode=mode)
                truth = x.double() * cos.double() + self.rotated(x.double(), mode) * sin.double()
                self.allclose(mode, y, truth, tolerance)

    def test_rotary_in_every_layout(self):
        b, n, s, d = 2, 3, 5, 16
        layouts = {(b, n, s, d): ((1, 1, s, d), (b, 1, s, d), (b, n, s, d)),
                   (b, s, n, d): ((1, s, 1, d), (b, s, 1, d), (b, s, n, d)),
                   (s, b, n, d): ((s, 1, 1, d), (s, b, 1, d), (s, b, n, d))}
        for shape, tables in layouts.items():
            x = values(*shape)
            for table in tables:
                angle, y = values(*table), torch.empty(shape)
                self.velo.rotary_position_embedding(x=x, cos=angle.cos(), sin=angle.sin(), y=y)
                angle = angle.double()
                truth = x * angle.cos() + self.rotated(x.double(), "half") * angle.sin()
                self.allclose(f"{shape} {table}", y, truth, 1e-5)

    # 2.7: swiglu

    def test_swiglu_of_an_mlp(self):
        for dtype, tolerance in zip(HALVES, (1e-3, 4e-3)):
            x, y = values(32, 2, 24, dtype=dtype), torch.empty(32, 2, 12, dtype=dtype)
            self.velo.swiglu(x=x, y=y)
            a, b = x.double().chunk(2, -1)
            self.allclose("y", y, F.silu(a) * b, tolerance)

    def test_swiglu_along_the_first_dimension(self):
        x, y = values(8, 3, 12), torch.empty(4, 3, 12)
        self.velo.swiglu(x=x, y=y, dim=0)
        a, b = x.double().chunk(2, 0)
        self.allclose("y", y, F.silu(a) * b, 1e-5)
        with self.assertRaisesRegex(VeloError, "args.x.shape"):
            self.velo.swiglu(x=values(7, 3), y=torch.empty(3, 3), dim=0)

    # 2.9, 2.13, 2.16: grouped products

    COUNTS = [1, 3, 5, 7, 9, 6, 7, 4]

    def grouped_truth(self, x, weight, counts):
        parts = x.double().split(counts)
        return torch.cat([rows @ each for rows, each in zip(parts, weight.double())])

    def test_gmm(self):
        for dtype in EVERY:
            x, weight = values(42, 64, dtype=dtype), values(8, 64, 32, dtype=dtype)
            truth = self.grouped_truth(x, weight, self.COUNTS)
            for kind in ("counts", "cumulative"):
                listed = torch.tensor(self.COUNTS)
                listed = listed if kind == "counts" else listed.cumsum(0)
                for turned in (False, True):
                    w = weight.transpose(1, 2).contiguous() if turned else weight
                    for given in ({"group_list": listed.tolist()}, {"group_list_tensor": listed}):
                        y = torch.empty(42, 32, dtype=dtype)
                        self.velo.grouped_matmul(x=x, weight=w, y=y, group_list_kind=kind,
                                                 transpose_weight=turned, **given)
                        self.allclose(f"y {kind} {turned}", y, truth, 5e-3)

    def test_gmm_weight_gradient(self):
        for k, n, counts in ((42, (48, 64), self.COUNTS), (32, (48, 64), [1, 3, 5, 7, 2, 6, 0, 8])):
            for dtype in EVERY:
                x, dy = values(k, n[0], dtype=dtype), values(k, n[1], dtype=dtype)
                dw = torch.empty(8, *n, dtype=dtype)
                self.velo.grouped_matmul(x=x, weight=dy, y=dw, group_list=counts,
                                         group_list_kind="counts", group_type="depth",
                                         transpose_x=True)
                truth = torch.stack([a.t() @ b for a, b in zip(x.double().split(counts),
                                                               dy.double().split(counts))])
                self.allclose("dw", dw.reshape(-1, 64), truth.reshape(-1, 64), 5e-3)

    def test_quant_gmm(self):
        x = torch.randint(-8, 8, (42, 64), dtype=torch.int8)
        weight = torch.randint(-8, 8, (8, 64, 32), dtype=torch.int8)
        scale, tokens = torch.rand(8, 32) / 64, torch.rand(42)
        y = torch.empty(42, 32, dtype=torch.float16)
        self.velo.quant_grouped_matmul(x=x, weight=weight, scale=scale, per_token_scale=tokens, y=y,
                                       group_list=self.COUNTS, group_list_kind="counts")
        each = scale.double().repeat_interleave(torch.tensor(self.COUNTS), 0)
        truth = self.grouped_truth(x, weight, self.COUNTS) * each * tokens.double()[:, None]
        self.allclose("y", y, truth, 5e-3)

    def test_weight_quant_gmm(self):
        for dtype in HALVES:
            x = values(42, 64, dtype=dtype)
            weight = torch.randint(-8, 8, (8, 64, 32), dtype=torch.int8)
            scale, offset = values(8, 32, dtype=dtype) / 64, values(8, 32, dtype=dtype)
            y = torch.empty(42, 32, dtype=dtype)
            self.velo.weight_quant_grouped_matmul(x=x, weight=weight, scale=scale, offset=offset,
                                                  y=y, group_list=self.COUNTS,
                                                  group_list_kind="counts")
            wide = (weight + offset.double()[:, None]) * scale.double()[:, None]
            self.allclose("y", y, self.grouped_truth(x, wide, self.COUNTS), 5e-3)

    def test_matmul_add_fp32(self):
        t, k, n = reduced((4096, 8192, 8192), (512, 256, 384))
        x, dy = values(t, k, dtype=torch.float16), values(t, n, dtype=torch.float16)
        grad = values(n, k)
        truth = grad.double() + dy.double().t() @ x.double()
        self.velo.matmul_add_fp32(total_input=x, grad_output=dy, grad=grad)
        self.allclose("grad", grad, truth, 5e-3)

    def test_matmul_add_fp32_keeps_values_below_bfloat16(self):
        one, grad = torch.ones(1, 1, dtype=torch.bfloat16), torch.full((1, 1), 1e-3)
        for _ in range(4):
            self.velo.matmul_add_fp32(total_input=one, grad_output=one, grad=grad)
        self.assertEqual(grad.item(), (torch.full((), 1e-3) + 1 + 1 + 1 + 1).item())

    def test_groupmatmul_add_fp32(self):
        fp16, bf16 = HALVES
        scale = reduced(1, 8)
        for dtype, rows, k, n, ends in ((fp16, 1024, 4096, 2048, [500, 1024]),
                                        (bf16, 8192, 8192, 2048, [1024, 2048, 4096, 8192]),
                                        (fp16, 1024, 512, 256, [500, 500, 1024])):
            k, n = k // scale, n // scale
            rows, ends = (rows // scale, [end // scale for end in ends]) if rows > 1024 else (rows,
                                                                                              ends)
            x, dy = values(rows, k, dtype=dtype), values(rows, n, dtype=dtype)
            grad = values(len(ends), k, n)
            counts = [end - first for end, first in zip(ends, [0, *ends])]
            truth = grad.double() + torch.stack(
                [a.t() @ b for a, b in zip(x.double().split(counts), dy.double().split(counts))])
            self.velo.grouped_matmul_add_fp32(x=x, dy=dy, grad=grad, group_list=ends)
            self.allclose("grad", grad, truth, 5e-3)

    # 2.12: ffn

    def signs(self, *shape, dtype, size=1.0):
        return ((torch.rand(*shape) > 0.5).float() * 2 * size - size).to(dtype)

    def test_ffn(self):
        experts, dtype = 16, torch.float16
        x = self.signs(512, 256, dtype=dtype)
        w1, w2 = (self.signs(experts, *shape, dtype=dtype, size=0.1)
                  for shape in ((256, 1024), (1024, 256)))
        b1, b2 = (self.signs(experts, n, dtype=dtype, size=0.1) for n in (1024, 256))
        counts = [32] * experts

        def truth(rows, e):
            wide = [t[e].double() for t in (w1, b1, w2, b2)]
            return F.relu(rows.double() @ wide[0] + wide[1]) @ wide[2] + wide[3]

        whole = torch.cat([truth(rows, e) for e, rows in enumerate(x.split(counts))])
        for given in ({"group_list": counts, "group_list_kind": "counts"},
                      {"group_list": torch.tensor(counts).cumsum(0).tolist()}):
            y = torch.empty(512, 256, dtype=dtype)
            self.velo.ffn(x=x, weight1=w1, weight2=w2, bias1=b1, bias2=b2, y=y, activation="relu",
                          **given)
            self.allclose("experts", y, whole, 5e-3)
        y = torch.empty(512, 256, dtype=dtype)
        self.velo.ffn(x=x, weight1=w1[0], weight2=w2[0], bias1=b1[0], bias2=b2[0], y=y,
                      activation="relu")
        self.allclose("plain", y, truth(x, 0), 5e-3)

    # 2.14: experts

    def test_moe_permute_and_unpermute(self):
        dtype = torch.bfloat16
        for tokens in reduced((1024, 2048, 8192), (256,)):
            for hidden in reduced((6144, 8192, 12288), (768,)):
                for k in (1, 4):
                    for experts in (4, 128):
                        x = values(tokens, hidden, dtype=dtype)
                        indices = torch.rand(tokens, experts).topk(k).indices
                        permuted = torch.empty(tokens * k, hidden, dtype=dtype)
                        rows = torch.empty(tokens * k, dtype=torch.int32)
                        self.velo.moe_token_permute(tokens=x, indices=indices, permuted=permuted,
                                                    sorted_indices=rows)
                        order = indices.flatten().argsort(stable=True)
                        self.assertTrue(torch.equal(rows.long(), order.argsort()))
                        self.assertTrue(torch.equal(permuted, x[order // k]))
                        back = torch.empty_like(x)
                        probs = torch.full((tokens, k), 1 / k, dtype=dtype)
                        self.velo.moe_token_unpermute(permuted=permuted, sorted_indices=rows,
                                                      probs=probs, tokens=back)
                        if k == 1:
                            self.assertTrue(torch.equal(back, x))
                        self.allclose("tokens", back, x, 5e-3)

    def test_moe_permute_drops_what_exceeds_num_out_tokens(self):
        x, indices = values(5, 8), torch.tensor([1, 0, 1, 2, 0])
        order = indices.argsort(stable=True)
        for given, kept in ((3, 3), (-2, 3), (9, 5), (0, 5)):
            permuted, rows = torch.empty(kept, 8), torch.empty(5, dtype=torch.int32)
            self.velo.moe_token_permute(tokens=x, indices=indices, permuted=permuted,
                                        sorted_indices=rows, num_out_tokens=given)
            self.assertTrue(torch.equal(permuted, x[order[:kept]]))
            self.assertTrue(torch.equal(rows.long(), order.argsort()))

    # 2.20, 2.21: optimizers

    def adamw_truth(self, g, step, var=0.5, m=0.9, v=0.9, top=0.9, beta=0.9999, lr=1e-3):
        m, v = beta * m + (1 - beta) * g, beta * v + (1 - beta) * g * g
        root = math.sqrt(max(top, v)) / math.sqrt(1 - beta**step) + 1e-8
        return var - lr / (1 - beta**step) * m / root, m, v

    def test_adamw_v2(self):
        bound = {torch.float32: 2**-11, torch.float16: 2**-9, torch.bfloat16: 2**-8 + 2**-14}
        rule = dict(lr=1e-3, beta1=0.9999, beta2=0.9999, weight_decay=0.0, epsilon=1e-8)
        for var_type in EVERY:
            for grad_type in EVERY:
                for top_type in EVERY:
                    var, m, v = (torch.full((10, 10), one, dtype=var_type)
                                 for one in (0.5, 0.9, 0.9))
                    grad = torch.full((10, 10), 0.5, dtype=grad_type)
                    top = torch.full((10, 10), 0.9, dtype=top_type)
                    self.velo.apply_fused_adamw(grad=grad, param=var, m=m, v=v, v_max=top,
                                                amsgrad=True, step=10, **rule)
                    for got, truth in zip((var, m, v), self.adamw_truth(0.5, 10)):
                        self.assertLessEqual((got.double() - truth).abs().max().item(),
                                             bound[var_type])
                    self.assertTrue(top.isfinite().all())

    def test_ema_adamw(self):
        beta, lr, ema = 0.9999, 1e-3, 0.9999
        for mode in (0, 1):
            for corrected in (False, True):
                var, m, v, s = (torch.full((10, 10), one) for one in (0.5, 0.9, 0.9, 0.9))
                grad, decay = torch.full((10, 10), 0.5), 0.01
                self.velo.apply_fused_ema_adamw(grad=grad, param=var, m=m, v=v, ema=s, step=10,
                                                lr=lr, ema_decay=ema, beta1=beta, beta2=beta,
                                                epsilon=1e-8, mode=mode, weight_decay=decay,
                                                bias_correction=corrected)
                g = 0.5 + (0 if mode else decay * 0.5)
                m1, v1 = beta * 0.9 + (1 - beta) * g, beta * 0.9 + (1 - beta) * g * g
                rest = 1 - beta**10 if corrected else 1
                u = m1 / rest / (math.sqrt(v1 / rest) + 1e-8) + (decay * 0.5 if mode else 0)
                var1 = 0.5 - lr * u
                for got, truth in ((var, var1), (m, m1), (v, v1), (s, ema * 0.9 +
                                                                   (1 - ema) * var1)):
                    self.assertLessEqual((got.double() - truth).abs().max().item(), 2**-14)

    # 2.22: the unpad family

    def test_pad_and_unpad_seqlen(self):
        lengths, hidden = lengths_of(4), reduced(4096, 512)
        for longest in reduced((4096, 2048), (512, 300)):
            x = values(sum(lengths), hidden, dtype=torch.float16)
            padded = torch.ones(4, longest, hidden, dtype=torch.float16)
            self.velo.pad_seqlen(x=x, y=padded, seq_len=lengths, max_seq_len=longest)
            back = torch.empty_like(x)
            self.velo.unpad_seqlen(x=padded, y=back, seq_len=lengths)
            self.assertTrue(torch.equal(back, x))
            for row, length in zip(padded, lengths):
                self.assertFalse(row[length:].any())

    def test_unpad_gen_attention_mask(self):
        lengths, s = lengths_of(4), reduced(2048, 320)
        mask = values(4, 1, s, s, dtype=torch.float16)
        cut = [mask[i, :, :n, :n].expand(8, n, n).flatten() for i, n in enumerate(lengths)]
        y = torch.empty(sum(part.numel() for part in cut), dtype=torch.float16)
        self.velo.unpad_gen_attention_mask(mask=mask, y=y, seq_len=lengths, head_num=8)
        self.assertTrue(torch.equal(y, torch.cat(cut)))

    def test_unpad_rope(self):
        for batch, longest, hidden in ((4, reduced(2048, 320), 1024), (16, 200, reduced(2048,
                                                                                        256))):
            lengths = torch.tensor(lengths_of(batch, 100, min(longest, 300)))
            positions = torch.cat([torch.arange(n) for n in lengths.tolist()])
            angle = torch.rand(longest, 128) * 6
            cos, sin = angle.cos().half(), angle.sin().half()
            q, k = (values(len(positions), hidden, dtype=torch.float16) for _ in range(2))
            out = [torch.empty_like(q) for _ in range(4)]
            table = {"cos": cos, "sin": sin, "seq_len": lengths}
            self.velo.unpad_rope(q=q, k=k, q_out=out[0], k_out=out[1], **table)
            self.velo.unpad_rope_backward(dq_out=q, dk_out=k, dq=out[2], dk=out[3], upstream=True,
                                          **table)
            c, s = cos[positions].double()[:, None], sin[positions].double()[:, None]
            halves = torch.cat((s[..., 64:], -s[..., :64]), -1)
            for one, forward, backward in ((q, out[0], out[2]), (k, out[1], out[3])):
                heads = one.double().view(len(positions), -1, 128)
                truth = heads * c + self.rotated(heads, "half") * s
                self.allclose("forward", forward, truth.flatten(1), 1e-3)
                self.allclose("backward as upstream", backward, (heads * (c + halves)).flatten(1),
                              1e-3)

    def test_unpad_softmax(self):
        lengths = lengths_of(4)
        count = 8 * sum(n * n for n in lengths)
        x, dy = values(count, dtype=torch.float16), values(count, dtype=torch.float16)
        y, dx = torch.empty_like(x), torch.empty_like(x)
        self.velo.unpad_softmax(x=x, y=y, seq_len=lengths, head_num=8)
        self.velo.unpad_softmax_backward(dy=dy, y=y, dx=dx, seq_len=lengths, head_num=8)
        sizes = [8 * n * n for n in lengths]
        for n, a, b, g, d in zip(lengths, *(t.double().split(sizes) for t in (x, y, dy, dx))):
            a, b, g, d = (t.view(-1, n) for t in (a, b, g, d))
            self.allclose("y", b, a.softmax(-1), 1e-3)
            self.allclose("dx", d, b * (g - (g * b).sum(-1, keepdim=True)), 1e-3)

    def test_unpad_strided_batch_matmul(self):
        lengths, heads, dim = lengths_of(4), 8, 128
        sizes = [heads * n * n for n in lengths]
        rows = lambda: values(sum(lengths) * heads * dim, dtype=torch.float16)
        scores = lambda: values(sum(sizes), dtype=torch.float16)
        split = lambda t: [x.double().view(-1, heads, dim).transpose(0, 1)
                           for x in t.view(-1, heads * dim).split(lengths)]
        square = lambda t: [x.double().view(heads, n, n) for n, x in zip(lengths, t.split(sizes))]
        by_head = lambda x: x.transpose(0, 1).flatten()
        flat = torch.Tensor.flatten
        cases = {
            "bmm1": (rows, rows, scores, split, split, lambda a, b: flat(a @ b.mT)),
            "bmm1_grad1": (scores, rows, rows, square, split, lambda a, b: by_head(a @ b)),
            "bmm1_grad2": (rows, scores, rows, split, square, lambda a, b: flat(a.mT @ b)),
            "bmm2": (scores, rows, rows, square, split, lambda a, b: by_head(a @ b)),
            "bmm2_grad1": (rows, rows, scores, split, split, lambda a, b: flat(a @ b.mT)),
            "bmm2_grad2": (scores, rows, rows, square, split, lambda a, b: by_head(a.mT @ b)),
        }
        for preset, (of_a, of_b, of_c, parts_a, parts_b, product) in cases.items():
            a, b, c = of_a(), of_b(), of_c()
            self.velo.unpad_strided_batch_matmul(a=a, b=b, c=c, seq_len=lengths, head_num=heads,
                                                 head_dim=dim, preset=preset)
            truth = torch.cat([product(x, y) for x, y in zip(parts_a(a), parts_b(b))])
            self.allclose(preset, c, truth, 1e-3)


if __name__ == "__main__":
    unittest.main()
