// The calls of a layer of experts apart: collectives, products and activations one after another,
// with rows put in order by the test, for the bits of the fused operators.
#pragma once

#include "tests/sched/overlap/expert_grid.hpp"

namespace velo::testing {

inline constexpr std::int64_t every_act[] = {
    VELO_EXPERT_ACTIVATION_NONE, VELO_EXPERT_ACTIVATION_GELU, VELO_EXPERT_ACTIVATION_SILU,
    VELO_EXPERT_ACTIVATION_RELU, VELO_EXPERT_ACTIVATION_FASTGELU};

// The forms of a layout: in each dtype and shard every activation, or another one in each.
inline std::vector<expert_case> forms_of(int ep, int tp, bool all_acts) {
  std::vector<expert_case> all;
  int pair = 0, number = 0;
  for (const velo_dtype dtype : {f32, bf16, f16})
    for (const std::int64_t shard : {VELO_EXPERT_SHARD_COLUMNS, VELO_EXPERT_SHARD_ROWS}) {
      for (int act = 0; act < 5; ++act) {
        if (!all_acts && act != pair % 5) continue;
        expert_case of;
        of.ep = ep, of.tp = tp, of.dtype = dtype, of.shard = shard, of.act = every_act[act];
        of.transposed = number % 2 == 1, of.has_bias = number % 3 != 0;
        of.wide_bias = number % 3 == 2, of.keeps = number % 4 != 3;
        all.push_back(of);
        ++number;
      }
      ++pair;
    }
  return all;
}

inline bool borders_kept(const expert_rank& one) {
  return one.y.borders_kept() && one.gathered.borders_kept() && one.pre.borders_kept() &&
         one.back.borders_kept();
}

// Both calls of a rank.
inline velo_status call_both(const expert_rank& one, const rank_of_group& me,
                             const grid_groups& in) {
  const velo_status done = one.fused_in(me.stream, in);
  return done != VELO_OK ? done : one.fused_out(me.stream, in);
}
// The elements of a matrix from one on, as a tensor.
inline velo_tensor slice_of(const matrix& all, std::int64_t first, const std::int64_t* shape,
                            int ndim) {
  velo_tensor part = all.view();
  part.data = static_cast<char*>(part.data) + first * (part.dtype.bits / 8);
  part.shape = shape, part.ndim = ndim;
  return part;
}

inline velo_status multiply_each(const expert_case& of, velo_stream stream, const matrix& a,
                                 const matrix& weight, const matrix* bias, const matrix& c) {
  const std::int64_t m = of.ep * of.rows, k = a.view().shape[2], n = c.view().shape[2];
  const std::int64_t left[] = {m, k}, result[] = {m, n};
  const std::int64_t right[] = {of.transposed ? n : k, of.transposed ? k : n};
  velo_status done = VELO_OK;
  for (std::int64_t e = 0; e < of.local && done == VELO_OK; ++e) {
    const velo_tensor va = slice_of(a, e * m * k, left, 2),
                      vb = slice_of(weight, e * k * n, right, 2),
                      vc = slice_of(c, e * m * n, result, 2);
    const velo_tensor added = bias == nullptr ? velo_tensor{} : slice_of(*bias, e * n, &n, 1);
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &va, args.b = &vb, args.c = &vc, args.transpose_b = of.transposed;
    if (bias != nullptr) args.bias = &added;
    done = velo_matmul(stream, &args);
  }
  return done;
}

inline velo_status activate(std::int64_t act, velo_stream stream, const matrix& from,
                            const matrix& to) {
  const char* const names[] = {"", "gelu", "silu", "relu", "fast_gelu"};
  const velo_tensor x = from.view(), y = to.view();
  velo_named_value values[2] = {};
  values[0].name = "x", values[0].value.kind = VELO_VALUE_TENSOR, values[0].value.as.tensor = &x;
  values[1].name = "y", values[1].value.kind = VELO_VALUE_TENSOR, values[1].value.as.tensor = &y;
  return velo_op_call(stream, names[act], values, 2);
}

// The results of the calls apart, in tensors of their own.
struct apart_rank {
  apart_rank(const expert_case& case_of)
      : of(case_of),
        y(of.dtype, {of.local, of.ep * of.rows, of.inner}),
        pre(of.dtype, {of.local, of.ep * of.rows, of.inner}),
        gathered(of.dtype, {of.local, of.ep * of.rows, of.width}),
        back(of.dtype, {of.experts(), of.part_rows(), of.part_width()}) {}

  velo_status in(velo_stream stream, const grid_groups& groups, const expert_rank& one) {
    const std::int64_t r = of.part_rows(), w = of.part_width(), part = of.experts() * r * w;
    matrix received(of.dtype, {part}), all(of.dtype, {of.tp, part});
    const velo_tensor x = one.x.view(), vr = received.view(), va = all.view();
    velo_status done = VELO_OK;
    for (std::int64_t i = 0; i < part; ++i) received.set(i, one.x[i]);
    if (groups.ep != nullptr) done = velo_group_all_to_all(stream, groups.ep, &x, &vr);
    for (std::int64_t i = 0; i < part; ++i) all.set(i, received[i]);
    if (groups.tp != nullptr && done == VELO_OK)
      done = velo_group_all_gather(stream, groups.tp, &vr, &va);
    for (std::int64_t i = 0; i < of.tp * part; ++i) {
      const std::int64_t h = i % w, c = i / w % r, e = i / (w * r) % of.local;
      const std::int64_t q = i / (w * r * of.local) % of.ep, t = i / part;
      const std::int64_t row = of.by_columns() ? q * r + c : (q * of.tp + t) * r + c;
      const std::int64_t column = of.by_columns() ? t * w + h : h;
      gathered.set((e * of.ep * of.rows + row) * of.width + column, all[i]);
    }
    if (done == VELO_OK)
      done = multiply_each(of, stream, gathered, one.weight_in,
                           of.has_bias ? &one.bias_in : nullptr, pre);
    for (std::int64_t i = 0; i < y.count(); ++i) y.set(i, pre[i]);
    if (done != VELO_OK || of.act == VELO_EXPERT_ACTIVATION_NONE) return done;
    return activate(of.act, stream, pre, y);
  }

  velo_status out(velo_stream stream, const grid_groups& groups, const expert_rank& one) {
    const std::int64_t r = of.part_rows(), w = of.part_width(), part = of.experts() * r * w;
    matrix product(of.dtype, {of.local, of.ep * of.rows, of.width}), all(of.dtype, {of.tp, part}),
        sums(of.dtype, {part}), sent(of.dtype, {part});
    velo_status done = multiply_each(of, stream, one.z, one.weight_out, nullptr, product);
    for (std::int64_t i = 0; i < of.tp * part; ++i) {  // [tp][ep][local][r][w]
      const std::int64_t h = i % w, c = i / w % r, e = i / (w * r) % of.local;
      const std::int64_t q = i / (w * r * of.local) % of.ep, t = i / part;
      const std::int64_t row = of.by_columns() ? q * r + c : (q * of.tp + t) * r + c;
      const std::int64_t column = of.by_columns() ? t * w + h : h;
      all.set(i, product[(e * of.ep * of.rows + row) * of.width + column]);
    }
    const velo_tensor va = all.view(), vs = sums.view(), vx = sent.view(), vy = back.view();
    for (std::int64_t i = 0; i < part; ++i) sums.set(i, all[i]);
    if (groups.tp != nullptr && done == VELO_OK)
      done = velo_group_reduce_scatter(stream, groups.tp, nullptr, &va, &vs);
    for (std::int64_t i = 0; i < part; ++i) {
      const std::int64_t e = i / (w * r) % of.local;
      sent.set(i, of.has_bias ? static_cast<float>(sums[i]) +
                                    static_cast<float>(one.bias_out[e * w + i % w])
                              : sums[i]);
      back.set(i, sent[i]);
    }
    if (groups.ep == nullptr || done != VELO_OK) return done;
    return velo_group_all_to_all(stream, groups.ep, &vx, &vy);
  }

  const expert_case of;
  matrix y, pre, gathered, back;
};

// How many results of a rank differ from those of the calls apart; negative: a call failed.
inline int different_results(const expert_case& of, const rank_of_group& me,
                             const grid_groups& in) {
  const whole_experts whole(of);
  const expert_rank one(whole, me.rank);
  apart_rank apart(of);
  if (call_both(one, me, in) != VELO_OK) return -1;
  if (apart.in(me.stream, in, one) != VELO_OK || apart.out(me.stream, in, one) != VELO_OK)
    return -2;
  return (one.y.same_bits(apart.y) ? 0 : 1) + (one.back.same_bits(apart.back) ? 0 : 10) +
         (!of.keeps || one.gathered.same_bits(apart.gathered) ? 0 : 100) +
         (!of.keeps || one.pre.same_bits(apart.pre) ? 0 : 1000) + (borders_kept(one) ? 0 : 10000);
}

}  // namespace velo::testing
