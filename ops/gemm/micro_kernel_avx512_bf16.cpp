// The micro-kernel on the bf16 dot product: words are pairs, 8 x 3 vectors of float sums.
#include <string.h>

#include "core/simd/avx512_bf16.hpp"
#include "ops/gemm/micro_kernel.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx512_bf16;

constexpr int most_rows = 8, most_vectors = 3;

struct operand {
  __m512i v;

  static operand load(const uint32_t* p) { return {_mm512_loadu_si512(p)}; }
  static operand broadcast(const uint32_t* p) {  // A in place is not made of words
    int word;
    memcpy(&word, p, sizeof word);
    return {_mm512_set1_epi32(word)};
  }
};

VELO_INLINE simd::vec multiply_add(simd::vec sums, operand b, operand a) {
  return {
      _mm512_dpbf16_ps(sums.v, reinterpret_cast<__m512bh>(b.v), reinterpret_cast<__m512bh>(a.v))};
}

#include "ops/gemm/micro_kernel.inl"

}  // namespace

void micro_bf16_avx512_bf16(const micro_args& x) {
  multiply_micro_panel(x);
}

}  // namespace velo::ops
