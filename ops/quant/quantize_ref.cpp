// quantize in plain loops: the reference for the other kernels.
#include "ops/quant/quantize.hpp"

#include <algorithm>
#include <cmath>

#include "core/simd/scalar.hpp"

namespace velo::ops::reference {
namespace {

template <class T>
void run(const quantized_run<T>& s) {
  const float limit = s.int4 ? 7.0f : 127.0f;
  for (std::int64_t i = 0; i < s.n; ++i) {
    const float x = simd::to_float(s.x[i]) / s.scale[s.each ? i : 0];
    const int q =
        std::isnan(x) ? 0 : static_cast<int>(std::nearbyint(std::clamp(x, -limit, limit)));
    if (!s.int4) {
      static_cast<std::int8_t*>(s.y)[i] = static_cast<std::int8_t>(q);
      continue;
    }
    std::uint8_t& pair = static_cast<std::uint8_t*>(s.y)[i / 2];
    pair = static_cast<std::uint8_t>(i % 2 == 0 ? q & 0xf : (pair & 0xf) | (q & 0xf) << 4);
  }
}

}  // namespace

extern const quantize_kernels quantize = {&reduce_max_abs,
                                          {run<float>, run<simd::bf16>, run<simd::f16>}};

}  // namespace velo::ops::reference
