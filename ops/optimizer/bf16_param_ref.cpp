// bf16_param in plain loops: the reference for the other kernels.
#include <cmath>

#include "core/simd/scalar.hpp"
#include "ops/optimizer/bf16_param.hpp"

namespace velo::ops::reference {
namespace {

// The moment with a sign of its own, whatever its type.
void set_sign(float& v, bool negative) {
  v = std::copysign(v, negative ? -1.0f : 1.0f);
}
template <class Moment>
void set_sign(Moment& v, bool negative) {
  v.bits = static_cast<std::uint16_t>((v.bits & 0x7fff) | (negative ? 0x8000 : 0));
}
bool is_negative(float v) {
  return std::signbit(v);
}
template <class Moment>
bool is_negative(Moment v) {
  return v.bits >> 15 != 0;
}

template <class Moment>
void split(const bf16_split_slice<Moment>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const bool tie = s.v != nullptr && (s.master[i] & 0x1ffff) == 0x8000;
    if (s.v != nullptr) set_sign(s.v[i], !tie);
    const std::uint32_t rounded = s.master[i] + 0x8000 - (tie ? 1 : 0);
    s.param[i].bits = static_cast<std::uint16_t>(rounded >> 16);
    s.residual[2 * i] = static_cast<std::uint8_t>(rounded);
    s.residual[2 * i + 1] = static_cast<std::uint8_t>(rounded >> 8);
  }
}

template <class Moment>
void merge(const bf16_merge_slice<Moment>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) {
    const bool tie = s.v != nullptr && !is_negative(s.v[i]);
    if (s.v != nullptr) set_sign(s.v[i], false);
    const std::uint32_t lower = s.residual[2 * i] | std::uint32_t{s.residual[2 * i + 1]} << 8;
    s.master[i] = (std::uint32_t{s.param[i].bits} << 16 | lower) + (tie ? 1 : 0) - 0x8000;
  }
}

}  // namespace

extern const bf16_param_kernels bf16_param = {{split<float>, split<simd::bf16>, split<simd::f16>},
                                              {merge<float>, merge<simd::bf16>, merge<simd::f16>}};

}  // namespace velo::ops::reference
