// A ring of two ranks taken apart: what a rank computes, and what it sends. Each call needs no more
// than its own rank's tensors, or the exchange.
//
// Computed, with the rows of the other rank at hand: attention of the own block by
// context_parallel_attention of this rank alone, and that of the other block by fusion_attention.
// The forward merges the two in float32 by ring_attention_update. The gradient adds up in the
// products, so that it has no third call. Sent: keys and values of the own rows, in the gradient
// their float32 gradients; each rank receives as much at the same time.
#pragma once

#include "bench/parallel/attention_calls.hpp"

namespace velo::bench {

class ring_apart {
 public:
  ring_apart(const attention_shape& of, const rank_of& me, velo_sequence_plan ring, bool gradient);

  void compute() const;
  void exchange() const;

 private:
  void merge() const;
  row_block of_own_rows(const attention_shape& of) const;

  const rank_of& me_;
  const bool gradient_;
  const shared_attention own_;
  const attention_tensors other_;  // with the block that the ring brings
  const row_block before_, now_;   // float32 results of both, of the same queries
  softmax_statistics statistics_;  // of the one before
  const row_block sent_[2], received_[2];
};

}  // namespace velo::bench
