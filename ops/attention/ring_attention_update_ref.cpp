// ring_attention_update in plain loops: the reference for the other kernels.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/attention/ring_attention_update.hpp"

namespace velo::ops::reference {
namespace {

double weight(double x, double m) {
  return x == m ? 1 : std::exp(x - m);
}

template <class T>
void merge(const ring_slice<T>& s) {
  const ring_statistics& x = s.statistics;
  for (std::int64_t row = 0; row < s.tokens * s.heads; ++row) {
    const std::int64_t token = row / s.heads, head = row % s.heads;
    const std::int64_t at = token * x.token + head * x.head;
    const auto prev_max = static_cast<double>(x.prev_max[at]);
    const auto cur_max = static_cast<double>(x.cur_max[at]);
    const double max = prev_max > cur_max || std::isnan(prev_max) ? prev_max : cur_max;
    const double prev = static_cast<double>(x.prev_sum[at]) * weight(prev_max, max);
    const double cur = static_cast<double>(x.cur_sum[at]) * weight(cur_max, max);
    const double sum = prev + cur, by = sum == 0 ? 0 : prev / sum, with = sum == 0 ? 0 : cur / sum;
    for (int copy = 0; copy < x.copies; ++copy) {
      x.max[at + copy] = static_cast<float>(max);
      x.sum[at + copy] = static_cast<float>(sum);
    }
    const std::int64_t first = token * s.token + head * s.d;
    for (std::int64_t j = first; j < first + s.d; ++j) {
      simd::assign(s.out[j], static_cast<double>(simd::to_float(s.prev[j])) * by +
                                 static_cast<double>(simd::to_float(s.cur[j])) * with);
    }
  }
}

}  // namespace

extern const ring_attention_update_kernels ring_attention_update = {
    {merge<float>, merge<simd::bf16>, merge<simd::f16>}};

}  // namespace velo::ops::reference
