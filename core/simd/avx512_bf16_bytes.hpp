// avx512_bf16.hpp for integers of 8 and 4 bits: avx512_bytes.hpp with the dot products of VNNI.
#pragma once

#include "core/simd/avx512_bf16.hpp"
#include "core/simd/avx512_bytes.hpp"

namespace velo::simd::avx512_bf16 {

VELO_INLINE void store(int8_t* p, vec a, int n) {
  avx512::store(p, a, n);
}

// Quads of bytes, those of the left side unsigned.
struct quad_products {
  using words = byte_quads;
  static constexpr uint8_t zero_byte = 128;
  static __attribute__((always_inline)) __m512i add(__m512i sums, __m512i a, __m512i b) {
    return _mm512_dpbusd_epi32(sums, a, b);
  }
};
using ints = avx512::int_sums<quad_products>;

}  // namespace velo::simd::avx512_bf16
