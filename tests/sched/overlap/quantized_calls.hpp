// Calls of quantized products next to a sum over ranks: a weight of int8 or int4 with what double
// says of it, and int8 by int8 with the calls apart. The operands of a rank follow from its number.
#pragma once

#include <cmath>
#include <memory>

#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"

namespace velo::testing::quantized {

using sizes = std::vector<std::int64_t>;
constexpr velo_dtype u64{VELO_DTYPE_UINT, 64, 1};

// Integers of a weight, all of int8, or two numbers of int4 in a byte.
inline std::vector<std::uint8_t> drawn_bytes(std::int64_t count, int seed) {
  std::vector<std::uint8_t> all(at(count));
  cheap_random draw(static_cast<std::uint32_t>(seed) * 2654435761u + 7);
  for (std::uint8_t& one : all) one = static_cast<std::uint8_t>(draw() >> 13);
  return all;
}

// Products of two ranks or more that are multiplied and summed in any precision, and the call that
// norms a sum, from the same fields.
template <class Args>
velo_status normed(velo_stream stream, const Args& by, const matrix& residual, const matrix& gamma,
                   const matrix& y, const matrix& norm) {
  const velo_tensor other = residual.view(), gain = gamma.view(), z = y.view(), out = norm.view();
  velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
  args.group = by.group, args.x = by.x, args.weight = by.weight, args.scale = by.scale;
  args.offset = by.offset, args.group_size = by.group_size, args.dequant_scale = by.dequant_scale;
  args.transpose_weight = by.transpose_weight;
  args.residual = &other, args.gamma = &gain, args.y = &z, args.norm_out = &out;
  args.epsilon = 1e-5;
  return velo_matmul_all_reduce_add_rms_norm(stream, &args);
}

// The same of the calls apart: a sum without a bias in `norm`, and dropout_add_rms_norm over it.
template <class Args>
velo_status norm_apart(velo_stream stream, Args by, const matrix& residual, const matrix& gamma,
                       const matrix& y, const matrix& norm) {
  const velo_tensor other = residual.view(), gain = gamma.view(), z = y.view(), out = norm.view();
  by.y = &out, by.bias = nullptr;
  const velo_status done = velo_matmul_all_reduce(stream, &by);
  velo_dropout_add_rms_norm_args then = VELO_DROPOUT_ADD_RMS_NORM_ARGS_INIT;
  then.x = then.y = &out, then.residual = &other, then.gamma = &gain, then.pre_norm = &z,
  then.epsilon = 1e-5;
  return done == VELO_OK ? velo_dropout_add_rms_norm(stream, &then) : done;
}

// ---- a quantized weight ----

struct weight_form {
  const char* name;
  sizes scale;              // shape
  std::int64_t group_size;  // the field
  std::int64_t group;       // rows of k that share a scale
  bool offset = false, int4 = false, transposed = false;
};

constexpr std::int64_t depth = 144, columns = 56;
const weight_form weight_forms[] = {
    {"one scale", {1}, 0, depth},
    {"one scale and offset", {1}, 0, depth, true, false, true},
    {"a scale a column", {columns}, 0, depth, true, true},
    {"a row of scales", {1, columns}, 0, depth, false, false, true},
    {"short last group", {5, columns}, 32, 32},
    {"short last group, offset", {5, columns}, 32, 32, true, false, true},
    {"short last group of int4", {2, columns}, 128, 128, true, true},
    {"short last group of int4, turned", {3, columns}, 64, 64, false, true, true},
};

class weight_call {
 public:
  weight_call(const weight_form& form, velo_dtype dtype, std::int64_t m, int rank)
      : form_(form),
        stored_{form.transposed ? columns : depth, form.transposed ? depth : columns},
        integers_(drawn_bytes(depth * columns, rank)),
        x_(dtype, {m, depth}, 5 * rank),
        scale_(rank % 2 == 0 ? f32 : dtype, form.scale, 5 * rank + 1),
        offset_(rank % 2 == 0 ? f32 : dtype, form.scale, 5 * rank + 2),
        bias_(f32, {1, columns}, 99),
        residual_(dtype, {m, columns}, 98),
        gamma_(dtype, {columns}, 97),
        y(dtype, {m, columns}),
        z(dtype, {m, columns}),
        norm(dtype, {m, columns}),
        z_apart(dtype, {m, columns}),
        norm_apart_(dtype, {m, columns}) {
    if (form.int4) stored_[1] /= 2;
  }

  // All calls of a rank.
  velo_status run(const rank_of_group& me) const {
    const velo_tensor x = x_.view(), out = y.view(), bias = bias_.view(), scale = scale_.view(),
                      offset = offset_.view(),
                      weight = view_of(integers_.data(), form_.int4 ? u8 : i8, stored_);
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me.group, args.x = &x, args.weight = &weight, args.y = &out, args.bias = &bias;
    args.scale = &scale, args.offset = form_.offset ? &offset : nullptr;
    args.group_size = form_.group_size, args.transpose_weight = form_.transposed;
    velo_status done = velo_matmul_all_reduce(me.stream, &args);
    if (done == VELO_OK) done = normed(me.stream, args, residual_, gamma_, z, norm);
    if (done == VELO_OK)
      done = norm_apart(me.stream, args, residual_, gamma_, z_apart, norm_apart_);
    return done;
  }
  bool norm_has_bits_of_calls_apart() const {
    return z.same_bits(z_apart) && norm.same_bits(norm_apart_);
  }
  bool borders_kept() const { return y.borders_kept() && norm.borders_kept(); }

  // The exact product, and the sum of its terms' magnitudes.
  std::pair<double, double> product(std::int64_t row, std::int64_t column) const {
    double sum = 0, size = 0;
    for (std::int64_t i = 0; i < depth; ++i) {
      const double term = x_[row * depth + i] * weight_at(i, column);
      sum += term, size += std::abs(term);
    }
    return {sum, size};
  }
  double bias(std::int64_t column) const { return bias_[column]; }

 private:
  double weight_at(std::int64_t i, std::int64_t column) const {
    const std::int64_t element = form_.transposed ? column * depth + i : i * columns + column;
    const std::uint8_t byte = integers_[at(form_.int4 ? element / 2 : element)];
    const int four = byte >> (element % 2 * 4) & 0xf;
    const double integer = form_.int4 ? four - (four & 8) * 2 : static_cast<std::int8_t>(byte);
    const std::int64_t at_scale = scale_.count() == 1 ? 0 : i / form_.group * columns + column;
    return (integer + (form_.offset ? offset_[at_scale] : 0)) * scale_[at_scale];
  }

  const weight_form& form_;
  std::int64_t stored_[2];
  std::vector<std::uint8_t> integers_;
  matrix x_, scale_, offset_, bias_, residual_, gamma_;

 public:
  matrix y, z, norm, z_apart, norm_apart_;
};

using weight_calls = std::vector<std::unique_ptr<weight_call>>;
inline weight_calls make_calls(const weight_form& form, velo_dtype dtype, std::int64_t m,
                               int ranks) {
  weight_calls all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<weight_call>(form, dtype, m, rank));
  return all;
}

// Whether a rank's sums are the exact ones: products are rounded, then their sum, then the sum with
// the bias.
inline void check_sums(const weight_calls& all, const weight_call& one, std::int64_t m,
                       double ulp) {
  for (std::int64_t i = 0; i < m * columns; ++i) {
    double sum = 0, size = 0, rounded = 0;
    for (const auto& rank : all) {
      const auto [product, terms] = rank->product(i / columns, i % columns);
      sum += product, size += terms, rounded += std::abs(product);
    }
    const double exact = sum + one.bias(i % columns);
    const double bound = ulp * (rounded + std::abs(sum) + std::abs(exact)) + size * 0x1p-21;
    if (!(std::abs(one.y[i] - exact) <= bound))
      FAIL("element " << i << ": got " << one.y[i] << ", exactly " << exact);
  }
}

// ---- int8 by int8 ----

struct integer_form {
  const char* name;
  velo_dtype scale;
  sizes shape;
  std::int64_t output;
  velo_dtype y;
  bool per_token = false, transposed = false;
};

constexpr std::int64_t integer_depth = 70;
const integer_form integer_forms[] = {
    {"float32 scales", f32, {columns}, VELO_DEQUANTIZED_BY_SCALE, f16, true},
    {"one float32 scale", f32, {1}, VELO_DEQUANTIZED_FLOAT32, f32, true, true},
    {"a row of bfloat16 scales", bf16, {1, columns}, VELO_DEQUANTIZED_BY_SCALE, bf16},
    {"float32 scales of bfloat16", f32, {columns}, VELO_DEQUANTIZED_BFLOAT16, bf16},
    {"packed scales", i64, {columns}, VELO_DEQUANTIZED_FLOAT16, f16, false, true},
    {"one packed scale", u64, {1}, VELO_DEQUANTIZED_BY_SCALE, f16, true},
};

class integer_call {
 public:
  integer_call(const integer_form& form, std::int64_t m, int rank)
      : form_(form),
        m_(m),
        x_(drawn_bytes(m * integer_depth, 3 * rank)),
        weight_(drawn_bytes(columns * integer_depth, 3 * rank + 1)),
        bias_(at(columns)),
        scale_(form.scale.bits == 64 ? f32 : form.scale, form.shape, 8),
        spread_(form.scale.bits == 64 ? f32 : form.scale, {1, columns}),
        per_token_(f32, {m}, 9),
        residual_(form.y, {m, columns}, 98),
        gamma_(form.y, {columns}, 97),
        y(form.y, {m, columns}),
        apart(form.y, {m, columns}),
        z(form.y, {m, columns}),
        norm(form.y, {m, columns}),
        z_apart(form.y, {m, columns}),
        norm_apart_(form.y, {m, columns}) {
    for (std::int64_t j = 0; j < columns; ++j) {
      bias_[at(j)] = static_cast<std::int32_t>(j * 331 - 9000);
      const std::int64_t from = scale_.count() == 1 ? 0 : j;
      if (scale_.count() > j) scale_.set(j, std::abs(scale_[j]) * 1e-4 + 1e-5);
      spread_.set(j, scale_[from]);
      const auto low = static_cast<float>(scale_[from]);
      std::uint32_t word;
      std::memcpy(&word, &low, sizeof word);
      packed_.push_back(0xabcdef0000000000u | word);  // only the low half counts
    }
  }

  velo_status run(const rank_of_group& me) const {
    const std::int64_t stored[] = {form_.transposed ? columns : integer_depth,
                                   form_.transposed ? integer_depth : columns},
                       left[] = {m_, integer_depth}, width[] = {columns};
    const velo_tensor x = view_of(x_.data(), i8, left),
                      weight = view_of(weight_.data(), i8, stored),
                      bias = view_of(bias_.data(), i32, width), out = y.view(),
                      per_token = per_token_.view(), scale = scale_view();
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me.group, args.x = &x, args.weight = &weight, args.y = &out, args.bias = &bias;
    args.dequant_scale = &scale, args.per_token_scale = form_.per_token ? &per_token : nullptr;
    args.output_dtype = form_.output, args.transpose_weight = form_.transposed;
    velo_status done = velo_matmul_all_reduce(me.stream, &args);
    if (done == VELO_OK) done = run_apart(me, args);
    args.per_token_scale = nullptr;
    if (done == VELO_OK) done = normed(me.stream, args, residual_, gamma_, z, norm);
    if (done == VELO_OK)
      done = norm_apart(me.stream, args, residual_, gamma_, z_apart, norm_apart_);
    return done;
  }
  // The norm again, with y in place of the residual, and without a bias as before.
  velo_status run_in_place(const rank_of_group& me, const matrix& sum, const matrix& out) const {
    const std::int64_t stored[] = {form_.transposed ? columns : integer_depth,
                                   form_.transposed ? integer_depth : columns},
                       left[] = {m_, integer_depth};
    const velo_tensor x = view_of(x_.data(), i8, left),
                      weight = view_of(weight_.data(), i8, stored), scale = scale_view();
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me.group, args.x = &x, args.weight = &weight, args.dequant_scale = &scale;
    args.transpose_weight = form_.transposed;
    return normed(me.stream, args, sum, gamma_, sum, out);
  }
  bool has_bits_of_calls_apart() const {
    return y.same_bits(apart) && z.same_bits(z_apart) && norm.same_bits(norm_apart_);
  }
  bool borders_kept() const { return y.borders_kept() && norm.borders_kept(); }

 private:
  velo_tensor scale_view() const {
    velo_tensor all = scale_.view();
    if (form_.scale.bits == 64) {
      all.dtype = form_.scale;
      all.data = const_cast<std::uint64_t*>(packed_.data());
    }
    return all;
  }
  velo_status run_apart(const rank_of_group& me, const velo_matmul_all_reduce_args& of) const {
    const std::int64_t stored[] = {1, of.weight->shape[0], of.weight->shape[1]},
                       row[] = {1, columns};
    const std::int64_t list[] = {m_};
    const velo_ints groups = {list, 1};
    const velo_tensor weight = view_of(weight_.data(), i8, stored), scale = spread_.view(),
                      bias = view_of(bias_.data(), i32, row), out = apart.view();
    velo_quant_grouped_matmul_args args = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
    args.x = of.x, args.weight = &weight, args.scale = &scale, args.bias = &bias;
    args.per_token_scale = of.per_token_scale, args.y = &out, args.group_list = &groups;
    args.transpose_weight = of.transpose_weight;
    args.output_dtype = form_.y.bits == 32                  ? VELO_QUANT_OUTPUT_FLOAT32
                        : form_.y.code == VELO_DTYPE_BFLOAT ? VELO_QUANT_OUTPUT_BFLOAT16
                                                            : VELO_QUANT_OUTPUT_FLOAT16;
    const velo_status done = velo_quant_grouped_matmul(me.stream, &args);
    if (done != VELO_OK || me.group == nullptr) return done;
    return velo_group_all_reduce(me.stream, me.group, nullptr, &out, &out);
  }

  const integer_form& form_;
  const std::int64_t m_;
  std::vector<std::uint8_t> x_, weight_;
  std::vector<std::int32_t> bias_;
  std::vector<std::uint64_t> packed_;
  matrix scale_, spread_, per_token_, residual_, gamma_;

 public:
  matrix y, apart, z, norm, z_apart, norm_apart_;
};

}  // namespace velo::testing::quantized
