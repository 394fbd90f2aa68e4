// Ranks as a grid of ep x tp, and a layer of experts of which each has a part: its tokens, its
// weights, the calls of both fused operators and the same by calls apart, and the truth in double.
// Rank r is r % tp in its group of tp, and r / tp in that of ep.
#pragma once

#include <cmath>
#include <functional>

#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"

namespace velo::testing {

struct expert_case {
  int ep = 1, tp = 1;
  velo_dtype dtype = f32;
  std::int64_t shard = VELO_EXPERT_SHARD_COLUMNS, act = VELO_EXPERT_ACTIVATION_NONE;
  bool transposed = false, has_bias = false, wide_bias = false, keeps = true;
  std::int64_t local = 2, rows = 12, width = 24, inner = 12;  // C, H, columns of a rank's weight

  int ranks() const { return ep * tp; }
  bool by_columns() const { return shard == VELO_EXPERT_SHARD_COLUMNS; }
  std::int64_t experts() const { return local * ep; }
  std::int64_t part_rows() const { return by_columns() ? rows : rows / tp; }
  std::int64_t part_width() const { return by_columns() ? width / tp : width; }
};

inline std::string text_of(const expert_case& of) {
  return std::to_string(of.ep) + " x " + std::to_string(of.tp) + ", dtype " +
         std::to_string(of.dtype.code) + "." + std::to_string(of.dtype.bits) + ", shard " +
         std::to_string(of.shard) + ", act " + std::to_string(of.act) + ", transposed " +
         std::to_string(of.transposed) + ", bias " + std::to_string(of.has_bias);
}

// A rank's two groups, parts of the group of all; either is missing where it would have one rank.
class grid_groups {
 public:
  velo_status make(const expert_case& of, const rank_of_group& me) {
    const int t = me.rank % of.tp, p = me.rank / of.tp;
    std::vector<std::int32_t> column, row;
    for (int q = 0; q < of.ep; ++q) column.push_back(q * of.tp + t);
    for (int u = 0; u < of.tp; ++u) row.push_back(p * of.tp + u);
    velo_status done = VELO_OK;
    if (of.ep > 1) done = part(me.group, column, &ep);
    if (of.tp > 1 && done == VELO_OK) done = part(me.group, row, &tp);
    return done;
  }
  ~grid_groups() {
    velo_group_destroy(ep);
    velo_group_destroy(tp);
  }

  velo_group ep = nullptr, tp = nullptr;

 private:
  static velo_status part(velo_group parent, const std::vector<std::int32_t>& ranks,
                          velo_group* made) {
    return velo_group_create_part(parent, ranks.data(), static_cast<std::int32_t>(ranks.size()),
                                  nullptr, made);
  }
};

inline double activated(std::int64_t act, double x) {
  switch (act) {
    case VELO_EXPERT_ACTIVATION_GELU:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case VELO_EXPERT_ACTIVATION_SILU:
      return x / (1 + std::exp(-x));
    case VELO_EXPERT_ACTIVATION_RELU:
      return std::max(x, 0.0);
    case VELO_EXPERT_ACTIVATION_FASTGELU:
      return x / (1 + std::exp(-1.702 * x));
    default:
      return x;
  }
}

// The whole layer: what all ranks have together. rows: of tokens [ep][E][C][H], of experts
// [E][ep C][M].
class whole_experts {
 public:
  explicit whole_experts(const expert_case& of)
      : of(of),
        inner(of.inner * of.tp),
        tokens(of.dtype, {of.ep, of.experts(), of.rows, of.width}, 1),
        rows(of.dtype, {of.experts(), of.ep * of.rows, inner}, 2),
        weight_in(of.dtype, {of.experts(), of.width, inner}, 3),
        weight_out(of.dtype, {of.experts(), inner, of.width}, 4),
        bias_in(of.wide_bias ? f32 : of.dtype, {of.experts(), inner}, 5),
        bias_out(of.wide_bias ? f32 : of.dtype, {of.experts(), of.width}, 6) {}

  // Row i of expert e, before weight_in.
  double token(std::int64_t e, std::int64_t i, std::int64_t h) const {
    const std::int64_t q = i / of.rows, c = i % of.rows;
    return tokens[((q * of.experts() + e) * of.rows + c) * of.width + h];
  }
  double inner_sum(std::int64_t e, std::int64_t i, std::int64_t m) const {
    double sum = of.has_bias ? bias_in[e * inner + m] : 0;
    for (std::int64_t h = 0; h < of.width; ++h)
      sum += token(e, i, h) * weight_in[(e * of.width + h) * inner + m];
    return sum;
  }
  double outer_sum(std::int64_t e, std::int64_t i, std::int64_t h) const {
    double sum = of.has_bias ? bias_out[e * of.width + h] : 0;
    for (std::int64_t m = 0; m < inner; ++m)
      sum +=
          rows[(e * of.ep * of.rows + i) * inner + m] * weight_out[(e * inner + m) * of.width + h];
    return sum;
  }

  const expert_case of;
  const std::int64_t inner;
  matrix tokens, rows, weight_in, weight_out, bias_in, bias_out;
};

// A rank's part. in: all_to_all_all_gather_bmm, x to y, gathered and pre; out:
// bmm_reduce_scatter_all_to_all, z to back.
class expert_rank {
 public:
  expert_rank(const whole_experts& whole, int rank)
      : of_(whole.of),
        t_(rank % of_.tp),
        p_(rank / of_.tp),
        x(of_.dtype, {of_.experts(), of_.part_rows(), of_.part_width()}),
        y(of_.dtype, {of_.local, all_rows(), of_.inner}, 70),
        gathered(of_.dtype, {of_.local, all_rows(), of_.width}, 71),
        pre(of_.dtype, {of_.local, all_rows(), of_.inner}, 72),
        z(of_.dtype, {of_.local, all_rows(), of_.inner}),
        back(of_.dtype, {of_.experts(), of_.part_rows(), of_.part_width()}, 73),
        weight_in(of_.dtype, weight_shape(of_.width, of_.inner)),
        weight_out(of_.dtype, weight_shape(of_.inner, of_.width)),
        bias_in(whole.bias_in.view().dtype, {of_.local, 1, of_.inner}),
        bias_out(whole.bias_out.view().dtype, {of_.local, of_.part_width()}) {
    const std::int64_t w = of_.part_width(), r = of_.part_rows(), n = of_.inner;
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const std::int64_t e = i / (r * w), c = i / w % r, h = i % w;
      x.set(i, whole.token(e, p_ * of_.rows + row(c), column(h)));
    }
    for (std::int64_t i = 0; i < z.count(); ++i)
      z.set(i, whole.rows[(p_ * of_.local * all_rows() + i / n) * whole.inner + t_ * n + i % n]);
    for (std::int64_t e = 0; e < of_.local; ++e) set_weights(whole, e);
  }
  expert_rank(const expert_rank&) = delete;

  std::int64_t all_rows() const { return of_.ep * of_.rows; }
  // The row and the column in the whole tokens of one of this rank's.
  std::int64_t row(std::int64_t c) const { return of_.by_columns() ? c : t_ * of_.part_rows() + c; }
  std::int64_t column(std::int64_t h) const {
    return of_.by_columns() ? t_ * of_.part_width() + h : h;
  }
  std::int64_t first_expert() const { return p_ * of_.local; }
  int in_ep() const { return p_; }
  int in_tp() const { return t_; }

  velo_status fused_in(velo_stream stream, const grid_groups& in) const {
    return call_in(stream, in, x, weight_in, of_.transposed, of_.has_bias ? &bias_in : nullptr, y,
                   of_.keeps ? &gathered : nullptr, of_.keeps ? &pre : nullptr, of_.act);
  }
  velo_status fused_out(velo_stream stream, const grid_groups& in) const {
    return call_out(stream, in, z, weight_out, of_.transposed, of_.has_bias ? &bias_out : nullptr,
                    back);
  }
  // Any tensors, for gradients.
  velo_status call_in(velo_stream stream, const grid_groups& in, const matrix& from,
                      const matrix& weight, bool transposed, const matrix* bias, const matrix& to,
                      const matrix* all, const matrix* before, std::int64_t act) const {
    const velo_tensor vx = from.view(), vw = weight.view(), vy = to.view();
    const velo_tensor vb = view_or_none(bias), vg = view_or_none(all), vp = view_or_none(before);
    velo_all_to_all_all_gather_bmm_args args = VELO_ALL_TO_ALL_ALL_GATHER_BMM_ARGS_INIT;
    args.group_ep = in.ep, args.group_tp = in.tp;
    args.x = &vx, args.weight = &vw, args.y = &vy;
    if (bias != nullptr) args.bias = &vb;
    if (all != nullptr) args.gathered = &vg;
    if (before != nullptr) args.pre_activation = &vp;
    args.shard_type = of_.shard, args.act_type = act, args.transpose_weight = transposed;
    return velo_all_to_all_all_gather_bmm(stream, &args);
  }
  velo_status call_out(velo_stream stream, const grid_groups& in, const matrix& from,
                       const matrix& weight, bool transposed, const matrix* bias,
                       const matrix& to) const {
    const velo_tensor vx = from.view(), vw = weight.view(), vy = to.view();
    const velo_tensor vb = view_or_none(bias);
    velo_bmm_reduce_scatter_all_to_all_args args = VELO_BMM_REDUCE_SCATTER_ALL_TO_ALL_ARGS_INIT;
    args.group_ep = in.ep, args.group_tp = in.tp;
    args.x = &vx, args.weight = &vw, args.y = &vy;
    if (bias != nullptr) args.bias = &vb;
    args.shard_type = of_.shard, args.transpose_weight = transposed;
    return velo_bmm_reduce_scatter_all_to_all(stream, &args);
  }

 private:
  static velo_tensor view_or_none(const matrix* of) {
    return of == nullptr ? velo_tensor{} : of->view();
  }
  std::vector<std::int64_t> weight_shape(std::int64_t k, std::int64_t n) const {
    return of_.transposed ? std::vector<std::int64_t>{of_.local, n, k}
                          : std::vector<std::int64_t>{of_.local, k, n};
  }
  void set_weights(const whole_experts& whole, std::int64_t e) {
    const std::int64_t n = of_.inner, width = of_.width, from = first_expert() + e;
    const auto place = [&](std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t columns) {
      return of_.transposed ? (e * columns + j) * k + i : (e * k + i) * columns + j;
    };
    for (std::int64_t h = 0; h < width; ++h)
      for (std::int64_t m = 0; m < n; ++m) {
        weight_in.set(place(h, m, width, n),
                      whole.weight_in[(from * width + h) * whole.inner + t_ * n + m]);
        weight_out.set(place(m, h, n, width),
                       whole.weight_out[(from * whole.inner + t_ * n + m) * width + h]);
      }
    for (std::int64_t m = 0; m < n; ++m)
      bias_in.set(e * n + m, whole.bias_in[from * whole.inner + t_ * n + m]);
    for (std::int64_t h = 0; h < of_.part_width(); ++h)
      bias_out.set(e * of_.part_width() + h, whole.bias_out[from * width + column(h)]);
  }

  const expert_case of_;
  const int t_, p_;

 public:
  matrix x, y, gathered, pre, z, back, weight_in, weight_out, bias_in, bias_out;
};

}  // namespace velo::testing
