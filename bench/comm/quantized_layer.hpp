// One rank's tensors and calls of a quantized product that is summed over ranks: floats by a weight
// of int8 with a scale for each column, or int8 by int8. Its slices are of columns.
#pragma once

#include <cstring>
#include <vector>

#include "bench/comm/two_ranks.hpp"
#include "bench/harness/require.hpp"

namespace velo::bench {

class quantized_layer {
 public:
  struct sizes {
    std::int64_t m, n, k;
  };

  // integers: x is int8, too, and the product is of bfloat16.
  quantized_layer(const sizes& of, bool integers, const rank_of& me)
      : me_(me),
        integers_(integers),
        left_{of.m, of.k},
        right_{1, of.k, of.n},
        result_{of.m, of.n},
        scales_{1, of.n},
        rows_{of.m},
        x_(elements(of.m, of.k)),
        weight_(static_cast<std::size_t>(of.k * of.n)),
        scale_(static_cast<std::size_t>(of.n), bf16_of(1e-3f)),
        product_(elements(of.m, of.n)),
        y_(elements(of.m, of.n)),
        composed_(elements(of.m, of.n)) {
    std::uint32_t state = static_cast<std::uint32_t>(me.number) * 2654435761u + 1;
    const auto draw = [&state] { return (state = state * 1664525u + 1013904223u) >> 24; };
    for (std::int8_t& one : weight_) one = static_cast<std::int8_t>(draw());
    for (std::uint16_t& one : x_)
      one = integers ? static_cast<std::uint16_t>(draw() << 8 | draw())
                     : bf16_of(static_cast<float>(draw()) / 128 - 1);
  }

  void multiply() const { multiply_into(product_); }
  void reduce() const { reduce_from(product_, composed_); }
  void compose() const {
    multiply_into(composed_);
    reduce_from(composed_, composed_);
  }
  void call_fused() const {
    const velo_tensor x = left(), weight = right(2), scale = scale_view(1), y = whole(y_);
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me_.group, args.x = &x, args.weight = &weight, args.y = &y;
    (integers_ ? args.dequant_scale : args.scale) = &scale;
    require(velo_matmul_all_reduce(me_.stream, &args));
  }
  bool is_right() const {
    return std::memcmp(y_.data(), composed_.data(), y_.size() * sizeof y_[0]) == 0;
  }

 private:
  static constexpr velo_dtype bf16_{VELO_DTYPE_BFLOAT, 16, 1}, i8_{VELO_DTYPE_INT, 8, 1};

  static std::size_t elements(std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * columns);
  }
  static std::uint16_t bf16_of(float value) {
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    return static_cast<std::uint16_t>(word >> 16);
  }
  static velo_tensor view(const void* data, velo_dtype type, const std::int64_t* shape, int rank) {
    return {const_cast<void*>(data), {VELO_DEVICE_CPU, 0}, rank, type, shape, nullptr, 0};
  }
  velo_tensor left() const { return view(x_.data(), integers_ ? i8_ : bf16_, left_, 2); }
  velo_tensor right(int rank) const { return view(weight_.data(), i8_, right_ + 3 - rank, rank); }
  velo_tensor scale_view(int rank) const {
    return view(scale_.data(), bf16_, scales_ + 2 - rank, rank);
  }
  velo_tensor whole(const std::vector<std::uint16_t>& of) const {
    return view(of.data(), bf16_, result_, 2);
  }
  void multiply_into(const std::vector<std::uint16_t>& to) const {
    const velo_tensor x = left(), weight = right(integers_ ? 3 : 2),
                      scale = scale_view(integers_ ? 2 : 1), y = whole(to);
    if (!integers_) {
      velo_weight_quant_matmul_args args = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
      args.x = &x, args.weight = &weight, args.scale = &scale, args.y = &y;
      return require(velo_weight_quant_matmul(me_.stream, &args));
    }
    const velo_ints groups = {rows_, 1};
    velo_quant_grouped_matmul_args args = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
    args.x = &x, args.weight = &weight, args.scale = &scale, args.y = &y;
    args.group_list = &groups, args.output_dtype = VELO_QUANT_OUTPUT_BFLOAT16;
    require(velo_quant_grouped_matmul(me_.stream, &args));
  }
  void reduce_from(const std::vector<std::uint16_t>& from,
                   const std::vector<std::uint16_t>& to) const {
    const velo_tensor in = whole(from), out = whole(to);
    require(velo_group_all_reduce(me_.stream, me_.group, nullptr, &in, &out));
  }

  const rank_of& me_;
  const bool integers_;
  const std::int64_t left_[2], right_[3], result_[2], scales_[2], rows_[1];
  std::vector<std::uint16_t> x_;  // of int8 two to an element, the first half of it
  std::vector<std::int8_t> weight_;
  std::vector<std::uint16_t> scale_, product_, y_, composed_;
};

}  // namespace velo::bench
