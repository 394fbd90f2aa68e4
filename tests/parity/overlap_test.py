"""Layers cut for two ranks against torch's whole ones, forward and gradients, in every dtype.

Each rank is a thread with a context of its own and half of a weight. Between the calls nothing is
done that a tensor-parallel layer would not do: what is asked is that the operators and the
gradients their documentation names fit together. Usage: overlap_test.py LIBVELO
"""
import sys
import threading
import unittest

from frameworks import torch
from velo_binding import Velo, VeloError

LIBRARY = sys.argv.pop(1)
BOUND = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
S, K, H = 64, 96, 80  # rows, model and inner columns of the whole layer


def both(body):
    """body(rank) on two threads at a time; what each returned. The first failure is raised."""
    results, failures = [None, None], []

    def run(rank):
        try:
            results[rank] = body(rank)
        except Exception as failure:  # shown to the caller below
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failures:
        raise failures[0]
    return results


class TwoRanks(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)
        self.ranks = [Velo(LIBRARY, threads=1) for _ in range(2)]
        self.group, self.other = Velo.local_groups(self.ranks), Velo.local_groups(self.ranks)

    def tearDown(self):
        for one in self.ranks:
            one.close()

    def close(self, name, got, truth, dtype):
        """Within the bound of the layer's dtype: float32 gradients of narrower layers come from
        rounded rows."""
        self.assertEqual(tuple(got.shape), tuple(truth.shape), name)
        bound = BOUND[dtype]
        got, truth = got.double(), truth.detach().double()
        self.assertLessEqual(float((got - truth).norm() / truth.norm()), bound, name)

    def cases(self):
        for dtype in BOUND:
            for slices in (0, 1, 4):
                yield dtype, slices

    def layer(self, dtype):
        """x, both weights and dy in `dtype`, and torch's y and gradients in float32."""
        x, first, second, dy = (
            torch.randn(*shape).to(dtype) for shape in ((S, K), (H, K), (K, H), (S, K)))
        leaves = [t.float().requires_grad_() for t in (x, first, second)]
        y = leaves[0] @ leaves[1].t() @ leaves[2].t()
        y.backward(dy.float())
        return x, first, second, dy, y, [t.grad for t in leaves]

    def check_layer(self, truth, ranks, dtype):
        y, (dx, dfirst, dsecond) = truth
        for name, whole, parts in (("y", y, 0), ("dx", dx, 1)):
            got = [one[parts] for one in ranks]
            self.close(name, torch.cat(got) if got[0].shape[0] < S else got[0], whole, dtype)
        self.close("dw of the first", torch.cat([one[2] for one in ranks]), dfirst, dtype)
        self.close("dw of the second", torch.cat([one[3] for one in ranks], 1), dsecond, dtype)

    def test_rows_and_heads_change_places(self):
        for dtype in BOUND:
            x = torch.randn(12, 6, 8).to(dtype)  # rows, heads and elements of the whole
            by_rows, by_heads = torch.split(x, (7, 5)), torch.split(x, (4, 2), 1)
            given = {"rows": [7, 5], "heads": [0, 4, 4, 6]}

            def rank(r):
                velo, group = self.ranks[r], self.group[r]
                there = torch.empty(by_heads[r].shape, dtype=dtype)
                back = torch.empty(by_rows[r].shape, dtype=dtype)
                velo.sequence_all_to_all(group=group, x=by_rows[r].contiguous(), y=there, **given)
                velo.sequence_all_to_all(group=group, x=there, y=back, to="rows", **given)
                return there, back

            for r, (there, back) in enumerate(both(rank)):
                self.assertTrue(torch.equal(there, by_heads[r]))
                self.assertTrue(torch.equal(back, by_rows[r]))

    def test_attention_of_a_sequence_on_two_ranks(self):
        length, d = 48, 16  # a causal ring: rank 0 has the outer quarters, rank 1 the inner ones
        rows = [list(range(12)) + list(range(36, 48)), list(range(12, 36))]
        for dtype in BOUND:
            q, k, v, dy = (torch.randn(length, 2, d).to(dtype) for _ in range(4))
            leaves = [t.float().requires_grad_() for t in (q, k, v)]
            query, key, value = (t.transpose(0, 1) for t in leaves)
            score = query @ key.transpose(1, 2) * d**-0.5
            score = score.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
            y = (score.softmax(-1) @ value).transpose(0, 1)
            y.backward(dy.float())

            def rank(r):
                velo, mine = self.ranks[r], [t[rows[r]].contiguous() for t in (q, k, v, dy)]
                given = dict(zip(("query", "key", "value"), mine), group=self.group[r],
                             scale=d**-0.5)
                statistics = [torch.empty(2, length // 2) for _ in range(2)]
                # The block of the other rank: its keys and values.
                saved = dict(zip(("softmax_max", "softmax_sum"), statistics),
                             kept=torch.empty(2 * length // 2 * 2 * d, dtype=dtype))
                out, *gradients = (torch.empty_like(mine[0]) for _ in range(4))
                velo.context_parallel_attention(attention_out=out, **given, **saved)
                velo.context_parallel_attention_backward(
                    attention_out=out, dy=mine[3], **given, **saved,
                    **dict(zip(("dquery", "dkey", "dvalue"), gradients)))
                return out, *gradients

            wholes = (y, *(t.grad for t in leaves))
            for r, results in enumerate(both(rank)):
                for got, whole in zip(results, wholes):
                    self.close(f"rank {r}", got, whole[rows[r]], dtype)

    def test_loss_of_classes_on_two_ranks(self):
        classes, cut = 51, 26  # and a column of padding on the second rank
        targets = torch.tensor([3, 50, 26, -100, 25])
        for dtype in BOUND:
            for smoothing in (0.0, 0.1):
                whole = torch.randn(5, classes).to(dtype)
                leaf = whole.float().requires_grad_()
                truth = torch.nn.functional.cross_entropy(leaf, targets, reduction="none",
                                                          label_smoothing=smoothing)
                truth.sum().backward()
                padded = torch.nn.functional.pad(whole, (0, 1))

                def rank(r):
                    mine = padded[:, r * cut:(r + 1) * cut].contiguous()
                    given = {"group": self.group[r], "logits": mine, "targets": targets,
                             "label_smoothing": smoothing, "vocab_size": classes}
                    loss, lse = torch.empty(5), torch.empty(5)
                    self.ranks[r].vocab_parallel_cross_entropy(loss=loss, lse=lse, **given)
                    self.ranks[r].vocab_parallel_cross_entropy_backward(
                        dloss=torch.ones(5), lse=lse, dlogits=mine, **given)
                    return loss, mine

                ranks = both(rank)
                self.assertTrue(torch.equal(ranks[0][0], ranks[1][0]))
                self.close("loss", ranks[0][0], truth, dtype)
                gradient = torch.cat([one[1] for one in ranks], 1)
                self.close("gradient", gradient[:, :classes], leaf.grad, dtype)
                self.assertEqual(float(gradient[:, classes].abs().max()), 0)

    def test_norm_of_elements_on_two_ranks(self):
        cut = 14  # and 10 elements on the second rank
        for dtype in BOUND:
            x, dy = torch.randn(5, 24).to(dtype), torch.randn(5, 24).to(dtype)
            gamma = torch.randn(24)
            a, g = x.float().requires_grad_(), gamma.clone().requires_grad_()
            truth = torch.nn.functional.layer_norm(a, (24,), g)
            truth.backward(dy.float())

            def rank(r):
                own = slice(0, cut) if r == 0 else slice(cut, 24)
                given = {"group": self.group[r], "x": x[:, own].contiguous(),
                         "gamma": gamma[own].contiguous()}
                y, dx = torch.empty_like(given["x"]), torch.empty_like(given["x"])
                mean, rstd = torch.empty(5, 1), torch.empty(5, 1)
                dgamma = torch.empty_like(given["gamma"])
                self.ranks[r].parallel_layer_norm(y=y, mean=mean, rstd=rstd, **given)
                self.ranks[r].parallel_layer_norm_backward(
                    dy=dy[:, own].contiguous(), mean=mean, rstd=rstd, dx=dx, dgamma=dgamma, **given)
                return y, dx, dgamma

            ranks = both(rank)
            for i, (name, want) in enumerate((("y", truth), ("dx", a.grad), ("dgamma", g.grad))):
                self.close(name, torch.cat([one[i] for one in ranks], -1), want, dtype)

    def test_embedding_of_rows_on_two_ranks(self):
        rows, cut = 51, 26  # and a row of padding on the second rank
        indices = torch.randint(0, rows, (6, 5))
        for dtype in BOUND:
            for parts in (1, 2):
                whole, dy = torch.randn(rows, 24).to(dtype), torch.randn(6, 5, 24).to(dtype)
                leaf = whole.float().requires_grad_()
                torch.nn.functional.embedding(indices, leaf).backward(dy.float())
                padded = torch.nn.functional.pad(whole, (0, 0, 0, 1))

                def rank(r):
                    mine = padded[r * cut:(r + 1) * cut].contiguous()
                    given = {"group": self.group[r], "indices": indices, "vocab_size": rows,
                             "sequence_parallel": parts - 1}
                    own = slice(r * 3, r * 3 + 3) if parts == 2 else slice(None)
                    y, dweight = torch.empty_like(dy[own]), torch.empty(cut, 24)
                    self.ranks[r].vocab_parallel_embedding(weight=mine, y=y, **given)
                    self.ranks[r].vocab_parallel_embedding_backward(
                        dy=dy[own].contiguous(), dweight=dweight, rows=cut, **given)
                    self.assertTrue(torch.equal(y, whole[indices][own]))
                    return dweight

                gradient = torch.cat(both(rank))
                self.close("gradient", gradient[:rows], leaf.grad, dtype)
                self.assertEqual(float(gradient[rows].abs().max()), 0)

    def test_sequence_parallel_layers(self):
        for dtype, slices in self.cases():
            x, first, second, dy, y, gradients = self.layer(dtype)

            def run(rank):
                velo, by = self.ranks[rank], {"group": self.group[rank], "parallel_num": slices}
                rows, columns = slice(rank * S // 2,
                                      (rank + 1) * S // 2), slice(rank * H // 2,
                                                                  (rank + 1) * H // 2)
                w1, w2 = first[columns].contiguous(), second[:, columns].contiguous()
                part = torch.empty(S // 2, K, dtype=dtype)
                inner, d_inner = torch.empty(S, H // 2, dtype=dtype), torch.empty(S,
                                                                                  H // 2,
                                                                                  dtype=dtype)
                all_x, all_dy = torch.empty(S, K, dtype=dtype), torch.empty(S, K, dtype=dtype)
                velo.all_gather_matmul(x=x[rows],
                                       weight=w1,
                                       transpose_weight=1,
                                       y=inner,
                                       gathered=all_x,
                                       **by)
                velo.matmul_reduce_scatter(x=inner, weight=w2, transpose_weight=1, y=part, **by)
                velo.all_gather_matmul(x=dy[rows], weight=w2, y=d_inner, gathered=all_dy, **by)
                dx, dw1, dw2 = torch.empty_like(part), torch.zeros(H // 2,
                                                                   K), torch.zeros(K, H // 2)
                velo.matmul_reduce_scatter(x=d_inner, weight=w1, y=dx, **by)
                velo.matmul_add_fp32(total_input=all_x, grad_output=d_inner, grad=dw1)
                velo.matmul_add_fp32(total_input=inner, grad_output=all_dy, grad=dw2)
                return part, dx, dw1, dw2

            with self.subTest(dtype=dtype, slices=slices):
                self.check_layer((y, gradients), both(run), dtype)

    def test_cut_linear_layers(self):
        rows = (35, 29)
        for dtype, slices in self.cases():
            for cuts_rows in (True, False):
                x, first, second, dy, y, gradients = self.layer(dtype)

                def run(rank):
                    velo, columns = self.ranks[rank], slice(rank * H // 2, (rank + 1) * H // 2)
                    by = {"group": self.group[rank], "parallel_num": slices}
                    if cuts_rows:
                        by.update(sequence_parallel=True, rows=rows)

                    def mine(t):
                        return t.split(rows)[rank].contiguous() if cuts_rows else t

                    w1, w2 = first[columns].contiguous(), second[:, columns].contiguous()
                    inner, d_inner = (torch.empty(S, H // 2, dtype=dtype) for _ in range(2))
                    out, dx = torch.empty_like(mine(x)), torch.empty_like(mine(x))
                    dw1, dw2 = torch.zeros(H // 2, K), torch.zeros(K, H // 2)
                    velo.column_parallel_linear(x=mine(x), weight=w1, y=inner, **by)
                    velo.row_parallel_linear(x=inner, weight=w2, y=out, **by)
                    velo.row_parallel_linear_backward(dy=mine(dy), x=inner, weight=w2, dx=d_inner,
                                                      dweight=dw2, accumulate=True, **by)
                    velo.column_parallel_linear_backward(dy=d_inner, x=mine(x), weight=w1, dx=dx,
                                                         dweight=dw1, accumulate=True, **by)
                    return out, dx, dw1, dw2

                with self.subTest(dtype=dtype, slices=slices, cuts_rows=cuts_rows):
                    self.check_layer((y, gradients), both(run), dtype)

    def test_tensor_parallel_layers(self):
        for dtype, slices in self.cases():
            x, first, second, dy, y, gradients = self.layer(dtype)

            def run(rank):
                velo, by = self.ranks[rank], {"group": self.group[rank], "parallel_num": slices}
                columns = slice(rank * H // 2, (rank + 1) * H // 2)
                w1, w2 = first[columns].contiguous(), second[:, columns].contiguous()
                inner, d_inner = torch.empty(S, H // 2, dtype=dtype), torch.empty(S,
                                                                                  H // 2,
                                                                                  dtype=dtype)
                whole, dx = torch.empty(S, K, dtype=dtype), torch.empty(S, K, dtype=dtype)
                dw1, dw2 = torch.zeros(H // 2, K), torch.zeros(K, H // 2)
                velo.matmul(a=x, b=w1, transpose_b=1, c=inner)
                velo.matmul_all_reduce(x=inner, weight=w2, transpose_weight=1, y=whole, **by)
                velo.matmul(a=dy, b=w2, c=d_inner)
                velo.matmul_all_reduce(x=d_inner, weight=w1, y=dx, **by)
                velo.matmul_add_fp32(total_input=x, grad_output=d_inner, grad=dw1)
                velo.matmul_add_fp32(total_input=inner, grad_output=dy, grad=dw2)
                return whole, dx, dw1, dw2

            with self.subTest(dtype=dtype, slices=slices):
                ranks = both(run)
                self.check_layer((y, gradients), ranks, dtype)
                self.assertTrue(torch.equal(ranks[0][0], ranks[1][0]),
                                "the same bits on both ranks")

    def test_sums_join_a_residual_and_are_normed(self):
        for dtype, slices in self.cases():
            x, _, second, residual, _, _ = self.layer(dtype)
            bias, gamma = torch.randn(K).to(dtype), torch.randn(K).to(dtype)
            inner = torch.randn(S, H).to(dtype)
            leaves = [
                t.detach().float().clone().requires_grad_()
                for t in (inner, second, residual, gamma)
            ]
            y = leaves[0] @ leaves[1].t() + bias.float() + leaves[2]
            norm = y * (y.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * leaves[3]
            dy, dnorm = x, torch.randn(S, K).to(dtype)
            torch.autograd.backward((y, norm), (dy.float(), dnorm.float()))

            def run(rank):
                velo, columns = self.ranks[rank], slice(rank * H // 2, (rank + 1) * H // 2)
                w, mine = second[:, columns].contiguous(), inner[:, columns].contiguous()
                total, out = torch.empty_like(residual), torch.empty_like(x)
                rstd = torch.empty(S, 1)
                given = {"bias": bias} if rank == 1 else {}  # each rank's is a term of the sum
                velo.matmul_all_reduce_add_rms_norm(
                    x=mine, weight=w, transpose_weight=1, residual=residual, gamma=gamma, y=total,
                    norm_out=out, rstd=rstd, epsilon=1e-5, group=self.group[rank],
                    parallel_num=slices, **given)
                dsum, d_inner = torch.empty_like(x), torch.empty_like(mine)
                dgamma, dw = torch.empty(K), torch.zeros(K, H // 2)
                velo.rms_norm_backward(dy=dnorm, x=total, gamma=gamma, rstd=rstd, dx=dsum,
                                       dgamma=dgamma)
                velo.add(a=dsum, b=dy, y=dsum)
                velo.matmul(a=dsum, b=w, c=d_inner)
                velo.matmul_add_fp32(total_input=mine, grad_output=dsum, grad=dw)
                return total, out, dsum, dgamma, d_inner, dw

            with self.subTest(dtype=dtype, slices=slices):
                ranks = both(run)
                wholes = (y, norm, leaves[2].grad, leaves[3].grad)
                for rank, results in enumerate(ranks):
                    for name, got, whole in zip(("y", "norm", "dresidual", "dgamma"), results,
                                                wholes):
                        self.close(f"{name} of rank {rank}", got, whole, dtype)
                self.close("dx", torch.cat([one[4] for one in ranks], 1), leaves[0].grad, dtype)
                self.close("dw", torch.cat([one[5] for one in ranks], 1), leaves[1].grad, dtype)

    def test_rows_gathered_and_sums_scattered(self):
        """Two groups, here of the same ranks: y = gather(x) @ (w of rank 0 + w of rank 1)."""
        for dtype, slices in self.cases():
            x, dy = torch.randn(S, K).to(dtype), torch.randn(S, H).to(dtype)
            weights = [torch.randn(H, K).to(dtype) for _ in range(2)]
            leaves = [t.float().requires_grad_() for t in (x, *weights)]
            y = leaves[0] @ (leaves[1] + leaves[2]).t()
            y.backward(dy.float())

            def run(rank):
                velo, rows = self.ranks[rank], slice(rank * S // 2, (rank + 1) * S // 2)
                there = {
                    "gather_group": self.group[rank], "scatter_group": self.other[rank],
                    "parallel_num": slices
                }
                back = {
                    "gather_group": self.other[rank], "scatter_group": self.group[rank],
                    "parallel_num": slices
                }
                part, all_x = torch.empty(S // 2, H, dtype=dtype), torch.empty(S, K, dtype=dtype)
                dx, all_dy = torch.empty(S // 2, K, dtype=dtype), torch.empty(S, H, dtype=dtype)
                dw = torch.zeros(H, K)
                call = velo.all_gather_matmul_reduce_scatter
                call(x=x[rows],
                     weight=weights[rank],
                     transpose_weight=1,
                     y=part,
                     gathered=all_x,
                     **there)
                call(x=dy[rows], weight=weights[rank], y=dx, gathered=all_dy, **back)
                velo.matmul_add_fp32(total_input=all_x, grad_output=all_dy, grad=dw)
                return part, dx, dw

            with self.subTest(dtype=dtype, slices=slices):
                ranks = both(run)
                self.close("y", torch.cat([one[0] for one in ranks]), y, dtype)
                self.close("dx", torch.cat([one[1] for one in ranks]), leaves[0].grad, dtype)
                for rank, one in enumerate(ranks):
                    self.close("dw", one[2], leaves[1 + rank].grad, dtype)

    def test_ranks_that_cut_differently_are_reported(self):
        x, w = torch.randn(S, K), torch.randn(H, K)

        def run(rank):
            self.ranks[rank].matmul_all_reduce(x=x,
                                               weight=w,
                                               transpose_weight=1,
                                               y=torch.empty(S, H),
                                               group=self.group[rank],
                                               parallel_num=2 + 2 * rank)

        with self.assertRaisesRegex(VeloError, "all_reduce"):
            both(run)


if __name__ == "__main__":
    unittest.main()
