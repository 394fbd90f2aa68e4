// Attention of a few new rows over keys and values in a cache: its kernels.
//
//   out = softmax(scale q K^T) V over the keys of a sequence up to the row's own
//
// The work is one read of keys and values, so products read the cache's rows where they lie,
// by pointers: contiguous, strided and paged caches are one case. Keys are taken in chunks of a
// fixed size from the first on, each with a softmax of its own, and the chunks' results are merged
// in order; so a row's bits depend on its query and the keys it sees alone, not on the number of
// rows, keys after it, or threads. int8 caches have a float for each head and token, which
// multiplies scores and probabilities.
// Cost: 2 (D + Dv) flop a score; one read of the cache for all rows of a key head, fastest where a
// head's tokens lie side by side.
#pragma once

#include <stdint.h>

#include "core/host/cpu.hpp"
#include "core/simd/dots.hpp"
#include "ops/operator/kernels.hpp"

namespace velo::ops {

// Rows of the cache, each dense; those after the last, `ahead` of them, are prefetched.
struct cache_rows {
  const void* const* rows;
  int count, columns, ahead;
};

// scores[i][j] = q[i] . key[j], [rows][ld]; ld is a multiple of 4. The first entries of a row of q
// are the elements, the rest, up to whole vectors, are zero.
struct cache_scores {
  const void* q;
  int64_t q_row;  // bytes between rows
  cache_rows keys;
  int rows;
  float* scores;
  int64_t ld;
};

// out[i] += p[i] V. Where p has 16 bits, and two to a word, an odd last key is followed by a row of
// zeros.
struct cache_values {
  const void* p;
  int64_t p_row;  // bytes between rows
  cache_rows values;
  int rows;
  float* out;
  int64_t ld;
};

// Rows of sums relative to references: those before, into which the sums of later keys are merged.
struct cache_part {
  float* out;        // [rows][ld]
  float* reference;  // [rows]; -Inf where nothing has been summed
  float* sum;        // [rows][16]
};
struct cache_merge {
  cache_part to, from;
  int rows, columns;  // a multiple of 16
  int64_t ld;
};

struct cache_steps {
  void (*scores)(const cache_scores&);
  void (*values)(const cache_values&);
};

struct cached_attention_kernels {
  core::isa isa;
  cache_steps f32, bf16, f16, i8;  // by elements of the cache; multiplied as floats
  cache_steps pairs;               // bf16 by pairs; empty where there is no dot product
  // rows[i][j] *= factors[j]
  void (*scale_columns)(float* rows, int64_t ld, int count, int columns, const float* factors);
  void (*merge)(const cache_merge&);
};
extern const kernel_list cached_attention_kernel_list;

}  // namespace velo::ops
