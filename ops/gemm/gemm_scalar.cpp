// The engine's kernels for processors with no more than x86-64 has: four floats at a time, words one
// at a time, which is the plainest statement of what each move does.
#include "core/simd/scalar.hpp"
#include "ops/gemm/gemm_kernels.hpp"

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
VELO_INLINE vec set(float x) {
  return {vec::lanes{x, x, x, x}};
}
VELO_INLINE vec fma(vec a, vec b, vec c) {
  return {a.v * b.v + c.v};
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
struct words {
  static constexpr int width = 1;
  uint32_t v;

  static words zero() { return {0}; }
  static words load(const uint32_t* p, int) { return {*p}; }
  static words load_halves(const uint16_t* p, int n) { return pair(p, n > 1 ? p + 1 : nullptr, 1); }
  static words widen(const uint16_t* p, int) { return {static_cast<uint32_t>(*p) << 16}; }
  static words pair(const uint16_t* p, const uint16_t* q, int) {
    return {*p | (q == nullptr ? 0 : static_cast<uint32_t>(*q) << 16)};
  }
  void store(uint32_t* p) const { *p = v; }
  void store_eights(uint32_t* p, int64_t) const { store(p); }
  static void store_eight(const words (&r)[8], uint32_t* p) {
    for (int i = 0; i < 8; ++i) p[i] = r[i].v;
  }
  static void turn(words (&)[width]) {}
};

inline constexpr int sum_rows = 4, sum_vectors = 2;
using dot_operand = void;
}  // namespace plain
namespace simd = plain;

#include "ops/gemm/gemm_kernels.inl"

}  // namespace

extern const gemm_kernels gemm_kernels_scalar = kernels_with(nullptr);

}  // namespace velo::ops
