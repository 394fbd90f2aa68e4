// V-Min: the least memory of all kinds, a third of 1F1B's, for balanced costs only.
//
// A micro-batch goes down the ranks and up, twice, in one time slot for each rank. If P is a
// multiple of 3, two slots are left empty in between, so that no two actions need the same slot. At
// most floor((P + 4) / 3) micro-batches are held. At unequal costs the short lifespans leave no
// work with which waits could be filled.
#include "sched/pipeline/order/building_block.hpp"

namespace velo::sched {

schedule make_vmin(const request& wanted) {
  const std::int64_t ranks = wanted.ranks, gap = ranks % 3 == 0 ? 2 : 0;
  std::vector<block> blocks;
  for (std::int64_t r = 0; r < ranks; ++r)
    blocks.push_back({r, 2 * ranks - 1 - r, 2 * ranks + gap + r, 4 * ranks + gap - 1 - r});
  return repeat_block(wanted, blocks);
}

}  // namespace velo::sched
