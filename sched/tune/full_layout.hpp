// A layout with the ways of a cut that are fields of velo_tuning_plan and velo_tuning_rejection,
// not of their velo_tuning_layout.
//
// They are dimensions of the search, too. The ways from cp_algorithm on change what a layer costs
// and nothing else, so one that takes no less time and no less memory in a layer than another one
// is rejected before anything is searched.
#pragma once

#include <cstdint>

#include "velo/sequence_plan.h"
#include "velo/tune.h"

namespace velo::sched::tune {

// How tokens get into the order of their experts and back: by the numbers of their rows, or by
// products with matrices of zeros and ones.
enum class rearrange : velo_tuning_rearrange {
  index = VELO_TUNING_REARRANGE_INDEX,
  one_hot = VELO_TUNING_REARRANGE_ONE_HOT
};

struct full_layout : velo_tuning_layout {
  // The tensor ranks that cut the outputs of a block's first matrix, tp = tp_x * tp_y; those along
  // y cut the hidden dimension. 0: matrices are cut one way. A dimension of the search as tp is.
  std::int32_t tp_x = 0;
  // The parts of each sequence that SEQ1F1B orders apart; 0: another kind, or whatever it may be.
  std::int32_t sequence_splits = 0;

  // Whether tensor ranks also share the rows between matrices: 1 or 0; and ZeRO's stage, 0 to 2.
  // -1: as the training section has it; in a rejection, the reason holds for any.
  std::int32_t sequence_parallel = -1;
  std::int32_t zero = -1;

  // The way in which ranks share the attention of a sequence. -1: no ranks share it; in a
  // rejection, the reason holds for any way.
  velo_sequence_kind cp_algorithm = -1;
  std::int32_t cp_ulysses = 0;  // neighbors that exchange heads; 0 but for a hybrid

  // The number of slices of rows in which a product overlaps with its exchange of tensor
  // parallelism; 1: no overlap. 0: no exchange; in a rejection, the reason holds for any number.
  std::int32_t tp_slices = 0;
  rearrange tokens = rearrange::index;

  bool in_two() const { return tp_x > 0; }
  std::int32_t ranks_x() const { return in_two() ? tp_x : tp; }
  std::int32_t ranks_y() const { return in_two() ? tp / tp_x : 1; }
  // The ranks that attention's rows are cut over: those along y are further context ranks.
  std::int32_t attention_ranks() const { return cp * ranks_y(); }
  std::int32_t splits() const { return sequence_splits > 0 ? sequence_splits : 1; }
  // The times that a stage goes forward in a step.
  std::int32_t units() const { return microbatches * splits(); }

  full_layout() : velo_tuning_layout{} {}
  full_layout(const velo_tuning_layout& of)  // NOLINT(google-explicit-constructor): the usual ways
      : velo_tuning_layout(of) {
    if (of.cp > 1) cp_algorithm = VELO_SEQUENCE_RING;
    if (of.tp > 1) tp_slices = 1;
  }
};

}  // namespace velo::sched::tune
