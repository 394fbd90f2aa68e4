// add in plain loops: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/elementwise/add.hpp"

namespace velo::ops::reference {
namespace {

template <class T>
void sum(const add_slice<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    simd::assign(s.y[i], static_cast<double>(simd::to_float(s.a[i])) + simd::to_float(s.b[i]));
  }
}

}  // namespace

extern const add_kernels add = {{sum<float>, sum<simd::bf16>, sum<simd::f16>}};

}  // namespace velo::ops::reference
