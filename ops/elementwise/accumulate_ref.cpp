// accumulate in plain loops and double: the reference for the other kernels.
#include "core/simd/scalar.hpp"
#include "ops/elementwise/accumulate.hpp"

namespace velo::ops::reference {
namespace {

template <class From, class To>
void add(const accumulate_slice<From, To>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double product = static_cast<double>(s.alpha) * simd::to_float(s.x[i]);
    simd::assign(s.y[i], simd::to_float(s.y[i]) + product);
  }
}

template <class From>
constexpr accumulate_from<From> adds = {add<From, float>, add<From, simd::bf16>,
                                        add<From, simd::f16>};

}  // namespace

extern const accumulate_kernels accumulate = {adds<float>, adds<simd::bf16>, adds<simd::f16>};

}  // namespace velo::ops::reference
