// dropout in plain loops: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/elementwise/dropout.hpp"

namespace velo::ops::reference {
namespace {

template <class T>
void drop(const dropout_slice<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const std::uint64_t index = s.first + static_cast<std::uint64_t>(i);
    const double by = simd::dropout_multiplier(*s.rule, index);
    simd::assign(s.y[i], simd::to_float(s.x[i]) * by);
    if (s.mask != nullptr) s.mask[i] = by != 0;
  }
}

}  // namespace

extern const dropout_kernels dropout = {{drop<float>, drop<simd::bf16>, drop<simd::f16>}};

}  // namespace velo::ops::reference
