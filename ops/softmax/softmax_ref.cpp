// softmax in plain loops and double: the reference for the other kernels.
#include <algorithm>
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/softmax/softmax.hpp"

namespace velo::ops::reference {
namespace {

template <class T>
void forward(const softmax_row<T>& s) {
  const auto hidden = [&](std::int64_t i) { return s.mask != nullptr && s.mask[i] != 0; };
  const auto at = [&](std::int64_t i) {
    return static_cast<double>(simd::to_float(s.x[i])) * static_cast<double>(s.scale);
  };
  double largest = -HUGE_VAL, sum = 0;
  for (std::int64_t i = 0; i < s.n; ++i)
    if (!hidden(i)) largest = std::max(largest, at(i));
  for (std::int64_t i = 0; i < s.n; ++i)
    if (!hidden(i)) sum += std::exp(at(i) - largest);
  for (std::int64_t i = 0; i < s.n; ++i)
    simd::assign(s.y[i], hidden(i) ? 0 : std::exp(at(i) - largest) / sum);
}

template <class T>
void backward(const softmax_backward_row<T>& s) {
  double sum = 0;
  for (std::int64_t i = 0; i < s.n; ++i)
    sum += static_cast<double>(simd::to_float(s.dy[i])) * simd::to_float(s.y[i]);
  for (std::int64_t i = 0; i < s.n; ++i) {
    const double y = simd::to_float(s.y[i]);
    simd::assign(s.dx[i], static_cast<double>(s.scale) * y * (simd::to_float(s.dy[i]) - sum));
  }
}

}  // namespace

extern const softmax_kernels softmax = {
    {forward<float>, forward<simd::bf16>, forward<simd::f16>},
    {backward<float>, backward<simd::bf16>, backward<simd::f16>}};

}  // namespace velo::ops::reference
