// The micro-kernel over four floats, for processors with no more than x86-64 has.
#include <string.h>

#include "core/simd/scalar.hpp"
#include "ops/gemm/micro_kernel.hpp"

namespace velo::ops {
namespace {

#define VELO_INLINE static inline

namespace plain {  // the vector contract of core/simd for four floats in what every x86-64 has
constexpr int width = 4;
struct vec {
  using lanes = float __attribute__((vector_size(16)));
  lanes v;
};
VELO_INLINE vec zero() {
  return {vec::lanes{}};
}
VELO_INLINE vec operator+(vec a, vec b) {
  return {a.v + b.v};
}
template <class T>
VELO_INLINE vec load(const T* p, int n = width) {
  vec x{};
  for (int i = 0; i < n; ++i) x.v[i] = velo::simd::to_float(p[i]);
  return x;
}
VELO_INLINE void store(float* p, vec a, int n = width) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
VELO_INLINE void store(velo::simd::bf16* p, vec a, int n = width) {
  for (int i = 0; i < n; ++i) p[i] = velo::simd::to_bf16(a.v[i]);
}
}  // namespace plain
namespace simd = plain;

constexpr int most_rows = 4, most_vectors = 2;

struct operand {
  simd::vec v;

  static operand load(const uint32_t* p) {
    operand x;
    memcpy(&x.v, p, sizeof x.v);
    return x;
  }
  static operand broadcast(const uint32_t* p) {
    float one;
    memcpy(&one, p, sizeof one);
    return {{simd::vec::lanes{one, one, one, one}}};
  }
};

VELO_INLINE simd::vec multiply_add(simd::vec sums, operand b, operand a) {
  return {sums.v + a.v.v * b.v.v};
}

#include "ops/gemm/micro_kernel.inl"

}  // namespace

void micro_f32_scalar(const micro_args& x) {
  multiply_micro_panel(x);
}

}  // namespace velo::ops
