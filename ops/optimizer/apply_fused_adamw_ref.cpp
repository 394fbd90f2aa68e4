// apply_fused_adamw in plain loops and double: the reference for the other kernels.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/optimizer/apply_fused_adamw.hpp"

namespace velo::ops::reference {
namespace {

using simd::to_float;

template <class Param, class Grad, class Moment>
void update(const void* slice) {
  const auto& s = *static_cast<const adamw_slice<Param, Grad, Moment>*>(slice);
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double g = static_cast<double>(to_float(s.grad[i])) * s.by.scale;
    const double m = s.by.beta1 * static_cast<double>(to_float(s.m[i])) + s.by.one_minus_beta1 * g;
    const double v = static_cast<float>(  // rounded as the tensor holds it
        s.by.beta2 * static_cast<double>(to_float(s.v[i])) + s.by.one_minus_beta2 * g * g);
    const double largest = s.v_max == nullptr ? v : to_float(s.v_max[i]);
    const double h = std::isnan(largest) || largest > v ? largest : v;  // a NaN of either stays
    const double p = s.master == nullptr ? to_float(s.param[i]) : s.master[i];
    const double next = s.by.decay * p - s.by.rate * m / (std::sqrt(h) * s.by.root + s.by.epsilon);
    simd::assign(s.m[i], m);
    simd::assign(s.v[i], v);
    if (s.v_max != nullptr) simd::assign(s.v_max[i], h);
    if (s.master != nullptr) simd::assign(s.master[i], next);
    simd::assign(s.param[i], s.master != nullptr ? s.master[i] : next);
  }
}

struct updates {
  template <class Param, class Grad, class Moment>
  static constexpr auto function = update<Param, Grad, Moment>;
};

}  // namespace

extern const apply_fused_adamw_kernels apply_fused_adamw = {
    decltype(apply_fused_adamw_kernels::update)::made<updates>()};

}  // namespace velo::ops::reference
