// reduce_max_abs in plain loops: the reference for the other kernels.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/elementwise/reduce_max_abs.hpp"

namespace velo::ops::reference {
namespace {

// The larger, NaN if either is.
float larger(float a, float b) {
  return std::isnan(a) || a > b ? a : b;
}

template <class T>
float run(const max_abs_run<T>& s) {
  float largest = 0;
  for (std::int64_t i = 0; i < s.n; ++i)
    largest = larger(largest, std::abs(simd::to_float(s.x[i])));
  return largest;
}

template <class T>
void columns(const max_abs_row<T>& s) {
  for (std::int64_t i = 0; i < s.n; ++i)
    s.largest[i] = larger(s.largest[i], std::abs(simd::to_float(s.x[i])));
}

}  // namespace

extern const reduce_max_abs_kernels reduce_max_abs = {
    {run<float>, run<simd::bf16>, run<simd::f16>},
    {columns<float>, columns<simd::bf16>, columns<simd::f16>}};

}  // namespace velo::ops::reference
