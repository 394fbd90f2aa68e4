// The options that both passes of attention share, read from the arguments of either.
//
// They say which keys a row sees, what is added to scores and what is dropped. check_options holds
// them against the problem and against each other; place_options, which a call runs when it is
// carried out, gives the problem the memory they name.
#pragma once

#include "ops/attention/attention_layout.hpp"

namespace velo::ops {

struct attention_options {
  std::int64_t layout, sparse_mode, pre_tokens, next_tokens, pse_type;
  std::int64_t q_start_idx, kv_start_idx, seed, offset;
  double scale, keep_prob;
  const velo_tensor *atten_mask, *pse;
  const velo_ints *actual_seq_qlen, *actual_seq_kvlen, *prefix, *dropout_origin, *dropout_extents;

  bool lists() const { return layout == VELO_ATTENTION_LAYOUT_TND; }
  // Of the sequences, whose lists have been checked.
  const std::int64_t* q_ends() const { return lists() ? actual_seq_qlen->data : nullptr; }
  const std::int64_t* kv_ends() const { return lists() ? actual_seq_kvlen->data : nullptr; }
};

template <class Args>
attention_options options_of(const Args& a) {
  return {a.layout,
          a.sparse_mode,
          a.pre_tokens,
          a.next_tokens,
          a.pse_type,
          a.q_start_idx,
          a.kv_start_idx,
          a.seed,
          a.offset,
          a.scale,
          a.keep_prob,
          a.atten_mask,
          a.pse,
          a.actual_seq_qlen,
          a.actual_seq_kvlen,
          a.prefix,
          a.dropout_origin,
          a.dropout_extents};
}

// Checks the options and describes the keys that rows see.
void check_options(const attention_options& o, attention_problem& p);
// Whether there is a pse whose gradient is written; checks that, and describes dpse.
bool has_bias_gradient(const attention_options& o, const attention_problem& p);
score_tensor check_bias_gradient(const attention_options& o, const attention_problem& p,
                                 const velo_tensor& dpse);
// Adds the lists of the arguments to the problem, and as its terms those of them, in `terms`.
void place_options(const attention_options& o, attention_problem& p, attention_terms& terms);

}  // namespace velo::ops
