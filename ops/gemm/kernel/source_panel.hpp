// The first micro-panel of A times a strip of B that is read in place: plain rows of the source,
// which the kernel leaves packed for the other micro-panels.
//
// A product of few rows reads B once, so packing beforehand would cost as much as multiplying. Here
// the vectors that are loaded anyway are widened or paired in registers, multiplied, and stored to
// a strip that stays in L1. Rows of the source are short pieces far apart, which no hardware
// prefetches; a run of lines, those of the strip that comes next, is prefetched between the steps.
// Invariant: words and sums are those of packing and the micro-kernel, bit for bit; the sums are
// never finished here. Cost: 2 * 8 * width * depth FLOP, and a store a vector of B.
#pragma once

#include "ops/gemm/kernel/micro_kernel.hpp"

namespace velo::ops {

struct source_panel {
  const uint32_t* a;  // packed, [words][8]
  const void* b;      // the first element
  int64_t ldb;        // elements between its rows
  int words, width;   // steps; columns, all of them valid: 16, 32 or 48
  int rows;           // of the micro-panel, at most eight
  uint32_t* packed;   // [words][width]
  bool first;         // whether sums begin at zero
  float* sums;        // [8][ld_sums]; whole blocks are written, rows beyond `rows` too
  int64_t ld_sums;
  line_run fetch;  // into L2, a step each
};

// Sources of f32, bf16 and f16 widened to f32, or bf16 in pairs along the depth: two rows a step.
struct source_kernels {
  using kernel = void (*)(const source_panel&);
  kernel floats, wide_bf16, wide_f16;
  kernel pairs;  // null where there is no dot product
};

}  // namespace velo::ops
