// The innermost loop of a product: a micro-panel of A, eight rows, times a panel of B, up to 48
// columns, with all sums in registers.
//
// Both operands are runs of words, a word being one f32 or two neighbors of bf16 along the depth: A
// is [words][8], B is [words][width]. A step of the depth thus reads two short pieces that follow
// those of the step before. The kernel prefetches meanwhile: A some steps ahead, one line a step of
// the panel of B that is read next, and towards the end the lines that receive sums and results.
// The last pass applies the epilogue to the registers. Invariant: an element is one chain of
// multiply-adds, or of dot products of two, in ascending depth, wherever in the block it lies;
// nothing beyond the rows and columns of the output is written. Cost: 2 * 8 * width * depth FLOP at
// 97 % of the peak and more from 256 words on (Zen 4, operands in L2).
#pragma once

#include <stdint.h>

#include "ops/gemm/kernel/output_block.hpp"

namespace velo::ops {

constexpr int micro_rows = 8;

// Lines of memory to prefetch: every `step` bytes one, or three that lie `beside` bytes apart.
struct line_run {
  const void* first;
  int64_t step, beside;
  int steps;
};

// Lines to copy between steps of the depth.
struct line_copies {
  const char* from;
  char* to;
  int lines;
};

struct micro_args {
  const uint32_t* a;
  int64_t a_row, a_step;  // words between its rows and between its steps: 1 and 8 when packed
  const uint32_t* b;
  int64_t b_step;    // words between its steps
  int words, width;  // steps; columns: 16, 32 or 48
  bool in_cache;     // all operands lie in L1 or L2: nothing is prefetched, and all rows of the
                     // output are computed; not the last pass
  bool first, last;  // pass: whether sums begin at zero, whether they are finished
  float* sums;       // [8][ld_sums] between passes; unused where one pass is all
  float* next_sums;  // those of the next call
  int64_t ld_sums;
  line_run fetch;       // into L2, between the steps of the depth
  line_copies copies;   // between them, too
  output_block output;  // of its first eight rows, or of all in cache; the last pass writes it
};

using micro_kernel = void (*)(const micro_args&);

}  // namespace velo::ops
