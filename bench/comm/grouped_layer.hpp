// One rank's tensors and calls of the products of groups of rows, with a weight each, that are
// summed over ranks. Groups have as many rows each.
#pragma once

#include <cstring>
#include <vector>

#include "bench/comm/two_ranks.hpp"
#include "bench/harness/require.hpp"

namespace velo::bench {

class grouped_layer {
 public:
  static constexpr std::int64_t groups = 4;
  struct sizes {
    std::int64_t m, n, k;
  };

  grouped_layer(const sizes& of, dtype type, const rank_of& me)
      : me_(me),
        type_(type == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                                  : velo_dtype{VELO_DTYPE_FLOAT, 32, 1}),
        left_{of.m, of.k},
        right_{groups, of.k, of.n},
        result_{of.m, of.n},
        x_(bytes(of.m * of.k)),
        weight_(bytes(groups * of.k * of.n)),
        product_(bytes(of.m * of.n)),
        y_(bytes(of.m * of.n)),
        composed_(bytes(of.m * of.n)) {
    for (std::int64_t e = 0; e < groups; ++e) ends_[e] = (e + 1) * of.m / groups;
    std::uint32_t state = static_cast<std::uint32_t>(me.number) * 2654435761u + 1;
    fill(x_, state);
    fill(weight_, state);
  }
  grouped_layer(const grouped_layer&) = delete;

  void multiply() const { multiply_into(product_); }
  void reduce() const { reduce_from(product_, composed_); }
  void compose() const {
    multiply_into(composed_);
    reduce_from(composed_, composed_);
  }
  void call_fused() const {
    const velo_tensor x = view(x_, left_, 2), weight = view(weight_, right_, 3),
                      y = view(y_, result_, 2);
    const velo_tensors xs = {&x, 1}, weights = {&weight, 1}, ys = {&y, 1};
    const velo_ints ends = {ends_, groups};
    velo_grouped_matmul_all_reduce_args args = VELO_GROUPED_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me_.group, args.x = &xs, args.weight = &weights, args.y = &ys;
    args.group_list = &ends, args.split_item = VELO_GROUPED_SPLIT_ONE;
    require(velo_grouped_matmul_all_reduce(me_.stream, &args));
  }
  bool is_right() const { return std::memcmp(y_.data(), composed_.data(), y_.size()) == 0; }

 private:
  using buffer = std::vector<unsigned char>;

  std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements * type_.bits / 8);
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
  velo_tensor view(const buffer& of, const std::int64_t* shape, int rank) const {
    return {const_cast<unsigned char*>(of.data()),
            {VELO_DEVICE_CPU, 0},
            rank,
            type_,
            shape,
            nullptr,
            0};
  }
  void multiply_into(const buffer& to) const {
    const velo_tensor x = view(x_, left_, 2), weight = view(weight_, right_, 3),
                      y = view(to, result_, 2);
    const velo_ints ends = {ends_, groups};
    velo_grouped_matmul_args args = VELO_GROUPED_MATMUL_ARGS_INIT;
    args.x = &x, args.weight = &weight, args.y = &y, args.group_list = &ends;
    require(velo_grouped_matmul(me_.stream, &args));
  }
  void reduce_from(const buffer& from, const buffer& to) const {
    const velo_tensor in = view(from, result_, 2), out = view(to, result_, 2);
    require(velo_group_all_reduce(me_.stream, me_.group, nullptr, &in, &out));
  }

  const rank_of& me_;
  const velo_dtype type_;
  const std::int64_t left_[2], right_[3], result_[2];
  std::int64_t ends_[groups];
  buffer x_, weight_, product_, y_, composed_;
};

}  // namespace velo::bench
