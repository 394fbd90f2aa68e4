"""Quantized operators against torch: a part of operators_test.py."""
from comparison import TYPES, F, leaf, torch, values


class QuantCases:
    def test_quantize(self):
        for dtype in TYPES:
            x = values(3, 64, 40, dtype=dtype)
            for over, dims in (("tensor", None), ("token", 2), ("channel", 1)):
                largest = x.float().abs().amax(dims) if dims else x.float().abs().max()
                q, scale = torch.empty(x.shape, dtype=torch.int8), torch.empty(largest.shape)
                self.velo.quantize(x=x, y=q, scale=scale, over=over)
                self.assertTrue(torch.equal(scale, largest / 127))
                wide = scale.unsqueeze(dims) if dims else scale
                self.assertTrue(torch.equal(q, (x.float() / wide).round().to(torch.int8)))

    def test_weight_quant_products(self):
        for dtype in TYPES:
            x = values(10, 64, dtype=dtype)
            weight = torch.randint(-128, 128, (3, 64, 40), dtype=torch.int8)
            scale, offset = values(3, 2, 40) / 50, values(3, 2, 40) * 9
            wide = lambda t: t.repeat_interleave(32, 1)
            w = (weight + wide(offset)) * wide(scale)
            y, dx = torch.empty(10, 40, dtype=dtype), torch.empty_like(x)
            given = {"weight": weight[1], "scale": scale[1], "offset": offset[1]}
            self.velo.weight_quant_matmul(x=x, y=y, **given)
            a = leaf(x)
            truth = a @ w[1]
            dy = values(10, 40, dtype=dtype)
            truth.backward(dy.float())
            self.velo.weight_quant_matmul_backward(dy=dy, dx=dx, **given)
            self.close("y", y, truth)
            self.close("dx", dx, a.grad)
            pack = self.velo.pack(weight[1].T.contiguous(), transpose=True, weight_only=True)
            self.velo.weight_quant_matmul(x=x, y=y, packed=pack, scale=scale[1], offset=offset[1])
            self.close("y of a pack", y, truth)
            self.velo.weight_quant_grouped_matmul(x=x, weight=weight, scale=scale, offset=offset,
                                                  y=y, group_list=[4, 4, 10])
            self.close("y", y, torch.cat([x[:4].float() @ w[0], x[4:].float() @ w[2]]))

    def test_quant_grouped_matmul(self):
        x = torch.randint(-128, 128, (10, 64), dtype=torch.int8)
        weight = torch.randint(-128, 128, (2, 64, 40), dtype=torch.int8)
        scale, tokens, y = values(2, 40) / 1e4, values(10), torch.empty(10, 40)
        self.velo.quant_grouped_matmul(x=x, weight=weight, scale=scale, per_token_scale=tokens, y=y,
                                       group_list=[4, 10], output_dtype="float32", act_type="silu")
        parts = [x[:4].double() @ weight[0].double(), x[4:].double() @ weight[1].double()]
        truth = torch.cat([p * s for p, s in zip(parts, scale)]) * tokens[:, None]
        self.close("y", y, F.silu(truth).float())

    def test_sums_of_quantized_weights_of_one_rank(self):
        for dtype in TYPES:
            x, residual = values(10, 80, dtype=dtype), values(10, 40, dtype=dtype)
            bias, gamma = values(1, 40), values(40, dtype=dtype)
            weight = torch.randint(-128, 128, (80, 40), dtype=torch.int8)
            for groups, size in ((), 0), ((3, 40), 32):  # the last group has 16 of k
                scale, offset = values(*groups or (1,)) / 50, values(*groups or (1,)) * 9
                wide = lambda t: t.repeat_interleave(32, 0)[:80] if groups else t
                truth = x.float() @ ((weight + wide(offset)) * wide(scale)) + bias
                given = {"x": x, "weight": weight, "scale": scale, "offset": offset,
                         "group_size": size, "bias": bias}
                y, norm_out = torch.empty_like(residual), torch.empty_like(residual)
                self.velo.matmul_all_reduce(y=y, **given)
                self.close("y", y, truth)
                self.velo.matmul_all_reduce_add_rms_norm(y=y, norm_out=norm_out, residual=residual,
                                                         gamma=gamma, epsilon=1e-5, **given)
                whole = truth + residual.float()
                norm = whole * (whole.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
                self.close("z", y, whole)
                self.close("norm_out", norm_out, norm * gamma.float())

    def test_sums_of_int8_products_of_one_rank(self):
        x = torch.randint(-128, 128, (10, 70), dtype=torch.int8)
        weight = torch.randint(-128, 128, (40, 70), dtype=torch.int8)
        bias = torch.randint(-9000, 9000, (1, 40), dtype=torch.int32)
        for scale in values(1) / 1e4, values(40) / 1e4:
            sums = (x.double() @ weight.double().T + bias) * scale
            given = {"x": x, "weight": weight, "bias": bias, "dequant_scale": scale,
                     "transpose_weight": True}
            tokens, y = values(10), torch.empty(10, 40)
            self.velo.matmul_all_reduce(y=y, per_token_scale=tokens, output_dtype="float32",
                                        **given)
            self.close("y", y, (sums * tokens[:, None]).float())
            residual, gamma, norm_out = values(10, 40), values(40), torch.empty(10, 40)
            self.velo.matmul_all_reduce_add_rms_norm(y=y, norm_out=norm_out, residual=residual,
                                                     gamma=gamma, epsilon=1e-5, **given)
            whole = sums.float() + residual
            norm = whole * (whole.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * gamma
            self.close("z", y, whole)
            self.close("norm_out", norm_out, norm)

    def test_ffn(self):
        for dtype in TYPES:
            shapes = (10, 32), (32, 48), (48, 20)
            x, w1, w2 = (values(*shape, dtype=dtype) / 4 for shape in shapes)
            b1, b2, y = values(48), values(20), torch.empty(10, 20, dtype=dtype)
            self.velo.ffn(x=x, weight1=w1, weight2=w2, bias1=b1, bias2=b2, y=y, activation="gelu")
            truth = F.gelu(x.float() @ w1.float() + b1) @ w2.float() + b2
            self.close("y", y, truth)
