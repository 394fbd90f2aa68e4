"""The acceptance cases of attention: a part of acceptance_test.py."""
import math

from acceptance import EVERY, HALVES, TOLERANCE, reduced
from comparison import torch, values


class AttentionAcceptance:
    # 2.1, 2.2: attention

    def attend(self, q, k, v, scale, hidden=None, terms=0):
        score = q.double() @ k.double().transpose(-1, -2) * scale + terms
        if hidden is not None:
            score = score.masked_fill(hidden, -torch.inf)
        return score.softmax(-1) @ v.double()

    def test_fusion_attention(self):
        for dtype in EVERY:
            q, k, v = (values(1, 32, 128, 128, dtype=dtype) for _ in range(3))
            q, k, v = (t.transpose(1, 2).reshape(1, 128, 4096) for t in (q, k, v))
            out = torch.empty_like(q)
            self.velo.fusion_attention(query=q, key=k, value=v, attention_out=out, layout="bsh",
                                       head_num=32, scale=0.08838)
            heads = [t.view(1, 128, 32, 128).transpose(1, 2) for t in (q, k, v)]
            truth = self.attend(*heads, 0.08838).transpose(1, 2).reshape(1, 128, 4096)
            self.allclose("out", out, truth, TOLERANCE[dtype])

    def test_softmax_statistics_are_eightfold(self):
        lengths, heads = [5, 0, 9], 3
        rows = sum(lengths)
        q, k, v = (values(rows, heads, 32) for _ in range(3))
        ends = torch.tensor(lengths).cumsum(0).tolist()
        out = torch.empty_like(q)
        largest, total = torch.empty(rows, heads, 8), torch.empty(rows, heads, 8)
        self.velo.fusion_attention(query=q, key=k, value=v, attention_out=out, layout="tnd",
                                   softmax_max=largest, softmax_sum=total, statistics="eightfold",
                                   scale=0.2, actual_seq_qlen=ends, actual_seq_kvlen=ends)
        at = 0
        for length, first in zip(lengths, [0, *ends]):  # head-major inside each sequence
            one = slice(first, first + length)
            score = torch.einsum("inx,jnx->nij", q[one].double(), k[one].double()) * 0.2
            part = slice(at, at + heads * length * 8)
            at = part.stop
            if not length:
                continue
            for got, truth in ((largest, score.amax(-1)),
                               (total, (score - score.amax(-1, True)).exp().sum(-1))):
                copies = truth[..., None].expand(heads, length, 8)
                self.allclose("statistics", got.flatten()[part].view(heads, length, 8), copies,
                              TOLERANCE[torch.float32])

    def test_dropped_everything_and_nothing(self):
        q, k, v = (values(2, 16, 4, 32) for _ in range(3))
        out = torch.ones_like(q)
        self.velo.fusion_attention(query=q, key=k, value=v, attention_out=out, keep_prob=0.0)
        self.assertTrue(torch.equal(out, torch.zeros_like(out)))
        kept, plain = torch.empty_like(q), torch.empty_like(q)
        self.velo.fusion_attention(query=q, key=k, value=v, attention_out=kept, keep_prob=1.0,
                                   seed=9)
        self.velo.fusion_attention(query=q, key=k, value=v, attention_out=plain)
        self.assertTrue(torch.equal(kept, plain))

    def test_flash_attention(self):
        for dtype in HALVES:
            q, k, v = (values(2, 4, 256, 64, dtype=dtype) for _ in range(3))
            hidden = torch.ones(256, 256).triu(1).bool()
            out, lse = torch.empty_like(q), torch.empty(2, 4, 256)
            self.velo.flash_attention(query=q, key=k, value=v, attention_out=out, head_num=4,
                                      softmax_log_max_sum=lse, scale_value=0.125,
                                      atten_mask=hidden.to(torch.uint8))
            self.allclose("out", out, self.attend(q, k, v, 0.125, hidden), TOLERANCE[dtype])

    def test_ring_attention_update(self):
        batch, d = 1, 128
        for heads, length in reduced(((64, 8192), (32, 65536), (32, 32768)), ((8, 1024),)):
            for dtype in EVERY:
                outs = [values(length, batch, heads * d, dtype=dtype) for _ in range(2)]
                tops, sums = ([torch.rand(batch, heads, length, 1).repeat(1, 1, 1, 8)
                               for _ in range(2)] for _ in range(2))
                out, top, total = (torch.empty_like(t) for t in (outs[0], tops[0], sums[0]))
                self.velo.ring_attention_update(prev_out=outs[0], prev_max=tops[0],
                                                prev_sum=sums[0], cur_out=outs[1], cur_max=tops[1],
                                                cur_sum=sums[1], out=out, max=top, sum=total)
                largest = torch.maximum(*tops).double()
                parts = [s.double() * (m.double() - largest).exp() for s, m in zip(sums, tops)]
                whole = sum(parts)
                truth = 0
                for part, one in zip(parts, outs):
                    share = (part / whole)[..., 0].permute(2, 0, 1)[..., None]
                    truth = truth + one.double().view(length, batch, heads, d) * share
                self.allclose("out", out, truth.reshape(out.shape), TOLERANCE[dtype])
                self.allclose("max", top, largest, TOLERANCE[torch.float32])
                self.allclose("sum", total, whole, TOLERANCE[torch.float32])

    def test_ring_attention_update_of_rows_without_keys(self):
        nothing = torch.full((1, 2, 4, 8), -torch.inf)
        zero, out = torch.zeros(4, 1, 32), torch.ones(4, 1, 32)
        top, total = torch.empty_like(nothing), torch.empty_like(nothing)
        self.velo.ring_attention_update(prev_out=zero, prev_max=nothing,
                                        prev_sum=torch.zeros_like(nothing), cur_out=zero,
                                        cur_max=nothing, cur_sum=torch.zeros_like(nothing), out=out,
                                        max=top, sum=total)
        self.assertTrue(torch.equal(out, zero))
        self.assertFalse(total.isnan().any())

    # F91: alibi as a tensor, and from slopes by the ranks of a ring

    def slopes_of(self, heads, ranks=1):
        """Slopes of all heads, each rank's in a call of its own, and the definition in double."""
        slopes = torch.empty(heads)
        for part, ids in zip(slopes.chunk(ranks), torch.arange(heads).chunk(ranks)):
            self.velo.alibi_slopes(heads=ids, slopes=part, head_num=heads)

        def truth(n):
            power = 1 << (n.bit_length() - 1)
            start = 2 ** (-2 ** -(math.log2(power) - 3))
            row = [start ** (i + 1) for i in range(power)]
            return row if power == n else row + truth(2 * power)[::2][:n - power]

        self.allclose("slopes", slopes, torch.tensor(truth(heads)).double(), 1e-6)
        return slopes

    def alibi(self, slopes, rows, s, signed=False):
        distance = torch.arange(s)[None, :] - torch.arange(s - rows, s)[:, None]
        return slopes[:, None, None] * (distance if signed else -distance.abs())

    def test_alibi_as_a_tensor(self):
        heads, d = 3, 16
        slopes = self.slopes_of(heads, ranks=3)
        for s, rows, causal, signed in ((300, 300, False, False), (300, 300, False, True),
                                        (1030, 1024, True, False)):
            for dtype in EVERY if rows == s else HALVES[:1]:
                q, k, v = (values(1, heads, s, d, dtype=dtype) for _ in range(3))
                pse = self.alibi(slopes, rows, s, signed).to(dtype)[None]
                out, hidden = torch.empty_like(q), None
                if causal:
                    hidden = torch.arange(s)[None, :] > torch.arange(s)[:, None]
                self.velo.fusion_attention(query=q, key=k, value=v, attention_out=out,
                                           layout="bnsd", scale=0.25, pse=pse,
                                           pse_type="added_after_scale",
                                           sparse_mode="left_up_causal" if causal else "full")
                whole = pse.double()
                if rows < s:  # rows before continue the diagonals
                    early = torch.zeros(1, heads, s - rows, s).double()
                    early[..., :rows] = pse.double()[..., :s - rows, s - rows:]
                    whole = torch.cat((early, pse.double()), -2)
                truth = self.attend(q, k, v, 0.25, hidden, whole)
                self.allclose("out", out, truth, TOLERANCE[dtype])
                if signed:
                    continue
                by_slopes = torch.empty_like(out)
                self.velo.fusion_attention(query=q, key=k, value=v, attention_out=by_slopes,
                                           layout="bnsd", scale=0.25, pse=slopes, pse_type="alibi",
                                           sparse_mode="left_up_causal" if causal else "full")
                truth = self.attend(q, k, v, 0.25, hidden, self.alibi(slopes, s, s))
                self.allclose("slopes", by_slopes, truth, TOLERANCE[dtype])

    def test_alibi_of_ranks_in_a_ring(self):
        ranks, half, heads, d = 3, 24, 6, 32
        s, slopes = 2 * ranks * half, self.slopes_of(heads)
        for dtype in EVERY:
            q, k, v = (values(s, 1, heads * d, dtype=dtype) for _ in range(3))
            out = torch.empty_like(q)

            def attended(i, j):
                """Chunk i of the queries over chunk j of the keys."""
                rows, keys = slice(i * half, (i + 1) * half), slice(j * half, (j + 1) * half)
                part = torch.empty(half, 1, heads * d, dtype=dtype)
                top, total = (torch.empty(1, heads, half, 8) for _ in range(2))
                self.velo.fusion_attention(query=q[rows], key=k[keys], value=v[keys],
                                           attention_out=part, softmax_max=top, softmax_sum=total,
                                           layout="sbh", head_num=heads, scale=0.2,
                                           statistics="eightfold", pse=slopes, pse_type="alibi",
                                           sparse_mode="left_up_causal" if i == j else "full",
                                           q_start_idx=i * half, kv_start_idx=j * half)
                return part, top, total

            for rank in range(ranks):
                chunks, state = (rank, 2 * ranks - 1 - rank), {}
                for step in range(ranks):
                    source = (rank - step) % ranks
                    keys = (source, 2 * ranks - 1 - source)
                    pairs = ((0, 0), (1, 0), (1, 1)) if source == rank else (
                        (0, 0), (1, 0)) if source < rank else ((1, 0), (1, 1))
                    for mine, theirs in pairs:
                        part = attended(chunks[mine], keys[theirs])
                        if mine in state:
                            new = [torch.empty_like(t) for t in part]
                            names = ("out", "max", "sum")
                            self.velo.ring_attention_update(
                                **{f"prev_{n}": t for n, t in zip(names, state[mine])},
                                **{f"cur_{n}": t for n, t in zip(names, part)},
                                **dict(zip(names, new)))
                            part = new
                        state[mine] = part
                for mine, (part, _, _) in state.items():
                    out[chunks[mine] * half:(chunks[mine] + 1) * half] = part
            a, b, c = (t.double().view(s, heads, d).transpose(0, 1) for t in (q, k, v))
            later = torch.arange(s)[None, :] > torch.arange(s)[:, None]
            truth = self.attend(a, b, c, 0.2, later, self.alibi(slopes, s, s))
            truth = truth.transpose(0, 1).reshape(s, 1, heads * d)
            self.allclose("out", out, truth, TOLERANCE[dtype])
