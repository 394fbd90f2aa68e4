// How matrices are brought into the forms products read: copies, widenings, turns.
//
// The unit of a target is the 32-bit word: one f32 or one pair of bf16. A move fills whole target
// rows: what lies beyond the source, up to `padded` words (a multiple of 16; of 8 for
// micro-panels), becomes zero, so that padding adds nothing to a product. Invariant: nothing
// outside the source's rows and columns is read. Cost: memory speed; turns go through registers.
#pragma once

#include <stdint.h>

#include "core/cpu.hpp"

namespace velo::ops {

struct move {
  const void* from;
  int64_t ld_from;  // elements between source rows
  int rows, columns;
  uint32_t* to;
  int64_t ld_to;  // words between target rows
  int padded;     // words of a target row
};

// s is the source, t the target, i and j run over rows and columns of the source.
struct move_table {
  // B into a panel.
  void (*rows32)(const move&);       // t[i][j] = s[i][j], f32
  void (*rows16_wide)(const move&);  // bf16 widened to f32
  void (*pairs)(const move&);        // t[i / 2][j] = (s[i][j], s[i + 1][j]) for even i, bf16
  void (*turn32)(const move&);       // t[j][i] = s[i][j], f32
  void (*turn16_wide)(const move&);  // bf16 widened to f32
  void (*turn_pairs)(const move&);   // t[j / 2][i] = (s[i][j], s[i][j + 1]) for even j, bf16

  // A into micro-panels of eight rows, ld_to words apart: row r of A to words [.][r % 8] of
  // micro-panel r / 8. Up to `padded` rows those that A lacks are zero; a vector's worth is
  // written.
  void (*micro_rows32)(const move&);       // r = i, word j = s[i][j], f32
  void (*micro_rows16)(const move&);       // word j / 2 = (s[i][j], s[i][j + 1]) for even j, bf16
  void (*micro_rows16_wide)(const move&);  // bf16 widened to f32
  void (*micro_turn32)(const move&);       // r = j, word i = s[i][j], f32
  void (*micro_turn_pairs)(const move&);   // word i / 2 = (s[i][j], s[i + 1][j]) for even i, bf16
  void (*micro_turn16_wide)(const move&);  // bf16 widened to f32

  // A for the tiles of AMX, bf16.
  void (*strips16)(const move&);  // t[i][j] = s[i][j], two to a word: 32 rows are a strip of ld_to
                                  // words, in it 16 words of every row after each other, then the
                                  // next 16
  void (*turn16)(const move&);    // t[j][i / 2] = (s[i][j], s[i + 1][j]) for even i
};

extern const move_table moves_scalar, moves_avx2, moves_avx512;

inline const move_table& moves_for(core::isa isa) {
  if (isa >= core::isa::avx512) return moves_avx512;
  return isa == core::isa::avx2 ? moves_avx2 : moves_scalar;
}

}  // namespace velo::ops
