// Copies of matrices into the forms that products read: plain, widened, transposed (oneDNN:
// reorders).
//
// The unit of a target is the 32-bit word: one f32 or one pair of bf16. A reorder fills whole
// target rows: beyond the source, up to `padded` words (a multiple of 16; of 8 for micro-panels),
// it writes zeros, so that padding adds nothing to a product. Invariant: nothing outside the
// source's rows and columns is read. Cost: memory speed.
#pragma once

#include <stdint.h>

namespace velo::ops {

struct reorder {
  const void* from;
  int64_t ld_from;  // elements between source rows
  int rows, columns;
  uint32_t* to;
  int64_t ld_to;  // words between target rows
  int padded;     // words of a target row
};

// The reorders to words of one kind from sources of one kind: f32, bf16 or f16 widened to f32, or
// bf16 in pairs along the depth. s is the source, t the target; i and j run over rows and columns
// of the source, and w is a word: s[i][j], or the pair of it and its neighbor along the depth.
struct reorder_kernels {
  // A right side: t[i][j] = w; of pairs t[i / 2][j], even i.
  void (*rows)(const reorder&);
  // A right side stored transposed: t[j][i] = w; of pairs t[j / 2][i], even j.
  void (*transpose)(const reorder&);
  // A left side in micro-panels of eight rows, ld_to words apart: row i to words [.][i % 8] of
  // micro-panel i / 8. Rows that are missing up to `padded`, a multiple of eight, are zero.
  void (*micro_rows)(const reorder&);
  // A left side stored transposed: the row is j.
  void (*micro_transpose)(const reorder&);
  // A left side stored transposed, to plain rows: t[j][i] = w; of pairs t[j][i / 2].
  void (*transpose_rows)(const reorder&);
};

}  // namespace velo::ops
