// One rank's tensors and calls of the way into experts, or out of them: exchanges over two groups
// of the same two ranks, and the products of two experts a rank. Apart, rows are put in order
// between the calls, as a host does it.
#pragma once

#include <cstring>
#include <vector>

#include "bench/comm/two_ranks.hpp"
#include "bench/harness/require.hpp"

namespace velo::bench {

class expert_layer {
 public:
  static constexpr std::int64_t local = 2;
  struct sizes {
    std::int64_t rows, width, inner;  // C, H, columns of a rank's weight
  };

  // into: all_to_all_all_gather_bmm with columns of rows and silu, else
  // bmm_reduce_scatter_all_to_all with rows.
  expert_layer(const sizes& of, dtype type, bool into, const rank_of& me)
      : me_(me),
        into_(into),
        type_(type == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                                  : velo_dtype{VELO_DTYPE_FLOAT, 32, 1}),
        tokens_{local * ranks, into ? of.rows : of.rows / ranks,
                into ? of.width / ranks : of.width},
        rows_{local, ranks * of.rows, of.width},
        inner_{local, ranks * of.rows, of.inner},
        weight_shape_{local, into ? of.width : of.inner, into ? of.inner : of.width},
        x_(bytes(into ? tokens_ : inner_)),
        weight_(bytes(weight_shape_)),
        received_(bytes(tokens_)),
        parts_(bytes(rows_)),
        ordered_(bytes(rows_)),
        y_(bytes(into ? inner_ : tokens_)),
        composed_(y_.size()) {
    for (std::int64_t e = 0; e < local; ++e) ends_[e] = (e + 1) * rows_[1];
    std::uint32_t state = static_cast<std::uint32_t>(me.number) * 2654435761u + 1;
    for (buffer* one : {&x_, &weight_, &ordered_, &parts_, &received_}) fill(*one, state);
  }
  expert_layer(const expert_layer&) = delete;

  void multiply() const {
    into_ ? multiply(ordered_, rows_, composed_, inner_) : multiply(x_, inner_, ordered_, rows_);
    if (into_) activate();
  }
  void reduce() const { into_ ? gather() : scatter(); }
  void compose() const {
    if (!into_) {
      multiply(x_, inner_, ordered_, rows_);
      order();
      return scatter();
    }
    gather();
    order();
    multiply();
  }
  void call_fused() const {
    const velo_tensor x = view(x_, into_ ? tokens_ : inner_), weight = view(weight_, weight_shape_),
                      y = view(y_, into_ ? inner_ : tokens_);
    if (into_) {
      velo_all_to_all_all_gather_bmm_args args = VELO_ALL_TO_ALL_ALL_GATHER_BMM_ARGS_INIT;
      set(args, x, weight, y);
      args.act_type = VELO_EXPERT_ACTIVATION_SILU;
      return require(velo_all_to_all_all_gather_bmm(me_.stream, &args));
    }
    velo_bmm_reduce_scatter_all_to_all_args args = VELO_BMM_REDUCE_SCATTER_ALL_TO_ALL_ARGS_INIT;
    set(args, x, weight, y);
    args.shard_type = VELO_EXPERT_SHARD_ROWS;
    require(velo_bmm_reduce_scatter_all_to_all(me_.stream, &args));
  }
  bool is_right() const { return std::memcmp(y_.data(), composed_.data(), y_.size()) == 0; }

 private:
  using buffer = std::vector<unsigned char>;
  using shape = std::int64_t[3];

  std::size_t bytes(const shape& of) const {
    return static_cast<std::size_t>(of[0] * of[1] * of[2] * type_.bits / 8);
  }
  void fill(buffer& to, std::uint32_t& state) const {
    const auto size = static_cast<std::size_t>(type_.bits / 8);
    for (std::size_t i = 0; i < to.size(); i += size) {
      state = state * 1664525u + 1013904223u;
      const float value = static_cast<float>(state >> 8) / (1 << 23) - 1;
      std::uint32_t word;
      std::memcpy(&word, &value, sizeof word);
      if (size == 2) word >>= 16;
      std::memcpy(to.data() + i, &word, size);
    }
  }
  velo_tensor view(const buffer& of, const std::int64_t* shape, int rank = 3) const {
    return {const_cast<unsigned char*>(of.data()),
            {VELO_DEVICE_CPU, 0},
            rank,
            type_,
            shape,
            nullptr,
            0};
  }
  template <class Args>
  void set(Args& args, const velo_tensor& x, const velo_tensor& weight,
           const velo_tensor& y) const {
    args.group_ep = me_.group, args.group_tp = me_.second;
    args.x = &x, args.weight = &weight, args.y = &y;
  }
  void multiply(const buffer& from, const shape& of_x, const buffer& to, const shape& of_y) const {
    const std::int64_t left[] = {of_x[0] * of_x[1], of_x[2]}, right[] = {left[0], of_y[2]};
    const velo_tensor x = view(from, left, 2), weight = view(weight_, weight_shape_),
                      y = view(to, right, 2);
    const velo_ints ends = {ends_, local};
    velo_grouped_matmul_args args = VELO_GROUPED_MATMUL_ARGS_INIT;
    args.x = &x, args.weight = &weight, args.y = &y, args.group_list = &ends;
    require(velo_grouped_matmul(me_.stream, &args));
  }
  void activate() const {
    const velo_tensor y = view(composed_, inner_);
    velo_silu_args args = VELO_SILU_ARGS_INIT;
    args.x = &y, args.y = &y;
    require(velo_silu(me_.stream, &args));
  }
  void gather() const {
    const velo_tensor in = view(x_, tokens_), out = view(received_, tokens_),
                      all = view(parts_, rows_);
    require(velo_group_all_to_all(me_.stream, me_.group, &in, &out));
    require(velo_group_all_gather(me_.stream, me_.second, &out, &all));
  }
  void scatter() const {
    const velo_tensor in = view(parts_, rows_), sums = view(received_, tokens_),
                      out = view(composed_, tokens_);
    require(velo_group_reduce_scatter(me_.stream, me_.second, nullptr, &in, &sums));
    require(velo_group_all_to_all(me_.stream, me_.group, &sums, &out));
  }
  // Between the order of parts, [tp][ep][local][C'][W], and that of experts' rows.
  void order() const {
    const std::int64_t r = tokens_[1], w = tokens_[2] * type_.bits / 8,
                       all = rows_[2] * type_.bits / 8;
    for (std::int64_t i = 0; i < ranks * ranks * local * r; ++i) {
      const std::int64_t c = i % r, e = i / r % local, q = i / (r * local) % ranks;
      const std::int64_t t = i / (r * local * ranks);
      const std::int64_t row = e * rows_[1] + (into_ ? q * r + c : (q * ranks + t) * r + c);
      auto* part = const_cast<unsigned char*>(parts_.data()) + i * w;
      auto* whole = const_cast<unsigned char*>(ordered_.data()) + row * all + (into_ ? t * w : 0);
      into_ ? std::memcpy(whole, part, static_cast<std::size_t>(w))
            : std::memcpy(part, whole, static_cast<std::size_t>(w));
    }
  }

  const rank_of& me_;
  const bool into_;
  const velo_dtype type_;
  const shape tokens_, rows_, inner_, weight_shape_;
  std::int64_t ends_[local];
  buffer x_, weight_, received_, parts_, ordered_, y_, composed_;
};

}  // namespace velo::bench
