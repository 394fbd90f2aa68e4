"""Matrix products against torch: a part of operators_test.py."""
from comparison import TYPES, leaf, torch, values


class ProductCases:
    def test_matmul(self):
        for dtype in TYPES:
            for ta in (False, True):
                for tb in (False, True):
                    m, k, n = 130, 96, 70
                    a = values(k, m, dtype=dtype) if ta else values(m, k, dtype=dtype)
                    b = values(n, k, dtype=dtype) if tb else values(k, n, dtype=dtype)
                    bias, c = values(n), torch.empty(m, n, dtype=dtype)
                    truth = (a.float().t() if ta else a.float()) @ (b.float().t()
                                                                    if tb else b.float()) + bias
                    self.velo.matmul(a=a, b=b, bias=bias, c=c, transpose_a=ta, transpose_b=tb)
                    self.close(f"c {ta} {tb}", c, truth)
                    packed, wide = self.velo.pack(b, tb), torch.empty(m, n)
                    self.velo.matmul(a=a, packed=packed, c=wide, transpose_a=ta, dtype="float32")
                    self.close(f"packed {ta} {tb}", wide, truth - bias)

    def test_matmul_gradients(self):
        for dtype in TYPES:
            x, w, dy = values(200, 64, dtype=dtype), values(48, 64,
                                                            dtype=dtype), values(200,
                                                                                 48,
                                                                                 dtype=dtype)
            a, b = leaf(x), leaf(w)
            (a @ b.t()).backward(dy.float())
            dx, dw = torch.empty_like(x), torch.zeros(48, 64)
            self.velo.matmul(a=dy, b=w, c=dx)
            self.velo.matmul_add_fp32(total_input=x, grad_output=dy, grad=dw)
            self.velo.matmul_add_fp32(total_input=x, grad_output=dy, grad=dw)
            self.close("dx", dx, a.grad)
            self.close("dw, added twice", dw, 2 * b.grad)
            da, db, dbias = torch.empty_like(x), torch.empty_like(w), torch.empty(48)
            self.velo.matmul_backward(dc=dy, a=x, b=w, da=da, db=db, dbias=dbias, transpose_b=True)
            self.close("da", da, a.grad)
            self.close("db", db, b.grad)
            self.close("dbias", dbias, dy.float().sum(0))

    def test_matmul_add(self):
        for dtype in TYPES:
            for shape in ((3, 40, 70), (3, 1, 70), (40, 1), (70,)):
                x, w, add = values(3, 40, 96, dtype=dtype), values(96, 70, dtype=dtype), values(
                    *shape, dtype=dtype)
                a, b, c = leaf(x), leaf(w), leaf(add)
                truth = a @ b + c
                dy = values(3, 40, 70, dtype=dtype)
                truth.backward(dy.float())
                y, da, db, dadd = [torch.empty_like(t) for t in (dy, x, w, add)]
                self.velo.matmul_add(a=x, b=w, add=add, c=y)
                self.velo.matmul_add_backward(dc=dy, a=x, b=w, add=add, da=da, db=db, dadd=dadd)
                for name, got, want in (("c", y, truth), ("da", da, a.grad), ("db", db, b.grad),
                                        ("dadd", dadd, c.grad)):
                    self.close(f"{name} {shape}", got, want)

    def test_matmul_bias(self):
        for dtype in TYPES:
            for shape in ((3, 40, 70), (3, 1, 70), (40, 1), (1, 70)):
                x, w = values(3, 40, 96, dtype=dtype), values(96, 70, dtype=dtype)
                bias = values(*shape)
                b = leaf(bias)
                truth = x.float() @ w.float() + b
                dy = values(3, 40, 70, dtype=dtype)
                truth.backward(dy.float())
                y, dbias = torch.empty_like(dy), torch.empty_like(bias)
                self.velo.matmul(a=x, b=w, bias=bias, c=y)
                self.velo.matmul_backward(dc=dy, bias=bias, dbias=dbias)
                self.close(f"c {shape}", y, truth)
                self.close(f"dbias {shape}", dbias, b.grad)

    def test_matmul_swiglu(self):
        n, k = 70, 96
        for dtype in TYPES:
            for turned in (False, True):
                x, w = values(3, 40, k, dtype=dtype), values(
                    *((2 * n, k) if turned else (k, 2 * n)), dtype=dtype)
                bias, dy = values(2 * n), values(3, 40, n, dtype=dtype)
                a, b, c = leaf(x), leaf(w), leaf(bias)
                gate, factor = (a @ (b.t() if turned else b) + c).chunk(2, -1)
                truth = torch.nn.functional.silu(gate) * factor
                truth.backward(dy.float())
                y, dx, dw, db = [torch.empty_like(t) for t in (dy, x, w, bias)]
                h = torch.empty(3, 40, 2 * n, dtype=dtype)
                self.velo.matmul_swiglu(x=x, weight=w, bias=bias, y=y, h=h, transpose_weight=turned)
                self.close("y", y, truth)
                for saved in ({"h": h}, {"bias": bias}):
                    self.velo.matmul_swiglu_backward(dy=dy, x=x, weight=w, dx=dx, dweight=dw,
                                                     dbias=db, transpose_weight=turned, **saved)
                    for name, got, want in (("dx", dx, a.grad), ("dweight", dw, b.grad),
                                            ("dbias", db, c.grad)):
                        self.close(f"{name} {turned}", got, want, dtype)

    def test_rms_norm_matmul(self):
        n, k = 70, 96
        for dtype in TYPES:
            for turned in (False, True):
                x, gamma = values(3, 40, k, dtype=dtype), values(k)
                w = values(*((n, k) if turned else (k, n)), dtype=dtype)
                bias, dy = values(n), values(3, 40, n, dtype=dtype)
                a, g, b, c = leaf(x), leaf(gamma), leaf(w), leaf(bias)
                normed = a * torch.rsqrt(a.square().mean(-1, True) + 1e-6) * g
                truth = normed @ (b.t() if turned else b) + c
                truth.backward(dy.float())
                y, dx, dg, dw, db = [torch.empty_like(t) for t in (dy, x, gamma, w, bias)]
                rstd = torch.empty(3, 40, 1)
                self.velo.rms_norm_matmul(x=x, gamma=gamma, weight=w, bias=bias, y=y, rstd=rstd,
                                          transpose_weight=turned)
                self.velo.rms_norm_matmul_backward(dy=dy, x=x, gamma=gamma, rstd=rstd, weight=w,
                                                   dx=dx, dgamma=dg, dweight=dw, dbias=db,
                                                   transpose_weight=turned)
                for name, got, want in (("y", y, truth), ("dx", dx, a.grad), ("dgamma", dg, g.grad),
                                        ("dweight", dw, b.grad), ("dbias", db, c.grad)):
                    self.close(f"{name} {turned}", got, want, dtype)

    def test_grouped_matmul(self):
        counts, n, k = [5, 0, 40, 1, 18], 70, 96
        m, groups, ends = sum(counts), len(counts), torch.tensor(counts).cumsum(0)
        for dtype in TYPES:
            for turned in (False, True):
                x, dy = values(m, k, dtype=dtype), values(m, n, dtype=dtype)
                w = values(groups, *((n, k) if turned else (k, n)), dtype=dtype)
                bias = values(groups, n)
                a, b, c = leaf(x), leaf(w), leaf(bias)
                by_group = zip(a.split(counts), b.transpose(1, 2) if turned else b, c)
                truth = torch.cat([rows @ each + add for rows, each, add in by_group])
                truth.backward(dy.float())
                y, dx, dw, db = [torch.empty_like(t) for t in (dy, x, w, bias)]
                self.velo.grouped_matmul(x=x, weight=w, bias=bias, y=y, group_list=counts,
                                         group_list_kind="counts", transpose_weight=turned)
                self.velo.grouped_matmul_backward(dy=dy, x=x, weight=w, dx=dx, dweight=dw, dbias=db,
                                                  group_list_tensor=ends, transpose_weight=turned)
                from_pack = torch.empty_like(y)
                self.velo.grouped_matmul(x=x, packed=self.velo.pack(w, turned), bias=bias,
                                         y=from_pack, group_list=counts, group_list_kind="counts")
                self.assertTrue(torch.equal(from_pack, y), f"packed {turned}")
                for name, got, want in (("y", y, truth), ("dx", dx, a.grad),
                                        ("dweight", dw, b.grad), ("dbias", db, c.grad)):
                    self.close(f"{name} {turned}", got, want)
                if turned:
                    continue
                grad = torch.ones(groups, k, n)
                self.velo.grouped_matmul_add_fp32(x=x, dy=dy, grad=grad, group_list_tensor=ends)
                self.close("grad", grad, b.grad + 1)

    def test_products_next_to_collectives_of_one_rank(self):
        for dtype in TYPES:
            for transposed in (False, True):
                x, w = values(24, 3, 96, dtype=dtype), values(
                    70, 96, dtype=dtype) if transposed else values(96, 70, dtype=dtype)
                truth = x.float() @ (w.float().t() if transposed else w.float())
                y, given = torch.empty(
                    24, 3, 70, dtype=dtype), {"x": x, "weight": w, "transpose_weight": transposed}
                self.velo.matmul_all_reduce(y=y, **given)
                self.close("all_reduce", y, truth)
                self.velo.matmul_reduce_scatter(y=y.zero_(), **given)
                self.close("reduce_scatter", y, truth)
                gathered = torch.empty_like(x)
                self.velo.all_gather_matmul(y=y.zero_(), gathered=gathered, **given)
                self.close("all_gather", y, truth)
                self.assertTrue(torch.equal(gathered, x))
                self.velo.all_gather_matmul_reduce_scatter(y=y.zero_(),
                                                           gathered=gathered.zero_(),
                                                           **given)
                self.close("all_gather and reduce_scatter", y, truth)
                self.assertTrue(torch.equal(gathered, x))
                bias = values(70)
                for name in ("matmul_all_reduce", "matmul_reduce_scatter", "all_gather_matmul",
                             "all_gather_matmul_reduce_scatter"):
                    getattr(self.velo, name)(y=y.zero_(), bias=bias, **given)
                    self.close(f"{name} with a bias", y, truth + bias)

    def test_sum_residual_and_norm_of_one_rank(self):
        for dtype in TYPES:
            x, w, bias = values(24, 3, 96, dtype=dtype), values(96, 70, dtype=dtype), values(70)
            residual, gamma = values(1, 72, 70, dtype=dtype), values(70, dtype=dtype)
            whole = (x.float() @ w.float() + bias).view(1, 72, 70) + residual.float()
            norm = whole * (whole.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * gamma.float()
            y, norm_out = torch.empty_like(residual), torch.empty_like(residual)
            given = {"x": x, "weight": w, "bias": bias, "residual": residual, "gamma": gamma,
                     "epsilon": 1e-5}
            self.velo.matmul_all_reduce_add_rms_norm(y=y, norm_out=norm_out, **given)
            self.close("y", y, whole)
            self.close("norm_out", norm_out, norm)
            self.velo.matmul_all_reduce_add_rms_norm(y=residual, norm_out=norm_out.zero_(), **given)
            self.assertTrue(torch.equal(residual, y))
            self.close("norm_out in place", norm_out, norm)

    def test_cut_linear_layers_of_one_rank(self):
        for dtype in TYPES:
            x, w, b = values(24, 3, 96, dtype=dtype), values(70, 96, dtype=dtype), values(70)
            dy = values(24, 3, 70, dtype=dtype)
            a, weight, bias = leaf(x), leaf(w), leaf(b)
            truth = torch.nn.functional.linear(a, weight, bias)
            truth.backward(dy.float())
            for cuts_rows in (False, True):
                y, dx = torch.empty_like(dy), torch.empty_like(x)
                given = {"x": x, "weight": w, "sequence_parallel": cuts_rows}
                self.velo.column_parallel_linear(y=y, bias=b, **given)
                self.close("outputs cut", y, truth)
                self.velo.row_parallel_linear(y=y.zero_(), bias=b, **given)
                self.close("inputs cut", y, truth)
                dw, db = torch.ones(70, 96), torch.ones(70)
                back = dict(given, dy=dy, dx=dx, dweight=dw, dbias=db, accumulate=True)
                self.velo.column_parallel_linear_backward(**back)
                self.close("dx of cut outputs", dx, a.grad)
                self.velo.row_parallel_linear_backward(**dict(back, dx=dx.zero_()))
                self.close("dx of cut inputs", dx, a.grad)
                self.close("dweight, added twice", dw, 1 + 2 * weight.grad)
                self.close("dbias, added twice", db, 1 + 2 * bias.grad)

    def test_rows_and_heads_of_one_rank(self):
        for dtype in TYPES:
            x = values(12, 4, 8, dtype=dtype)
            for to in ("heads", "rows"):
                y = torch.empty_like(x)
                self.velo.sequence_all_to_all(x=x, y=y, to=to)
                self.assertTrue(torch.equal(y, x))

    def test_unpad_strided_batch_matmul(self):
        lengths, heads, dim = [30, 0, 17], 4, 16
        for dtype in TYPES:
            q, k = (values(47 * heads * dim, dtype=dtype) for _ in range(2))
            dy = values(heads * sum(n * n for n in lengths), dtype=dtype)
            y, dq, dk = torch.empty_like(dy), torch.empty_like(q), torch.empty_like(k)
            form = {"seq_len": lengths, "head_num": heads, "head_dim": dim, "preset": "bmm1"}
            self.velo.unpad_strided_batch_matmul(a=q, b=k, c=y, **form)
            self.velo.unpad_strided_batch_matmul_backward(dc=dy, a=q, b=k, da=dq, db=dk, **form)
            a, b = leaf(q), leaf(k)
            of_heads = [[x.transpose(0, 1) for x in t.view(47, heads, dim).split(lengths)]
                        for t in (a, b)]
            truth = torch.cat([(x @ z.mT).flatten() for x, z in zip(*of_heads)])
            truth.backward(dy.float())
            for got, want in ((y, truth), (dq, a.grad), (dk, b.grad)):
                self.close("unpad_strided_batch_matmul", got, want)
