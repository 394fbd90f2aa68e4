// Moves a word at a time, for processors without vectors; the plainest statement of what each move
// does.
#include "ops/gemm/moves.hpp"

namespace velo::ops {
namespace {

#define VELO_INLINE static inline

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

#include "ops/gemm/moves.inl"

}  // namespace

extern const move_table moves_scalar = {
    rows32,       rows16_wide,      pairs,
    turn32,       turn16_wide,      turn_pairs,
    micro_rows32, micro_rows16,     micro_rows16_wide,
    micro_turn32, micro_turn_pairs, micro_turn16_wide,
    strips16,     turn16,
};

}  // namespace velo::ops
