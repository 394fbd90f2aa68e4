// Moves a word at a time, for processors without vectors; the plainest statement of what each move
// does.
#include "core/simd/scalar.hpp"
#include "ops/matmul/moves.hpp"

namespace velo::ops {
namespace {

#define VELO_INLINE static inline

namespace plain {  // the vector contract of core/simd for one float
constexpr int width = 1;
struct vec {
  float v;
};
VELO_INLINE vec operator+(vec a, vec b) {
  return {a.v + b.v};
}
template <class T>
VELO_INLINE vec load(const T* p) {
  return {velo::simd::to_float(*p)};
}
template <class T>
VELO_INLINE vec load(const T* p, int) {
  return load(p);
}
VELO_INLINE void store(float* p, vec a) {
  *p = a.v;
}
VELO_INLINE void store(velo::simd::bf16* p, vec a) {
  *p = velo::simd::to_bf16(a.v);
}
template <class T>
VELO_INLINE void store(T* p, vec a, int) {
  store(p, a);
}
}  // namespace plain
namespace simd = plain;

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
  static void turn(words (&)[width]) {}
};

#include "ops/matmul/moves.inl"

}  // namespace

extern const move_table moves_scalar = {rows32, rows16, rows16_wide, pairs,      strips16,
                                        turn32, turn16, turn16_wide, turn_pairs, finish};

}  // namespace velo::ops
