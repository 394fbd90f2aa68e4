// The activation functions and their slopes in double, the attributes that choose them, and calls
// of them by name.
#pragma once

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/operator_testing.hpp"

namespace velo::testing {

struct activation_truth {
  const char* op;     // without a gate
  const char* gated;  // nullptr: none
  std::int64_t approximate;
  double (*value)(double);
  double (*slope)(double);
};

inline double silu_of(double x) {
  return x / (1 + std::exp(-x));
}
// The slope of x * sigmoid(v): s + x s (1 - s) v', where x s (1 - s) is x / (2 cosh(v / 2))^2.
inline double sigmoid_slope(double x, double v, double dv) {
  const double twice = 2 * std::cosh(v / 2);
  return 1 / (1 + std::exp(-v)) + (std::isinf(twice) ? 0 : x * dv / twice / twice);
}
inline double fast_gelu_of(double x) {
  return x / (1 + std::exp(-1.702 * x));
}
inline double tanh_argument(double x) {
  return 0.7978845608 * (x + 0.044715 * x * x * x);
}
inline double gelu_tanh_of(double x) {  // 1 + tanh(t) without its cancellation
  return x / (1 + std::exp(-2 * tanh_argument(x)));
}
inline double gelu_of(double x) {
  return x * std::erfc(-x / std::sqrt(2.0)) / 2;
}
inline double gelu_slope(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2 +
         x * std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
}

inline const activation_truth activations[] = {
    {"silu", "swiglu", 0, silu_of, [](double x) { return sigmoid_slope(x, x, 1); }},
    {"gelu", "geglu", 0, gelu_of, gelu_slope},
    {"gelu", "geglu", 1, gelu_tanh_of,
     [](double x) {
       return sigmoid_slope(x, 2 * tanh_argument(x), 2 * 0.7978845608 * (1 + 0.134145 * x * x));
     }},
    {"fast_gelu", nullptr, 0, fast_gelu_of,
     [](double x) { return sigmoid_slope(x, 1.702 * x, 1.702); }},
    {"relu", "reglu", 0, [](double x) { return x <= 0 ? 0 : x; },
     [](double x) { return x <= 0 ? 0.0 : 1.0; }}};

using named_tensor = std::pair<const char*, const velo_tensor*>;

// Runs an operator by name, with approximate where it has that field.
inline void run_activation(session& s, const std::string& op, const activation_truth& f,
                           std::initializer_list<named_tensor> tensors, std::int64_t dim = -1) {
  std::vector<velo_named_value> values;
  const auto add = [&](const char* name, velo_value_kind kind) {
    values.push_back({});
    values.back().name = name;
    values.back().value.kind = kind;
    return &values.back().value.as;
  };
  for (const named_tensor& t : tensors) add(t.first, VELO_VALUE_TENSOR)->tensor = t.second;
  if (f.gated != nullptr && op.rfind(f.gated, 0) == 0) add("dim", VELO_VALUE_INT)->i = dim;
  if (std::string(f.op) == "gelu") add("approximate", VELO_VALUE_INT)->i = f.approximate;
  VELO_RUN(velo_op_call(s.stream(), op.c_str(), values.data(),
                        static_cast<std::int64_t>(values.size())));
}

// The bound that the spec states for one of an operator's outputs.
template <class T>
double spec_bound(const std::string& op, double exact, double largest) {
  ops::op_id id{};
  REQUIRE(ops::find_op(op.c_str(), id));
  const ops::error_bound b = ops::bound_of(ops::spec_of(id), dtype_of<T>(), false);
  const double denormal = std::is_same_v<T, simd::f16>    ? 0x1p-25
                          : std::is_same_v<T, simd::bf16> ? 0x1p-133
                                                          : 0x1p-149;
  return b.absolute + b.relative * std::abs(exact) + b.largest * largest + denormal;
}

}  // namespace velo::testing
