// Moves on vectors of sixteen words: squares of 16 x 16 turned in four rounds of shuffles.
#include "core/simd/avx512.hpp"
#include "ops/gemm/moves.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx512;

struct words {
  static constexpr int width = 16;
  __m512i v;

  static __mmask32 halves_mask(int n) { return static_cast<__mmask32>((uint64_t{1} << n) - 1); }

  static words zero() { return {_mm512_setzero_si512()}; }
  static words load(const uint32_t* p, int n) {
    return n == width ? words{_mm512_loadu_si512(p)}
                      : words{_mm512_maskz_loadu_epi32(simd::first(n), p)};
  }
  static words load_halves(const uint16_t* p, int n) {
    return n == 2 * width ? words{_mm512_loadu_si512(p)}
                          : words{_mm512_maskz_loadu_epi16(halves_mask(n), p)};
  }
  static __m512i spread(const uint16_t* p, int n) {  // n bf16, one to a word
    const __m256i halves = n == width ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                                      : _mm256_maskz_loadu_epi16(simd::first(n), p);
    return _mm512_cvtepu16_epi32(halves);
  }
  static words widen(const uint16_t* p, int n) { return {_mm512_slli_epi32(spread(p, n), 16)}; }
  static words pair(const uint16_t* p, const uint16_t* q, int n) {
    const __m512i even = spread(p, n);
    if (q == nullptr) return {even};
    return {_mm512_or_si512(even, _mm512_slli_epi32(spread(q, n), 16))};
  }
  void store(uint32_t* p) const { _mm512_storeu_si512(p, v); }
  void store_eights(uint32_t* p, int64_t stride) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + stride), _mm512_extracti64x4_epi64(v, 1));
  }

  static void turn(words (&r)[width]) {
    __m512i t[width];
#pragma GCC unroll 8
    for (int i = 0; i < width; i += 2) {  // words of neighboring rows side by side
      t[i] = _mm512_unpacklo_epi32(r[i].v, r[i + 1].v);
      t[i + 1] = _mm512_unpackhi_epi32(r[i].v, r[i + 1].v);
    }
    __m512i q[width];
#pragma GCC unroll 4
    for (int i = 0; i < width; i += 4) {  // four rows of one column in each quarter
      q[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      q[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      q[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      q[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {  // quarters to their columns
      const __m512i low = _mm512_shuffle_i32x4(q[c], q[4 + c], 0x88);
      const __m512i high = _mm512_shuffle_i32x4(q[8 + c], q[12 + c], 0x88);
      const __m512i low_odd = _mm512_shuffle_i32x4(q[c], q[4 + c], 0xdd);
      const __m512i high_odd = _mm512_shuffle_i32x4(q[8 + c], q[12 + c], 0xdd);
      r[c].v = _mm512_shuffle_i32x4(low, high, 0x88);
      r[8 + c].v = _mm512_shuffle_i32x4(low, high, 0xdd);
      r[4 + c].v = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
      r[12 + c].v = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
    }
  }

  // Columns 0 to 7 turned in the lower halves of vectors, 8 to 15 in the upper.
  static void store_eight(const words (&r)[8], uint32_t* p) {
    __m512i t[8], q[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {  // words of neighboring rows side by side
      t[i] = _mm512_unpacklo_epi32(r[i].v, r[i + 1].v);
      t[i + 1] = _mm512_unpackhi_epi32(r[i].v, r[i + 1].v);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {  // four rows of one column in each quarter
      q[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      q[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      q[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      q[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      words{_mm512_permutex2var_epi64(q[c], even, q[4 + c])}.store_eights(p + 8 * c, 64);
      words{_mm512_permutex2var_epi64(q[c], odd, q[4 + c])}.store_eights(p + 32 + 8 * c, 64);
    }
  }
};

#include "ops/gemm/moves.inl"

}  // namespace

extern const move_table moves_avx512 = {
    rows32,       rows16_wide,      pairs,
    turn32,       turn16_wide,      turn_pairs,
    micro_rows32, micro_rows16,     micro_rows16_wide,
    micro_turn32, micro_turn_pairs, micro_turn16_wide,
    strips16,     turn16,
};

}  // namespace velo::ops
