// Moves on vectors of eight words: squares of 8 x 8 turned in three rounds of shuffles.
#include "core/simd/avx2.hpp"
#include "ops/gemm/moves.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx2;

struct words {
  static constexpr int width = 8;
  __m256i v;

  // The first n halves of a vector, by way of a copy: AVX2 masks whole words only.
  static __m256i some_halves(const uint16_t* p, int n) {
    uint16_t copy[2 * width] = {};
    for (int i = 0; i < n; ++i) copy[i] = p[i];
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(copy));
  }
  static words zero() { return {_mm256_setzero_si256()}; }
  static words load(const uint32_t* p, int n) {
    return n == width
               ? words{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}
               : words{_mm256_maskload_epi32(reinterpret_cast<const int*>(p), simd::first(n))};
  }
  static words load_halves(const uint16_t* p, int n) {
    return n == 2 * width ? words{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}
                          : words{some_halves(p, n)};
  }
  static __m256i spread(const uint16_t* p, int n) {  // n bf16, one to a word
    return _mm256_cvtepu16_epi32(n == width ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
                                            : _mm256_castsi256_si128(some_halves(p, n)));
  }
  static words widen(const uint16_t* p, int n) { return {_mm256_slli_epi32(spread(p, n), 16)}; }
  static words pair(const uint16_t* p, const uint16_t* q, int n) {
    const __m256i even = spread(p, n);
    if (q == nullptr) return {even};
    return {_mm256_or_si256(even, _mm256_slli_epi32(spread(q, n), 16))};
  }
  void store(uint32_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  void store_eights(uint32_t* p, int64_t) const { store(p); }

  static void turn(words (&r)[width]) {
    __m256i t[width];
#pragma GCC unroll 4
    for (int i = 0; i < width; i += 2) {
      t[i] = _mm256_unpacklo_epi32(r[i].v, r[i + 1].v);
      t[i + 1] = _mm256_unpackhi_epi32(r[i].v, r[i + 1].v);
    }
    __m256i q[width];
#pragma GCC unroll 2
    for (int i = 0; i < width; i += 4) {
      q[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
      q[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
      q[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
      q[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      r[c].v = _mm256_permute2x128_si256(q[c], q[4 + c], 0x20);
      r[4 + c].v = _mm256_permute2x128_si256(q[c], q[4 + c], 0x31);
    }
  }

  static void store_eight(words (&r)[8], uint32_t* p) {
    turn(r);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) r[i].store(p + 8 * i);
  }
};

#include "ops/gemm/moves.inl"

}  // namespace

extern const move_table moves_avx2 = {
    rows32,       rows16_wide,      pairs,
    turn32,       turn16_wide,      turn_pairs,
    micro_rows32, micro_rows16,     micro_rows16_wide,
    micro_turn32, micro_turn_pairs, micro_turn16_wide,
    strips16,     turn16,
};

}  // namespace velo::ops
