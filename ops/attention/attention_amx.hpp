// The forward walk of one block of queries on AMX tiles: block products and softmax of the general
// walk in one place, with operands packed a pair of tiles wide, so that tiles read whole pages of
// neighboring lines and the probabilities stay where the scores were.
#pragma once

#include <stdint.h>

namespace velo::ops {

inline constexpr int tile_strip = 32;  // query rows
inline constexpr int tile_panel = 32;  // keys, or value columns, side by side in a packed panel
inline constexpr int tile_key_block = 256;  // keys of a product with the values

struct tile_query_block {
  const void* q;       // bf16 [padded rows][d]
  const void* keys;    // panels of 32 keys, [d/2][32] pairs each
  const void* values;  // per block of keys: panels of 32 columns, [block/2][32] pairs each
  int d, dv;           // multiples of 32
  int rows;            // the rest of the last strip is padding
  int64_t skv;
  int64_t visible;   // keys the first row sees
  int step;          // 1 causal, 0 not
  float factor;      // |scale| * log2 e
  float* scores;     // [32][128]
  void* weights;     // bf16 [32][tile_key_block]
  float* out;        // [padded rows][dv]
  float* max;        // per row, -Inf
  float* reference;  // per row, -Inf
  float* sum;        // per row 16, 0
};

namespace amx {
// Strips that see no key leave `out` unset. Inside a block_session.
void attention_query_block(const tile_query_block&);
}  // namespace amx

}  // namespace velo::ops
