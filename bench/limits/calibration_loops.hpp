// The loops behind the limits, as tables of plain functions chosen by what the machine offers.
//
// A compute loop runs `rounds` rounds in registers. A pattern walks `count` floats of up to four
// arrays, count being a multiple of 64; arrays are 64-byte aligned.
#pragma once

#include <cstdint>

namespace velo::bench {

struct compute_loop {
  void (*run)(std::int64_t rounds);
  double flop_per_round;
};

extern const compute_loop sse2_loop;
extern const compute_loop fma_avx2_loop;
extern const compute_loop fma_avx512_loop;
extern const compute_loop dot_bf16_loop;
extern const compute_loop amx_bf16_loop;

using pattern = void (*)(float* const* arrays, std::int64_t count);

struct pattern_table {
  pattern read, copy, copy_nt, triad, triad_nt, scale, adam;
};

extern const pattern_table patterns_sse2;
extern const pattern_table patterns_avx2;
extern const pattern_table patterns_avx512;

}  // namespace velo::bench
