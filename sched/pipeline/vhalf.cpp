// V-Half: half the memory of 1F1B; no rank idles in the steady phase if costs are nearly equal.
//
// Forwards go down the ranks in two time slots for each rank and up in one, gradients the same way.
// Three slots in between are left empty if the number of ranks is even, so that no two actions need
// the same slot. At most floor((P + 2) / 2) micro-batches are held.
#include "sched/pipeline/order/building_block.hpp"

namespace velo::sched {

schedule make_vhalf(const request& wanted) {
  const std::int64_t ranks = wanted.ranks, gap = ranks % 2 == 0 ? 3 : 0;
  std::vector<block> blocks;
  for (std::int64_t r = 0; r < ranks; ++r)
    blocks.push_back(
        {2 * r, 3 * ranks - 2 - r, 3 * ranks + gap + 2 * r - 1, 6 * ranks + gap - 2 - r});
  return repeat_block(wanted, blocks);
}

}  // namespace velo::sched
