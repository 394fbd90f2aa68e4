// An attention problem in terms of the tests, with the tensors and arguments of both calls.
#pragma once

#include <functional>
#include <vector>

#include "tests/ops/operator_testing.hpp"

namespace velo::testing {

using ints = std::vector<std::int64_t>;

// One problem. A layout decides only the address of an element.
struct setup {
  std::int64_t layout = VELO_ATTENTION_LAYOUT_BNSD;
  std::int64_t batch = 1, heads = 1, kv_heads = 1, sq = 1, skv = 1, d = 1, dv = 1;
  std::int64_t mode = VELO_ATTENTION_SPARSE_MODE_FULL;
  double scale = 0.125;
  std::int64_t copies = 1;  // of each statistic: 1 or 8
  ints q_ends, kv_ends;     // tnd
  std::int64_t pre = 2147483647, next = 2147483647;
  ints prefix;
  // Terms: the arguments, and what they mean for a pair of a query and a key of a head.
  const velo_tensor *mask = nullptr, *pse = nullptr;
  std::int64_t pse_type = VELO_ATTENTION_PSE_TYPE_ADDED_BEFORE_SCALE;
  std::int64_t q_start = 0, kv_start = 0, seed = 0, offset = 0;
  double keep_prob = 1;
  ints origin, extents;
  using of_pair =
      std::function<double(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j)>;
  of_pair addend = [](auto...) { return 0.0; };  // -Inf hides
  of_pair multiplier = [](auto...) { return 1.0; };

  bool lists() const { return layout == VELO_ATTENTION_LAYOUT_TND; }
  std::int64_t sequences() const {
    return lists() ? static_cast<std::int64_t>(q_ends.size()) : batch;
  }
  static std::int64_t first(const ints& ends, std::int64_t b) {
    return b == 0 ? 0 : ends[static_cast<std::size_t>(b - 1)];
  }
  static std::int64_t count(const ints& ends, std::int64_t b) {
    return ends[static_cast<std::size_t>(b)] - first(ends, b);
  }
  std::int64_t q_length(std::int64_t b) const { return lists() ? count(q_ends, b) : sq; }
  std::int64_t kv_length(std::int64_t b) const { return lists() ? count(kv_ends, b) : skv; }
  bool visible(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const std::int64_t d = kv_length(b) - q_length(b);
    const bool in_band = i + d - pre <= j && j <= i + d + next;
    switch (mode) {
      case VELO_ATTENTION_SPARSE_MODE_FULL:
        return i - pre <= j && j <= i + next;
      case VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL:
        return j <= i;
      case VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL:
        return j <= i + d;
      case VELO_ATTENTION_SPARSE_MODE_BAND:
        return in_band;
      case VELO_ATTENTION_SPARSE_MODE_PREFIX:
      case VELO_ATTENTION_SPARSE_MODE_PREFIX_COMPRESSED:
        return j <= i + d || j < prefix[static_cast<std::size_t>(b)];
      case VELO_ATTENTION_SPARSE_MODE_RIGHT_DOWN_CAUSAL_BAND:
        return b == edge(true) ? in_band : j <= i + d;
      case VELO_ATTENTION_SPARSE_MODE_BAND_LEFT_UP_CAUSAL:
        return b == edge(false) ? in_band : j <= i;
      default:
        return true;
    }
  }
  // The first or last sequence with queries.
  std::int64_t edge(bool last) const {
    std::int64_t found = -1;
    for (std::int64_t b = 0; b < sequences(); ++b) {
      if (q_length(b) > 0 && (last || found < 0)) found = b;
    }
    return found;
  }

  ints shape(bool queries, std::int64_t n, std::int64_t size) const {
    const std::int64_t s = queries ? sq : skv;
    switch (layout) {
      case VELO_ATTENTION_LAYOUT_BSND:
        return {batch, s, n, size};
      case VELO_ATTENTION_LAYOUT_BNSD:
        return {batch, n, s, size};
      case VELO_ATTENTION_LAYOUT_SBH:
        return {s, batch, n * size};
      case VELO_ATTENTION_LAYOUT_BSH:
        return {batch, s, n * size};
      default: {
        const ints& ends = queries ? q_ends : kv_ends;
        return {ends.empty() ? 0 : ends.back(), n, size};
      }
    }
  }
  // Element (b, head, row, 0) of a compact tensor of n heads.
  std::size_t at(bool queries, std::int64_t n, std::int64_t size, std::int64_t b, std::int64_t h,
                 std::int64_t row) const {
    const std::int64_t s = queries ? sq : skv;
    std::int64_t index = 0;
    switch (layout) {
      case VELO_ATTENTION_LAYOUT_BSND:
      case VELO_ATTENTION_LAYOUT_BSH:
        index = (b * s + row) * n + h;
        break;
      case VELO_ATTENTION_LAYOUT_BNSD:
        index = (b * n + h) * s + row;
        break;
      case VELO_ATTENTION_LAYOUT_SBH:
        index = (row * batch + b) * n + h;
        break;
      default:
        index = (first(queries ? q_ends : kv_ends, b) + row) * n + h;
    }
    return static_cast<std::size_t>(index * size);
  }
  ints stats_shape() const {
    ints sizes = {batch, heads, sq};
    if (lists()) sizes = {q_ends.empty() ? 0 : q_ends.back(), heads};
    if (copies > 1) sizes.push_back(copies);
    return sizes;
  }
  // Of the first copy.
  std::size_t stats_at(std::int64_t b, std::int64_t h, std::int64_t row) const {
    const std::int64_t before = lists() ? first(q_ends, b) : 0;
    const std::int64_t index = !lists()     ? (b * heads + h) * sq + row
                               : copies > 1 ? before * heads + h * q_length(b) + row
                                            : (before + row) * heads + h;
    return static_cast<std::size_t>(index * copies);
  }
};

inline setup make(std::int64_t layout, std::int64_t batch, std::int64_t heads,
                  std::int64_t kv_heads, std::int64_t sq, std::int64_t skv, std::int64_t d,
                  std::int64_t dv) {
  setup p;
  p.layout = layout, p.batch = batch, p.heads = heads, p.kv_heads = kv_heads;
  p.sq = sq, p.skv = skv, p.d = d, p.dv = dv;
  p.scale = 1 / std::sqrt(static_cast<double>(d));
  return p;
}

inline setup make_tnd(ints q_ends, ints kv_ends, std::int64_t heads, std::int64_t kv_heads,
                      std::int64_t d) {
  setup p = make(VELO_ATTENTION_LAYOUT_TND, 1, heads, kv_heads, 0, 0, d, d);
  p.q_ends = std::move(q_ends), p.kv_ends = std::move(kv_ends);
  return p;
}

// Tensors and arguments of both calls.
template <class T>
struct tensors {
  explicit tensors(const setup& p)
      : q(p.shape(true, p.heads, p.d)),
        k(p.shape(false, p.kv_heads, p.d)),
        v(p.shape(false, p.kv_heads, p.dv)),
        out(p.shape(true, p.heads, p.dv)),
        dy(p.shape(true, p.heads, p.dv)),
        dq(p.shape(true, p.heads, p.d)),
        dk(p.shape(false, p.kv_heads, p.d)),
        dv(p.shape(false, p.kv_heads, p.dv)),
        max(p.stats_shape()),
        sum(p.stats_shape()),
        q_list{p.q_ends.data(), static_cast<std::int64_t>(p.q_ends.size())},
        kv_list{p.kv_ends.data(), static_cast<std::int64_t>(p.kv_ends.size())},
        prefix{p.prefix.data(), static_cast<std::int64_t>(p.prefix.size())},
        origin{p.origin.data(), static_cast<std::int64_t>(p.origin.size())},
        extents{p.extents.data(), static_cast<std::int64_t>(p.extents.size())} {
    q.fill(1, 2), k.fill(2, 2), v.fill(3), dy.fill(4);
    for (auto* a : {&out, &dq, &dk, &dv}) a->fill(5);
    max.fill(6), sum.fill(7);
    forward.query = q.tensor(), forward.key = k.tensor(), forward.value = v.tensor();
    forward.attention_out = out.tensor();
    forward.softmax_max = max.tensor(), forward.softmax_sum = sum.tensor();
    set(forward, p);
    backward.query = q.tensor(), backward.key = k.tensor(), backward.value = v.tensor();
    backward.dy = dy.tensor(), backward.attention_out = out.tensor();
    backward.softmax_max = max.tensor(), backward.softmax_sum = sum.tensor();
    backward.dquery = dq.tensor(), backward.dkey = dk.tensor(), backward.dvalue = dv.tensor();
    set(backward, p);
  }
  template <class Args>
  void set(Args& a, const setup& p) {
    a.layout = p.layout;
    a.head_num = p.heads;
    a.scale = p.scale;
    a.sparse_mode = p.mode;
    a.pre_tokens = p.pre, a.next_tokens = p.next;
    if (prefix.count > 0) a.prefix = &prefix;
    if (origin.count > 0) a.dropout_origin = &origin;
    if (extents.count > 0) a.dropout_extents = &extents;
    a.atten_mask = p.mask, a.pse = p.pse, a.pse_type = p.pse_type;
    a.q_start_idx = p.q_start, a.kv_start_idx = p.kv_start;
    a.statistics =
        p.copies > 1 ? VELO_ATTENTION_STATISTICS_EIGHTFOLD : VELO_ATTENTION_STATISTICS_COMPACT;
    a.keep_prob = p.keep_prob, a.seed = p.seed, a.offset = p.offset;
    if (!p.lists()) return;
    a.actual_seq_qlen = &q_list, a.actual_seq_kvlen = &kv_list;
  }

  array<T> q, k, v, out, dy, dq, dk, dv;
  array<float> max, sum;
  velo_ints q_list, kv_list, prefix, origin, extents;
  velo_fusion_attention_args forward = VELO_FUSION_ATTENTION_ARGS_INIT;
  velo_fusion_attention_backward_args backward = VELO_FUSION_ATTENTION_BACKWARD_ARGS_INIT;
};

}  // namespace velo::testing
