"""Every operator against torch, forward and gradients, in every element type, tensors shared and
never copied.

torch computes in float32 (from the same values of 16 bits where the operator takes those) with its
own autograd; velo must agree norm-wise within the bound of the element type. Usage:
operators_test.py LIBVELO
"""
import inspect
import unittest

from attention_cases import AttentionCases
from comparison import TYPES, Comparison, F, leaf, torch, values
from product_cases import ProductCases
from quant_cases import QuantCases
from training_cases import TrainingCases
from velo_binding import VeloError


class Operators(TrainingCases, QuantCases, ProductCases, AttentionCases, Comparison):
    def test_rms_norm(self):
        for dtype in TYPES:
            x, gamma, dy = values(6, 60, 1024, dtype=dtype), values(1024), values(6,
                                                                                  60,
                                                                                  1024,
                                                                                  dtype=dtype)
            y, rstd = torch.empty_like(x), torch.empty(6, 60, 1)
            self.velo.rms_norm(x=x, gamma=gamma, y=y, rstd=rstd, epsilon=1e-5)
            a, g = leaf(x), leaf(gamma)
            truth = a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-5) * g
            truth.backward(dy.float())
            self.close("y", y, truth)
            dx, dgamma = torch.empty_like(x), torch.empty(1024)
            self.velo.rms_norm_backward(dy=dy, x=x, gamma=gamma, rstd=rstd, dx=dx, dgamma=dgamma)
            self.close("dx", dx, a.grad)
            self.close("dgamma", dgamma, g.grad)

    def test_layer_norm(self):
        for dtype in TYPES:
            x, dy = values(6, 60, 1024, dtype=dtype), values(6, 60, 1024, dtype=dtype)
            gamma, beta, y = values(1024), values(1024), torch.empty_like(x)
            mean, rstd = torch.empty(6, 60, 1), torch.empty(6, 60, 1)
            self.velo.layer_norm(x=x, gamma=gamma, beta=beta, y=y, mean=mean, rstd=rstd)
            a, g, b = leaf(x), leaf(gamma), leaf(beta)
            truth = F.layer_norm(a, (1024,), g, b)
            truth.backward(dy.float())
            self.close("y", y, truth)
            dx, dgamma, dbeta = torch.empty_like(x), torch.empty(1024), torch.empty(1024)
            self.velo.layer_norm_backward(dy=dy,
                                          x=x,
                                          gamma=gamma,
                                          mean=mean,
                                          rstd=rstd,
                                          dx=dx,
                                          dgamma=dgamma,
                                          dbeta=dbeta)
            for name, got, want in (("dx", dx, a.grad), ("dgamma", dgamma, g.grad), ("dbeta", dbeta,
                                                                                   b.grad)):
                self.close(name, got, want)

    def test_dropout_add_norms(self):
        draw = {"p": 0.3, "seed": 5, "offset": 6}
        for dtype in TYPES:
            shape = (6, 20, 256)
            x, residual, dy, dz = (values(*shape, dtype=dtype) for _ in range(4))
            rows, columns = values(6, 20, dtype=dtype), values(256, dtype=dtype)
            gamma, beta = values(256), values(256)
            for layer in (False, True):
                leaves = [leaf(t) for t in (x, residual, gamma, rows, columns, beta)]
                a, r, g, rs, ls, b = leaves
                y, z = torch.empty_like(x), torch.empty_like(x)
                mask = torch.empty(shape, dtype=torch.uint8)
                mean, rstd = torch.empty(6, 20, 1), torch.empty(6, 20, 1)
                given = {"rowscale": rows, "layerscale": columns, "gamma": gamma, **draw}
                forward = {"x": x, "residual": residual, "y": y, "pre_norm": z, "mask": mask}
                backward = {"dy": dy, "dpre_norm": dz, "x": x, "pre_norm": z, "rstd": rstd}
                got = [torch.empty_like(x), torch.empty_like(x)]
                got += [torch.empty(t.shape) for t in (gamma, rows, columns, beta)]
                names = ("dx", "dresidual", "dgamma", "drowscale", "dlayerscale", "dbeta")
                grads = dict(zip(names, got))
                forward["rstd"] = rstd
                if layer:
                    backward["mean"] = mean
                    self.velo.dropout_add_layer_norm(beta=beta, mean=mean, **forward, **given)
                    self.velo.dropout_add_layer_norm_backward(**backward, **given, **grads)
                else:
                    del grads["dbeta"]
                    self.velo.dropout_add_rms_norm(**forward, **given)
                    self.velo.dropout_add_rms_norm_backward(**backward, **given, **grads)
                total = a * rs[..., None] * ls * mask / 0.7 + r
                root = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-5)
                truth = F.layer_norm(total, (256,), g, b) if layer else total * root * g
                (truth * dy.float() + total * dz.float()).sum().backward()
                self.close("y", y, truth)
                self.close("pre_norm", z, total)
                for name, one in zip(names, leaves):
                    if name in grads:
                        self.close(name, grads[name], one.grad, dtype)

    def gated(self, function, forward, backward, **attributes):
        for dtype in TYPES:
            x, dy = values(64, 2816, dtype=dtype), values(64, 1408, dtype=dtype)
            y, dx = torch.empty(64, 1408, dtype=dtype), torch.empty_like(x)
            forward(x=x, y=y, **attributes)
            a = leaf(x)
            gate, up = a.chunk(2, -1)
            truth = function(gate) * up
            truth.backward(dy.float())
            backward(dy=dy, x=x, dx=dx, **attributes)
            self.close("y", y, truth)
            self.close("dx", dx, a.grad)

    def test_gated_activations(self):
        self.gated(F.silu, lambda **a: self.velo.swiglu(**a),
                   lambda **a: self.velo.swiglu_backward(**a))
        self.gated(F.relu, lambda **a: self.velo.reglu(**a),
                   lambda **a: self.velo.reglu_backward(**a))
        for form in ("none", "tanh"):
            self.gated(lambda x: F.gelu(x, approximate=form),
                       lambda **a: self.velo.geglu(**a),
                       lambda **a: self.velo.geglu_backward(**a),
                       approximate=form)

    def pointwise(self, function, forward, backward, **attributes):
        for dtype in TYPES:
            x, dy = values(64, 1408, dtype=dtype), values(64, 1408, dtype=dtype)
            y, dx = torch.empty_like(x), torch.empty_like(x)
            forward(x=x, y=y, **attributes)
            a = leaf(x)
            truth = function(a)
            truth.backward(dy.float())
            backward(dy=dy, x=x, dx=dx, **attributes)
            self.close("y", y, truth)
            self.close("dx", dx, a.grad)

    def test_activations(self):
        self.pointwise(F.silu, lambda **a: self.velo.silu(**a),
                       lambda **a: self.velo.silu_backward(**a))
        self.pointwise(F.relu, lambda **a: self.velo.relu(**a),
                       lambda **a: self.velo.relu_backward(**a))
        self.pointwise(lambda x: x * torch.sigmoid(1.702 * x),
                       lambda **a: self.velo.fast_gelu(**a),
                       lambda **a: self.velo.fast_gelu_backward(**a))
        for form in ("none", "tanh"):
            self.pointwise(lambda x: F.gelu(x, approximate=form),
                           lambda **a: self.velo.gelu(**a),
                           lambda **a: self.velo.gelu_backward(**a),
                           approximate=form)

    def test_rotary_position_embedding(self):
        for dtype in TYPES:
            for mode in ("half", "interleaved"):
                x, dy = values(2, 40, 5, 128, dtype=dtype), values(2, 40, 5, 128, dtype=dtype)
                angle = torch.rand(1, 40, 1, 128) * 6
                cos, sin = angle.cos(), angle.sin()
                y, dx = torch.empty_like(x), torch.empty_like(x)
                dcos, dsin = torch.empty_like(cos), torch.empty_like(sin)
                a, c, s = leaf(x), leaf(cos), leaf(sin)
                if mode == "half":
                    rotated = torch.cat((-a[..., 64:], a[..., :64]), -1)
                else:
                    rotated = torch.stack((-a[..., 1::2], a[..., 0::2]), -1).flatten(-2)
                truth = a * c + rotated * s
                truth.backward(dy.float())
                self.velo.rotary_position_embedding(x=x, cos=cos, sin=sin, y=y, mode=mode)
                self.velo.rotary_position_embedding_backward(dy=dy,
                                                             cos=cos,
                                                             sin=sin,
                                                             x=x,
                                                             dx=dx,
                                                             dcos=dcos,
                                                             dsin=dsin,
                                                             mode=mode)
                for name, got, want in (("y", y, truth), ("dx", dx, a.grad), ("dcos", dcos, c.grad),
                                        ("dsin", dsin, s.grad)):
                    self.close(f"{name} {mode}", got, want)

    def test_rotary_position_embedding_by_position(self):
        positions = torch.tensor([0, 1, 2, 0, 1, 0, 3, 6])
        cos, sin = torch.empty(8, 64), torch.empty(8, 64)
        self.velo.rope_frequencies(positions=torch.arange(8), cos=cos, sin=sin, dim=64)
        angle = torch.arange(8)[:, None] * 1e4**(-torch.arange(32) / 32)
        self.close("cos", cos, torch.cat((angle, angle), -1).cos())
        self.close("sin", sin, torch.cat((angle, angle), -1).sin())
        for dtype in TYPES:
            x, dy = values(1, 8, 3, 64, dtype=dtype), values(1, 8, 3, 64, dtype=dtype)
            y, dx = torch.empty_like(x), torch.empty_like(x)
            dcos, dsin = torch.empty_like(cos), torch.empty_like(sin)
            a, c, s = leaf(x), leaf(cos), leaf(sin)
            rotated = torch.cat((-a[..., 32:], a[..., :32]), -1)
            truth = a * c[positions][None, :, None] + rotated * s[positions][None, :, None]
            truth.backward(dy.float())
            where = {"cos": cos, "sin": sin, "positions": positions.view(1, 8, 1)}
            self.velo.rotary_position_embedding(x=x, y=y, **where)
            self.velo.rotary_position_embedding_backward(dy=dy, x=x, dx=dx, dcos=dcos, dsin=dsin,
                                                         **where)
            for name, got, want in (("y", y, truth), ("dx", dx, a.grad), ("dcos", dcos, c.grad),
                                    ("dsin", dsin, s.grad)):
                self.close(name, got, want)

    def test_moe_token_permute(self):
        tokens, k, experts, n = 40, 3, 7, 48
        for dtype in TYPES:
            x, dy = values(tokens, n, dtype=dtype), values(tokens, n, dtype=dtype)
            probs = values(tokens, k)
            indices = torch.randint(experts, (tokens, k))
            order = indices.flatten().argsort(stable=True)
            a, w = leaf(x), leaf(probs)
            by_expert = a[order // k]
            truth = (by_expert[order.argsort()].view(tokens, k, n) * w[..., None]).sum(1)
            truth.backward(dy.float())
            permuted, dpermuted = torch.empty(2, tokens * k, n, dtype=dtype)
            y, dx, dprobs = torch.empty_like(x), torch.empty_like(x), torch.empty_like(probs)
            rows = torch.empty(tokens * k, dtype=torch.int32)
            counts = torch.empty(experts, dtype=torch.int64)
            self.velo.moe_token_permute(tokens=x, indices=indices, permuted=permuted,
                                        sorted_indices=rows, counts=counts, num_experts=experts)
            self.assertTrue(torch.equal(rows.long(), order.argsort()))
            histogram = torch.bincount(indices.flatten(), minlength=experts)
            self.assertTrue(torch.equal(counts, histogram))
            self.assertTrue(torch.equal(permuted, x[order // k]))
            self.velo.moe_token_unpermute(permuted=permuted, sorted_indices=rows, probs=probs,
                                          tokens=y)
            self.velo.moe_token_unpermute_backward(dy=dy, permuted=permuted, sorted_indices=rows,
                                                   probs=probs, dpermuted=dpermuted, dprobs=dprobs)
            self.velo.moe_token_permute_backward(dpermuted=dpermuted, sorted_indices=rows,
                                                 dtokens=dx, tokens=tokens)
            self.close("y", y, truth)
            self.close("dprobs", dprobs, w.grad)
            self.close("dx", dx, a.grad)

    def test_topk_router(self):
        tokens, experts, k = 50, 16, 4
        for dtype in TYPES:
            for sigmoid in (False, True):
                logits, bias = values(tokens, experts, dtype=dtype), values(experts, scale=0.1)
                x = leaf(logits)
                s = x.sigmoid() if sigmoid else x.softmax(-1)
                chosen = (s + bias).topk(k).indices
                w = s.gather(1, chosen)
                w = w / w.sum(-1, keepdim=True) * 2.5
                f = torch.bincount(chosen.flatten(), minlength=experts).float() / (tokens * k)
                aux = experts * (f * (s / s.sum(-1, keepdim=True)).mean(0)).sum()
                z = x.logsumexp(-1).square().mean()
                dw = values(tokens, k)
                ((w * dw).sum() + 0.5 * aux + 0.25 * z).backward()
                weights, indices = torch.empty(tokens, k), torch.empty(tokens, k, dtype=torch.int32)
                counts, dx = torch.empty(experts, dtype=torch.int64), torch.empty_like(logits)
                aux_loss, z_loss = torch.empty(()), torch.empty(())
                rule = dict(score_function="sigmoid" if sigmoid else "softmax", scale=2.5)
                self.velo.topk_router(logits=logits, expert_bias=bias, weights=weights,
                                      indices=indices, counts=counts, aux_loss=aux_loss,
                                      z_loss=z_loss, k=k, **rule)
                self.velo.topk_router_backward(logits=logits, indices=indices, counts=counts,
                                               dweights=dw, daux_loss=torch.tensor(0.5),
                                               dz_loss=torch.tensor(0.25), dlogits=dx, **rule)
                self.assertTrue(torch.equal(indices.long(), chosen))
                for name, got, want in (("weights", weights, w), ("aux", aux_loss, aux),
                                        ("z", z_loss, z), ("dlogits", dx, x.grad)):
                    self.close(f"{name} {sigmoid}", got, want.detach())

    def test_capacity_gate(self):
        tokens, experts, capacity = 50, 8, 9
        for dtype in TYPES:
            for k in (1, 2):
                logits = values(tokens, experts, dtype=dtype)
                x = leaf(logits)
                s, chosen = x.softmax(-1), x.topk(k).indices
                mask = F.one_hot(chosen, experts)  # [T, k, E]
                by_choice = mask.transpose(0, 1).reshape(k * tokens, experts)
                place = ((by_choice.cumsum(0) - 1) * by_choice).sum(-1).view(k, tokens).t()
                kept = place < capacity
                w = s.gather(1, chosen) * kept
                if k == 2:
                    w = w / w.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).eps)
                places = F.one_hot(place.clamp(max=capacity), capacity + 1)[..., :capacity]
                combine = torch.einsum("tk,tke,tkc->tec", w, mask.float(), places.float())
                aux = experts * (s.mean(0) * mask[:, 0].float().mean(0)).sum()
                z = x.logsumexp(-1).square().mean()
                dw, dcombine = values(tokens, k), values(tokens, experts, capacity)
                ((w * dw).sum() + (combine * dcombine).sum() + 0.5 * aux + 0.25 * z).backward()
                weights, matrix = torch.empty(tokens, k), torch.empty(tokens, experts, capacity)
                indices, positions = torch.empty(2, tokens, k, dtype=torch.int32)
                counts, dx = torch.empty(experts, dtype=torch.int64), torch.empty_like(logits)
                aux_loss, z_loss = torch.empty(()), torch.empty(())
                self.velo.capacity_gate(logits=logits, weights=weights, indices=indices,
                                        positions=positions, combine=matrix, counts=counts,
                                        aux_loss=aux_loss, z_loss=z_loss, k=k, capacity=capacity)
                self.velo.capacity_gate_backward(logits=logits, indices=indices,
                                                 positions=positions, dweights=dw,
                                                 dcombine=dcombine, daux_loss=torch.tensor(0.5),
                                                 dz_loss=torch.tensor(0.25), dlogits=dx)
                self.assertTrue(torch.equal(indices.long(), torch.where(kept, chosen, -1 - chosen)))
                self.assertTrue(torch.equal(positions.long(), torch.where(kept, place, -1)))
                self.assertTrue(torch.equal(counts, mask.sum((0, 1))))
                for name, got, want in (("weights", weights, w), ("combine", matrix, combine),
                                        ("aux", aux_loss, aux), ("z", z_loss, z),
                                        ("dlogits", dx, x.grad)):
                    self.close(f"{name} {k}", got, want.detach())

    def test_sinkhorn(self):
        for dtype in TYPES:
            logits, dy = values(30, 6, dtype=dtype), values(30, 6)
            x = leaf(logits)
            powers, columns = x.double().exp(), torch.ones(6, dtype=torch.float64)
            for _ in range(5):
                rows = 1 / (30 * ((powers * columns).sum(1) + 1e-8))
                columns = 1 / (6 * ((powers * rows[:, None]).sum(0) + 1e-8))
            truth = powers * rows[:, None] * columns
            (truth * dy).sum().backward()
            y, dx, rule = torch.empty(30, 6), torch.empty_like(logits), {"tolerance": 0.0}
            self.velo.sinkhorn(logits=logits, y=y, max_rounds=5, **rule)
            self.velo.sinkhorn_backward(logits=logits, dy=dy, dlogits=dx, max_rounds=5, **rule)
            self.close("y", y, truth.detach().float())
            self.close("dlogits", dx, x.grad)

    def test_capacity(self):
        counts, history = torch.randint(0, 900, (12, 40)), torch.zeros(7, dtype=torch.int64)
        maxima, capacity = counts.amax(1), torch.empty((), dtype=torch.int64)
        for one, largest in zip(counts, maxima):
            self.velo.capacity(counts=one.contiguous(), capacity=capacity)
            self.assertEqual(int(capacity), int(largest))
            self.velo.capacity(counts=one.contiguous(), capacity=capacity, history=history,
                               period=12)
        wanted = (maxima[-5:].float().mean() + 20).ceil()
        self.assertEqual(history[:2].tolist(), [12, int(wanted)])

    def test_grouped_matmul_all_reduce(self):
        rows, k, n = (5, 0, 40), 24, 33
        for dtype in TYPES:
            xs, weights = [values(m, k, dtype=dtype) for m in rows], values(3, k, n, dtype=dtype)
            biases = [values(n) for _ in rows]
            truth = [x.float() @ w.float() + b for x, w, b in zip(xs, weights, biases)]
            ends, whole = [5, 5, 45], torch.empty(45, n, dtype=dtype)
            lists = [torch.empty(m, n, dtype=dtype) for m in rows]
            self.velo.grouped_matmul_all_reduce(x=xs, weight=list(weights), bias=biases, y=lists)
            self.velo.grouped_matmul_all_reduce(x=[torch.cat(xs)], weight=[weights], bias=biases,
                                                y=[whole], group_list=ends, split_item="one")
            self.close("y", whole, torch.cat(truth))
            self.assertTrue(torch.equal(whole, torch.cat(lists)))

    def test_experts_between_ranks(self):
        """Both operators of one rank, and the gradients that their documentation names."""
        acts = {"none": lambda x: x, "gelu": F.gelu, "silu": F.silu, "relu": F.relu,
                "fastgelu": lambda x: x * torch.sigmoid(1.702 * x)}
        for number, (name, act) in enumerate(acts.items()):
            for dtype in TYPES:
                x, b1, b2 = values(3, 12, 24, dtype=dtype), values(3, 33), values(3, 1, 24)
                w1, w2 = values(3, 24, 33, dtype=dtype), values(3, 33, 24, dtype=dtype)
                h, before, y = (torch.empty(3, 12, n, dtype=dtype) for n in (33, 33, 24))
                rows, turned = torch.empty_like(x), bool(number % 2)
                given = w1.mT.contiguous() if turned else w1
                self.velo.all_to_all_all_gather_bmm(x=x, weight=given, bias=b1, y=h, gathered=rows,
                                                    pre_activation=before, act_type=name,
                                                    transpose_weight=turned)
                self.velo.bmm_reduce_scatter_all_to_all(x=h, weight=w2, bias=b2, y=y)
                self.assertTrue(torch.equal(rows, x))
                self.close("before", before, x.float() @ w1.float() + b1[:, None])
                self.close("h", h, act(before.float()))
                self.close("y", y, h.float() @ w2.float() + b2)
                dy = values(3, 12, 24, dtype=dtype)
                dh, all_dy = torch.empty_like(h), torch.empty_like(x)
                self.velo.all_to_all_all_gather_bmm(x=dy, weight=w2, y=dh, gathered=all_dy,
                                                    transpose_weight=1)
                self.close("dh", dh, dy.float() @ w2.float().mT)
                self.assertTrue(torch.equal(all_dy, dy))
                dx = torch.empty_like(x)
                self.velo.bmm_reduce_scatter_all_to_all(x=dh, weight=given, y=dx,
                                                        transpose_weight=not turned)
                self.close("dx", dx, dh.float() @ w1.float().mT)

    def test_embedding(self):
        for dtype in TYPES:
            table, ids, dy = values(50, 96,
                                    dtype=dtype), torch.randint(0, 50, (3, 40)), values(3,
                                                                                        40,
                                                                                        96,
                                                                                        dtype=dtype)
            y, dtable = torch.empty(3, 40, 96, dtype=dtype), torch.empty(50, 96)
            self.velo.embedding(ids=ids, table=table, y=y)
            t = leaf(table)
            F.embedding(ids, t).backward(dy.float())
            self.velo.embedding_backward(ids=ids, dy=dy, dtable=dtable, rows=50)
            self.assertTrue(torch.equal(y, table[ids]))
            self.close("dtable", dtable, t.grad)

    def test_embedding_of_the_rows_of_one_rank(self):
        for dtype in TYPES:
            table, ids = values(51, 96, dtype=dtype), torch.randint(0, 50, (3, 40))
            dy, y = values(3, 40, 96, dtype=dtype), torch.empty(3, 40, 96, dtype=dtype)
            dweight, given = torch.empty(51, 96), {"indices": ids, "vocab_size": 50}
            self.velo.vocab_parallel_embedding(weight=table, y=y, **given)
            t = leaf(table)
            F.embedding(ids, t).backward(dy.float())
            self.velo.vocab_parallel_embedding_backward(dy=dy, dweight=dweight, rows=51, **given)
            self.assertTrue(torch.equal(y, table[ids]))
            self.close("dweight", dweight, t.grad)

    def test_add_and_cast(self):
        for dtype in TYPES:
            a, b = values(3, 777, dtype=dtype), values(3, 777, dtype=dtype)
            y = torch.empty_like(a)
            self.velo.add(a=a, b=b, y=y)
            self.assertTrue(torch.equal(y, a + b))
        x, half, back = values(1001,
                               scale=100), torch.empty(1001,
                                                       dtype=torch.bfloat16), torch.empty(1001)
        self.velo.cast(x=x, y=half, dtype="bfloat16")
        self.velo.cast(x=half, y=back, dtype="float32")
        self.assertTrue(torch.equal(half, x.bfloat16()))
        self.assertTrue(torch.equal(back, x.bfloat16().float()))

    def test_dropout(self):
        for dtype in TYPES:
            x, dy = values(3, 777, dtype=dtype), values(3, 777, dtype=dtype)
            y, dx = torch.empty_like(x), torch.empty_like(x)
            mask = torch.empty(3, 777, dtype=torch.uint8)
            draw = {"p": 0.3, "seed": 5, "offset": 6}
            self.velo.dropout(x=x, y=y, mask=mask, **draw)
            self.velo.dropout_backward(dy=dy, dx=dx, **draw)
            a = leaf(x)
            truth = a * mask / 0.7
            truth.backward(dy.float())
            self.close("y", y, truth)
            self.close("dx", dx, a.grad)

    def test_padding(self):
        lengths = [100, 0, 37]
        for dtype in TYPES:
            rows = [values(length, 64, dtype=dtype) for length in lengths]
            flat = torch.cat(rows)
            truth = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
            y, dx = torch.empty_like(truth), torch.empty_like(truth)
            back, dback = torch.empty_like(flat), torch.empty_like(flat)
            self.velo.pad_seqlen(x=flat, y=y, seq_len=lengths, max_seq_len=100)
            self.velo.unpad_seqlen_backward(dy=flat, dx=dx, seq_len=lengths, max_seq_len=100)
            self.velo.unpad_seqlen(x=truth, y=back, seq_len=lengths)
            self.velo.pad_seqlen_backward(dy=truth, dx=dback, seq_len=lengths)
            for got, want in ((y, truth), (dx, truth), (back, flat), (dback, flat)):
                self.assertTrue(torch.equal(got, want))
            mask = values(3, 1, 100, 100, dtype=dtype)
            cut = [mask[i, :, :n, :n].expand(4, n, n).flatten() for i, n in enumerate(lengths)]
            flat_mask = torch.empty(sum(part.numel() for part in cut), dtype=dtype)
            self.velo.unpad_gen_attention_mask(mask=mask,
                                               y=flat_mask,
                                               seq_len=lengths,
                                               head_num=4)
            self.assertTrue(torch.equal(flat_mask, torch.cat(cut)))

    def test_unpad_rope(self):
        lengths = torch.tensor([30, 0, 17])
        positions = torch.cat([torch.arange(n) for n in lengths.tolist()])
        angle = torch.rand(40, 64) * 6
        cos, sin = angle.cos(), angle.sin()

        def turned(x):
            heads = x.view(len(positions), -1, 64)
            a, b = heads.chunk(2, -1)
            rotated = torch.cat((-b, a), -1)
            return (heads * cos[positions][:, None] + rotated * sin[positions][:, None]).flatten(1)

        for dtype in TYPES:
            q, k = values(47, 256, dtype=dtype), values(47, 128, dtype=dtype)
            dq_out, dk_out = values(47, 256, dtype=dtype), values(47, 128, dtype=dtype)
            out = [torch.empty_like(t) for t in (q, k, q, k)]
            table = {"cos": cos, "sin": sin, "seq_len": lengths}
            self.velo.unpad_rope(q=q, k=k, q_out=out[0], k_out=out[1], **table)
            self.velo.unpad_rope_backward(dq_out=dq_out,
                                          dk_out=dk_out,
                                          dq=out[2],
                                          dk=out[3],
                                          **table)
            a, b = leaf(q), leaf(k)
            truth = turned(a), turned(b)
            truth[0].backward(dq_out.float())
            truth[1].backward(dk_out.float())
            for got, want in zip(out, (*truth, a.grad, b.grad)):
                self.close("unpad_rope", got, want)

    def test_unpad_softmax(self):
        lengths = [30, 0, 17]
        count = 4 * sum(n * n for n in lengths)
        for dtype in TYPES:
            x, dy = values(count, dtype=dtype), values(count, dtype=dtype)
            y, dx = torch.empty_like(x), torch.empty_like(x)
            a = leaf(x)
            parts = a.split([4 * n * n for n in lengths])
            truth = torch.cat([F.softmax(part.view(-1, max(n, 1)), -1).flatten()
                               for part, n in zip(parts, lengths)])
            truth.backward(dy.float())
            self.velo.unpad_softmax(x=x, y=y, seq_len=lengths, head_num=4)
            self.velo.unpad_softmax_backward(dy=dy, y=y, dx=dx, seq_len=lengths, head_num=4)
            self.close("y", y, truth)
            self.close("dx", dx, a.grad)

    def test_accumulate_and_reduce_max_abs(self):
        for dtype in TYPES:
            for other in TYPES:
                x, y = values(3, 777, dtype=dtype), values(3, 777, dtype=other)
                truth = y.float() + 0.25 * x.float()
                self.velo.accumulate(x=x, y=y, alpha=0.25)
                self.close("y", y, truth)
            x = values(20, 777, dtype=dtype)
            for over, truth in (("tensor", x.abs().max()), ("rows", x.abs().amax(1)),
                                ("columns", x.abs().amax(0))):
                y = torch.empty(truth.shape)
                self.velo.reduce_max_abs(x=x, y=y, over=over)
                self.assertTrue(torch.equal(y, truth.float()))

    def test_every_operator_is_compared(self):
        source = "".join(map(inspect.getsource, (Operators, *Operators.__bases__[:-1])))
        self.assertEqual([name for name in self.velo.names if f"self.velo.{name}(" not in source],
                         [])

    def test_views_are_read_where_they_lie_or_refused(self):
        x, gamma = values(8, 64), torch.ones(32)
        y = torch.empty(8, 32)
        with self.assertRaisesRegex(VeloError, "args.x.strides"):
            self.velo.rms_norm(x=x[:, ::2], gamma=gamma, y=y)
        c = torch.empty(8, 8)
        self.velo.matmul(a=x[:, :32], b=x[:, 32:], c=c, transpose_b=True)
        self.close("strided product", c, x[:, :32] @ x[:, 32:].t())

    def test_refusals_become_exceptions_with_the_record(self):
        with self.assertRaisesRegex(VeloError,
                                    r"velo_add: args\.b\.shape: expected .*\[3\].*got \[4\]"):
            self.velo.add(a=values(3), b=values(4), y=values(3))


if __name__ == "__main__":
    unittest.main()
