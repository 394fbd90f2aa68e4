// Tiles of score terms for a pass: which row of which tensor a tile's row takes.
//
// Both passes and the reference find the terms of a pair here alone. A dropout decision's index is
// that of the pair in the whole [B, N, Sq, Skv]; packed sequences count as one batch whose rows are
// all queries and whose keys are those of the longest sequence.
#pragma once

#include "ops/attention/engine/attention_plan.hpp"

namespace velo::ops {

// A block of scores: rows from `row` and keys from `key` on of a head of a sequence.
struct score_block {
  std::int64_t batch, head;
  const attention_sequence& sequence;
  std::int64_t row, key;
  int rows, keys;  // that exist
  int width;       // keys, padded to a multiple of 32
};

// The elements of pse that a row takes: the first is that of key 0.
struct pse_row {
  std::int64_t first, columns;
};
pse_row pse_row_of(const attention_terms& terms, const attention_sequence& sequence,
                   std::int64_t batch, std::int64_t head, std::int64_t row);
const std::uint8_t* mask_row_of(const attention_terms& terms, std::int64_t batch, std::int64_t head,
                                std::int64_t row);
float slope_of(const attention_terms& terms, std::int64_t batch, std::int64_t head);  // or 0
std::uint64_t decision_of(const attention_problem& problem, const attention_sequence& sequence,
                          std::int64_t batch, std::int64_t head, std::int64_t row,
                          std::int64_t key);

class attention_tiles {
 public:
  attention_tiles(const attention_problem& problem, core::isa isa);

  const attention_terms_kernels& kernels() const { return kernels_; }
  void addends(const score_block& block, float* tile, std::int64_t ld) const;
  void multipliers(const score_block& block, float* tile, std::int64_t ld) const;

 private:
  const attention_problem& p_;
  const attention_terms_kernels& kernels_;
  void (*addends_)(const addend_row&);
};

// The terms of one pair, for the plain loops.
struct pair_terms {
  float addend;  // -Inf hides the pair
  float multiplier;
};
pair_terms terms_of(const attention_problem& problem, const attention_sequence& sequence,
                    std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key);

}  // namespace velo::ops
