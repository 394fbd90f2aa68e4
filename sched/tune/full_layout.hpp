// A layout with the ways of a cut that are fields of velo_tuning_plan and velo_tuning_rejection,
// not of their velo_tuning_layout.
//
// They are dimensions of the search, too. They change what a layer costs and nothing else, so a way
// that takes no less time and no less memory in a layer than another one is rejected before
// anything is searched.
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
  // The way in which ranks share the attention of a sequence. -1: no ranks share it; in a
  // rejection, the reason holds for any way.
  velo_sequence_kind cp_algorithm = -1;
  std::int32_t cp_ulysses = 0;  // neighbors that exchange heads; 0 but for a hybrid

  // The number of slices of rows in which a product overlaps with its exchange of tensor
  // parallelism; 1: no overlap. 0: no exchange; in a rejection, the reason holds for any number.
  std::int32_t tp_slices = 0;
  rearrange tokens = rearrange::index;

  full_layout() : velo_tuning_layout{} {}
  full_layout(const velo_tuning_layout& of)  // NOLINT(google-explicit-constructor): the usual ways
      : velo_tuning_layout(of) {
    if (of.cp > 1) cp_algorithm = VELO_SEQUENCE_RING;
    if (of.tp > 1) tp_slices = 1;
  }
};

}  // namespace velo::sched::tune
