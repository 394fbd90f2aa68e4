// apply_fused_adamw in plain loops and double: the reference for the other kernels.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/optimizer/apply_fused_adamw.hpp"

namespace velo::ops::reference {
namespace {

using simd::to_float;

// The element of v_max, of one of three types.
double largest_at(const void* v_max, adamw_element type, std::int64_t i) {
  return type == adamw_element::f32    ? static_cast<const float*>(v_max)[i]
         : type == adamw_element::bf16 ? to_float(static_cast<const simd::bf16*>(v_max)[i])
                                       : to_float(static_cast<const simd::f16*>(v_max)[i]);
}
void set_largest(void* v_max, adamw_element type, std::int64_t i, double h) {
  if (type == adamw_element::f32) {
    simd::assign(static_cast<float*>(v_max)[i], h);
  } else if (type == adamw_element::bf16) {
    simd::assign(static_cast<simd::bf16*>(v_max)[i], h);
  } else {
    simd::assign(static_cast<simd::f16*>(v_max)[i], h);
  }
}

template <class Param, class Grad, class Moment>
void update(const adamw_slice& s) {
  auto* param = static_cast<Param*>(s.param);
  const auto* grad = static_cast<const Grad*>(s.grad);
  auto *first = static_cast<Moment*>(s.m), *squares = static_cast<Moment*>(s.v);
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double p = s.master == nullptr ? to_float(param[i]) : s.master[i];
    const double decay = s.by.l2 == 0 ? 0 : s.by.l2 * p;
    const double g = static_cast<double>(to_float(grad[i])) * s.by.scale + decay;
    const double m =
        s.by.beta1 * static_cast<double>(to_float(first[i])) + s.by.one_minus_beta1 * g;
    const double v = static_cast<float>(  // rounded as the tensor holds it
        s.by.beta2 * static_cast<double>(to_float(squares[i])) + s.by.one_minus_beta2 * g * g);
    const double largest = s.v_max == nullptr ? v : largest_at(s.v_max, s.v_max_type, i);
    const double h = std::isnan(largest) || largest > v ? largest : v;  // a NaN of either stays
    const double next = s.by.decay * p - s.by.rate * m / (std::sqrt(h) * s.by.root + s.by.epsilon);
    simd::assign(first[i], m);
    simd::assign(squares[i], v);
    if (s.v_max != nullptr) set_largest(s.v_max, s.v_max_type, i, h);
    if (s.master != nullptr) simd::assign(s.master[i], next);
    simd::assign(param[i], s.master != nullptr ? s.master[i] : next);
    if (s.ema != nullptr)
      simd::assign(s.ema[i],
                   s.by.average * static_cast<double>(s.ema[i]) + s.by.one_minus_average * next);
  }
}

struct updates {
  template <class Param, class Grad, class Moment>
  static constexpr auto function = update<Param, Grad, Moment>;
};

}  // namespace

extern const apply_fused_adamw_kernels apply_fused_adamw = {
    decltype(apply_fused_adamw_kernels::update)::of_types<updates>()};

}  // namespace velo::ops::reference
