// Rows of a table by index, and the gradient that adds them back.
//
//   y[t] = table[ids[t]];   dtable[ids[t]] += dy[t], tokens in order
//
// Table and y: float32 or bfloat16, rows of n elements; dtable float32. The forward copies rows and
// has no arithmetic; the gradient gives each task a block of columns and all tokens, so that no two
// tasks meet and the order of sums is fixed. Bytes: forward one read and one write a token's row;
// backward one read of dy, one read and write of the rows used.
#pragma once

#include <stdint.h>

#include "core/simd/types.hpp"

namespace velo::ops {

// Adds n elements of one token's gradient to its row.
template <class T>
struct embedding_row {
  const T* dy;
  float* dtable;
  int64_t n;
};

namespace reference {
void embedding_add(const embedding_row<float>& s);
void embedding_add(const embedding_row<simd::bf16>& s);
}  // namespace reference
namespace avx2 {
void embedding_add(const embedding_row<float>& s);
void embedding_add(const embedding_row<simd::bf16>& s);
}  // namespace avx2
namespace avx512 {
void embedding_add(const embedding_row<float>& s);
void embedding_add(const embedding_row<simd::bf16>& s);
}  // namespace avx512

}  // namespace velo::ops
