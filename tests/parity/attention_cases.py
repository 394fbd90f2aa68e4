"""Attention, its masks and softmax against torch: a part of operators_test.py."""
from comparison import TYPES, F, leaf, torch, values


class AttentionCases:
    def test_fusion_attention(self):
        for dtype in TYPES:
            for causal in (False, True):
                for layout in ("bsnd", "bnsd", "sbh"):
                    self.attention(dtype, causal, layout)

    def test_attention_of_one_context_parallel_rank(self):
        for dtype in TYPES:
            shape, kv_heads = (2, 40, 4, 32), 2
            q, dy = values(*shape, dtype=dtype), values(*shape, dtype=dtype)
            k, v = (values(2, 40, kv_heads, 32, dtype=dtype) for _ in range(2))
            out, top, total = torch.empty_like(q), torch.empty(2, 4, 40), torch.empty(2, 4, 40)
            saved = {"softmax_max": top, "softmax_sum": total, "scale": 32**-0.5}
            self.velo.context_parallel_attention(query=q, key=k, value=v, attention_out=out,
                                                 **saved)
            a, b, c = leaf(q), leaf(k), leaf(v)
            query, key, value = (t.transpose(1, 2) for t in (a, b.repeat_interleave(2, 2),
                                                             c.repeat_interleave(2, 2)))
            score = query @ key.transpose(-1, -2) * 32**-0.5
            score = score.masked_fill(torch.ones(40, 40).triu(1).bool(), float("-inf"))
            truth = (score.softmax(-1) @ value).transpose(1, 2)
            truth.backward(dy.float())
            self.close("out", out, truth)
            dq, dk, dv = (torch.empty_like(t) for t in (q, k, v))
            self.velo.context_parallel_attention_backward(query=q, key=k, value=v, dy=dy,
                                                          attention_out=out, dquery=dq, dkey=dk,
                                                          dvalue=dv, **saved)
            for name, got, wanted in (("dq", dq, a), ("dk", dk, b), ("dv", dv, c)):
                self.close(name, got, wanted.grad)

    def attention(self, dtype, causal, layout):
        batch, length, heads, kv_heads, d = 2, 70, 4, 2, 64
        order = {"bsnd": (0, 1, 2, 3), "bnsd": (0, 2, 1, 3), "sbh": (1, 0, 2, 3)}[layout]

        def shaped(n):
            full = values(batch, length, n, d, dtype=dtype).permute(*order).contiguous()
            return full.flatten(2) if layout == "sbh" else full

        def unshaped(t, n):  # back to [batch, heads, length, d]
            if layout == "sbh":
                t = t.unflatten(2, (n, d))
            back = [order.index(i) for i in range(4)]
            return t.permute(*back).transpose(1, 2)

        q, k, v, dy = shaped(heads), shaped(kv_heads), shaped(kv_heads), shaped(heads)
        out = torch.empty_like(q)
        top, total = torch.empty(batch, heads, length), torch.empty(batch, heads, length)
        options = {"head_num": heads, "layout": layout, "scale": d**-0.5,
                   "sparse_mode": "right_down_causal" if causal else "full"}
        self.velo.fusion_attention(query=q,
                                   key=k,
                                   value=v,
                                   attention_out=out,
                                   softmax_max=top,
                                   softmax_sum=total,
                                   **options)
        a, b, c = leaf(q), leaf(k), leaf(v)
        groups = heads // kv_heads
        query = unshaped(a, heads)
        key = unshaped(b, kv_heads).repeat_interleave(groups, 1)
        value = unshaped(c, kv_heads).repeat_interleave(groups, 1)
        score = query @ key.transpose(-1, -2) * d**-0.5
        if causal:
            score = score.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
        truth = score.softmax(-1) @ value
        truth.backward(unshaped(dy, heads).float())
        self.close(f"out {layout} {causal}", unshaped(out, heads), truth)
        self.close("log-sum-exp", top + total.log(), score.logsumexp(-1))
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        self.velo.fusion_attention_backward(query=q,
                                            key=k,
                                            value=v,
                                            dy=dy,
                                            softmax_max=top,
                                            softmax_sum=total,
                                            attention_out=out,
                                            dquery=dq,
                                            dkey=dk,
                                            dvalue=dv,
                                            **options)
        for name, got, want in (("dq", dq, a.grad), ("dk", dk, b.grad), ("dv", dv, c.grad)):
            self.close(f"{name} {layout} {causal}", got, want)

    def test_attention_terms(self):
        for dtype in TYPES:
            q, k, v = (values(2, 3, n, 16, dtype=dtype) for n in (5, 7, 7))
            mask = values(2, 1, 5, 7) > 0.5
            pse, out = values(1, 3, 5, 7, dtype=dtype), torch.empty_like(q)
            self.velo.fusion_attention(query=q, key=k, value=v, attention_out=out, layout="bnsd",
                                       scale=0.25, atten_mask=mask.to(torch.uint8), pse=pse,
                                       pse_type="added_after_scale")
            score = (q.float() @ k.float().transpose(-1, -2) * 0.25 + pse.float())
            score = score.masked_fill(mask, float("-inf"))
            self.close("out", out, score.softmax(-1).nan_to_num(0) @ v.float())

    def test_flash_attention(self):
        for dtype in TYPES:
            q, k, v, dy = (values(2, 3, 8, 16, dtype=dtype) for _ in range(4))
            mask, out, lse = values(8, 8) > 0.5, torch.empty_like(q), torch.empty(2, 3, 8)
            mask.fill_diagonal_(False)
            given = {"query": q, "key": k, "value": v, "head_num": 3, "scale_value": 0.25,
                     "atten_mask": mask.to(torch.uint8)}
            self.velo.flash_attention(attention_out=out, softmax_log_max_sum=lse, **given)
            a, b, c = leaf(q), leaf(k), leaf(v)
            score = (a @ b.transpose(-1, -2) * 0.25).masked_fill(mask, float("-inf"))
            truth = score.softmax(-1) @ c
            truth.backward(dy.float())
            self.close("out", out, truth)
            self.close("log-sum-exp", lse, score.logsumexp(-1))
            got = [torch.empty_like(q) for _ in range(3)]
            self.velo.flash_attention_backward(dy=dy, attention_out=out, softmax_log_max_sum=lse,
                                               dquery=got[0], dkey=got[1], dvalue=got[2], **given)
            for name, one, want in zip(("dq", "dk", "dv"), got, (a.grad, b.grad, c.grad)):
                self.close(name, one, want)

    def test_ring_attention_update(self):
        for dtype in TYPES:
            parts = [values(4, 2, 3, 16, dtype=dtype) for _ in range(2)]
            tops = [values(4, 3, 2) for _ in range(2)]
            sums = [values(4, 3, 2).abs() + 1 for _ in range(2)]
            out, top, total = torch.empty_like(parts[0]), torch.empty(4, 3, 2), torch.empty(4, 3, 2)
            self.velo.ring_attention_update(prev_out=parts[0], prev_max=tops[0], prev_sum=sums[0],
                                            cur_out=parts[1], cur_max=tops[1], cur_sum=sums[1],
                                            out=out, max=top, sum=total, layout="bsnd")
            logs = [t + s.log() for t, s in zip(tops, sums)]
            whole = torch.logaddexp(*logs)
            shares = [(one - whole).exp().transpose(1, 2).unsqueeze(-1) for one in logs]
            self.close("out", out, sum(s * p.float() for s, p in zip(shares, parts)))
            self.close("log-sum-exp", top + total.log(), whole)

    def test_cached_attention(self):
        lengths = torch.tensor([300, 77], dtype=torch.int32)
        for dtype in TYPES:
            q, k, v = (values(2, n, h, 64, dtype=dtype) for n, h in ((3, 8), (300, 2), (300, 2)))
            out = torch.empty_like(q)
            self.velo.cached_attention(query=q, key=k, value=v, cache_seqlens=lengths,
                                       attention_out=out, scale=0.125)
            own = lengths[:, None] - 3 + torch.arange(3)
            seen = torch.arange(300) <= own[..., None]
            a, b, c = (x.float().transpose(1, 2) for x in (q, k, v))
            b, c = (x.repeat_interleave(4, 1) for x in (b, c))
            score = (a @ b.transpose(-1, -2) * 0.125).masked_fill(~seen[:, None], float("-inf"))
            truth = score.softmax(-1) @ c
            self.close("out", out, truth.transpose(1, 2))

    def test_generate_mask(self):
        rows = torch.arange(60).reshape(3, 20)
        mask = torch.empty(3, 20, 70, dtype=torch.uint8)
        self.velo.generate_mask(positions=rows, mask=mask, keys=70, pre_tokens=9, next_tokens=4)
        far = torch.arange(70) - rows[..., None]
        self.assertTrue(torch.equal(mask.bool(), (far > 4) | (far < -9)))
        square = torch.empty(2048, 2048, dtype=torch.uint8)
        self.velo.generate_mask(positions=torch.arange(2048), mask=square, sparse_mode="band")
        self.assertTrue(torch.equal(square.bool(), torch.ones(2048, 2048).triu(1).bool()))

    def test_alibi_slopes(self):
        slopes = torch.empty(12)
        self.velo.alibi_slopes(heads=torch.arange(12), slopes=slopes, head_num=12)
        eight, sixteen = ((-torch.arange(1, n + 1) * 8 / n).exp2() for n in (8, 16))
        self.close("slopes", slopes, torch.cat((eight, sixteen[::2][:4])))

    def test_softmax(self):
        for dtype in TYPES:
            x, dy = values(2, 3, 40, 200, dtype=dtype), values(2, 3, 40, 200, dtype=dtype)
            mask = torch.arange(200)[None, :] > torch.arange(40)[:, None] * 5
            y, dx = torch.empty_like(x), torch.empty_like(x)
            self.velo.softmax(x=x, mask=mask.to(torch.uint8), y=y, scale=0.3)
            a = leaf(x)
            truth = F.softmax((a * 0.3).masked_fill(mask, -torch.inf), -1)
            truth.backward(dy.float())
            self.velo.softmax_backward(dy=dy, y=y, dx=dx, scale=0.3)
            self.close("y", y, truth)
            self.close("dx", dx, a.grad)
