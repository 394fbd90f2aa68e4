// The micro-kernel for words that are floats, with the fused multiply-add; included by the thin
// files of AVX2 and AVX-512, which name `simd`, `most_rows` and `most_vectors`.

struct operand {
  simd::vec v;

  static operand load(const uint32_t* p) { return {simd::load(reinterpret_cast<const float*>(p))}; }
  static operand broadcast(const uint32_t* p) {
    return {simd::set(*reinterpret_cast<const float*>(p))};
  }
};

VELO_INLINE simd::vec multiply_add(simd::vec sums, operand b, operand a) {
  return simd::fma(a.v, b.v, sums);
}

#include "ops/gemm/micro_kernel.inl"
